#!/usr/bin/env bash
# Takes weights from ridgeline-train to Hugging Face transformers and back, and compares what both compute with them.
# bench/pytorch/weights.sh --help says how. inside.sh describes the variables for the folders of PyTorch and the build.
exec "$(dirname "$0")/inside.sh" weights.py "$@"
