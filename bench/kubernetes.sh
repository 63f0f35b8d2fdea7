#!/usr/bin/env bash
# Runs points of one second through a real API server of its own, on a node that runs pods as processes. Prints how long
# they take, how much memory the driver holds, and whether each has exactly one result. Goal for 1,000 points: 100 MB, no
# result lost or doubled.
#   bench/kubernetes.sh BUILD_DIR [POINTS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
points=${2:-1000}

[ "$(id -u)" -eq 0 ] || {
  echo "skipped: the node mounts, which needs root" >&2
  exit 0
}
"$here/../tests/cluster/kubernetes-build" "$build/kubernetes"
work=$(mktemp -d)
cluster=$here/../tests/cluster/kubernetes-cluster
driver=
finish() {
  [ -z "$driver" ] || kill -9 "$driver" 2>/dev/null || true
  "$cluster" remove "$work/cluster" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
"$cluster" start "$work/cluster" "--bin=$build/kubernetes" "--until=$$"
"$cluster" node "$work/cluster" n1 start "--image=$build/bin=/opt/ridgeline/bin" \
  "--image=$build/tests/fakes=/opt/ridgeline/fakes" --image-path=/opt/ridgeline/bin
export KUBECONFIG=$work/cluster/kubeconfig PATH=$build/kubernetes:$PATH

cat >"$work/sweep.yaml" <<YAML
name: many
defaults: {model: gpt-10m, seq_length: 64}
matrix: {seed: 1..$points+1}
launch:
  launcher: kubernetes
  trainer: [/opt/ridgeline/fakes/fake_trainer, slow=1000]
  kubernetes: {image: "test/ridgeline:1"}
YAML
cd "$work"
began=$SECONDS
"$build/bin/ridgeline" run sweep.yaml >log 2>&1 &
driver=$!
memory=0
cpu=0
while kill -0 "$driver" 2>/dev/null; do
  memory=$(awk '/VmHWM/ { printf "%.0f", $2 * 1024 / 1e6 }' "/proc/$driver/status" 2>/dev/null || echo "$memory")
  cpu=$(awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); split($0, f, " "); printf "%.1f", (f[12] + f[13]) / hz }' \
    "/proc/$driver/stat" 2>/dev/null || echo "$cpu")
  sleep 0.2
done
wait "$driver" || { tail -n 5 log >&2; exit 1; }
driver=
ok=$(sqlite3 ridgeline.db "SELECT count(*) FROM results WHERE status = 'ok'")
all=$(sqlite3 ridgeline.db "SELECT count(*) FROM results")
left=$(kubectl get jobs,pods --output=name | wc -l)
echo "$points points of one second in $((SECONDS - began)) s: $ok ok of $all results, $left Jobs and pods left;" \
  "the driver holds $memory MB and took $cpu s of a core"
