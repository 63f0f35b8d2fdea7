#!/usr/bin/python3
"""Pictures of pages, beside those that are kept.

  pictures.py compare SEEN KEPT     ends with 1 where they differ by more than fonts and browsers do
  pictures.py keep SEEN KEPT        writes KEPT anew

Compared are grey pictures of a quarter of the width and height: what moved, came or went is seen in them, and how an edge
is smoothed is not.
"""

import sys

from PIL import Image, ImageChops

MOST_CHANGED = 0.01  # of all pixels
CHANGED = 48  # of 255


def shrunk(path, size):
    return Image.open(path).convert("L").resize((size[0] // 4, size[1] // 4), Image.Resampling.BOX)


def compare(seen, kept):
    sizes = [Image.open(path).size for path in (seen, kept)]
    if sizes[0] != sizes[1]:
        sys.exit(f"{seen} has the size {sizes[0]}, and {kept} {sizes[1]}")
    difference = ImageChops.difference(shrunk(seen, sizes[0]), shrunk(kept, sizes[0]))
    changed = sum(difference.histogram()[CHANGED:]) / (difference.width * difference.height)
    print(f"{changed:.4%} of the picture changed")
    if changed > MOST_CHANGED:
        sys.exit(f"{seen} differs from {kept}: {changed:.2%} of it changed, and {MOST_CHANGED:.0%} is the limit")


def keep(seen, kept):
    Image.open(seen).convert("RGB").quantize(32).save(kept, optimize=True)


if __name__ == "__main__":
    {"compare": compare, "keep": keep}[sys.argv[1]](*sys.argv[2:])
