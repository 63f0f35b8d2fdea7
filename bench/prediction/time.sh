#!/usr/bin/env bash
# Checks how well the step model predicts steps on this machine. Calibrates it, measures the 90 points of time.yaml, which
# the calibration does not use, predicts them, and compares both. It measures the points in three rounds, and each point's
# median counts, because from one minute to the next the same step differs by more than the intended error. Takes about
# 7 minutes on two cores. Load from other programs makes the result worse, so it prints the load.
#   bench/prediction/time.sh [BUILD_FOLDER] [FOLDER]
# FOLDER keeps the entry, the database and both tables. What is in it is not measured again.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:-build}/bin" && pwd)
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"

load() { cut -d' ' -f1-3 /proc/loadavg; }
echo "in $folder, load $(load)"
[[ -e here.yaml ]] || "$bin/ridgeline" calibrate --to here.yaml --busy
for round in 1 2 3; do
  echo "load $(load)"
  [[ -e round.$round ]] && continue
  "$bin/ridgeline" run "$here/time.yaml" --db runs.db --campaign "round-$round" >run.log 2>&1 || { tail -5 run.log; exit 1; }
  touch "round.$round"
done
echo "load $(load)"
"$bin/ridgeline" predict "$here/time.yaml" --device here --devices . -o json >predicted.json
"$bin/ridgeline" query "SELECT point_id, family, precision, checkpointing, ranks, shard, m.step_median_ns AS step_ns, m.steady_tokens_per_s
  FROM sweep_runs JOIN measured AS m USING (point_id) WHERE sweep = 'prediction-time' AND m.status = 'ok'" --db runs.db -o json >measured.json
python3 "$here/compare.py" predicted.json measured.json
