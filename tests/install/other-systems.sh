#!/usr/bin/env bash
# other-systems.sh BUNDLE.tar.xz SUITE…: unpacks a bundle on each of these Debian releases, with nothing installed but what
# debootstrap's smallest variant has, and runs the demo sweep there. As root.
set -euo pipefail

if [ $# -lt 2 ] || [ ! -f "$1" ]; then
  echo "usage: other-systems.sh BUNDLE.tar.xz SUITE…" >&2
  exit 2
fi
bundle=$(realpath "$1")
shift
scripts=$(dirname "$(realpath "$0")")/../../scripts
mirror=$("$scripts/debian-mirror.sh")
for suite in "$@"; do
  root=$(mktemp -d)
  trap 'rm -rf --one-file-system "$root"' EXIT
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2 && exit 1; }
  tar -C "$root/opt" --strip-components=1 -xf "$bundle"
  # The mounts end with these processes.
  # shellcheck disable=SC2016 # for the shell within
  unshare --mount --propagation=private --pid --fork --kill-child sh -ec '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    chroot "$1" sh -ec "
      cd /root
      getconf GNU_LIBC_VERSION
      /opt/bin/ridgeline doctor
      /opt/bin/ridgeline run /opt/share/ridgeline/sweeps/demo.yaml
      /opt/bin/ridgeline exec --carry-to carried
      carried/ld.so --library-path carried carried/ridgeline version"' sh "$root"
  echo "==> the bundle runs on Debian $suite"
  rm -rf --one-file-system "$root" "$root.log"
done
