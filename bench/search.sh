#!/usr/bin/env bash
# A search held against the whole grid that it searches, with the engine on this machine: how near to the best it ends, and
# with which part of the runs.
#
#   search.sh BIN [BUDGET]
#
# BIN: the folder with ridgeline and ridgeline-train. All 60 points of the grid are measured (minutes), then the search
# measures at most BUDGET (15) of them anew, in a database of its own. What counts is what the grid's own runs say of the
# point that the search ends with, beside the best of them. Everything is kept in ./search.
set -euo pipefail

bin=$(realpath "${1:?the folder of the programs}")
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

"$bin/ridgeline" run grid.yaml --db grid.db --to grid >grid.log
"$bin/ridgeline" run searched.yaml --db searched.db --to searched >searched.log
grep '^search' searched.log

ask() { "$bin/ridgeline" query --db "$1" -o csv "$2" | tail -n +2 | tr -d '\r'; }
runs=$(ask searched.db "SELECT count(*) FROM results")
found=$(ask searched.db "SELECT point_id FROM runs WHERE status = 'ok' ORDER BY steady_tokens_per_s DESC LIMIT 1")
best=$(ask grid.db "SELECT max(steady_tokens_per_s) FROM runs")
of_found=$(ask grid.db "SELECT steady_tokens_per_s FROM runs WHERE point_id = '$found'")
if disturbed=$(cat grid.log searched.log | grep -c 'disturbed: '); then
  echo "$disturbed runs were disturbed by others on this machine: what follows says little" >&2
fi
awk -v runs="$runs" -v best="$best" -v found="$of_found" 'BEGIN {
  printf "%d of 60 runs; the grid measured %.0f tokens/s of what was found, %.1f %% of its best, %.0f\n",
         runs, found, 100 * found / best, best
}'
