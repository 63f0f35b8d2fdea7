#!/usr/bin/env bash
# Runs 10,000 points on a Slurm of its own. Prints how long the driver takes to submit them, the share of a core that it
# takes to follow them, and how much memory it holds. Goals: 2 s; one hundredth of a core; 150 MB.
#   bench/slurm.sh BUILD_DIR [POINTS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
points=${2:-10000}
watch_s=60

command -v sbatch >/dev/null || {
  echo "skipped: there is no Slurm here; \`make test-cluster\` installs one" >&2
  exit 0
}
work=$(mktemp -d)
cluster=$here/../tests/cluster/slurm-cluster
driver=
finish() {
  [ -z "$driver" ] || kill -9 "$driver" 2>/dev/null || true
  "$cluster" remove "$work/cluster" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
"$cluster" start "$work/cluster" --max-array=1001 --max-jobs=50000 "--until=$$"
export SLURM_CONF=$work/cluster/etc/slurm.conf

# One task runs forever, and the others wait for it. The shell ignores the arguments that a trainer gets.
cat >"$work/sweep.yaml" <<YAML
name: many
defaults: {model: gpt-10m, seq_length: 64}
matrix: {seed: 1..$points+1}
launch: {launcher: slurm, cpus: 1, max_parallel: 1, trainer: [/bin/sh, -c, sleep 1000000, sleeper]}
YAML

for client in agent tools; do
  mkdir "$work/$client"
  sed "s/cpus: 1,/cpus: 1, slurm: {client: $client},/" "$work/sweep.yaml" >"$work/$client/sweep.yaml"
  (cd "$work/$client" && exec "$build/bin/ridgeline" run sweep.yaml >log 2>&1) &
  driver=$!
  until [ "$(sqlite3 "$work/$client/ridgeline.db" "SELECT count(*) FROM jobs WHERE state = 'submitted'" 2>/dev/null || echo 0)" -ge "$points" ]; do
    kill -0 "$driver" || { cat "$work/$client/log" >&2; exit 1; }
    sleep 0.5
  done
  submitted=$(sqlite3 "$work/$client/ridgeline.db" "SELECT printf('%.2f', (max(submitted_unix_ns) - min(created_unix_ns)) / 1e9) FROM jobs")
  ticks() { awk -v pids="$driver $(pgrep -P "$driver" | tr '\n' ' ')" 'BEGIN {
    n = split(pids, pid, " "); total = 0
    for (i = 1; i <= n; i++) { if ((getline line < ("/proc/" pid[i] "/stat")) > 0) { sub(/.*\) /, "", line); split(line, f, " "); total += f[12] + f[13] + f[14] + f[15] } }
    print total }'; }
  sleep 15 # lets the driver's first queries pass
  before=$(ticks)
  sleep "$watch_s"
  after=$(ticks)
  share=$(awk -v t=$((after - before)) -v s="$watch_s" -v hz="$(getconf CLK_TCK)" 'BEGIN { printf "%.2f", 100 * t / hz / s }')
  memory=$(awk '/VmHWM/ { printf "%.0f", $2 * 1024 / 1e6 }' "/proc/$driver/status")
  echo "$client: $points points submitted in $submitted s; following them takes $share% of a core; the driver holds $memory MB"
  kill -9 "$driver"
  wait "$driver" 2>/dev/null || true
  driver=
  scancel --user="$(id -u)" || true
done
