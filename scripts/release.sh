#!/usr/bin/env bash
# release.sh BUNDLE.tar.xz: makes a release from a bundle: release/ with the bundle and SHA256SUMS, and the container images
# ridgeline-worker, ridgeline-driver and, if the bundle has the CUDA trainer, ridgeline-cuda. The images are in the builder's
# own storage, tagged with the version. Nothing is pushed. BUILDER: podman, buildah or docker (default: the first installed).
set -euo pipefail
export LC_ALL=C

if [ $# -ne 1 ] || [ ! -f "$1" ]; then
  echo "usage: release.sh BUNDLE.tar.xz" >&2
  exit 2
fi
bundle=$(realpath "$1")
cd "$(dirname "$0")/.."
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  echo "error: these sources are not those of a commit" >&2
  echo "  commit or stash your changes: a release names its commit" >&2
  exit 1
fi
commit=$(git rev-parse HEAD)
name=${bundle##*/ridgeline-}
version=${name%%-*}

builder=${BUILDER-}
for candidate in podman buildah docker; do
  if [ -z "$builder" ] && command -v "$candidate" >/dev/null; then builder=$candidate; fi
done
if [ -z "$builder" ]; then
  echo "error: no program that builds images is installed" >&2
  echo "  install podman, buildah or docker, or run make bundle for only the bundle" >&2
  exit 1
fi

rm -rf release
mkdir release
cp "$bundle" release/
(cd release && sha256sum -- *.tar.xz >SHA256SUMS)

deploy=plugins/kubernetes/deploy
image() { # image NAME FOLDER OPTION…
  "$builder" build --tag "ridgeline-$1:$version" --build-arg COMMIT="$commit" "${@:3}" "$2"
  echo "image ridgeline-$1:$version"
}
image worker . --file $deploy/Containerfile --target worker
image driver . --file $deploy/Containerfile --target driver
if tar -tf "$bundle" | grep -q '/bin/ridgeline-train-cuda$'; then
  image cuda release --file $deploy/Containerfile.cuda
else
  echo "no image ridgeline-cuda: the bundle has no CUDA trainer (make release CUDA=ON, with the CUDA toolkit)"
fi
echo "release/${bundle##*/}"
