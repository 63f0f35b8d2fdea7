#!/usr/bin/env bash
# Takes weights from ridgeline-train to Hugging Face transformers and back, and compares what both compute with them.
# bench/pytorch/weights.sh --help says how; inside.sh says which variables tell where PyTorch and the build are.
exec "$(dirname "$0")/inside.sh" weights.py "$@"
