#!/usr/bin/env bash
# bundle.sh BUILD-FOLDER: packs a build into ridgeline-VERSION-ARCHITECTURE.tar.xz, in the current folder. It has the
# programs, launchers, data, every library and the C library. Unpack it anywhere, also on a file system that nodes share.
# Nothing has to be installed. bin/ has start scripts (start-bundled.sh), and the programs beside them as NAME.bin.
# Two builds of one commit on one release of Debian give the same bytes, whatever their folders (`make
# test-bundle-bytes`). The bundle contains no path and no time of a build, and its files have the time of the commit.
set -euo pipefail
export LC_ALL=C

if [ $# -ne 1 ] || [ ! -x "$1/bin/ridgeline" ]; then
  echo "usage: bundle.sh BUILD-FOLDER (a build folder in which ridgeline is built)" >&2
  exit 2
fi
scripts=$(dirname "$(realpath "$0")")
build=$(realpath "$1")
version=$("$build/bin/ridgeline" version | sed -nE "1s/^ridgeline ([^ ]+).*/\1/p")
commit_time=$(git -C "$scripts" log -1 --format=%ct 2>/dev/null || echo 0)
name=ridgeline-$version-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/$name

cmake --install "$build" --prefix "$top" --strip >/dev/null
# libslurm fits one release of Slurm. Without the agent the launcher uses the cluster's own sbatch, squeue and sacct.
rm -f "$top/lib/ridgeline/plugins/ridgeline-slurm-agent"

"$scripts/add-c-library.sh" "$top"
cp "$scripts/bundle-readme.md" "$top/README.md"

tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$commit_time" \
  --mode=u+rwX,go+rX,go-w -cf - "$name" | xz -6 >"$name.tar.xz.part"
mv "$name.tar.xz.part" "$name.tar.xz"
echo "$name.tar.xz: $(($(stat -c %s "$name.tar.xz") / 1024 / 1024)) MiB"
