#!/usr/bin/env bash
# Draws the README's pictures with headless Chromium: docs/report.png, the demo's report, and docs/h200.png, the results
# of one H200 (bench/results/h200).
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# draw DATABASE PICTURE HEIGHT
draw() {
  build/bin/ridgeline report activation-checkpointing --db "$1" --to "$work/report.html"
  chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$work/profile" \
    --default-tile-width=2048 --default-tile-height=2048 --window-size="1280,$3" --screenshot="$work/report.png" \
    "file://$work/report.html"
  mv "$work/report.png" "docs/$2"
  echo "docs/$2"
}

[ ! -e ridgeline.db ] || draw ridgeline.db report.png 1700
cp bench/results/h200/gpu.db "$work/h200.db"
sqlite3 "$work/h200.db" "DELETE FROM results WHERE status <> 'ok' OR point_id NOT IN (SELECT point_id FROM runs
  WHERE model = 'llama-8b' AND precision = 'bf16' AND trainer = 'ridgeline-train')"
draw "$work/h200.db" h200.png 1520
