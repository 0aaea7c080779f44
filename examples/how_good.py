"""Compare bitatoms with other methods on bundled data, and update the pages in docs/how-good and their picture.

python examples/how_good.py                                    # about ten minutes on an idle machine
python examples/how_good.py --machine "a 2-core Neoverse-N1"   # with the name of the machine
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

from bitatoms.compare import Comparison, Run, compare
from bitatoms.compare.comparison import overview, table_section
from bitatoms.compare.figures import draw_figures

DOCS = Path(__file__).parents[1] / "docs"
DATASETS = ("digits", "planted-or", "planted-xor", "planted-dense", "halftone", "baskets")
BEGIN, END = "<!-- compare: begin -->", "<!-- compare: end -->"


def main() -> None:
    """Run the comparison and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", help="name of the machine in the text")
    parser.add_argument("--folder", type=Path, help="also write the tables and the figures to this folder")
    options = parser.parse_args()
    found = compare(DATASETS, callback=report_run)
    show_progress("")
    if found.interrupted:
        raise SystemExit("interrupted; nothing was written")
    if options.folder is not None:
        found.write(options.folder)
    replace_results(DOCS / "how-good/comparison.md", summary(found, options.machine))
    replace_results(DOCS / "how-good/comparison-tables.md", tables(found))
    (DOCS / "pictures/how-good.png").write_bytes(picture(found))


def replace_results(page: Path, results: str) -> None:
    """Replace what is between the markers of a page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{results}\n{END}{after}", encoding="utf-8", newline="\n")


def summary(found: Comparison, machine: str | None) -> str:
    """Return the machine, and the best methods on each table, as Markdown."""
    how = dict(found.how) | ({"Machine": machine} if machine else {})
    run = f"*{how['Machine'][0].upper()}{how['Machine'][1:]}; threads: {how['Threads']}; {how['Versions']}; seed 0.*\n"
    return f"{run}\n{overview(found)}"


def tables(found: Comparison) -> str:
    """Return the results of all methods on each table as Markdown."""
    return "\n".join(table_section(table, found.results(table)) for table in found.tables)


def picture(found: Comparison) -> bytes:
    """Return the figure of the first table under OR as a PNG with few colours."""
    table = found.tables[0]
    image = Image.open(io.BytesIO(draw_figures(table, found.results(table))["or"])).convert("RGB")
    made = io.BytesIO()
    image.quantize(64).save(made, "png", optimize=True)
    return made.getvalue()


def report_run(done: int, count: int, run: Run) -> None:
    """Show the run that starts."""
    show_progress(f"{done}/{count} {run.data}: {run.method.label}")


def show_progress(line: str) -> None:
    """Write a line of progress."""
    sys.stderr.write(f"\r{line[:78]:78}")


if __name__ == "__main__":
    main()
