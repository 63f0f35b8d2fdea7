#!/usr/bin/python3
"""Checks the prose of the documentation and of comments, as CONTRIBUTING.md asks for it: prose.py FOLDER.

Prints each sentence of a page with more than 35 words, each line of a page with more than 120 columns (tables, links and
code may be longer), each link to a heading that does not exist, each comment that begins with a riddle ("Of ", "What is
no "), and a README of 120 lines or more. Returns 1 if it prints something.
"""

import pathlib
import re
import sys

MOST_WORDS = 35
MOST_COLUMNS = 120
MOST_README_LINES = 119
RIDDLES = re.compile(r"^\s*(//+|#+|\"\"\") ?(Of |What is no |What has no |Where (there|it|they) |None of |Whoever |Who may |As if "
                     r"|(Nothing|None|Empty|False|True|0),? where )")
COMMENT = re.compile(r"^\s*(//|#)")
CODE = (".h", ".cc", ".cu", ".cuh", ".py", ".sh")


def blocks(page):
    """Yields (line number, text) of each paragraph, item and table cell outside code."""
    number, block, code = 0, [], False
    for number, line in enumerate(page.splitlines() + [""], 1):
        if line.lstrip().startswith("```"):
            code = not code
            line = ""
        if code or line.startswith("    "):
            line = ""
        is_row = line.lstrip().startswith("|")
        starts_anew = is_row or not line.strip() or re.match(r"\s*([-*]|\d+\.|#+|>)\s", line)
        if block and starts_anew:
            yield number - len(block), " ".join(block)
            block = []
        if is_row:
            for cell in re.split(r"(?<!\\)\|", line):
                yield number, cell
        elif line.strip():
            block.append(line)


def without_generated(page):
    """Empties the lines between `<!-- NAME -->` and `<!-- end -->`, which a program prints."""
    return re.sub(r"^<!-- (?!end).*?^<!-- end -->", lambda part: "\n" * part[0].count("\n"), page, flags=re.M | re.S)


def sentences(text):
    text = re.sub(r"`[^`]*`", "CODE", " ".join(text.split()))
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.split(r"(?<=[.!?:;·])\)?\s+", text)


def anchors(page):
    """Returns the addresses of a page's headings."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.M | re.S)
    titles = [re.sub(r"\]\([^)]*\)", "", title) for title in re.findall(r"^#+ (.*)$", text, flags=re.M)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_anchors(file, page):
    """Yields each link of the page to a heading that its own or another page lacks. mkdocs looks only for the pages."""
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page):
        other = file.parent / target if target else file
        if other.suffix == ".md" and other.exists() and anchor not in anchors(other.read_text()):
            yield f"no heading for the link to {target}#{anchor}"


def main():
    root = pathlib.Path(sys.argv[1])
    faults = []
    pages = sorted((root / "docs").glob("*.md")) + [root / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    for file in pages:
        page = without_generated(file.read_text())
        name = file.relative_to(root)
        faults += [f"{name}: {fault}" for fault in dead_anchors(file, page)]
        if file.name == "README.md" and page.count("\n") > MOST_README_LINES:
            faults.append(f"{name}: {page.count(chr(10))} lines; at most {MOST_README_LINES}")
        for number, text in blocks(page):
            for sentence in sentences(text):
                if len(sentence.split()) > MOST_WORDS:
                    faults.append(f"{name}:{number}: a sentence of {len(sentence.split())} words: {sentence[:100]}…")
        code = False
        for number, line in enumerate(page.splitlines(), 1):
            code = code != line.lstrip().startswith("```")
            if len(line) > MOST_COLUMNS and not code and not line.startswith(("|", "    ")) and "](" not in line:
                faults.append(f"{name}:{number}: a line of {len(line)} columns")
    for folder in ("include", "src", "plugins", "tests", "bench", "scripts", "cmake"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in CODE:
                continue
            before = ""
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if RIDDLES.match(line) and not COMMENT.match(before):
                    faults.append(f"{file.relative_to(root)}:{number}: begins with a riddle: {line.strip()}")
                before = line
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
