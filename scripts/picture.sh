#!/usr/bin/env bash
# Draws docs/report.png: the demo's report as Chromium shows it, without a window.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build/bin/ridgeline report activation-checkpointing --to "$work/report.html"
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$work/profile" \
  --default-tile-width=2048 --default-tile-height=2048 --window-size=1280,1700 --screenshot="$work/report.png" "file://$work/report.html"
mv "$work/report.png" docs/report.png
echo "docs/report.png"
