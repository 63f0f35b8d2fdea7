#!/usr/bin/env bash
# Measures the cost of sharding on one machine: llama-25m as two ranks of one thread (shard: full) and as one process of
# two threads, with the same batch, in turns. Prints each pair and the median of their ratios.
#   bench/ranks.sh [BUILD_FOLDER] [ROUNDS]
# On a shared machine, run it under `chrt -f 5`.
set -euo pipefail

build=${1:-build}
rounds=${2:-5}
trainer=$build/bin/ridgeline-train
batch=2
flags=(--model llama-25m --warmup-steps 1 --steps 5)
export GOMP_SPINCOUNT=10000 MASTER_ADDR=127.0.0.1
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

steady() { sed -n 's/^ *steady *\([0-9.]*\) tokens.*/\1/p' "$1"; }

alone() {
  OMP_NUM_THREADS=2 taskset -c 0,1 "$trainer" "${flags[@]}" --batch-size $((2 * batch)) >"$logs/alone"
  steady "$logs/alone"
}

sharded() {
  local rank
  for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 MASTER_PORT=$1 OMP_NUM_THREADS=1 taskset -c "$rank" \
      "$trainer" "${flags[@]}" --batch-size $batch --ranks 2 --shard full >"$logs/rank$rank" &
  done
  wait
  steady "$logs/rank0"
}

for ((round = 1; round <= rounds; ++round)); do
  one=$(alone)
  two=$(sharded $((20000 + RANDOM % 20000)))
  awk -v round="$round" -v one="$one" -v two="$two" \
    'BEGIN { printf "pair %d: %.0f tokens/s in one process, %.0f in two ranks, ratio %.3f\n", round, one, two, two / one }' |
    tee -a "$logs/pairs"
done
sed 's/.*ratio //' "$logs/pairs" | sort -n |
  awk '{ ratio[NR] = $1 } END { printf "median ratio %.3f of %d pairs\n", ratio[int((NR + 1) / 2)], NR }'
