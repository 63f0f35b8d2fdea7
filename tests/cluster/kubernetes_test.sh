#!/usr/bin/env bash
# Tests the throw-away Kubernetes itself, on which other tests rely: kubernetes-cluster and kubernetes-node.
#   kubernetes_test.sh BINDIR
# Ends with 77, CTest's "skipped", if it cannot run here.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:-.}")
if [ ! -e "$bin/built" ] || ! command -v etcd >/dev/null || ! unshare --mount --pid --fork true 2>/dev/null; then
  echo "skipped: this test needs root, etcd, and a Kubernetes in $bin (tests/cluster/kubernetes-build)"
  exit 77
fi

work=$(mktemp -d)
chmod 755 "$work"
cluster() { "$here/kubernetes-cluster" "$1" "$work/k8s" "${@:2}"; }
clean_up() {
  cluster remove
  rm -rf "$work"
}
trap clean_up EXIT

export KUBECONFIG=$work/k8s/kubeconfig HOME=$work
kubectl() { timeout 120 "$bin/kubectl" "$@"; }

failures=0
# expect WHAT WANTED GOT: shell patterns are allowed.
expect() {
  # shellcheck disable=SC2053 # a pattern
  if [[ $3 == $2 ]]; then
    echo "ok: $1"
  else
    echo "FAILED: $1: wanted '$2', got '${3:0:1000}'"
    failures=$((failures + 1))
  fi
}

# eventually WHAT WANTED COMMAND…: repeats the command until it prints that, for 150 s at most.
eventually() {
  local end=$((SECONDS + 150)) got
  while
    got=$("${@:3}" 2>&1 || true)
    # shellcheck disable=SC2053 # a pattern
    [[ $got != $2 ]] && [ "$SECONDS" -lt "$end" ]
  do
    sleep 0.2
  done
  expect "$1" "$2" "$got"
}

pod() { kubectl get pod "$1" -o "jsonpath={$2}"; }

