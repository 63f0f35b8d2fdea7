#!/usr/bin/env bash
# inside.sh PROGRAM.py [ARGUMENT...]: runs a Python program of this folder inside the system with PyTorch (install.sh).
# The machine itself is /host there. RIDGELINE_TORCH_ROOT: the folder of PyTorch, if not the one of install.sh.
# RIDGELINE_BUILD: the build folder (build/), which the program gets as --build.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "skipped: $1" >&2
  exit 0
}

root=${RIDGELINE_TORCH_ROOT:-$("$here/install.sh")}
[ -n "$root" ] || exit 0 # install.sh has printed why
[ -x "$root/usr/bin/python3" ] || skip "there is no PyTorch in $root; bench/pytorch/install.sh installs it"
unshare --mount true 2>/dev/null || skip "entering $root needs root, and the right to mount (unshare --mount)"
program=$1
shift

# Runs in its own mount namespace, with the folder as / and this machine as /host. Nothing stays mounted.
# shellcheck disable=SC2016 # the inner shell expands them
exec unshare --mount --propagation private bash -euc '
  root=$1; shift
  mkdir -p "$root/host"
  for part in proc sys dev; do mount --rbind "/$part" "$root/$part"; done
  mount --rbind / "$root/host"
  exec chroot "$root" "$@"
' bash "$root" python3 "/host$here/$program" --build "${RIDGELINE_BUILD:-$here/../../build}" "$@"
