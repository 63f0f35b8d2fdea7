#!/usr/bin/env bash
# stages.sh NAME: runs a stage of bench/gpu.sh, which sets BUNDLE, OUT and GPU (the card's name in a spec, or empty).
# Ends with 77 if the stage cannot run here, and says why in its last line.
set -euo pipefail
# SIGTERM goes to the programs of a stage, too. The stage waits for their end, because the next one needs the whole card.
trap 'exit 143' TERM

export RIDGELINE_SOURCES=$BUNDLE/sources

skip() {
  echo "$1"
  exit 77
}
need_gpu() { [ -n "$GPU" ] || skip "no GPU here that a spec can name"; }
need() { command -v "$1" || skip "there is no $1 here"; }

# The tests that are quick enough under a tool that watches every access.
small='*CudaSeed0:CudaExecutor.*'
chosen=()
rows=8192
products=(8192)
models=(llama-124m gpt-124m stack-1b)
long=(--model llama-8b --layers 2 --seq-length 8192 --batch-size 1 --state-precision bf16)
changed='*Cudnn*:CudaExecutor*:CallsTogether*:CudaTrainer*:*Loss*'
verified=("$BUNDLE"/sources/tests/engine/cases/*.json)
shape=(--seq-length 1024 --batch-size 2 --layers 2)
large=(--model llama-1b --seq-length 8192 --state-precision bf16)
measured=(--warmup-seconds 3 --seconds 8)
shrink=()
if [ -e "$BUNDLE/rehearsal" ]; then
  small='CudaExecutor.A*'
  chosen=("--gtest_filter=$small")
  rows=64
  products=(16 llama-5m gpt-10m)
  models=(llama-5m stack-1b)
  verified=("$BUNDLE/sources/tests/engine/cases/llama-one-token.json")
  shape=(--seq-length 16 --batch-size 1 --layers 1 --hidden 64 --heads 4 --kv-heads 4 --head-dim 16 --ffn 96)
  large=(--model llama-5m "${shape[@]}")
  long=("${large[@]}")
  measured=(--warmup-seconds 0 --seconds 0)
  changed=$small
  # The shape goes after a sweep's seq_length, which is the last of its defaults.
  shrink=(-e 's/warmup_steps: 10, steps: 60, warmup_seconds: 2, seconds: 3/warmup_steps: 2, steps: 2, warmup_seconds: 0, seconds: 0/'
    -e 's/^  batch_size: 8$/  batch_size: 1/' -e 's/^  seq_length: .*/  seq_length: 16\n  layers: 1\n  hidden: 64\n  heads: 4\n  kv_heads: 4\n  head_dim: 16\n  ffn: 96/'
    -e '/model: \(llama\|gpt\)/s/$/\n  vocab: 128/')
fi

train() { ridgeline-train "$@" --device cuda --gpu "$GPU"; }
# Runs steps whose time does not matter.
at_once() { train "$@" --warmup-seconds 0 --seconds 0; }

facts() {
  uname -a
  getconf GNU_LIBC_VERSION
  ridgeline-train --gpus
  ridgeline doctor || true
  if command -v nvidia-smi; then nvidia-smi -q; else echo "there is no nvidia-smi here"; fi
  [ -z "$GPU" ] || gpu_measure device | tee "$OUT/device.json"
}

