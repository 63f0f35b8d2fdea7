#!/usr/bin/env bash
# Runs clang-tidy over every source of src/ and plugins/, and fails if any has a finding (.clang-tidy makes every
# warning an error). It includes CUDA's kernels if the toolkit is installed.
#   clang-tidy.sh units JOBS   checks sixteen sources at a time (preset lint-units), JOBS at once: a fifth of the work
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
kernels() {
  local toolkit
  toolkit=$(sed -n 's/^RIDGELINE_CUDA_INCLUDE:PATH=//p' build-lint/CMakeCache.txt)
  [ -d "$toolkit" ] || return 0
  find src -name '*.cu' | sort | sed "s|.*|#include \"$PWD/&\"|" >build-lint/kernels.cc
  local off=-bugprone-suspicious-include,-bugprone-implicit-widening-of-multiplication-result
  clang-tidy --load=build-lint/own_code.so --quiet --checks=$off,-performance-unnecessary-value-param \
    build-lint/kernels.cc -- -x c++ -std=c++20 -DRIDGELINE_CUDA_ON_CPU -include cuda_on_cpu/kernel.h -Isrc -Iinclude \
    -Itests -isystem "$toolkit"
}

# A unit does not compile if its sources define the same name. Then each source is checked by itself. That is reported,
# because it takes several times as long.
unit() {
  local output
  if [ "$1" = kernels ]; then
    kernels
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
fi
case $1 in
  each) { echo kernels && find src plugins -name '*.cc' | sort; } | run "$2" --source ;;
  units)
    sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build-lint/units/compile_commands.json | grep -v /version.cc | sort -u |
      sed '1i kernels' | run "$2" --unit
    ;;
  --source) if [ "$2" = kernels ]; then kernels; else tidy build-lint "$2"; fi ;;
  --unit) unit "$2" ;;
  *)
    echo "error: expected units or each, not '$1'" >&2
    exit 2
    ;;
esac
