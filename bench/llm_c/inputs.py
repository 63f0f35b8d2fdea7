#!/usr/bin/env python3
"""Writes the files that llm.c's train_gpt2 reads from its working folder: a GPT-2 of random weights in its checkpoint
format (version 3), a tokenizer (version 2) whose tokens are numbers, and random tokens as its data."""

import argparse
import array
import pathlib
import random
import struct

HEADER = 256  # 32-bit numbers
DRAWN = 1 << 16  # random weights; beyond these, they repeat


def header(*values):
    return struct.pack(f"{HEADER}i", *values, *[0] * (HEADER - len(values)))


class Weights:
    def __init__(self, file, generator):
        self.file = file
        self.drawn = array.array("f", (generator.gauss(0, 0.02) for _ in range(DRAWN)))

    def random(self, count):
        while count > 0:
            self.file.write(self.drawn[: min(count, DRAWN)].tobytes())
            count -= DRAWN

    def full(self, count, value):
        self.file.write(array.array("f", [value]).tobytes() * count)

    def linear(self, layers, outputs, inputs):
        self.random(layers * outputs * inputs)
        self.full(layers * outputs, 0)

    def norm(self, layers, size):
        self.full(layers * size, 1)
        self.full(layers * size, 0)


def write_model(path, args, generator):
    with open(path, "wb") as file:
        file.write(header(20240326, 3, args.positions, args.vocab, args.layers, args.heads, args.hidden, args.vocab))
        weights = Weights(file, generator)
        weights.random(args.vocab * args.hidden)
        weights.random(args.positions * args.hidden)
        weights.norm(args.layers, args.hidden)
        weights.linear(args.layers, 3 * args.hidden, args.hidden)
        weights.linear(args.layers, args.hidden, args.hidden)
        weights.norm(args.layers, args.hidden)
        weights.linear(args.layers, 4 * args.hidden, args.hidden)
        weights.linear(args.layers, args.hidden, 4 * args.hidden)
        weights.norm(1, args.hidden)


def write_tokenizer(path, vocab):
    with open(path, "wb") as file:
        file.write(header(20240328, 2, vocab, vocab - 1))
        for token in range(vocab):
            text = f"{token} ".encode()
            file.write(bytes([len(text)]) + text)


def write_tokens(path, count, vocab, generator):
    with open(path, "wb") as file:
        file.write(header(20240520, 1, count))
        file.write(array.array("H", (generator.randrange(vocab) for _ in range(count))).tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("folder", type=pathlib.Path)
    for name, standard in (("layers", 7), ("hidden", 256), ("heads", 4), ("vocab", 16384), ("positions", 1024)):
        parser.add_argument("--" + name, type=int, default=standard, help=f"(gpt-10m: {standard})")
    args = parser.parse_args()
    generator = random.Random(1)
    data = args.folder / "dev/data/tinyshakespeare"
    data.mkdir(parents=True, exist_ok=True)
    write_model(args.folder / "gpt2_124M.bin", args, generator)
    write_tokenizer(args.folder / "gpt2_tokenizer.bin", args.vocab)
    write_tokens(data / "tiny_shakespeare_train.bin", 32768, args.vocab, generator)
    write_tokens(data / "tiny_shakespeare_val.bin", 8192, args.vocab, generator)


if __name__ == "__main__":
    main()