# Each core runs a part of the tests, because the cores compute the values to compare with.
tests() {
  local parts part failed=0 running=()
  [ $# = 0 ] || chosen=("--gtest_filter=$1")
  parts=$(nproc)
  export OMP_WAIT_POLICY=passive  # more threads wait for each other than there are cores
  for ((part = 0; part < parts; ++part)); do
    GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part gpu_tests --gtest_brief=1 \
      "--gtest_output=json:$OUT/tests.$part.json" "${chosen[@]}" &
    running+=($!)
  done
  for part in "${running[@]}"; do wait "$part" || failed=1; done
  echo "$(cat "$OUT"/tests.*.json | grep -c '"failure":') failures"
  [ "$failed" = 0 ]
}

sanitizer() {
  need compute-sanitizer
  compute-sanitizer --tool "$1" --error-exitcode 9 gpu_tests --gtest_brief=1 "--gtest_filter=$small"
}

# Each case is short and uses the GPU little, so as many run at once as there are cores.
verify() {
  need_gpu
  local case precision policy
  for case in "${verified[@]}"; do
    for precision in fp32 tf32 bf16 fp16; do
      for policy in none full; do printf '%s\0' "$case" "$precision" "$policy"; done
    done
  done >"$OUT/verify.cases"
  # shellcheck disable=SC2016 # the inner shell's
  xargs -0 -n 3 -P "$(nproc)" bash -c '
    said=$(ridgeline-train --verify "$0" --precision "$1" --checkpointing "$2" --device cuda --gpu "$GPU" 2>&1) ||
      said="NOT VERIFIED $0 $1 $2: $said"
    echo "$said"' <"$OUT/verify.cases" | tee "$OUT/verify.said"
  echo "$(grep -c '^NOT VERIFIED' "$OUT/verify.said") of $(($(tr -cd '\0' <"$OUT/verify.cases" | wc -c) / 3)) are not verified"
  ! grep -q '^NOT VERIFIED' "$OUT/verify.said"
}

# series FILE: prints the losses and the gradient norms of all steps of a result.
series() { grep -oE '"(loss|grad_norm)":\[[^]]+\]' "$1"; }
said() { grep -oE "\"$2\":\"[^\"]*\"" "$1" | cut -d '"' -f 4; }

# bits_of MODEL PRECISION: compares the bits of three equal runs: as a graph, again as a graph, and call by call.
bits_of() {
  local model=$1 precision=$2 name=$OUT/bits/$1-$2 way graph failed=0
  for way in graph again calls; do
    graph=()
    [ "$way" != calls ] || graph=(--no-graph)
    at_once --model "$model" "${shape[@]}" --precision "$precision" --steps 4 --warmup-steps 1 --grad-clip 1 \
      --algorithms "$name.algorithms" "${graph[@]}" --result "$name.$way.json" >"$name.$way.log" 2>&1 ||
      { cat "$name.$way.log" && return 1; }
    series "$name.$way.json" >"$name.$way.series"
  done
  for way in again calls; do
    if cmp "$name.graph.series" "$name.$way.series"; then
      echo "$model $precision: graph and $way have the same bits"
    else
      echo "$model $precision: graph and $way DIFFER" && failed=1
    fi
  done
  echo "$model $precision: algorithms of products: $(said "$name.graph.json" gemm_algorithms)"
  return "$failed"
}

# bits_of_long PRECISION ATTENTION: compares the bits of 4 steps of a long sequence under three policies, one of them twice.
# With `deterministic` all must have the same bits. With `fastest` it reports whether they do.
bits_of_long() {
  local precision=$1 attention=$2 name=$OUT/bits/long-$1-$2 policy failed=0
  for policy in none again selective full; do
    at_once "${long[@]}" --precision "$precision" --attention-backward "$attention" --steps 3 --warmup-steps 1 \
      --grad-clip 1 --algorithms "$name.algorithms" --checkpointing "${policy/again/none}" \
      --result "$name.$policy.json" >"$name.$policy.log" 2>&1 || { cat "$name.$policy.log" && return 1; }
    series "$name.$policy.json" >"$name.$policy.series"
  done
  for policy in again selective full; do
    if cmp "$name.none.series" "$name.$policy.series"; then
      echo "long $precision, attention $attention: none and $policy have the same bits"
    else
      echo "long $precision, attention $attention: none and $policy differ"
      [ "$attention" = fastest ] || failed=1
    fi
  done
  echo "long $precision, attention $attention: $(said "$name.none.json" attention_backward)"
  return "$failed"
}

# bits MODEL…: compares the bits of a long sequence, and of these models.
bits() {
  need_gpu
  local model precision attention one failed=0 running=()
  mkdir -p "$OUT/bits"
  for precision in bf16 fp8; do
    for attention in fastest deterministic; do
      bits_of_long "$precision" "$attention" &
      running+=($!)
    done
  done
  for model in "$@"; do
    for precision in bf16 fp8; do
      bits_of "$model" "$precision" &
      running+=($!)
    done
  done
  for one in "${running[@]}"; do wait "$one" || failed=1; done
  [ "$failed" = 0 ] || { echo "see above" && return 1; }
}

ceilings() {
  need_gpu
  gpu_measure ceilings "$rows"
}

products() {
  need_gpu
  gpu_measure products "${products[@]}"
}

profile() {
  need_gpu
  local precision
  for precision in bf16 fp8; do train "${large[@]}" --precision "$precision" --steps 3 --warmup-steps 2 --profile; done
}

# sweep NAME: runs the sweep. It does not measure points again that have a result.
sweep() {
  need_gpu
  sed -e "s/^  gpu: .*/  gpu: $GPU/" -e "s|GPU_PYTORCH: .|GPU_PYTORCH: $BUNDLE/pytorch|" -e "s|OUT_FOLDER|$OUT|g" \
    "${shrink[@]}" \
    "$BUNDLE/share/ridgeline/sweeps/$1.yaml" >"$OUT/$1.yaml"
  cd "$OUT"
  ridgeline run "$1.yaml" --db gpu.db
}

report() {
  local name
  cd "$OUT"
  [ -e gpu.db ] || skip "no sweep has run"
  ridgeline db check --db gpu.db
  ridgeline db export --db gpu.db --to gpu.csv
  for name in activation-checkpointing precision; do ridgeline report "$name" --db gpu.db --to "$name.html"; done
  ridgeline query --db gpu.db "SELECT model, precision, checkpointing, batch_size, status, steady_tokens_per_s,
    planned_peak_bytes, device_peak_bytes, device_peak_bytes - planned_peak_bytes AS outside_bytes
    FROM runs ORDER BY model, precision, checkpointing, batch_size"
}

# counters [PATTERN]: Nsight Compute shows what limits each of our kernels, or those of the pattern, in a step of one layer.
counters() {
  need_gpu
  need ncu
  local precision
  for precision in bf16 fp8; do
    ncu --clock-control none --csv --kernel-name-base mangled --kernel-name "regex:${1:-ridgeline}" --section SpeedOfLight \
      --section Occupancy --section WarpStateStats --section LaunchStats ridgeline-train-cuda "${large[@]}" --layers 1 \
      --precision "$precision" --steps 1 --warmup-steps 0 --warmup-seconds 0 --seconds 0 --no-graph --algorithms off \
      --device cuda --gpu "$GPU" \
      >"$OUT/counters-$precision.csv"
    tail -n 1 "$OUT/counters-$precision.csv"
  done
}

need_pytorch() { python3 -c 'import torch; torch.zeros(1, device="cuda")' || skip "no PyTorch here that sees a GPU"; }
with_pytorch() {
  need_pytorch
  sweep "$1"
}

# Two ranks take turns on the card. This measures nothing, so it may run beside other stages.
two_ranks() {
  need_gpu
  local gpu=$GPU
  [ ! -e "$BUNDLE/rehearsal" ] || gpu=cpu # the emulated NCCL connects only threads of one process
  "$BUNDLE/two_ranks.sh" "$OUT/two-ranks" "$gpu"
}

# Runs the step of the comparison until the clocks have settled, and shows where its time goes.
sustained() {
  sweep sustained
  train "${large[@]/llama-1b/llama-8b}" --precision bf16 --steps 5 --warmup-steps 2 --profile
}

# Runs the same steps with each setting that changes the choice of algorithms (docs/gpu.md), and without any. No card has
# run these yet. The card is warm from the run before, so its clocks settle in less time.
choices() {
  need_gpu
  local name result flags
  mkdir -p "$OUT/choices"
  for name in none load plans beside chunk all; do
    case $name in
      none) flags=() ;;
      load) flags=(--choose-under-load 5) ;;
      plans) flags=(--all-plans) ;;
      beside) flags=(--beside-products) ;;
      chunk) flags=(--logits-chunk 4096) ;;
      all) flags=(--choose-under-load 5 --all-plans --beside-products --logits-chunk 4096) ;;
    esac
    result=$OUT/choices/$name.json
    train "${large[@]/llama-1b/llama-8b}" --precision bf16 --steps 3 --warmup-steps 2 \
      "${measured[@]}" --algorithms "$OUT/choices/$name.algorithms" "${flags[@]}" --result "$result" \
      >"$OUT/choices/$name.log" 2>&1 || { cat "$OUT/choices/$name.log" && return 1; }
    echo "$name: $(grep -oE '"steady_tokens_per_s":[0-9.e+]+' "$result" | cut -d : -f 2) tokens/s; products:" \
      "$(said "$result" gemm_algorithms); attention: $(said "$result" attention_forward)," \
      "$(said "$result" attention_backward)"
  done
}

