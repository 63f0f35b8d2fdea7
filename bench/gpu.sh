#!/usr/bin/env bash
# Tests and measures a machine with an NVIDIA GPU in minutes (docs/gpu.md), with the project's own programs.
#   bench/gpu.sh bundle FILE.tar.gz [BUILD_FOLDER]     makes a bundle on a machine with the CUDA toolkit, so that the
#                                                      machine with the GPU compiles nothing
#   bench/gpu.sh bundle FILE.tar.gz BUILD --rehearse   does the same with the emulated machine instead of the GPU, for
#                                                      tests/gpu/rehearse
#   bench/gpu.sh run BUNDLE OUT [--only STAGE,STAGE]   runs the bundle's stages, each with a time limit, and prints a
#                                                      table. If a stage fails, the next one runs. BUNDLE: the file, or
#                                                      the folder it was unpacked to. A second call with the same OUT
#                                                      continues, and does not measure points again
#   bench/gpu.sh run BUNDLE OUT --call N               runs the stages for a card that is available for five minutes:
#                                                      those of the first call (1), or then of the second (2)
#   bench/gpu.sh stages [--call N]                     prints the stages' names, and the seconds that each may take
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The stages are in the order of their use, so that a run that is cut short misses the least useful. No stage takes ten
# minutes. Stages that measure nothing run beside each other.
stages='facts 60
tests 180 beside
verify 150 beside
bits 240 beside
two-ranks 240 beside
memcheck 240 beside
racecheck 240 beside
synccheck 120 beside
ceilings 60
profile 90
sustained 120
choices 240
pytorch-cudnn 240
against-pytorch 560
nanogpt 120
hf-trainer 120
megatron 120
counters 90
products 240
aws-1b 300
llama-1b 480
llama-8b 500
llama-3b 500
virtual 300
fp32-state 90
batches 150
report 60'

# The stages whose results no card has given yet, in the order of their use. Their limits are shorter here than above: the
# first call takes 300 seconds at most, the second 600.
calls='1 two-ranks 60 beside
1 changed 60 beside
1 bits-of-long 35
1 pytorch-cudnn 75
1 sustained 50
1 fp32-state 15
1 batches 25
1 virtual 30
1 report 10
2 choices 150
2 kernels 50
2 nanogpt 60
2 hf-trainer 60
2 megatron 60
2 pytorch-cudnn 60
2 products 80
2 against-pytorch 60
2 report 20'

usage() {
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$here/gpu.sh" >&2
  exit 2
}

