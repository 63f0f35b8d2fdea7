#!/usr/bin/env bash
# Lists the resources that each CUDA kernel of a build takes on a multiprocessor, from the report of ptxas: the most threads
# of a block, the registers of each thread, the bytes of static shared memory, of stack and of spilled registers, and how
# many of these blocks a multiprocessor holds. (Dynamic shared memory, which attention.cu's kernels take, does not count.)
#   cuda-kernels.sh BUILD ARCHITECTURE    prints the list of one architecture, for example 90
#   cuda-kernels.sh BUILD --check         compares all compiled architectures with tests/golden/cuda/ and shows differences;
#                                         exit 77 if another nvcc was used. RIDGELINE_UPDATE_GOLDENS=1 writes the goldens
set -euo pipefail
cd "$(dirname "$0")/.."

cached() { sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt"; } # BUILD VARIABLE

table() { # BUILD ARCHITECTURE
  echo "# $("$(cached "$1" RIDGELINE_NVCC)" --version | sed -n 's/.*, \(V[0-9.]*\)$/nvcc \1/p'), sm_$2"
  printf 'source\tkernel\tthreads\tregisters\tshared\tstack\tspilled\tblocks\n'
  # nvcc names anonymous namespaces after the file and a number that changes with it. This gives all the same name.
  # The limits of a multiprocessor are from the CUDA programming guide, "Compute Capabilities". Every block takes 1 KiB more
  # of its shared memory; a warp's registers come in units of 256.
  awk -v architecture="sm_$2" -v quote="'" '
    BEGIN {
      most_warps = architecture ~ /^sm_(12|89)/ ? 48 : 64
      most_blocks = architecture ~ /^sm_(12|89)/ ? 24 : 32
      shared_bytes = (architecture == "sm_80" ? 164 : architecture ~ /^sm_(12|89)/ ? 100 : 228) * 1024
    }
    function least(a, b) { return a < b ? a : b }
    /Compiling entry function/ {
      split($0, words, quote)
      name = words[2]
      source[name] = FILENAME
      gsub(/.*\/|\.ptxas$/, "", source[name])
      wanted = words[4] == architecture || words[4] == architecture "f" # of the family
    }
    wanted && /bytes stack frame/ { stack[name] += $1; spilled[name] += $5 + $9 }
    wanted && /Used [0-9]+ registers/ {
      match($0, /Used [0-9]+/)
      registers[name] = substr($0, RSTART + 5, RLENGTH - 5)
      shared[name] = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
    }
    /^\.entry/ { name = $2; threads[name] = 1024 }
    /^\.maxntid/ { threads[name] = $2 + 0 }
    END {
      for (name in registers) {
        warps = int((threads[name] + 31) / 32)
        of_warp = int((registers[name] * 32 + 255) / 256) * 256
        blocks = least(most_blocks, int(most_warps / warps))
        blocks = least(blocks, int(int(65536 / of_warp) / warps))
        blocks = least(blocks, int(shared_bytes / (shared[name] + 1024)))
        shown = name
        while (match(shown, /[0-9]+_GLOBAL__N__/)) {
          digits = match(substr(shown, RSTART), /_/) - 1
          match(shown, /[0-9]+_GLOBAL__N__/)
          count = substr(shown, RSTART, digits) + 0
          shown = substr(shown, 1, RSTART - 1) "12_GLOBAL__N_1" substr(shown, RSTART + digits + count)
        }
        printf "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", source[name], shown, threads[name], registers[name], shared[name], stack[name], spilled[name], blocks
      }
    }' "$1"/src/engine/cuda/*.ptxas | c++filt |
    sed -E 's/\(anonymous namespace\):://g; s/\tvoid /\t/; s/ridgeline::(engine::)?//g; s/\(([^()]|\([^()]*\))*\)\t/\t/' | LC_ALL=C sort
}

check() { # BUILD
  local architecture golden status=0
  taken=$(mktemp)
  trap 'rm -f "$taken"' EXIT
  for architecture in $(cached "$1" RIDGELINE_CUDA_ARCHITECTURES | tr ';' ' '); do
    golden=tests/golden/cuda/sm_$architecture.tsv
    table "$1" "$architecture" >"$taken"
    if [ -n "${RIDGELINE_UPDATE_GOLDENS:-}" ]; then
      mkdir -p tests/golden/cuda
      cp "$taken" "$golden"
    elif [ ! -e "$golden" ]; then
      echo "sm_$architecture is not compared: there is no $golden"
    elif [ "$(head -n 1 "$taken")" != "$(head -n 1 "$golden")" ]; then
      echo "not compared: the build is of $(head -n 1 "$taken" | cut -c 3-), $golden of $(head -n 1 "$golden" | cut -c 3-)"
      exit 77
    elif ! diff -u "$golden" "$taken"; then
      echo "sm_$architecture: kernels take other resources than before; to accept: RIDGELINE_UPDATE_GOLDENS=1 $0 $1 --check"
      status=1
    fi
  done
  return $status
}

if [ "${2:-}" = --check ]; then check "$1"; else table "$1" "${2:-90}"; fi
