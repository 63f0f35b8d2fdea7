#!/usr/bin/env bash
# Builds and tests Ridgeline on another Debian release than this machine's, or on a fresh system, in a folder of its own. It
# needs root, and uses debootstrap. It leaves nothing mounted or running.
#   in-debian.sh SUITE [CTEST-OPTION…]         the tests that need no cluster; for example: in-debian.sh trixie -R Gemm
#   in-debian.sh SUITE slurm [CTEST-OPTION…]   the launcher's tests on that release's Slurm
#   in-debian.sh SUITE bare                    README.md's first commands, on a new system that has git, make and a clone of
#                                              the last commit
# JOBS: how many compilers run at once (default: all cores). RIDGELINE_DEBIAN_ROOT: where the systems are kept
# (~/.cache/ridgeline). A later run reuses what was built there, except with `bare`.
set -euo pipefail

suite=$1
kind=${2-}
sources=$(cd "$(dirname "$0")/.." && pwd)
root=$(realpath -m "${RIDGELINE_DEBIAN_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/ridgeline}/debian-$suite")
included=()
if [ "$kind" = bare ]; then
  root=$root-bare
  included=("--include=git,make")
fi

fail() {
  echo "error: $1" >&2
  echo "  $2" >&2
  exit 1
}

# The outer run. Mounts and processes belong to the inner run and end with it. They also end with this one, however it ends.
if [ -z "${RIDGELINE_IN_DEBIAN-}" ]; then
  [ "$(id -u)" -eq 0 ] || fail "another Debian system needs root" "debootstrap unpacks it, and it is mounted for a while"
  command -v debootstrap >/dev/null || fail "debootstrap is missing" "scripts/install-packages.sh installs it"
  mkdir -p "$(dirname "$root")"
  exec 9>"$root.lock"
  flock --nonblock 9 || fail "another run uses $root" "wait for its end, or name another folder in RIDGELINE_DEBIAN_ROOT"
  # An interrupted debootstrap leaves no usable system.
  if [ "$kind" = bare ] || [ ! -e "$root/ridgeline-complete" ]; then rm -rf --one-file-system "$root"; fi
  RIDGELINE_IN_DEBIAN=1 setsid env --default-signal=INT,QUIT setpriv --pdeathsig KILL \
    unshare --mount --propagation=private --pid --fork --kill-child "$0" "$@" </dev/null &
  trap 'kill -KILL "$!" 2>/dev/null || true' EXIT
  status=0
  wait "$!" || status=$?
  trap - EXIT
  if [ "$kind" = bare ]; then
    [ "$status" -eq 0 ] || fail "this failed on a bare Debian $suite" "its files stay in $root until the next run"
    rm -rf --one-file-system "$root"
  fi
  exit "$status"
fi

mount -t proc proc /proc # shows only the processes of the inner run
if [ ! -e "$root/ridgeline-complete" ]; then
  mirror=$("$(dirname "$0")/debian-mirror.sh" 2>&1) || fail "$mirror" "name one in /etc/apt/sources.list"
  mkdir -p "$root"
  chmod 755 "$root"
  debootstrap --variant=minbase "${included[@]}" "$suite" "$root" "$mirror"
  touch "$root/ridgeline-complete"
fi

mount --bind "$root" "$root" # its root must be a mount so that programs there can mount
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
cp /etc/hosts /etc/resolv.conf "$root/etc/"
# A mirror may be weeks behind, which a release that changes daily forbids. Signatures are still checked.
echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/ridgeline"

in_there() { # in_there VARIABLE=… COMMAND…
  chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

if [ "$kind" = bare ]; then
  git -c safe.directory="$sources" -C "$sources" bundle create --quiet "$root/root/ridgeline.bundle" HEAD
  in_there git clone --quiet /root/ridgeline.bundle /root/ridgeline
  for command in demo test; do
    echo "==> make $command, on a bare Debian $suite"
    in_there ${JOBS:+JOBS="$JOBS"} make -C /root/ridgeline "$command"
  done
  # Tests that lack a program are skipped, and say so in these words.
  if grep 'packages.txt has' "$root/root/ridgeline/build/Testing/Temporary/LastTest.log"; then
    fail "tests were skipped because these programs are missing" "list the packages that have them in packages.txt"
  fi
  echo "==> passed on a bare Debian $suite: make demo, make test ($SECONDS s)"
  exit
fi

mkdir -p "$root/ridgeline" "$root/build"
mount --bind "$sources" "$root/ridgeline"
mount -o remount,bind,ro "$root/ridgeline"
environment=(LANG=C.UTF-8 OMP_WAIT_POLICY=passive DEBIAN_FRONTEND=noninteractive)
packages=()
target=all
tests=(-j 2 -LE 'slurm|k8s|kubelet' "${@:2}")
if [ "$kind" = slurm ]; then
  packages=(cluster)
  target=test_cluster_slurm
  tests=(-j 6 -L slurm "${@:3}")
fi
in_there "${environment[@]}" /ridgeline/scripts/install-packages.sh "${packages[@]}"
in_there "${environment[@]}" cmake -S /ridgeline -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DRIDGELINE_TESTS=ON
# -k 0 shows all errors of another compiler at once.
in_there "${environment[@]}" cmake --build /build -j "${JOBS:-$(nproc)}" --target "$target" -- -k 0
in_there "${environment[@]}" ctest --test-dir /build --output-on-failure "${tests[@]}"
