#!/usr/bin/env bash
# What ptxas says of every CUDA kernel of a build: the registers of a thread, the bytes it spills, and the bytes of static
# shared memory of a block, for one architecture.
#   cuda-kernels.sh BUILD [ARCHITECTURE]     90a where none is named
set -euo pipefail
cd "$(dirname "$0")/.."

version() { # BUILD
  "$(sed -n 's/^RIDGELINE_NVCC:[A-Z]*=//p' "$1/CMakeCache.txt")" --version | sed -n 's/.*, \(V[0-9.]*\)$/nvcc \1/p'
}

table() { # BUILD ARCHITECTURE
  version "$1"
  # nvcc names anonymous namespaces after the file and a number that changes with it: all are one here.
  cat "$1"/src/engine/cuda/*.ptxas | awk -v architecture="sm_$2" -v quote="'" '
    /Compiling entry function/ {
      split($0, words, quote)
      name = words[2]
      wanted = words[4] == architecture
      while (match(name, /[0-9]+_GLOBAL__N__/)) {
        length_digits = match(substr(name, RSTART), /_/) - 1
        match(name, /[0-9]+_GLOBAL__N__/)
        count = substr(name, RSTART, length_digits) + 0
        name = substr(name, 1, RSTART - 1) "12_GLOBAL__N_1" substr(name, RSTART + length_digits + count)
      }
    }
    wanted && /spill stores/ { spilled = $5 + $9 }
    wanted && /Used [0-9]+ registers/ {
      shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
      match($0, /Used [0-9]+/)
      printf "%s\t%d registers\t%d spilled\t%d shared\n", name, substr($0, RSTART + 5, RLENGTH - 5), spilled, shared
    }' | c++filt | sed 's/(anonymous namespace):://g; s/^void //; s/ridgeline:://g' | LC_ALL=C sort
}

table "$1" "${2:-90a}"
