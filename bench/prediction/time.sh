#!/usr/bin/env bash
# How well the clock predicts steps on this machine: calibrates it, measures the 90 points of time.yaml, none of which
# was calibrated by, predicts them, and holds one against the other. Takes about 4 minutes on two cores; others' load
# makes it worse, and it says how much there was.
#   bench/prediction/time.sh [BUILD_FOLDER] [FOLDER]
# FOLDER keeps the entry, the database and both tables, and what is there already is not measured again.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:-build}/bin" && pwd)
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"

load() { cut -d' ' -f1-3 /proc/loadavg; }
echo "in $folder, load $(load)"
[[ -e here.yaml ]] || "$bin/ridgeline" calibrate --to here.yaml --busy
echo "load $(load)"
"$bin/ridgeline" run "$here/time.yaml" --db runs.db >run.log 2>&1 || { tail -5 run.log; exit 1; }
echo "load $(load)"
"$bin/ridgeline" predict "$here/time.yaml" --device here --devices . -o json >predicted.json
"$bin/ridgeline" query "SELECT point_id, family, precision, checkpointing, ranks, shard, step_median_ns AS step_ns, steady_tokens_per_s
  FROM sweep_runs WHERE sweep = 'prediction-time' AND status = 'ok'" --db runs.db -o json >measured.json
python3 "$here/compare.py" predicted.json measured.json
