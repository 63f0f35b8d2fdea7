#!/usr/bin/env python3
"""Measures the cost of the compiler's checks (rl_hardened_flags in cmake/options.cmake).

  hardening.py PLAIN HARDENED [ROUNDS]

PLAIN, HARDENED: bin folders of two builds of the same sources, configured with -DRIDGELINE_HARDEN=OFF and ON. The script
runs each program below with both builds in turns, ROUNDS (15) times. It prints the median ratio of their processor times,
plain to hardened, with its quartiles: 0.99 means that the hardened build takes 1 % more.
"""
import os
import statistics
import subprocess
import sys
import tempfile

plain, hardened = (os.path.abspath(build) for build in sys.argv[1:3])
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 15
repository = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
folder = tempfile.TemporaryDirectory()
TRAIN = ["ridgeline-train", "--layers", "2", "--hidden", "256", "--heads", "4", "--ffn", "1024", "--vocab", "2048",
         "--seq-length", "256", "--batch-size", "4", "--warmup-steps", "1", "--steps", "30", "--precision"]
RUNS = {
    "train in fp32": [*TRAIN, "fp32"],
    "train in bf16": [*TRAIN, "bf16"],
    "train in fp8": [*TRAIN, "fp8"],
    "expand a million points": ["ridgeline", "plan", os.path.join(repository, "bench/million.yaml"), "--expand-only", "-o",
                                "jsonl"],
    "plan a sweep": ["ridgeline", "plan", os.path.join(repository, "sweeps/precision.yaml")],
}


def cpu_seconds(command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder.name,
                             env={**os.environ, "OMP_NUM_THREADS": "1"})
    words = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)} failed:\n{words.decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime


for name, (program, *arguments) in RUNS.items():
    ratios = []
    for turn in range(rounds):
        builds = [plain, hardened] if turn % 2 == 0 else [hardened, plain]
        seconds = {build: cpu_seconds([os.path.join(build, program), *arguments]) for build in builds}
        ratios.append(seconds[plain] / seconds[hardened])
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{name:<24} {middle:.3f} ({low:.3f} to {high:.3f}), hardened {seconds[hardened]:.2f} s", flush=True)
