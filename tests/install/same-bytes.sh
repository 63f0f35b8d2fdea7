#!/usr/bin/env bash
# same-bytes.sh: builds the last commit twice, in two folders with names of different lengths, and compares the bundles.
# Nothing that an earlier build compiled is used.
set -euo pipefail

sources=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
commit=$(git -C "$sources" rev-parse HEAD) # the sources may get another one meanwhile
for folder in one another-folder; do
  git clone --quiet "$sources" "$work/$folder"
  (
    cd "$work/$folder"
    git checkout --quiet --detach "$commit"
    cmake --preset release -DRIDGELINE_TESTS=OFF -DRIDGELINE_CUDA="${CUDA:-AUTO}" >/dev/null
    cmake --build build -j "${JOBS:-$(nproc)}" >/dev/null
    scripts/bundle.sh build
  )
done
cmp "$work"/one/ridgeline-*.tar.xz "$work"/another-folder/ridgeline-*.tar.xz
echo "==> both bundles have the same bytes"
