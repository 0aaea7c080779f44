"""Run the tutorials in full: compare what their code prints with the page, or write it into the page.

python docs/tutorials/run_pages.py              # the words are the same, and numbers differ by at most 2 %
python docs/tutorials/run_pages.py --write      # after a change of a page: its output and its pictures
python docs/tutorials/run_pages.py survey.md    # one page

A text block that directly follows a code block is the output of the code. Pictures are the files of the folder pictures
that a page shows; its code saves them under their names in the working directory. survey.md needs statsmodels, cells.md
needs scanpy.
"""

from __future__ import annotations

import argparse
import contextlib
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
PAGES = ["survey.md", "sets.md", "cells.md", "number-of-atoms.md", "pipelines.md", "streams.md"]
BLOCKS = re.compile(
    r"^```python(?P<library>[ \w]*)\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.M | re.S
)
NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+")


def run(page: Path) -> tuple[str, list[str]]:
    """Return the page with the output of its code, and what differs from the page as it is."""
    names: dict[str, object] = {"__name__": "page"}
    differences: list[str] = []

    def ran(block: re.Match[str]) -> str:
        """Return the block with what its code prints."""
        printed = io.StringIO()
        line = page_text.count("\n", 0, block.start()) + 2
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + block["code"], str(page), "exec"), names)
        output = "\n".join(row.rstrip() for row in printed.getvalue().splitlines())
        if block["output"] is not None and not is_same(block["output"].strip("\n"), output.strip("\n")):
            differences.append(f"{page.name}, line {line}: the code prints\n{output}")
        code = f"```python{block['library']}\n{block['code']}```\n"
        return code if block["output"] is None else f"{code}\n```text\n{output}\n```\n"

    page_text = page.read_text(encoding="utf-8")
    return BLOCKS.sub(ran, page_text), differences


def is_same(old: str, new: str) -> bool:
    """Tell whether two outputs have the same words, and numbers that differ by at most 2 %."""
    if NUMBER.sub("", old).split() != NUMBER.sub("", new).split():
        return False
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (old, new)]
    return len(numbers[0]) == len(numbers[1]) and all(map(lambda a, b: math.isclose(a, b, rel_tol=0.02), *numbers))


def main() -> int:
    """Run the pages; return 1 if the output of one differs."""
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
        home = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                text, differences = run(page)
                pictures = re.findall(r"\(pictures/([\w-]+\.png)\)", text)
                missing = [picture for picture in pictures if not Path(picture).exists()]
                differences += [f"{name}: the code does not save {picture}" for picture in missing]
                if arguments.write:
                    page.write_text(text, encoding="utf-8")
                    for picture in set(pictures) - set(missing):
                        shutil.copy(picture, FOLDER / "pictures" / picture)
            finally:
                os.chdir(home)
        n_different += bool(differences)
        print(f"{name}: {'as printed' if not differences else 'different'}", *differences, sep="\n  ", flush=True)
    return int(n_different > 0 and not arguments.write)


if __name__ == "__main__":
    sys.exit(main())
