"""Tables of figures, and how seconds are taken."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

Row = dict[str, Any]


class Table(NamedTuple):
    """A title, rows with the same columns, and what the reader should know."""

    title: str
    rows: list[Row]
    note: str


def best_of(repeats: int, task: Callable[..., Any], prepare: Callable[[], tuple] = tuple) -> float:
    """The least CPU seconds of ``task(*prepare())``, preparing not counted."""
    least = math.inf
    for _ in range(repeats):
        given = prepare()
        begin = time.process_time()
        task(*given)
        least = min(least, time.process_time() - begin)
    return least


def tell(row: Row) -> Row:
    """Show a row at once, before its table is complete: some take minutes."""
    texts = (f"{name} {as_text([value])[0]}" for name, value in row.items() if value not in (None, ""))
    print("  " + ", ".join(texts), file=sys.stderr, flush=True)
    return row


def as_text(column: list[Any]) -> list[str]:
    """The values of a column, floats with as many digits as give their median four."""
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
    """Print a table: words to the left, numbers to the right."""
    print(f"\n{table.title}")
    columns = []
    for name in table.rows[0]:
        texts = [name, *as_text([row[name] for row in table.rows])]
        side = "<" if isinstance(table.rows[0][name], str | list) else ">"
        columns.append([f"{text:{side}{max(map(len, texts))}}" for text in texts])
    for line in zip(*columns, strict=True):
        print("  " + "  ".join(line).rstrip())
    print(f"  {table.note}", flush=True)
