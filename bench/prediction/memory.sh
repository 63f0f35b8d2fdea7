#!/usr/bin/env bash
# Whether what the planner says of memory is what steps take: runs the 200 points of memory.yaml, one step each, and the
# points of memory-oom.yaml, which are predicted not to fit or just to fit into a limit, with --include-oom. Takes about
# 2 minutes on two cores.
#   bench/prediction/memory.sh [BUILD_FOLDER] [FOLDER]
# FOLDER keeps the database, and what is there already is not measured again.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:-build}/bin" && pwd)
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"
echo "in $folder"

# Points that end out of memory are answered, and a run of which some do is no failure.
"$bin/ridgeline" run "$here/memory.yaml" --db runs.db >memory.log 2>&1 || { tail -5 memory.log; exit 1; }
"$bin/ridgeline" run "$here/memory-oom.yaml" --include-oom --db runs.db >oom.log 2>&1 || { tail -5 oom.log; exit 1; }
for sweep in memory memory-oom; do
  "$bin/ridgeline" plan "$here/$sweep.yaml" -o json >"$sweep.plan.json"
  "$bin/ridgeline" query "SELECT point_id, status, ranks, planned_peak_bytes, rss_peak_bytes FROM sweep_runs
    WHERE sweep = 'prediction-$sweep'" --db runs.db -o json >"$sweep.runs.json"
done
python3 "$here/compare_memory.py" memory.plan.json memory.runs.json memory-oom.plan.json memory-oom.runs.json
