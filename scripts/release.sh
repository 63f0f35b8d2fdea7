#!/usr/bin/env bash
# release.sh BUNDLE.tar.xz: makes release/ of a bundle: the bundle, SHA256SUMS, and the container images
# ridgeline-worker, ridgeline-driver and, where the bundle has the CUDA trainer, ridgeline-cuda, tagged with the version
# in the builder's own storage. Nothing is pushed. BUILDER: podman, buildah or docker; default: the first that is there.
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
  echo "  commit or stash your changes: a release says which commit it is of" >&2
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
  echo "error: nothing here builds images" >&2
  echo "  install podman, buildah or docker, or run make bundle for the bundle alone" >&2
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
  echo "no image ridgeline-cuda: the bundle has no CUDA trainer (make release CUDA=ON, where the CUDA toolkit is)"
fi
echo "release/${bundle##*/}"
