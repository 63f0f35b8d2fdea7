#!/usr/bin/env bash
# Installs the packages of packages.txt that this machine lacks. Prints nothing if none is missing.
#   install-packages.sh            all above "Cluster tests"
#   install-packages.sh cluster    all above "Kubelet tests"; does not start the services among them
#   install-packages.sh kubelet    all; does not start services either
#   install-packages.sh build      only those for compiling: those above "Tests and benchmarks"
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1-} in
  kubelet) without="" ;;
  cluster) without="/^# Kubelet tests\$/,\$d" ;;
  build) without="/^# Tests and benchmarks\$/,\$d" ;;
  *) without="/^# Cluster tests\$/,\$d" ;;
esac
mapfile -t wanted < <(sed -e "$without" -e 's/#.*//' packages.txt | xargs -n1)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "error: this system has no apt-get, so packages.txt cannot be installed here" >&2
  echo "  install what it lists with your system's package manager, then build with:" >&2
  echo "  cmake --preset release && cmake --build build && ctest --test-dir build" >&2
  exit 1
fi

installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null |
  awk '$2 == "installed" { print $1 }' || true)
mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) <(sort -u <<<"$installed"))
if [ "${#missing[@]}" -eq 0 ]; then
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: these packages are missing, and there is no sudo to install them with: ${missing[*]}" >&2
    echo "  as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "installing ${#missing[@]} packages of packages.txt: ${missing[*]}"
"${as_root[@]}" apt-get update -q
if [[ ${1-} == @(cluster|kubelet) && ! -e /usr/sbin/policy-rc.d ]]; then
  # Exit code 101 forbids that an installed service starts.
  "${as_root[@]}" sh -c 'printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d'
  trap '"${as_root[@]}" rm -f /usr/sbin/policy-rc.d' EXIT
fi
as_root+=(env DEBIAN_FRONTEND=noninteractive)
install=("${as_root[@]}" apt-get install -q -y --no-install-recommends)
# After an interrupted installation, apt-get installs nothing until that one is completed.
unfinished=$(
  find /var/lib/dpkg/updates -type f
  dpkg-query -W -f='${db:Status-Status}\n' | grep -E '^(half-|unpacked|triggers-)' || true
)
if [ -n "$unfinished" ]; then
  echo "completing an earlier installation that was interrupted"
  "${as_root[@]}" dpkg --configure -a || true # apt-get completes the rest
  "${install[@]}" --fix-broken --no-remove
fi
"${install[@]}" "${missing[@]}"
