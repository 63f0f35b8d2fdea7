#!/usr/bin/env bash
# Compiles and links ridgeline-slurm-agent with the libslurm of other Debian releases than this machine's. Its structs and
# functions differ from release to release, and this machine has only one.
# Ends with 77, CTest's "skipped", if the packages cannot be fetched.
# RIDGELINE_SLURM_SUITES: the Debian releases (trixie sid).
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
read -ra suites <<<"${RIDGELINE_SLURM_SUITES:-trixie sid}"

skip() {
  echo "skipped: $1"
  exit 77
}

for tool in apt-get dpkg-deb nm; do
  command -v "$tool" >/dev/null || skip "$tool is missing; this test needs a Debian machine"
done

mirror=$("$(dirname "$0")/../../scripts/debian-mirror.sh" 2>&1) || skip "$mirror"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

# These are the project's warnings, as for every target.
flags=$(sed -nE 's/^target_compile_options\(rl_flags INTERFACE (-W[^$]*)\)$/\1/p' "$root/cmake/options.cmake")
read -ra warnings <<<"$flags -Wno-restrict"
[ ${#warnings[@]} -gt 1 ] || { echo "no warning flags found in cmake/options.cmake"; exit 1; }

# fetch SUITE: puts the headers and library of its libslurm into $work/SUITE/root. apt gets them with settings that name
# only that suite and keep everything in $work/SUITE.
fetch() {
  local dir=$work/$1 package
  mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial" "$dir/root"
  touch "$dir/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$dir/sources.list"
  local apt=(-qq -o "Dir::State=$dir/state" -o "Dir::State::status=$dir/status" -o "Dir::Cache=$dir/cache"
    -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false)
  apt-get "${apt[@]}" update || return 1
  library=$(apt-cache "${apt[@]}" depends --no-recommends --no-suggests libslurm-dev |
    sed -nE 's/^ *Depends: (libslurm[0-9].*)$/\1/p') || return 1
  for package in libslurm-dev "$library"; do
    (cd "$dir" && apt-get "${apt[@]}" download "$package") || return 1
  done
  for package in "$dir"/*.deb; do dpkg-deb -x "$package" "$dir/root" || return 1; done
}

# version HEADERS: prints the release of these headers.
version() {
  local number
  number=$(sed -nE 's/^#define SLURM_VERSION_NUMBER 0x([0-9a-f]+).*$/\1/p' "$1/slurm/slurm_version.h")
  printf '%d.%02d.%d' "0x${number:0:2}" "0x${number:2:2}" "0x${number:4:2}"
}

failed=0
checked=0
for suite in "${suites[@]}"; do
  if ! fetch "$suite" >"$work/log" 2>&1; then
    tail -n 2 "$work/log"
    echo "libslurm of Debian $suite: cannot be fetched"
    continue
  fi
  headers=$work/$suite/root/usr/include
  library=$(find "$work/$suite/root/usr/lib" -name 'libslurm.so*' -type f)
  name="libslurm $(version "$headers")"
  checked=$((checked + 1))
  # The library needs a newer C library than this machine's, so the linker must ignore its missing symbols.
  if ! g++ -std=c++20 -O0 "${warnings[@]}" -I "$root/plugins" -I "$root/include" -isystem "$headers" "$root"/plugins/slurm/agent/*.cc \
    "$library" -Wl,--unresolved-symbols=ignore-in-shared-libs -o "$work/$suite/agent"; then
    echo "$name: does not compile"
    failed=1
  # The function has one of two names. The agent looks it up at run time.
  elif ! grep -qE ' slurm_job_(state_)?reason_string(@|$)' <<<"$(nm -D --defined-only "$library")"; then
    echo "$name: no longer has a function that names a job's reason"
    failed=1
  else
    echo "$name: compiles and links"
  fi
done
[ "$failed" -eq 0 ] || exit 1
[ "$checked" -eq "${#suites[@]}" ] || skip "libslurm-dev of ${suites[*]} could not be fetched from this machine's mirror"
echo "ridgeline-slurm-agent builds with $checked other releases of libslurm."
