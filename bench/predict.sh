#!/bin/sh
# Measures the time and the peak memory of two commands. `ridgeline predict` gets 3,072 sharded points of 8B to 64B on
# p6-b200, each with a step of its own whose memory is planned. `ridgeline plan` gets 10,000 points that share two
# steps. Goals: 20 s on two cores, 2,000 points a second, 2 GB.
#   bench/predict.sh [BUILD]     BUILD: a Release build (make programs); default: build
set -eu
cd "$(dirname "$0")/.."
ridgeline=$PWD/${1:-build}/bin/ridgeline
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cat >"$folder/sharded.yaml" <<'SWEEP'
name: sharded
defaults: {seq_length: 4096, shard: full, communicator: virtual}
matrix:
  model: [llama-8b, llama-14b, llama-32b, llama-64b]
  precision: [bf16, fp8, mxfp8, nvfp4]
  checkpointing: [none, selective, full]
  batch_size: [1, 2, 3, 4, 6, 8, 12, 16]
  ranks: [8, 16, 32, 64, 128, 256, 512, 1024]
SWEEP
cat >"$folder/same.yaml" <<'SWEEP'
name: same
defaults: {seq_length: 4096, shard: full, communicator: virtual, model: llama-8b}
matrix: {ranks: [8, 64], learning_rate: [1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4, 7e-4, 8e-4, 9e-4, 1e-3], seed: 1..500}
SWEEP
# measure NAME POINTS COMMAND...: prints points a second, by the wall clock, and the peak of the resident set.
measure() {
  name=$1 points=$2
  shift 2
  python3 - "$name" "$points" "$@" <<'PYTHON'
import os, resource, subprocess, sys, time
name, points, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
begin = time.monotonic()
lines = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.count(b"\n")
seconds = time.monotonic() - begin
assert lines == points + 1, (lines, points)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
print(f"{name}: {points} points in {seconds:.1f} s, {points / seconds:.0f} a second, {peak:.2f} GB, "
      f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
PYTHON
}
measure "predict, a step each" 3072 "$ridgeline" predict "$folder/sharded.yaml" --device p6-b200 -o csv
measure "plan, two steps" 10000 "$ridgeline" plan "$folder/same.yaml" --device p6-b200 --db "$folder/none.db" -o csv
