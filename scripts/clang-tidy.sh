#!/usr/bin/env bash
# Runs clang-tidy over every source of src/ and plugins/, and fails if any has a finding (.clang-tidy makes every
# warning an error). It includes CUDA's kernels if the toolkit is installed.
#   clang-tidy.sh units JOBS   checks sixteen sources at a time (preset lint-units), JOBS at once: a fifth of the work.
#     Skips a unit that had no finding before, with the same files and the same clang-tidy
#   clang-tidy.sh each JOBS    checks each by itself (preset lint), and finds an include that only a neighbour has
# First it checks tests/lint/faults.cc, whose faults are intentional, and fails if clang-tidy misses one.
set -euo pipefail
cd "$(dirname "$0")/.."

tidy() { # BUILD OPTION…
  clang-tidy --load=build-lint/own_code.so --quiet -p "$1" --extra-arg=-Wno-unknown-warning-option "${@:2}"
}

# Builds the plugin that restricts clang-tidy to our code.
plugin() {
  [ build-lint/own_code.so -nt tests/lint/own_code.cc ] ||
    c++ -std=c++17 -fno-rtti -fPIC -shared -isystem "$(llvm-config --includedir)" tests/lint/own_code.cc \
      -o build-lint/own_code.so
}

# clang-tidy must find exactly the faults that the comments at the ends of lines name, also in a header.
faults() {
  local places='s/.*\(faults[.a-z]*:[0-9]*\):.*'
  diff <(grep -HnE '// [a-z]+-[a-z-]+$' tests/lint/faults.cc tests/lint/include/faults.h |
    sed "$places"'\/\/ \([a-z-]*\)$/\1 \2/' | sort) \
    <(tidy . tests/lint/faults.cc -- -std=c++20 -I. 2>/dev/null |
      sed -n "$places"' \[\([a-z-]*\),.*$/\1 \2/p' | sort -u) ||
    { echo 'error: clang-tidy misses faults of tests/lint (<), or finds others (>)' >&2 && return 1; }
}

# Checks CUDA's kernels, all in one source, as the C++ that the tests' emulated machine runs. An index is multiplied in 32
# bits before it becomes a 64-bit address on purpose: a thread's indices are small, and registers are few. Kernels take
# their arguments by value, and checking that takes longer than all other checks together.
toolkit=$(sed -n 's/^RIDGELINE_CUDA_INCLUDE:PATH=//p' build-lint/CMakeCache.txt)
of_kernels=(-x c++ -std=c++20 -DRIDGELINE_CUDA_ON_CPU -include cuda_on_cpu/kernel.h -Isrc -Iinclude -Itests
  -isystem "$toolkit")
kernels() {
  local off=-bugprone-suspicious-include,-bugprone-implicit-widening-of-multiplication-result
  clang-tidy --load=build-lint/own_code.so --quiet --checks=$off,-performance-unnecessary-value-param \
    build-lint/kernels.cc -- "${of_kernels[@]}"
}

# Writes what each unit and the kernels include: "UNIT: FILE FILE…", a line each.
included=build-lint/units/included
clean=${XDG_CACHE_HOME:-${HOME:-build-lint}/.cache}/ridgeline/clang-tidy # an empty file for each unit without findings
list_included() {
  {
    "$(llvm-config --bindir)/clang-scan-deps" -compilation-database=build-lint/units/compile_commands.json -j "$1" |
      sed 's|^[^ ]*:||'
    [ ! -d "$toolkit" ] || clang++ -M "${of_kernels[@]}" build-lint/kernels.cc | sed 's|^[^ ]*:| kernels|'
  } | sed -e ':again' -e '/\\$/{N;s/\\\n//;bagain' -e '}' -e 's/  */ /g' -e 's/^ \([^ ]*\)/\1: \1/' -e 's/: kernels/:/' \
    >"$included"
  sed 's/^[^:]*: //' "$included" | tr ' ' '\n' | sort -u | xargs sha256sum >"$included.sums"
}

# Prints a name for everything on which the findings of a unit depend. Fails if a file has a space in its name.
content_of() {
  local files
  files=$(sed -n "s|^$1: ||p" "$included") && [ -n "$files" ] || return 1
  { clang-tidy --version && cat .clang-tidy scripts/clang-tidy.sh tests/lint/own_code.cc &&
    { [ "$1" = kernels ] || grep -F -B 1 "\"file\": \"$1\"" build-lint/units/compile_commands.json; } &&
    awk 'NR == FNR { sum[$2] = $1; next } { print sum[$1], $1 }' "$included.sums" <(tr ' ' '\n' <<<"$files"); } |
    sha256sum | cut -d ' ' -f 1
}

# A unit does not compile if its sources define the same name. Then each source is checked by itself. That is reported,
# because it takes several times as long.
unit() {
  local content
  content=$(content_of "$1" 2>/dev/null) || content=
  [ -z "$content" ] || [ ! -e "$clean/$content" ] || { touch "$clean/$content" && return; }
  check_unit "$1"
  [ -z "$content" ] || { mkdir -p "$clean" && : >"$clean/$content"; }
}

check_unit() {
  local output
  if [ "$1" = kernels ]; then
    [ ! -d "$toolkit" ] || kernels
  elif [[ $1 != */Unity/* ]]; then
    tidy build-lint "$1"
  elif ! output=$(tidy build-lint/units --checks=-bugprone-suspicious-include "$1" 2>&1); then
    if [[ $output != *'[clang-diagnostic-error]'* ]]; then
      echo "$output"
      return 1
    fi
    echo "read one by one, as they do not compile together: $(grep -m 1 'clang-diagnostic-error' <<<"$output")"
    sed -n 's/^#include "\(.*\)"$/\1/p' "$1" | run 1 --source
  fi
}

# clang-tidy prints the count of suppressed warnings in other projects' headers on standard error. This drops it.
run() { # JOBS, and names on standard input, a line each
  tr '\n' '\0' | xargs -0 -P "$1" -n 1 scripts/clang-tidy.sh "$2" 2> >(grep -v ' generated\.$' >&2)
}

if [[ $1 != --* ]]; then
  plugin
  faults
  find src -name '*.cu' | sort | sed "s|.*|#include \"$PWD/&\"|" >build-lint/kernels.cc
fi
case $1 in
  each) { echo kernels && find src plugins -name '*.cc' | sort; } | run "$2" --source ;;
  units)
    list_included "$2"
    find "$clean" -type f -mtime +30 -delete 2>/dev/null || true
    sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build-lint/units/compile_commands.json | grep -v /version.cc | sort -u |
      sed '1i kernels' | run "$2" --unit
    ;;
  --source) if [ "$2" = kernels ]; then check_unit kernels; else tidy build-lint "$2"; fi ;;
  --unit) unit "$2" ;;
  *)
    echo "error: expected units or each, not '$1'" >&2
    exit 2
    ;;
esac
