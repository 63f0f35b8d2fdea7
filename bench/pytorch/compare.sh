#!/usr/bin/env bash
# Trains the same configurations with PyTorch and with ridgeline-train, in turns, and prints both side by side.
# bench/pytorch/compare.sh --help lists the options; inside.sh says which variables tell where PyTorch and the build are.
exec "$(dirname "$0")/inside.sh" compare.py "$@"
