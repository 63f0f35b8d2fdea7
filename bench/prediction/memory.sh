#!/usr/bin/env bash
# Checks that steps take the memory that the planner predicts. Runs the 200 points of memory.yaml, one step each. Also
# runs, with --include-oom, the points of memory-oom.yaml, which are predicted not to fit or just to fit into a limit.
# Takes about 2 minutes on two cores.
#   bench/prediction/memory.sh [BUILD_FOLDER] [FOLDER]
# FOLDER keeps the database. Points in it are not measured again.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:-build}/bin" && pwd)
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"
echo "in $folder"

# A point that ends out of memory has an answer, so a run with such points is no failure.
"$bin/ridgeline" run "$here/memory.yaml" --db runs.db >memory.log 2>&1 || { tail -5 memory.log; exit 1; }
"$bin/ridgeline" run "$here/memory-oom.yaml" --include-oom --db runs.db >oom.log 2>&1 || { tail -5 oom.log; exit 1; }
for sweep in memory memory-oom; do
  "$bin/ridgeline" plan "$here/$sweep.yaml" -o json >"$sweep.plan.json"
  "$bin/ridgeline" query "SELECT point_id, status, ranks, planned_peak_bytes, rss_peak_bytes FROM sweep_runs
    WHERE sweep = 'prediction-$sweep'" --db runs.db -o json >"$sweep.runs.json"
done
python3 "$here/compare_memory.py" memory.plan.json memory.runs.json memory-oom.plan.json memory-oom.runs.json
