#!/usr/bin/python3
"""Compares pictures of pages with the stored ones.

  pictures.py compare SEEN KEPT     ends with 1 if the pictures differ by more than fonts and browsers do
  pictures.py keep SEEN KEPT        replaces KEPT

It compares grey pictures with a quarter of the width and height. They show what moved, appeared or disappeared, but not how
an edge is smoothed.
"""

import sys

from PIL import Image, ImageChops

MOST_CHANGED = 0.01  # the largest share of pixels that may change
CHANGED = 48  # a pixel has changed if its grey value, 0 to 255, differs by this much


def shrunk(path, size):
    return Image.open(path).convert("L").resize((size[0] // 4, size[1] // 4), Image.Resampling.BOX)


def compare(seen, kept):
    sizes = [Image.open(path).size for path in (seen, kept)]
    if sizes[0] != sizes[1]:
        sys.exit(f"{seen} has the size {sizes[0]}, but {kept} has {sizes[1]}")
    difference = ImageChops.difference(shrunk(seen, sizes[0]), shrunk(kept, sizes[0]))
    changed = sum(difference.histogram()[CHANGED:]) / (difference.width * difference.height)
    print(f"{changed:.4%} of the picture changed")
    if changed > MOST_CHANGED:
        sys.exit(f"{seen} differs from {kept}: {changed:.2%} of it changed; the limit is {MOST_CHANGED:.0%}")


def keep(seen, kept):
    Image.open(seen).convert("RGB").quantize(32).save(kept, optimize=True)


if __name__ == "__main__":
    {"compare": compare, "keep": keep}[sys.argv[1]](*sys.argv[2:])
