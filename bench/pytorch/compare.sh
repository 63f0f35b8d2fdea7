#!/usr/bin/env bash
# Trains the same configurations with PyTorch and with ridgeline-train, in turns, and prints both side by side.
# bench/pytorch/compare.sh --help lists the options. inside.sh describes the variables for the folders of PyTorch and
# the build.
exec "$(dirname "$0")/inside.sh" compare.py "$@"
