"""Tables of results, and timing."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

Row = dict[str, Any]


class Table(NamedTuple):
    """A title, rows with the same columns, and a note."""

    title: str
    rows: list[Row]
    note: str


def best_of(repeats: int, task: Callable[..., Any], prepare: Callable[[], tuple] = tuple) -> float:
    """Return the minimum CPU seconds of ``task(*prepare())``, without the preparation."""
    least = math.inf
    for _ in range(repeats):
        given = prepare()
        begin = time.process_time()
        task(*given)
        least = min(least, time.process_time() - begin)
    return least


def log_row(row: Row) -> Row:
    """Print a row to stderr before its table is complete, and return it."""
    texts = (f"{name} {as_text([value])[0]}" for name, value in row.items() if value not in (None, ""))
    print("  " + ", ".join(texts), file=sys.stderr, flush=True)
    return row


def as_text(column: list[Any]) -> list[str]:
    """Return the values of a column as text, floats with four significant digits for their median."""
    middle = median([abs(value) for value in column if isinstance(value, float)] or [1])
    digits = min(5, max(0, 3 - math.floor(math.log10(middle or 1))))
    texts = []
    for value in column:
        if isinstance(value, list):
            texts.append(" ".join(f"{part:.2f}" for part in value))
        else:
            texts.append(f"{value:.{digits}f}" if isinstance(value, float) else "" if value is None else str(value))
    return texts


def show(table: Table) -> None:
    """Print a table: text left-aligned, numbers right-aligned."""
    print(f"\n{table.title}")
    columns = []
    for name in table.rows[0]:
        texts = [name, *as_text([row[name] for row in table.rows])]
        side = "<" if isinstance(table.rows[0][name], str | list) else ">"
        columns.append([f"{text:{side}{max(map(len, texts))}}" for text in texts])
    for line in zip(*columns, strict=True):
        print("  " + "  ".join(line).rstrip())
    print(f"  {table.note}", flush=True)
