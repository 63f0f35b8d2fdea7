#!/usr/bin/env bash
# two_ranks.sh OUT GPU: tests two ranks on one card, over NCCL's sockets (docs/gpu.md). NCCL refuses two ranks of one host
# on a GPU, and identifies a host by NCCL_HOSTID. With a value for each rank they are two hosts, whose kernels take turns on
# the card. The test shows whether NCCL is called correctly. It shows nothing about speed. GPU: the card's name in a spec, or
# cpu, which rehearses the test with Gloo. Ends with 1 if a check fails.
set -uo pipefail
out=$1 gpu=$2
mkdir -p "$out"
cd "$out" || exit 1
export CUDA_VISIBLE_DEVICES=0 NCCL_DEBUG=INFO RIDGELINE_COMM_TIMEOUT_S=20
# NCCL may use only sockets on the loopback device. Its other transports between hosts are missing here, or would show that
# both ranks are on one host.
export NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0 \
  NCCL_MNNVL_ENABLE=0 NCCL_CUMEM_ENABLE=0 NCCL_NET_PLUGIN=none NCCL_RAS_ENABLE=0 NCCL_MAX_NCHANNELS=2
model=(--model llama-5m --seq-length 256 --warmup-steps 1 --grad-clip 1 --warmup-seconds 0 --seconds 0)
device=(--device cuda --gpu "$gpu" --algorithms off) calls=(--no-graph)
if [ "$gpu" = cpu ]; then
  model=(--model llama-5m --seq-length 16 --layers 1 --warmup-steps 1 --grad-clip 1)
  device=(--device cpu) calls=()
fi
limit=60
[ "$gpu" != cpu ] || limit=240 # a rehearsal runs beside other tests, on fewer cores
failed=0
port=$((20000 + RANDOM % 20000))

say() {
  echo "$1: $2"
  [ "$1" != FAILED ] || failed=1
}

# beside COMMAND…: runs the command beside others, with a port of its own. all: waits for all of them.
running=()
beside() {
  port=$((port + 1))
  ("$@"; [ $failed = 0 ]) &
  running+=($!)
}
all() {
  local one
  for one in "${running[@]}"; do wait "$one" || failed=1; done
  running=()
}

# one NAME FLAG…: runs one rank, with whose results two ranks are compared.
one() {
  local name=$1
  shift
  timeout "$limit" ridgeline-train "${model[@]}" --steps 6 "${device[@]}" --batch-size 4 "$@" --result "$name.json" >"$name.log" 2>&1 ||
    say FAILED "$name: $(tail -n 1 "$name.log")"
}

# begin NAME STEPS FLAG…: starts both ranks, and puts their processes into `ranks`.
begin() {
  local name=$1 steps=$2 rank
  shift 2
  ranks=()
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      NCCL_HOSTID=rank-$rank OMP_NUM_THREADS=2 timeout --kill-after 5 "$limit" ridgeline-train "${model[@]}" --steps "$steps" \
      "${device[@]}" --ranks 2 --batch-size 2 "$@" --result "$name.$rank.json" >"$name.$rank.log" 2>&1 &
    ranks+=($!)
  done
}

# pair NAME OTHER MOST FLAG…: runs two ranks. Their losses and norms may differ from OTHER's by a share of MOST.
pair() {
  local name=$1 other=$2 most=$3 rank ended=0 said
  shift 3
  begin "$name" 6 "$@"
  for rank in "${ranks[@]}"; do wait "$rank" || ended=1; done
  if [ $ended != 0 ]; then
    say FAILED "$name: $(grep -v 'NCCL INFO' "$name.0.log" | tail -n 1)"
    return
  fi
  mv "$name.0.json" "$name.json"
  if said=$(python3 - "$name.json" "$other.json" "$most" 2>&1 <<'END'
import json
import sys

results = [json.load(open(name, encoding="utf-8")) for name in sys.argv[1:3]]
worst = 0.0
for series in ("loss", "grad_norm"):
    mine, theirs = (result[series] for result in results)
    if len(mine) != len(theirs) or len(mine) != 7:
        sys.exit(f"{series}: {len(mine)} and {len(theirs)} steps")
    worst = max([worst] + [abs(a - b) / abs(b) for a, b in zip(mine, theirs)])
print(f"{worst:.1e}")
sys.exit(worst > float(sys.argv[3]))
END
  ); then
    say ok "$name differs from $other by $said (at most $most)"
  else
    say FAILED "$name differs from $other by $said (at most $most)"
  fi
}

# lost NAME SIGNAL SECONDS: sends the signal to a rank while graphs are replayed. The other must report that within SECONDS.
lost() {
  local name=$1 signal=$2 most=$3 began ended=0 child try
  RIDGELINE_COMM_TIMEOUT_S=5 begin "$name" 100000 --precision fp32 --shard full
  for ((try = 0; try < 150; ++try)); do
    [ "$(grep -c '^step' "$name.0.log")" -lt 5 ] || break
    sleep 0.2
  done
  child=$(pgrep -P "${ranks[1]}" | head -n 1)
  began=$SECONDS
  [ -z "$child" ] || kill -s "$signal" "$child"
  wait "${ranks[0]}" || ended=$?
  [ -z "$child" ] || kill -s KILL "$child"
  wait "${ranks[1]}"
  if [ -n "$child" ] && [ $((SECONDS - began)) -le "$most" ] && [[ ! " 0 124 137 " = *" $ended "* ]]; then
    say ok "$name: said after $((SECONDS - began)) s: $(grep 'ridgeline-train: ' "$name.0.log" | head -n 1)"
  else
    say FAILED "$name: exit code $ended after $((SECONDS - began)) s: $(grep -v 'NCCL INFO' "$name.0.log" | tail -n 1)"
  fi
}

# Few pairs run at a time, because all of them take turns on the card.
beside one alone --precision fp32
beside one alone-fp8 --precision fp8
all
# Sums over ranks have another order than those within one rank, so results differ a little. Two numbers have only one sum,
# so runs of two ranks have the same bits.
beside pair calls alone 2e-5 --precision fp32 --shard full "${calls[@]}"
beside pair none alone 2e-5 --precision fp32 --shard none
beside pair optimizer alone 2e-5 --precision fp32 --shard optimizer
beside pair fp8 alone-fp8 3e-2 --precision fp8 --shard full
all
beside pair graph calls 0 --precision fp32 --shard full
# If `calls` passes and `graph` fails, the capture of NCCL is at fault. These two show which way of capture works.
if [ "$gpu" != cpu ]; then
  NCCL_GRAPH_MIXING_SUPPORT=0 beside pair graph-unmixed calls 0 --precision fp32 --shard full
  NCCL_COMM_BLOCKING=1 beside pair graph-blocking calls 0 --precision fp32 --shard full
fi
all
beside pair again graph 0 --precision fp32 --shard full
beside lost killed KILL 15
beside lost stopped STOP 25
all
grep -ho 'NCCL version [^ ]*\|via NET/[A-Za-z]*' ./*.0.log | sort | uniq -c || true
[ $failed = 0 ]