# Other trainers, by their definitions, on this machine's PyTorch. NANOGPT, TRANSFORMERS and MEGATRON_LM name the folders of
# their sources. They need no network, as their data is random.
need_modules() { python3 -c "import $1" 2>"$OUT/modules.log" || skip "Python here does not import $1: $(tail -n 1 "$OUT/modules.log")"; }
need_sources() { # VARIABLE FILE
  [ -n "${!1:-}" ] || skip "$1 is not set: it names the folder of $2"
  [ -e "${!1}/$2" ] || skip "there is no $2 in ${!1}, which $1 names"
}

nanogpt() {
  need_pytorch
  need_modules numpy
  need_sources NANOGPT train.py
  # nanoGPT looks for its data below its own folder, so it gets a copy.
  local folder=$OUT/nanogpt
  mkdir -p "$folder/data/random"
  cp "$NANOGPT"/{train,model,configurator}.py "$folder/"
  python3 - "$folder/data/random" <<'END'
import pickle
import sys

import numpy

tokens = numpy.random.default_rng(1).integers(0, 50257, 2_000_000, dtype=numpy.uint16)
for part in ("train", "val"):
    tokens.tofile(f"{sys.argv[1]}/{part}.bin")
with open(f"{sys.argv[1]}/meta.pkl", "wb") as file:
    pickle.dump({"vocab_size": 50257}, file)
END
  sweep nanogpt
}

