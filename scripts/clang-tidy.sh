#!/usr/bin/env bash
# Runs clang-tidy over every source of src/ and plugins/, and fails where any has a finding (.clang-tidy makes every
# warning an error). CUDA's kernels are among them where the toolkit is.
#   clang-tidy.sh units JOBS   sixteen sources at a time (preset lint-units), JOBS times at once: a fifth of the work
#   clang-tidy.sh each JOBS    each by itself (preset lint), which also finds an include that a neighbour had
# First it asks for faults that are there on purpose, tests/lint/faults.cc, and fails where one is not found.
set -euo pipefail
cd "$(dirname "$0")/.."

tidy() { # BUILD OPTION…
  clang-tidy --load=build-lint/own_code.so --quiet -p "$1" --extra-arg=-Wno-unknown-warning-option "${@:2}"
}

# Has clang-tidy look at our code alone.
plugin() {
  [ build-lint/own_code.so -nt tests/lint/own_code.cc ] ||
    c++ -std=c++17 -fno-rtti -fPIC -shared -isystem "$(llvm-config --includedir)" tests/lint/own_code.cc \
      -o build-lint/own_code.so
}

# What stands in the comments at the ends of lines has to be found, in a header too, and nothing else.
faults() {
  local places='s/.*\(faults[.a-z]*:[0-9]*\):.*'
  diff <(grep -HnE '// [a-z]+-[a-z-]+$' tests/lint/faults.cc tests/lint/include/faults.h |
    sed "$places"'\/\/ \([a-z-]*\)$/\1 \2/' | sort) \
    <(tidy . tests/lint/faults.cc -- -std=c++20 -I. 2>/dev/null |
      sed -n "$places"' \[\([a-z-]*\),.*$/\1 \2/p' | sort -u) ||
    { echo 'error: clang-tidy does not find what it has to (<: tests/lint), or something else (>)' >&2 && return 1; }
}

# CUDA's kernels, as the C++ as which the tests' emulated machine runs them, all in one. That an index is multiplied in
# 32 bits before it becomes an address of 64 is meant: a thread's are small, and registers are few. They take what they
# are launched with by value, and to look into that takes longer than all else together.
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

# A unit of sources that have names of their own in common does not compile: each by itself then, which is said, as it takes
# several times as long.
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

# It counts the warnings it suppressed in others' headers on standard error, which says nothing to anybody.
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
    echo "error: units or each, not '$1'" >&2
    exit 2
    ;;
esac
