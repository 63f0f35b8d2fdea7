#!/usr/bin/env bash
# other-systems.sh BUNDLE.tar.xz SUITE…: runs a bundle on each of these releases of Debian or Ubuntu, with nothing
# installed but what debootstrap's smallest variant has, as root:
# - a sweep on the machine itself;
# - a copy that a pod's container would be given (`ridgeline exec --carry-to`);
# - a sweep through the release's own Slurm, installed last, whose node runs the bundle.
# RIDGELINE_UBUNTU_MIRROR: where Ubuntu's packages come from. Its suites are skipped without Ubuntu's keyring.
set -euo pipefail

if [ $# -lt 2 ] || [ ! -f "$1" ]; then
  echo "usage: other-systems.sh BUNDLE.tar.xz SUITE…" >&2
  exit 2
fi
bundle=$(realpath "$1")
shift
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf --one-file-system "$work"' EXIT

# unpack SUITE FOLDER: the release's smallest system; fails where its mirror or its keyring is missing
unpack() {
  local mirror keyring components=main
  case $1 in
    focal | jammy | noble)
      keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg components=main,universe
      mirror=${RIDGELINE_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
      [ -e "$keyring" ] || { echo "==> skipped $1: $keyring is missing (package ubuntu-keyring)" && return 1; }
      set -- "$1" "$2" gutsy # debootstrap's script of all later releases
      ;;
    *)
      keyring=/usr/share/keyrings/debian-archive-keyring.gpg
      mirror=$("$here/../../scripts/debian-mirror.sh")
      ;;
  esac
  debootstrap --variant=minbase --keyring="$keyring" --components="$components" "$1" "$2" "$mirror" "${@:3}" >"$2.log" 2>&1 ||
    { tail -n 20 "$2.log" >&2 && exit 1; }
}

for suite in "$@"; do
  root=$work/$suite
  unpack "$suite" "$root" || continue
  tar -C "$root/opt" --strip-components=1 -xf "$bundle"
  mkdir "$root/test"
  cp "$here"/inside.sh "$here"/bundle-sweep.yaml "$here"/../cluster/{slurm-cluster,throwaway.sh} "$root/test/"
  cp /etc/resolv.conf "$root/etc/"
  echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"
  # Mounts and processes end with this command.
  # shellcheck disable=SC2016 # for the shell within
  unshare --mount --propagation=private --pid --fork --kill-child sh -ec '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec chroot "$1" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin /test/inside.sh' sh "$root"
  echo "==> the bundle runs on $suite"
  rm -rf --one-file-system "$root"
done
