"""Files of labels: the group of each row of a table, such as its population or cell type."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from ..columns.table import Names
from ..formatting import quoted
from .stream import Source
from .text import read_lines


def read_group_labels(path: Path, row_names: Names | None, n_rows: int) -> list[str | None]:
    """Return the label of each row from a text file.

    Each line has the name of a row and its label, separated by a comma or a tab (the last field is the label), or only
    a label, in the order of the rows. A first line that names no row is a header. Rows without a label get None.

    Parameters
    ----------
    path : Path
        The file.
    row_names : tuple of str or None
        The names of the rows. A file may leave out the family that precedes the name of an individual, and the number
        of the haplotype that follows it.
    n_rows : int
        The number of rows.
    """
    source = Source(path, "csv", str(path))
    if not path.is_file():
        raise source.error("there is no such file")
    lines = [line for line in read_lines(source) if line.strip()]
    separator = "\t" if lines and "\t" in lines[0] else ","
    fields = [[cell.strip() for cell in cells] for cells in csv.reader(lines, delimiter=separator)]
    if fields and all(len(cells) == 1 for cells in fields):
        return _in_order(source, [cells[0] for cells in fields], n_rows)
    if row_names is None:
        raise source.error("it has names of rows, but the rows of the table have none; pass one label per line")
    labels = {cells[0]: cells[-1] for cells in fields}
    found = [next((labels[name] for name in _spellings(each) if name in labels), None) for each in row_names]
    if not any(label is not None for label in found):
        raise source.error(
            f"none of its names is a row of the table: it has {quoted(fields[-1][0])}, and the table "
            f"{quoted((row_names or ('no rows',))[0])}"
            if fields
            else "the file is empty"
        )
    return [label or None for label in found]


def _in_order(source: Source, labels: Sequence[str], n_rows: int) -> list[str | None]:
    """Return labels in the order of rows; one more is a header."""
    if len(labels) not in (n_rows, n_rows + 1):
        raise source.error(f"it has {len(labels)} labels for {n_rows} rows; pass one per row, or names and labels")
    return [label or None for label in labels[len(labels) - n_rows :]]


def _spellings(name: str) -> list[str]:
    """Return a name, and the same without the number of the haplotype and without the family."""
    person = name.removesuffix("/1").removesuffix("/2")
    return [name, person, person.rpartition(" ")[2]]
