"""Run the tutorials in full: compare what their code prints with the page, or write it into the page.

python docs/tutorials/run_pages.py              # the words are the same, and numbers differ by at most 2 %
python docs/tutorials/run_pages.py --write      # after a change of a page: its output and its pictures
python docs/tutorials/run_pages.py survey.md    # one page

A text block that directly follows a code block is the output of the code. Pictures are the files of the folder pictures
that a page shows; its code saves them under their names in the working directory. survey.md needs statsmodels. A page
with a block that names its library, such as ```python scanpy, is skipped where that is not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import math
import os
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

FOLDER = Path(__file__).parent
PAGES = [
    "survey.md",
    "sets.md",
    "roles.md",
    "cells.md",
    "odd-rows.md",
    "number-of-atoms.md",
    "pipelines.md",
    "streams.md",
]
BLOCKS = re.compile(
    r"^```python(?P<library>[ \w]*)\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.M | re.S
)
PICTURES = re.compile(r"\(pictures/([\w-]+\.png)\)")
NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+")


def run(page: Path) -> tuple[str, list[str]]:
    """Run the code of a page in the working directory; return the page with its output, and what differs."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "page"}
    differences: list[str] = []

    def with_output(block: re.Match[str]) -> str:
        """Return the block with what its code prints."""
        n_lines = text.count("\n", 0, block.start("code"))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * n_lines + block["code"], str(page), "exec"), names)
        if block["output"] is None:
            return block[0]
        output = "".join(f"{line.rstrip()}\n" for line in printed.getvalue().splitlines())
        if not is_same(block["output"], output):
            differences.append(f"{page.name}, line {n_lines + 1}: the code prints\n{output}")
        return f"{text[block.start() : block.start('output')]}{output}```\n"

    text_with_output = BLOCKS.sub(with_output, text)
    missing = [name for name in PICTURES.findall(text) if not Path(name).exists()]
    return text_with_output, differences + [f"{page.name}: the code does not save {name}" for name in missing]


def is_close(old: float, new: float) -> bool:
    """Tell whether two numbers differ by at most 2 %, as they may with other versions of libraries."""
    return math.isclose(old, new, rel_tol=0.02)


def is_same(old: str, new: str) -> bool:
    """Tell whether two outputs have the same words, and numbers that differ by at most 2 %."""
    if NUMBER.sub("", old).split() != NUMBER.sub("", new).split():
        return False
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (old, new)]
    return len(numbers[0]) == len(numbers[1]) and all(map(is_close, *numbers))


def missing_libraries(page: Path) -> list[str]:
    """Return the libraries that a page names in its code blocks and that are not installed."""
    named = {block["library"].strip() for block in BLOCKS.finditer(page.read_text(encoding="utf-8"))} - {""}
    return sorted(name for name in named if importlib.util.find_spec(name) is None)


def main() -> int:
    """Run the pages; return 1 if one of them differs from what its code prints."""
    import matplotlib

    matplotlib.use("Agg")
    warnings.simplefilter("error")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE", help=f"by default {', '.join(PAGES)}")
    parser.add_argument("--write", action="store_true", help="write the output and the pictures into the pages")
    arguments = parser.parse_args()
    n_different = 0
    for name in arguments.pages:
        page = FOLDER / name
        if missing := missing_libraries(page):
            print(f"{name}: skipped, {' and '.join(missing)} not installed", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            text, differences = run(page)
            if arguments.write:
                page.write_text(text, encoding="utf-8")
                for picture in filter(os.path.exists, PICTURES.findall(text)):
                    shutil.copy(picture, FOLDER / "pictures" / picture)
        n_different += bool(differences)
        print(f"{name}: {'different' if differences else 'as printed'}", *differences, sep="\n  ", flush=True)
    return int(n_different > 0 and not arguments.write)


if __name__ == "__main__":
    sys.exit(main())
