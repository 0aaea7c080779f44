"""`bitatoms recommend` and `bitatoms score`: the next items of each row, and the rows that fit badly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from ..formatting import counted, listed_names, percent
from ..io.errors import FileError
from ..io.name_lists import join_names
from ..verbosity import escape_name, quote_name
from .options import Run, command, display, new_rows, option, output, run
from .output import Display, print_json, print_line, show_status
from .paths import NewRows, check_extension, csv_writer, output_name

if TYPE_CHECKING:
    from ..columns.table import Table
    from ..model.model import Model
    from ..model.recommendation import Recommendations
    from ..model.row_fit import RowFit, ScoredRows
    from ..parallel import Workers
    from ..rows.store import Store

_ROWS_AT_A_TIME = 1 << 14
_MAX_CELLS = 6  # wrong cells of each kind that are printed for a row


def _as_csv(path: Path) -> Path | None:
    return check_extension(path, "the result is written as CSV", ".csv")


@command(
    "bitatoms recommend model.npz baskets.csv",
    "bitatoms recommend model.npz baskets.csv -n 3 -o next.csv",
    "bitatoms recommend model.npz baskets.zarr -o next.csv --max-memory 500MB",
)
def recommend(
    rows: NewRows = new_rows(),
    n: int = option("--number", "-n", type=click.IntRange(1), default=5, help="Number of items per row."),
    output: Path | None = output(
        "--output", "-o", help="Write row, rank, item and probability as .csv; - is standard output.", convert=_as_csv
    ),
    how: Run = run("max_memory", "n_jobs", "device"),
    shown: Display = display(),
) -> None:
    """Print the next items of each row: the most probable ones that it does not have.

    The probability of an item is that with its own cell hidden, given all other cells of the row.
    """
    from .files import open_model_and_rows

    model, table = open_model_and_rows(rows, shown.is_silent)
    found: list[dict[str, Any]] = []
    with nullcontext() if output is None else csv_writer(output) as lines:
        if lines is not None:
            lines.writerow(("row", "rank", "item", "probability"))
        start = 0
        for chunk in _recommended(model, table, n, rows.absent, how):
            named = list(_named_items(chunk, _row_names(table, start, start + len(chunk.items))))
            start += len(named)
            if lines is not None:
                lines.writerows(
                    (row, rank, item, f"{share:.6f}")
                    for row, items in named
                    for rank, (item, share) in enumerate(items, 1)
                )
            elif shown.json:
                found += [
                    {"row": row, "items": [{"item": item, "probability": share} for item, share in items]}
                    for row, items in named
                ]
            elif named and not shown.quiet:
                print_line("\n".join(_recommendation_line(row, items) for row, items in named))
    if shown.json:
        print_json({"rows": start, **({"written": str(output)} if output else {"recommendations": found})})
    elif output is not None and not shown.quiet:
        print_line(f"{output_name(output)}: recommendations for {counted(start, 'row')}")


def _recommended(model: Model, table: Table | Store, n: int, absent: str, how: Run) -> Iterator[Recommendations]:
    """Yield recommendations for the rows of a table, in chunks."""
    from ..model.recommendation import recommend
    from ..rows.store import Store
    from ..rows.store_transform import StoreTransform

    if isinstance(table, Store):
        yield from StoreTransform(table, model, how.workers(), how.memory_limit, absent).recommended_chunks(n)
        return
    workers = how.workers(table.data)
    for start in range(0, len(table), _ROWS_AT_A_TIME):
        yield recommend(model, table.data[start : start + _ROWS_AT_A_TIME], n, workers)


def _named_items(chunk: Recommendations, rows: list[Any]) -> Iterator[tuple[Any, list[tuple[str, float]]]]:
    """Yield each row with its items and their probabilities."""
    for row, items, shares in zip(rows, *chunk, strict=True):
        has_item = ~np.isnan(shares)
        yield row, list(zip(items[has_item].tolist(), shares[has_item].tolist(), strict=True))


def _recommendation_line(row: Any, items: list[tuple[str, float]]) -> str:
    """Return the items of a row with their probabilities as text."""
    listed = ", ".join(f"{quote_name(item)} ({percent(share, 1)})" for item, share in items)
    return f"{_row_text(row)}: {listed or 'it has all items'}"


@command(
    "bitatoms score model.npz baskets.csv",
    "bitatoms score model.npz baskets.csv -n 50 -o scores.csv",
    "bitatoms score model.npz baskets.zarr --json",
)
def score(
    rows: NewRows = new_rows(),
    output: Path | None = output(
        "--output",
        "-o",
        help="Write all rows, their bits and wrong cells as .csv; - is standard output.",
        convert=_as_csv,
    ),
    how: Run = run("max_memory", "n_jobs", "device"),
    shown: Display = display(10, "rows to print", ("--number", "-n")),
) -> None:
    """Print the rows that fit worst, with the cells that make them so.

    The bits of a row are minus log2 of how frequent its cells and atoms were in the fit. An unexpected feature is one
    that the row has and its patterns do not; a missing one is one that its patterns have and the row does not.
    """
    from ..model.row_fit import worst_rows
    from ..rows.store import Store
    from .files import open_model_and_rows

    model, table = open_model_and_rows(rows, shown.is_silent)
    if not len(table):
        raise FileError(f"{rows.data.name}: the table has no rows")
    all_bits: list[NDArray[np.float64]] = []
    workers = how.workers(None if isinstance(table, Store) else table.data)
    writing = nullcontext() if output is None else csv_writer(output)
    with writing as lines, show_status(f"Scoring {rows.data.title}", shown.is_silent):
        if lines is not None:
            lines.writerow(("row", "bits", "patterns", "unexpected", "missing"))

        def observed(chunks: Iterable[ScoredRows]) -> Iterator[ScoredRows]:
            """Yield chunks of rows after their bits are kept and, if requested, written."""
            for chunk in chunks:
                start = sum(map(len, all_bits))
                all_bits.append(chunk.bits)
                if lines is not None:
                    names = _row_names(table, start, start + len(chunk.bits))
                    lines.writerows(_csv_row(name, fit) for name, fit in zip(names, chunk.fits(workers), strict=True))
                yield chunk

        worst = worst_rows(observed(_scored(model, table, rows.absent, how, workers)), shown.top, workers)
    bits = np.concatenate(all_bits)
    named = [(_row_names(table, fit.row, fit.row + 1)[0], fit) for fit in worst]
    if shown.json:
        print_json(
            {
                "rows": len(bits),
                "mean_bits": float(bits.mean()),
                "median_bits": float(np.median(bits)),
                **({} if output is None else {"written": str(output)}),
                "worst": [_as_json(name, fit) for name, fit in named],
            }
        )
    elif not shown.quiet:
        mean, median = f"{bits.mean():.1f} bits per row on average", f"the median is {np.median(bits):.1f}"
        print_line(f"{rows.data.title}: {counted(len(bits), 'row')} take{'s' * (len(bits) == 1)} {mean}; {median}.")
        if named:
            print_line("Rows that take most bits, and the cells that their patterns get wrong (with their bits):\n")
            print_line("\n".join(_score_line(name, fit) for name, fit in named))
        if output is not None:
            print_line(f"\nWritten: {output_name(output)}")


def _scored(model: Model, table: Table | Store, absent: str, how: Run, workers: Workers) -> Iterator[ScoredRows]:
    """Yield the rows of a table with their bits, in chunks."""
    from ..model.row_fit import score_rows
    from ..rows.budget import coding_rows, given_memory_limit
    from ..rows.store import Store
    from ..rows.store_transform import StoreTransform

    if isinstance(table, Store):
        yield from StoreTransform(table, model, workers, how.memory_limit, absent).scored_chunks()
        return
    max_rows = coding_rows(table.data, model, given_memory_limit(how.max_memory))
    for start in range(0, len(table), _ROWS_AT_A_TIME):
        yield score_rows(model, table.data[start : start + _ROWS_AT_A_TIME], workers, start, max_rows)


def _csv_row(name: Any, fit: RowFit) -> tuple[Any, ...]:
    """Return the fit of a row as cells of a CSV file."""
    kinds = (join_names(cell.feature for cell in fit.cells if cell.kind == kind) for kind in ("unexpected", "missing"))
    return name, f"{fit.bits:.4f}", "; ".join(map(str, fit.atoms)), *kinds


def _as_json(name: Any, fit: RowFit) -> dict[str, Any]:
    """Return the fit of a row as JSON values."""
    cells = [cell._asdict() for cell in fit.cells]
    return {"row": name, "index": fit.row, "bits": fit.bits, "patterns": list(fit.atoms), "cells": cells}


def _score_line(name: Any, fit: RowFit) -> str:
    """Return the fit of a row as a line of text."""
    parts = [f"{fit.bits:.1f} bits"]
    if fit.atoms:
        parts.append(f"pattern{'s' * (len(fit.atoms) > 1)} {', '.join(map(str, fit.atoms))}")
    for kind in ("unexpected", "missing"):
        cells = [cell for cell in fit.cells if cell.kind == kind]
        shown = [f"{quote_name(cell.feature, ';')} ({cell.bits:.1f})" for cell in cells]
        parts += [f"{kind}: {listed_names(shown, _MAX_CELLS, str)}"] if cells else []
    return f"{_row_text(name)}: {'; '.join(parts)}"


def _row_names(table: Table | Store, start: int, stop: int) -> list[Any]:
    """Return the names of some rows, their indices if they have none."""
    given = table.row_names
    names = given(start, stop) if callable(given) else None if given is None else given[start:stop]
    return list(range(start, stop)) if names is None else list(names)


def _row_text(name: Any) -> str:
    """Return the name of a row as text."""
    return f"row {name}" if isinstance(name, int) else escape_name(str(name))
