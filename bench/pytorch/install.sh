#!/usr/bin/env bash
# Installs Debian's newest python3-torch and python3-transformers apart from the machine, in a folder of their own, and
# prints that folder.
# Ends well, with a sentence, where this machine cannot: it takes root, debootstrap and a Debian mirror.
# RIDGELINE_TORCH_ROOT: the folder. RIDGELINE_TORCH_SUITE: the Debian release (sid).
set -euo pipefail

suite=${RIDGELINE_TORCH_SUITE:-sid}
root=${RIDGELINE_TORCH_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/ridgeline/torch-$suite}
# g++ and the headers: torch.compile writes C++. OpenBLAS: PyTorch's fp32 products (Debian's default is the reference
# BLAS). jemalloc: PyTorch allocates and frees every tensor.
packages=python3-torch,python3-transformers,python3-accelerate,python3-safetensors,python3-dev,libtorch-dev,g++,libopenblas0-openmp,libjemalloc2

skip() {
  echo "skipped: $1" >&2
  exit 0
}

if [ -e "$root/ridgeline-complete" ]; then
  echo "$root"
  exit 0
fi
[ "$(id -u)" -eq 0 ] || skip "installing PyTorch into $root takes root (debootstrap)"
command -v debootstrap >/dev/null || skip "debootstrap is missing; make packages installs it"

mirror=$("$(dirname "$0")/../../scripts/debian-mirror.sh" 2>&1) || skip "$mirror"

# Built beside its place and moved there when it is whole.
mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
chmod 755 "$work"
if ! debootstrap --variant=minbase --include="$packages" "$suite" "$work" "$mirror" >"$work.log" 2>&1; then
  tail -n 3 "$work.log" >&2
  skip "debootstrap could not install PyTorch and transformers of Debian $suite from $mirror; it says more in $work.log"
fi
rm -rf "$work.log" "$work"/var/cache/apt/archives/*.deb
touch "$work/ridgeline-complete"
mv "$work" "$root"
echo "$root"