hf_trainer() {
  need_pytorch
  need_modules "transformers, datasets, accelerate, evaluate"
  need_sources TRANSFORMERS examples/pytorch/language-modeling/run_clm.py
  # Makes a tokenizer with as many words as the model has tokens, and a text of these words.
  python3 - "$OUT/hf-trainer" <<'END'
import random
import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

words = [f"w{i}" for i in range(50256)]
vocabulary = {word: i for i, word in enumerate(words + ["<end>"])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<end>"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<end>", eos_token="<end>").save_pretrained(sys.argv[1])
drawn = random.Random(1)
with open(f"{sys.argv[1]}/text.txt", "w", encoding="utf-8") as file:
    for _ in range(1000):
        file.write(" ".join(drawn.choices(words, k=1024)) + "\n")
END
  sweep hf-trainer
}

megatron() {
  need_pytorch
  need_sources MEGATRON_LM pretrain_gpt.py
  sweep megatron
}

case $1 in
  memcheck | racecheck | synccheck) sanitizer "$1" ;;
  facts | tests | verify | ceilings | profile | counters | products | report | sustained | choices) "$1" ;;
  nanogpt | megatron) "$1" ;;
  hf-trainer) hf_trainer ;;
  bits) bits "${models[@]}" ;;
  bits-of-long) bits ;;
  changed) tests "$changed" ;;
  kernels) counters 'ridgeline.*(CrossEntropyRow|8Backward|4Turn)' ;;
  two-ranks) two_ranks ;;
  against-pytorch | pytorch-cudnn) with_pytorch "$1" ;;
  *) sweep "$1" ;;
esac
