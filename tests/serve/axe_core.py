#!/usr/bin/python3
"""Prints axe-core as Chromium has it: in the Lighthouse of its developer tools, as a template literal of JavaScript.

axe_core.py RESOURCES, which is Chromium's resources.pak: a table of numbers and offsets, and what is behind them, part
of it compressed with Brotli behind a header of 8 bytes. An error where there is no axe-core in it.
"""
import struct
import sys

import brotli

HEADER = struct.Struct("<IBxxxHH")  # version 5: encoding, resources, aliases
ENTRY = struct.Struct("<HI")
COMPRESSED = b"\x1e\x9b"
BEGIN = b"`/*! axe v"


def resources(pack):
    version, _, count, _ = HEADER.unpack_from(pack)
    if version != 5:
        return
    begins = [ENTRY.unpack_from(pack, HEADER.size + ENTRY.size * i)[1] for i in range(count + 1)]
    for begin, end in zip(begins, begins[1:]):
        resource = pack[begin:end]
        if resource.startswith(COMPRESSED):
            yield brotli.decompress(resource[8:])


def literal(script, begin):
    """Up to the backtick that ends it: those inside are behind a backslash."""
    at = begin + 1
    while script[at] != ord("`"):
        at += 2 if script[at] == ord("\\") else 1
    return script[begin:at + 1]


def main():
    with open(sys.argv[1], "rb") as file:
        pack = file.read()
    for script in resources(pack):
        begin = script.find(BEGIN)
        if begin >= 0:
            sys.stdout.buffer.write(literal(script, begin))
            return
    sys.exit(f"axe_core.py: no axe-core in {sys.argv[1]}")


if __name__ == "__main__":
    main()
