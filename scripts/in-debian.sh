#!/usr/bin/env bash
# Builds and tests Ridgeline on another Debian release than this machine's, in a folder of its own: as root, by
# debootstrap, with the packages that packages.txt lists. Nothing of it is left mounted or running.
#   in-debian.sh SUITE [CTEST-OPTION…]         what needs no cluster, such as: in-debian.sh trixie -R Gemm
#   in-debian.sh SUITE slurm [CTEST-OPTION…]   the launcher's tests on that release's Slurm
# JOBS: of the build, at once (all cores). RIDGELINE_DEBIAN_ROOT: where the releases are kept (~/.cache/ridgeline); what
# was built there is built on.
set -euo pipefail

suite=$1
sources=$(cd "$(dirname "$0")/.." && pwd)
root=${RIDGELINE_DEBIAN_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/ridgeline}/debian-$suite

fail() {
  echo "error: $1" >&2
  echo "  $2" >&2
  exit 1
}

[ "$(id -u)" -eq 0 ] || fail "another Debian release takes root" "debootstrap unpacks it, and it is mounted for a while"
command -v debootstrap >/dev/null || fail "debootstrap is missing" "scripts/install-packages.sh installs it"

if [ ! -e "$root/ridgeline-complete" ]; then
  mirror=$("$(dirname "$0")/debian-mirror.sh" 2>&1) || fail "$mirror" "name one in /etc/apt/sources.list"
  mkdir -p "$root"
  chmod 755 "$root"
  debootstrap --variant=minbase "$suite" "$root" "$mirror"
  touch "$root/ridgeline-complete"
fi
mkdir -p "$root/ridgeline" "$root/build"

# Mounts of our own, which end with us.
if [ -z "${RIDGELINE_IN_DEBIAN-}" ]; then
  RIDGELINE_IN_DEBIAN=1 exec unshare --mount --propagation=private "$0" "$@"
fi
mount --bind "$sources" "$root/ridgeline"
mount -o remount,bind,ro "$root/ridgeline"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
cp /etc/hosts /etc/resolv.conf "$root/etc/"

in_there() { # in_there COMMAND…
  chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    OMP_WAIT_POLICY=passive DEBIAN_FRONTEND=noninteractive "$@"
}
# A mirror may be weeks behind, which a release that changes daily forbids; what is signed it still has to be.
echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/ridgeline"
packages=()
target=all
tests=(-j 2 -LE 'slurm|k8s|kubelet' "${@:2}")
if [ "${2-}" = slurm ]; then
  packages=(cluster)
  target=test_cluster_slurm
  tests=(-j 6 -L slurm "${@:3}")
fi
in_there /ridgeline/scripts/install-packages.sh "${packages[@]}"
in_there cmake -S /ridgeline -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DRIDGELINE_TESTS=ON
# Another compiler's complaints are wanted all at once.
in_there cmake --build /build -j "${JOBS:-$(nproc)}" --target "$target" -- -k 0
in_there ctest --test-dir /build --output-on-failure "${tests[@]}"
