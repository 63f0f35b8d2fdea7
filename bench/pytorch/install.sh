#!/usr/bin/env bash
# Installs Debian's newest python3-torch and python3-transformers in a folder apart from the machine's own system, and
# prints that folder.
# It needs root, debootstrap and a Debian mirror. If one is missing, it says so and exits with 0.
# RIDGELINE_TORCH_ROOT: the folder. RIDGELINE_TORCH_SUITE: the Debian release (sid).
set -euo pipefail

suite=${RIDGELINE_TORCH_SUITE:-sid}
root=${RIDGELINE_TORCH_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/ridgeline/torch-$suite}
# g++ and the headers are needed because torch.compile writes C++. OpenBLAS computes PyTorch's fp32 products (Debian's
# default is the reference BLAS). jemalloc helps because PyTorch allocates and frees every tensor.
packages=python3-torch,python3-transformers,python3-accelerate,python3-safetensors,python3-dev,libtorch-dev,g++,libopenblas0-openmp,libjemalloc2

skip() {
  echo "skipped: $1" >&2
  exit 0
}

if [ -e "$root/ridgeline-complete" ]; then
  echo "$root"
  exit 0
fi
[ "$(id -u)" -eq 0 ] || skip "installing PyTorch into $root needs root (debootstrap)"
command -v debootstrap >/dev/null || skip "debootstrap is missing; make packages installs it"

mirror=$("$(dirname "$0")/../../scripts/debian-mirror.sh" 2>&1) || skip "$mirror"

# Builds the folder beside its place, and moves it there when it is complete.
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