# bundle FILE BUILD [--rehearse]
bundle() {
  local file=$1 build=${2:-build-gpu} trainer=bin/ridgeline-train-cuda tests=tests/gpu_tests
  local measure=tests/gpu_measure
  if [ "${3:-}" = --rehearse ]; then
    trainer=tests/emulated_train_cuda tests=tests/test_engine_device_cuda measure=tests/emulated_measure
  elif [ ! -e "$build/CMakeCache.txt" ]; then
    cmake -S "$here/.." -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DRIDGELINE_CUDA=ON
  fi
  # A rehearsal uses the programs that are built, because CTest runs it beside other tests.
  [ "${3:-}" = --rehearse ] ||
    cmake --build "$build" --target ridgeline ridgeline-train ridgeline-launcher-local "${trainer#*/}" "${tests#*/}" \
      "${measure#*/}"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work"/{bin,sources,lib/ridgeline/plugins,share/ridgeline/{sweeps,trainers}}
  cp "$build"/bin/{ridgeline,ridgeline-train} "$work/bin/"
  cp "$build/$trainer" "$work/bin/ridgeline-train-cuda"
  cp "$build/$tests" "$work/bin/gpu_tests"
  cp "$build/$measure" "$work/bin/gpu_measure"
  cp "$build"/bin/plugins/ridgeline-{launcher-local.so,local-keeper} "$work/lib/ridgeline/plugins/"
  cp -r "$here/../reports" "$work/share/ridgeline/"
  (cd "$here/.." && cp --parents tests/engine/cases/*.{json,safetensors} tests/engine/precision/*.csv "$work/sources/")
  cp "$here"/gpu/*.yaml "$work/share/ridgeline/sweeps/"
  cp "$here/gpu/pytorch/pytorch.yaml" "$here"/../trainers/{nanogpt,hf_trainer,megatron_lm}.yaml "$work/share/ridgeline/trainers/"
  cp -r "$here/gpu.sh" "$here"/gpu/{stages,two_ranks}.sh "$here/gpu/pytorch" "$work/"
  [ "${3:-}" != --rehearse ] || touch "$work/rehearsal"
  "$here/../scripts/copy-libraries.sh" "$work"
  tar -C "$work" -czf "$file" .
  echo "$file: $(($(stat -c %s "$file") / 1024 / 1024)) MiB"
}

# Prints the folders of NVIDIA's libraries that the loader does not search: those of the toolkit and of Python's wheels.
library_folders() {
  local folder
  for folder in /usr/local/cuda/lib64 \
    $(python3 -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null | tr ' ' '\n' | sed 's|$|/*/lib|'); do
    if compgen -G "$folder/lib*.so*" >/dev/null; then printf '%s:' "$folder"; fi
  done
}

# stage NAME LIMIT: runs the stage, and prints its row of the table.
stage() {
  local began=$SECONDS status=0 ended
  echo "== $1, at most $2 s" >&2
  [ ! -e "$BUNDLE/rehearsal" ] || set -- "$1" $(($2 * 4)) # a rehearsal runs beside other tests, on fewer cores
  # The stage is a process of its own, so that `timeout` can end it within its limit. A sweep that gets SIGTERM cancels its
  # points.
  timeout --kill-after 5 $(($2 - 5)) bash "$BUNDLE/stages.sh" "$1" >"$OUT/$1.log" 2>&1 </dev/null || status=$?
  case $status in
    0) ended=ok ;;
    77) ended="skipped: $(tail -n 1 "$OUT/$1.log")" ;;
    124 | 137) ended="time limit" ;;
    *) ended="FAILED ($status): $(tail -n 1 "$OUT/$1.log")" ;;
  esac
  printf '%-13s %5s  %s\n' "$1" $((SECONDS - began)) "$ended"
}

of_call() { sed -n "s/^$1 //p" <<<"$calls"; }

# run BUNDLE OUT ONLY CALL
run() {
  local only=$3 chosen=$stages name limit how
  [ -z "$4" ] || chosen=$(of_call "$4")
  [ -n "$chosen" ] || usage
  BUNDLE=$(realpath "$1")
  mkdir -p "$2"
  OUT=$(realpath "$2")
  if [ -f "$BUNDLE" ]; then
    unpacked=$(mktemp -d)
    trap 'rm -rf "$unpacked"' EXIT
    tar -C "$unpacked" -xzf "$BUNDLE"
    BUNDLE=$unpacked
  fi
  PATH=$BUNDLE/bin:$PATH:/usr/local/cuda/bin
  LD_LIBRARY_PATH=$(library_folders)${LD_LIBRARY_PATH:-}
  export BUNDLE OUT PATH LD_LIBRARY_PATH
  if ! ridgeline-train --version; then
    echo "the bundle's programs do not start here (glibc 2.36 or later?): build them on this machine" >&2
    exit 1
  fi
  GPU=$(ridgeline-train --gpus | sed -n 's/^GPU 0: .*, gpu: \([a-z0-9-]*\)$/\1/p')
  export GPU
  echo "GPU 0: ${GPU:-none that a spec can name}"
  {
    printf '%-13s %5s  %s\n' stage seconds ended
    while read -r name limit how; do
      [ -z "$only" ] || [[ ",$only," == *",$name,"* ]] || continue
      if [ "$how" = beside ]; then
        stage "$name" "$limit" &
      else
        wait
        stage "$name" "$limit"
      fi
    done <<<"$chosen"
    wait
  } | tee "$OUT/table.txt"
}

case ${1:-} in
  bundle)
    [ $# -ge 2 ] || usage
    bundle "${@:2}"
    ;;
  run)
    case $#-${4:-} in
      3-) run "$2" "$3" "" "" ;;
      5---only) run "$2" "$3" "$5" "" ;;
      5---call) run "$2" "$3" "" "$5" ;;
      *) usage ;;
    esac
    ;;
  stages)
    case $#-${2:-} in
      1-) echo "$stages" ;;
      3---call) of_call "$3" ;;
      *) usage ;;
    esac
    ;;
  *) usage ;;
esac
