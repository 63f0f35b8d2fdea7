#!/usr/bin/env bash
# Tests kubelet-node itself: what it reports if no kubelet can run, and that a kubelet leaves nothing behind.
#   kubelet_test.sh BINDIR
# Ends with 77, CTest's "skipped", if it cannot run here.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:-.}")

failures=0
expect() { # expect WHAT WANTED GOT: shell patterns are allowed
  # shellcheck disable=SC2053 # a pattern
  if [[ $3 == $2 ]]; then
    echo "ok: $1"
  else
    echo "FAILED: $1: wanted '$2', got '${3:0:1000}'"
    failures=$((failures + 1))
  fi
}

# --- What a machine lacks

said_by() { # said_by COMMAND…: prints its output and its exit code
  local status=0
  "$@" 2>&1 || status=$?
  echo "[$status]"
}

if [ "$(id -u)" -ne 0 ]; then
  expect "without root, check names root" 'skipped:*  root: *\[77\]' "$(said_by "$here/kubelet-node" check machine)"
  exit $((failures > 0 ? 1 : 77))
fi
"$here/kubelet-node" check # ends with 77 if no kubelet can run
expect "without root, check names root" 'skipped:*  root: *\[77\]' \
  "$(said_by setpriv --reuid=65534 --clear-groups "$here/kubelet-node" check machine)"
expect "without control groups, check names them" 'skipped:*  control groups *: cpu cpuacct cpuset memory*\[77\]' \
  "$(said_by unshare --mount sh -c "umount --recursive /sys/fs/cgroup && exec '$here/kubelet-node' check machine")"
work=$(mktemp -d)
chmod 755 "$work"
cluster() { "$here/kubernetes-cluster" "$1" "$work/k8s" "${@:2}"; }
clean_up() {
  cluster remove
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
mkdir "$work/empty"
expect "without programs, check names them" "skipped:*  programs: */bridge */host-local *\\[77\\]" \
  "$(said_by unshare --mount sh -c "mount --bind '$work/empty' /usr/lib/cni && exec '$here/kubelet-node' check")"

# --- A node and its end

kubectl() { timeout 120 "$bin/kubectl" --kubeconfig="$work/k8s/kubeconfig" "$@"; }

within() { # within SECONDS COMMAND…: repeats the command until it succeeds, for that time at most
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.2
  done
}

traces() { # prints the cluster's traces on this machine
  find /sys/fs/cgroup -maxdepth 2 -name "$group"
  grep -F "$work" /proc/mounts || true
  grep -lzxF "RIDGELINE_TEST_CLUSTER=$work/k8s" /proc/[0-9]*/environ 2>/dev/null || true
  pgrep --full "containerd.*$work" || true
}
ticks() { if [ -e "$work/host/ticks" ]; then wc -l <"$work/host/ticks"; else echo 0; fi; }
ticked_since() { [ "$(ticks)" -gt "$1" ]; }
ended() { [[ $(kubectl get pod "$1" --output=jsonpath='{.status.phase}') == [FS]* ]]; }

run() { # run NAME SCRIPT
  kubectl create -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  containers:
  - {name: main, image: "test/ridgeline:1", command: [sh, -c, "$2"], volumeMounts: [{name: host, mountPath: /host}]}
  volumes: [{name: host, hostPath: {path: $work/host}}]
YAML
}

mkdir "$work/host" "$work/image"
printf '#!/bin/sh\necho hello from the image\n' >"$work/image/hello"
chmod 755 "$work/image/hello"
cluster start --bin="$bin" --until=$$
cluster node 127.0.0.3 start --kubelet --image="$work/image=/opt/image" --image-path=/opt/image
group=$("$here/kubelet-node" group "$work/k8s/nodes/127.0.0.3")
expect "a node's control groups have the folder's name" "*/memory/$group*" "$(traces)"
run hello 'hello; exit 3'
expect "a pod runs" ok "$(within 120 ended hello && echo ok)"
expect "its exit code is reported" 3 "$(kubectl get pod hello --output=jsonpath='{..terminated.exitCode}')"
expect "its log can be read" 'hello from the image' "$(kubectl logs hello)"
run ticking 'while :; do echo >>/host/ticks; sleep 0.1; done'
expect "another runs" ok "$(within 120 ticked_since 0 && echo ok)"
cluster node 127.0.0.3 orphan
expect "it runs on without its kubelet" ok "$(within 120 ticked_since "$(ticks)" && echo ok)"
cluster node 127.0.0.3 kill
expect "it ends with its node" "$(ticks)" "$(sleep 1 && ticks)"
cluster node 127.0.0.3 start
run again 'hello'
expect "a node comes back" ok "$(within 120 ended again && echo ok)"
cluster remove
expect "nothing is left" '' "$(traces)"

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
