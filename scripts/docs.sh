#!/usr/bin/env bash
# Makes the documentation's site from README.md and docs/ (docs/site/mkdocs.yml). A broken link is an error.
#   scripts/docs.sh BUILD     writes it to build/docs/site, with all reports in its gallery. BUILD: the build folder, whose
#                             programs draw the reports
#   scripts/docs.sh check     only checks the pages, without the reports; takes seconds, and needs no build
set -euo pipefail
cd "$(dirname "$0")/.."
sources=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$PWD/build/docs
if [ "$1" = check ]; then folder=$work/docs; fi
pages=$folder/pages

rm -rf "$folder"
mkdir -p "$pages/gallery"
cp -r docs/*.md docs/*.json docs/*.png docs/ci docs/site/gallery.* CONTRIBUTING.md CHANGELOG.md "$pages/"
cp README.md "$pages/index.md"
# On the site, all pages are in one folder. The second word of a fence is for tests, or the name of a file.
# shellcheck disable=SC2016 # backticks are Markdown's
sed -i -E -e 's,\]\((docs/|\.\./),](,g' -e 's,\]\(README\.md,](index.md,g' \
  -e 's,^```console exact$,```console,' -e 's,^```([a-z]+) ([^ ]+)$,```\1 title="\2",' "$pages"/*.md

make_site() {
  RIDGELINE_DOCS_PAGES=$pages RIDGELINE_DOCS_SITE=$folder/site \
    mkdocs build --config-file docs/site/mkdocs.yml >"$work/mkdocs.log" 2>&1 || { cat "$work/mkdocs.log" >&2 && return 1; }
}

if [ "$1" = check ]; then
  # Empty files take the places of the reports.
  grep -oE 'gallery/[a-z-]+\.(html|png)' docs/site/gallery.md | sort -u | (cd "$pages" && xargs touch)
  make_site
  exit
fi

PATH=$(realpath "$1")/bin:$PATH
# draw DATABASE REPORT [OPTION…]: writes the report's page, and a picture of it.
draw() {
  local page=$pages/gallery/$2
  ridgeline report "$2" --db "$1" --to "$page.html" "${@:3}"
  chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$work/profile" \
    --window-size=1280,900 --screenshot="$page.png" "file://$page.html" 2>>"$work/chromium.log"
}

for report in activation-checkpointing precision memory pareto batch-scaling compare timeline sweep failures; do
  draw bench/results/h200/gpu.db "$report"
done
(
  cd "$work"
  for night in night-1 night-2 night-3; do ridgeline run "$sources/docs/site/gallery.yaml" --campaign "$night"; done
  # The gate's exit code is its answer. Three nights do not decide it.
  ridgeline gate night-3 --baseline 'night-*' -o json >gate.json || [ $? -lt 5 ]
  ridgeline calibrate --to here.yaml --ranks 2 --seconds 20 --busy
  ridgeline predict "$sources/docs/site/gallery.yaml" --device here --devices . --db ridgeline.db
  ridgeline predict "$sources/sweeps/formats-by-size.yaml" --device p6-b200 --framework te-fsdp --db formats.db
  ridgeline predict "$sources/sweeps/parallelism.yaml" --device p5 --db parallelism.db
) >"$work/runs.log" 2>&1 || { cat "$work/runs.log" >&2 && exit 1; }
for report in scaling sequence-scaling memory-map history prediction-audit; do draw "$work/ridgeline.db" "$report"; done
draw "$work/ridgeline.db" convergence --sweep "$sources/docs/site/gallery.yaml" # random text; only the form matters
draw "$work/ridgeline.db" regression --input "$work/gate.json"
draw "$work/formats.db" formats-by-size
draw "$work/parallelism.db" parallelism

make_site
echo "build/docs/site/index.html: $(find build/docs/site -name '*.html' | wc -l) pages"
