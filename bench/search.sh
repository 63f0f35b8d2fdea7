#!/usr/bin/env bash
# Compares a search with the whole grid that it searches, with the engine on this machine: how close to the best point
# it ends, and which share of the runs it takes.
#
#   search.sh BIN [BUDGET]
#
# BIN: the folder with ridgeline and ridgeline-train. The script measures all 60 points of the grid five times. In between,
# the search measures at most BUDGET (15) of them anew, in its own database (minutes). The comparison uses the grid's own
# runs: the median of the five runs of the point that the search found, against the best point's. The script keeps everything
# in ./search.
set -euo pipefail

bin=$(realpath "${1:?name the folder of the programs}")
budget=${2:-15}

mkdir search
cd search
grid() {
  cat <<YAML
name: $1
defaults: {model: llama-5m, seq_length: 64}
matrix: {batch_size: 1..16*2, checkpointing: [none, selective, full], precision: [fp32, bf16, fp8, mxfp8]}
measure: {warmup_steps: 2, steps: 7}
YAML
}
grid grid >grid.yaml
grid searched >searched.yaml
echo "search: {maximize: tokens_per_s, over: [batch_size, checkpointing, precision], budget: $budget}" >>searched.yaml

measure_grid() { "$bin/ridgeline" run grid.yaml --campaign "$1" --db grid.db --to grid >>grid.log; }
for round in 1 2; do measure_grid "$round"; done
"$bin/ridgeline" run searched.yaml --db searched.db --to searched >searched.log
for round in 3 4 5; do measure_grid "$round"; done
sed -n '/^search: the best measured/,$p' searched.log

ask() { "$bin/ridgeline" query --db "$1" -o csv "$2" | tail -n +2 | tr -d '\r'; }
runs=$(ask searched.db "SELECT count(*) FROM results")
of_points="SELECT batch_size, checkpointing, precision, steady_tokens_per_s FROM measurements WHERE status = 'ok'"
# batch_size=8 checkpointing=none precision=bf16 -> 8,none,bf16
found=$(sed -n 's/^search: the best measured is \([^:]*\):.*/\1/p' searched.log | sed 's/[a-z_]*=//g; s/ /,/g')
if disturbed=$(cat grid.log searched.log | grep -c 'disturbed: '); then
  echo "$disturbed runs were disturbed by others on this machine, so the result is unreliable" >&2
fi
ask grid.db "$of_points ORDER BY 1, 2, 3, 4" | awk -F , -v runs="$runs" -v found="$found" '
  { point = $1 "," $2 "," $3; values[point, ++count[point]] = $4 }
  END {
    for (point in count) {
      middle = values[point, int((count[point] + 1) / 2)]
      if (middle > best) best = middle
      if (point == found) of_found = middle
      if (count[point] == 5) spread[++points] = values[point, 5] / values[point, 1]
    }
    for (i in spread) if (spread[i] > widest) widest = spread[i]
    printf "%d of 60 runs; the grid measured %.0f tokens/s of what was found, %.1f %% of its best, %.0f\n",
           runs, of_found, 100 * of_found / best, best
    printf "runs of one point of the grid differ by up to %.0f %%\n", 100 * (widest - 1)
  }'
