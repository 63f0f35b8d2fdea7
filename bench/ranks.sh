#!/usr/bin/env bash
# Measures what two ranks cost on one machine: two ranks of one thread and one process of two threads, with the same
# batch, in turns. Prints each pair and the median of their ratios.
#   bench/ranks.sh [BUILD_FOLDER] [ROUNDS] [shard | tensor]
#     shard   each rank has its rows of the batch and half of the state (shard: full); the default
#     tensor  the ranks share each product (tensor_parallel: 2)
# MODEL: llama-25m unless set. BATCH: sequences of both ranks together, 4 unless set.
# On a shared machine, run it under `chrt -f 5`.
set -euo pipefail

build=${1:-build}
rounds=${2:-5}
way=${3:-shard}
trainer=$build/bin/ridgeline-train
batch=${BATCH:-4}
flags=(--model "${MODEL:-llama-25m}" --warmup-steps 1 --steps 5)
case $way in
  shard) two=(--batch-size $((batch / 2)) --shard full) ;;
  tensor) two=(--batch-size "$batch" --tensor-parallel 2) ;;
  *) echo "error: the third argument must be shard or tensor, not $way" >&2 && exit 1 ;;
esac
export GOMP_SPINCOUNT=10000 MASTER_ADDR=127.0.0.1
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

steady() { sed -n 's/^ *steady *\([0-9.]*\) tokens.*/\1/p' "$1"; }

alone() {
  OMP_NUM_THREADS=2 taskset -c 0,1 "$trainer" "${flags[@]}" --batch-size "$batch" >"$logs/alone"
  steady "$logs/alone"
}

in_ranks() {
  local rank
  for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 MASTER_PORT=$1 OMP_NUM_THREADS=1 taskset -c "$rank" \
      "$trainer" "${flags[@]}" "${two[@]}" --ranks 2 >"$logs/rank$rank" &
  done
  wait
  steady "$logs/rank0"
}

for ((round = 1; round <= rounds; ++round)); do
  of_one=$(alone)
  of_two=$(in_ranks $((20000 + RANDOM % 20000)))
  awk -v round="$round" -v one="$of_one" -v two="$of_two" \
    'BEGIN { printf "pair %d: %.0f tokens/s in one process, %.0f in two ranks, ratio %.3f\n", round, one, two, two / one }' |
    tee -a "$logs/pairs"
done
sed 's/.*ratio //' "$logs/pairs" | sort -n |
  awk '{ ratio[NR] = $1 } END { printf "median ratio %.3f of %d pairs\n", ratio[int((NR + 1) / 2)], NR }'
