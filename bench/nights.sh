#!/usr/bin/env bash
# Plays nights on this machine in minutes: `ridgeline nightly` runs and gates a small sweep, and from one night on the
# engine is slowed down.
#
#   nights.sh BIN [NIGHTS] [SLOW_FROM] [SLOWDOWN]
#
# BIN: the folder with ridgeline and ridgeline-train. From night SLOW_FROM (22) of NIGHTS (30) on, every parallel region
# of the trainer takes longer by the share SLOWDOWN (0.3), because a preloaded library spins for that time in each.
# The script keeps everything in ./nights, and prints the table of the nights.
set -euo pipefail

bin=$(realpath "${1:?name the folder of the programs}")
nights=${2:-30}
slow_from=${3:-22}
slowdown=${4:-0.3}

mkdir nights
cd nights
cat >slow.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  static void (*real)(void (*)(void*), void*, unsigned, unsigned);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "GOMP_parallel");
  const double begin = Now();
  real(body, data, threads, flags);
  const double end = Now();
  const double until = end + (end - begin) * atof(getenv("SLOWDOWN"));
  while (Now() < until) {
  }
}
C
cc -O2 -shared -fPIC -o slow.so slow.c -ldl

# The trainer has the same name every night. What it does changes, like a program that is installed anew.
mkdir today yesterday
for day in today yesterday; do
  cat >"$day/trainer" <<SH
#!/bin/sh
[ ! -e "$PWD/$day/slow" ] || export LD_PRELOAD="$PWD/slow.so" SLOWDOWN=$slowdown
exec "$bin/ridgeline-train" "\$@"
SH
  chmod +x "$day/trainer"
done
cat >nights.yaml <<YAML
name: nights
defaults: {model: llama-5m, seq_length: 128}
matrix: {checkpointing: [none, full]}
measure: {warmup_steps: 3, steps: 20, repeats: 4}
launch: {trainer: ["$PWD/today/trainer"]}
YAML

for ((night = 1; night <= nights; ++night)); do
  [ "$night" -lt "$slow_from" ] || touch today/slow
  "$bin/ridgeline" nightly run nights.yaml --dir nightly --base-build yesterday >>log 2>&1 || echo "night $night: exit code $?"
done
"$bin/ridgeline" nightly status --dir nightly