# run NAME SCRIPT [SPEC [ANNOTATION]]: creates a pod. SPEC has more lines of its spec, indented by two spaces.
run() {
  kubectl create -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata:
  name: $1
  labels: {group: peers}
  annotations: {ridgeline.test/fault: "${4-}"}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 2
  automountServiceAccountToken: false
${3-}
  containers:
  - name: main
    image: test
    command: [sh, -c, $(printf '%s' "$2" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&"/')]
YAML
}

mkdir "$work/image" "$work/host"
printf '#!/bin/sh\necho hello from the image\n' >"$work/image/hello"
chmod 755 "$work/image/hello"

started=$EPOCHREALTIME
cluster start --bin="$bin" --node-grace=4 --until=$$
echo "up after $(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s"
for node in n1 n2; do
  cluster node "$node" start --capacity=nvidia.com/gpu=8 --label=test/name="$node" --image="$work/image=/opt/test/bin" \
    --image-path=/opt/test/bin
done
expect "both nodes offer GPUs" "8 8" "$(kubectl get nodes -o 'jsonpath={.items[*].status.allocatable.nvidia\.com/gpu}')"

echo "# Rights"
cluster user driver
driver=(kubectl --kubeconfig "$work/k8s/driver.kubeconfig")
expect "a new user has no rights" no "$("${driver[@]}" auth can-i create jobs 2>/dev/null || true)"
kubectl create role driver --verb=create,get --resource=jobs >/dev/null
kubectl create rolebinding driver --role=driver --user=driver >/dev/null
eventually "a role gives a user its rights" yes "${driver[@]}" auth can-i create jobs

echo "# A Job whose configMap comes late, not as root, that may write only to its volumes"
kubectl create -f - >/dev/null <<'YAML'
apiVersion: batch/v1
kind: Job
metadata: {name: full}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      securityContext: {runAsUser: 1234, runAsGroup: 2345, fsGroup: 3456, runAsNonRoot: true}
      containers:
      - name: main
        image: test
        command: [sh, -c]
        args:
        - |
          hello
          echo "$(id -u) $(id -g) $(id -G) $$$$ $GREETING $NODE"
          cat /ridgeline/job/run.yaml /ridgeline/all/deep/run.yaml
          touch /ridgeline/work/mine && stat -c '%u %g' /ridgeline/work/mine
          touch /mine /ridgeline/job/mine 2>&1 | sed 's/.*: //'
          ls /home /work 2>/dev/null || echo no more than the image
          grep -E 'Cap(Bnd|Eff)|NoNewPrivs' /proc/self/status | tr '\n\t' '  '
          echo done > /dev/termination-log
        env:
        - {name: WHOM, value: "you"}
        - {name: GREETING, value: "$(WHOM) and $$(WHOM)"}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        resources: {limits: {nvidia.com/gpu: 8}}
        securityContext:
          readOnlyRootFilesystem: true
          allowPrivilegeEscalation: false
          capabilities: {drop: [ALL]}
        volumeMounts:
        - {name: job, mountPath: /ridgeline/job}
        - {name: all, mountPath: /ridgeline/all}
        - {name: work, mountPath: /ridgeline/work}
      volumes:
      - {name: job, configMap: {name: full}}
      - {name: all, projected: {sources: [{configMap: {name: full, items: [{key: run.yaml, path: deep/run.yaml}]}}]}}
      - {name: work, emptyDir: {}}
YAML
full() { kubectl get pods -l job-name=full -o "jsonpath={.items[0]$1}"; }
eventually "it waits for its configMap" ContainerCreating full '.status.containerStatuses[0].state.waiting.reason'
expect "and has no logs yet" "*container \"main\" in pod \"full-*\" is waiting to start: ContainerCreating*" \
  "$(kubectl logs job/full 2>&1 || true)"
kubectl create configmap full --from-literal=run.yaml="steps: 3
" >/dev/null
eventually "it runs, and the Job is complete" 1 kubectl get job full -o 'jsonpath={.status.succeeded}'
expect "its logs" "hello from the image
1234 2345 2345 3456 1 you and \$(WHOM) n[12]
steps: 3
steps: 3
1234 3456
Read-only file system
Read-only file system
no more than the image
CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 " "$(kubectl logs job/full)"
expect "the end of its logs" "CapEff*" "$(kubectl logs job/full --tail=1)"
expect "with times" "20[0-9][0-9]-*Z hello from the image" "$(kubectl logs job/full --timestamps | head -n 1)"
expect "its termination message" "done" "$(full '.status.containerStatuses[0].state.terminated.message')"

echo "# How pods end"
run oom "sleep 60" "" oom
run evict "sleep 60" "" evict
run preempt "trap 'exit 3' TERM; sleep 60 & wait" "" preempt
run imagepull "true" "" imagepull
run rotated "echo gone; sleep 3; exit 4" "" logs-rotated
run deadline "sleep 60" "  activeDeadlineSeconds: 1"
run noroot true "  securityContext: {runAsNonRoot: true}"
run unknown "true" && kubectl create -f - >/dev/null <<'YAML'
---
{apiVersion: v1, kind: Pod, metadata: {name: missing}, spec: {restartPolicy: Never,
  containers: [{name: main, image: test, command: [no-such-program]}]}}
YAML
state='.status.containerStatuses[0].state'
eventually "out of memory" "OOMKilled 137" pod oom "$state.terminated.reason} {$state.terminated.exitCode"
eventually "evicted" "Failed Evicted TerminationByKubelet The node was low on resource: ephemeral-storage.*" \
  pod evict ".status.phase} {.status.reason} {.status.conditions[?(@.type==\"DisruptionTarget\")].reason} {.status.message"
eventually "preempted: the pod is gone" "*NotFound*" pod preempt .status.phase
eventually "no image" ImagePullBackOff pod imagepull "$state.waiting.reason"
code_and_log() { echo "$(pod rotated "$state.terminated.exitCode") ($(kubectl logs rotated))"; }
eventually "logs are rotated away" "4 ()" code_and_log
eventually "past its deadline" "DeadlineExceeded Failed" pod deadline ".status.reason} {.status.phase"
eventually "root is forbidden" CreateContainerConfigError pod noroot "$state.waiting.reason"
eventually "no such program" "128 StartError *exec: \"no-such-program\": executable file not found in \$PATH*" \
  pod missing "$state.terminated.exitCode} {$state.terminated.reason} {$state.terminated.message"
eventually "an ordinary end" "Succeeded Completed" pod unknown ".status.phase} {$state.terminated.reason"

echo "# Two pods that look for each other"
kubectl create -f - >/dev/null <<'YAML'
---
{apiVersion: v1, kind: Service, metadata: {name: gang},
  spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {group: peers}}}
YAML
for rank in 0 1; do
  run "gang-$rank" "until getent hosts gang-$((1 - rank)).gang; do sleep 0.1; done; hostname" \
    "  hostname: gang-$rank
  subdomain: gang"
done
eventually "the second finds the first" "127.*gang-0.gang*gang-1" kubectl logs gang-1
eventually "the first finds the second" "127.*gang-1.gang*gang-0" kubectl logs gang-0

# This happens when a pod is deleted: its folder goes first, and other pods' names are written before the API reports it.
find "$work/k8s" -type d -name "$(pod gang-0 .metadata.uid)" -prune -exec rm -r {} +
for node in n1 n2; do
  run "after-$node" true "  nodeSelector: {test/name: $node}
  hostname: after-$node
  subdomain: gang"
done
eventually "names are kept without a pod's folder" "Succeeded Succeeded" \
  kubectl get pods after-n1 after-n2 -o 'jsonpath={.items[*].status.phase}'

echo "# Deletion"
kubectl create -f - >/dev/null <<YAML
---
{apiVersion: v1, kind: Pod, metadata: {name: polite}, spec: {restartPolicy: Never,
  volumes: [{name: host, hostPath: {path: $work/host}}],
  containers: [{name: main, image: test, command: [sh, -c, "trap 'echo asked >/host/asked; exit' TERM; sleep 60 & wait"],
    volumeMounts: [{name: host, mountPath: /host}]}]}}
YAML
run stubborn "sleep 60" # it is PID 1, which only handled signals and SIGKILL end
eventually "they run" "Running Running" kubectl get pods polite stubborn -o 'jsonpath={.items[*].status.phase}'
kubectl delete pod polite stubborn --wait=false >/dev/null
eventually "one is asked to end, and is gone" "*NotFound*" pod polite .status.phase
expect "it was asked" asked "$(cat "$work/host/asked")"
eventually "the other is killed after its grace" "*NotFound*" pod stubborn .status.phase

echo "# An API server that dies while a pod runs"
kubectl create -f - >/dev/null <<YAML
---
{apiVersion: v1, kind: Pod, metadata: {name: once}, spec: {restartPolicy: Never,
  volumes: [{name: host, hostPath: {path: $work/host}}],
  containers: [{name: main, image: test, command: [sh, -c, "echo start >>/host/starts; sleep 4"],
    volumeMounts: [{name: host, mountPath: /host}]}]}}
YAML
eventually "the pod runs" Running pod once .status.phase
cluster apiserver kill
expect "the API server does not answer" "*refused*" "$(kubectl get nodes 2>&1 || true)"
sleep 4
cluster apiserver start
eventually "its end is reported" Succeeded pod once .status.phase
expect "it ran once" start "$(cat "$work/host/starts")"

echo "# A slow etcd, and an API server that has forgotten changes"
etcd_stat=$({ grep -lzxF "RIDGELINE_TEST_DAEMON=$work/k8s etcd" /proc/[0-9]*/environ 2>/dev/null || true; } |
  sed s/environ/stat/)
etcd_state() { sed -E 's/.*\) (.).*/\1/' "$etcd_stat"; }
cluster etcd slow
eventually "slow etcd: at times it is stopped" T etcd_state
eventually "and at times it works" "[SR]" etcd_state
expect "requests are answered" "configmap/slow created" "$(kubectl create configmap slow)"
cluster etcd normal
sleep 1
expect "etcd works as before" "[SR]" "$(etcd_state)"
version=$(kubectl get --raw '/api/v1/namespaces/default/pods?limit=1' |
  sed -nE 's/.*"resourceVersion":"([0-9]+)","continue.*/\1/p')
kubectl create configmap later >/dev/null
cluster apiserver compact
expect "a watch from before is refused" '*"code":410*' \
  "$(kubectl get --raw "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=5&resourceVersion=$version" 2>&1)"

echo "# A node that dies"
run doomed "sleep 600" '  nodeSelector: {test/name: n1}
  tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}]'
eventually "its pod runs" Running pod doomed .status.phase
cluster node n1 kill
eventually "it is not ready" Unknown \
  kubectl get node n1 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
eventually "its pod is to be deleted" "20*" pod doomed .metadata.deletionTimestamp
cluster node n1 start
eventually "it is back, and the pod is gone" "*NotFound*" pod doomed .status.phase

cluster stop
expect "no process is left" "" "$(grep -lzF "RIDGELINE_TEST_CLUSTER=$work/k8s" /proc/[0-9]*/environ 2>/dev/null || true)"
[ "$failures" -eq 0 ] || exit 1
