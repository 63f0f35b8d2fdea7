#!/usr/bin/python3
"""Prints the axe-core that Chromium contains, as a template literal of JavaScript: axe_core.py RESOURCES

RESOURCES is Chromium's resources.pak. axe-core is in it as a part of Lighthouse, one of the developer tools. The file has
a table of numbers and offsets, and then the resources. Brotli has compressed some of them, behind a header of 8 bytes.
Fails if the file contains no axe-core.
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
    """Returns the literal that begins there, to its last backtick. Backticks inside it follow a backslash."""
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
