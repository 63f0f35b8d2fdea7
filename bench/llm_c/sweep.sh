#!/usr/bin/env bash
# Trains the same model with karpathy's llm.c on processors and with ridgeline-train, as one sweep, and prints both.
# bench/llm_c/sweep.sh LLM_C [BUILD]: LLM_C is a folder of llm.c in which `make train_gpt2` was run; BUILD is the build
# folder (build/). inputs.py makes the files that train_gpt2 reads, in a temporary folder. That folder and the results
# are removed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

program=${1:?name the folder of llm.c: sweep.sh LLM_C [BUILD]}/train_gpt2
build=$(cd "${2:-$here/../../build}" && pwd)
[ -x "$program" ] || {
  echo "there is no $program; run make train_gpt2 in that folder" >&2
  exit 2
}
program=$(realpath "$program")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$here/inputs.py" "$work/inputs"
ln -s "$program" "$work/inputs/train_gpt2"
cd "$work"
LLM_C=$work/inputs "$build/bin/ridgeline" run "$here/sweep.yaml" --trainers "$here/../../trainers"
