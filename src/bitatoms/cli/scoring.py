"""`bitatoms recommend` and `bitatoms score`: the next items of each row, and the rows that fit badly."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..columns.table import Table
from ..formatting import listed_names, noun, percent, verb
from ..html.tables import DataTable
from ..io.errors import FileError
from ..model.model import Model
from ..model.recommendation import Recommendations, named, recommend
from ..model.row_fit import RowFit, ScoredRows, score_rows, worst_rows
from ..parallel import Workers
from ..rows.budget import coding_rows, given_memory_limit
from ..rows.store import Store
from ..rows.store_transform import StoreTransform
from ..verbosity import escape_name, quote_name
from .console import Display, print_json, print_line
from .files import (
    check_json_output,
    check_readable,
    check_writable,
    load_model,
    load_model_and_table,
    open_packed,
    write_readable,
)
from .options import NewRows
from .progress import show_status
from .stores import RunOptions
from .streams import output_name
from .summary import describe_rows

_ROWS_AT_A_TIME = 1 << 14
_MAX_CELLS = 6  # wrong cells of each kind that are printed for a row


def recommend_items(rows: NewRows, n: int, output: Path | None, run: RunOptions, display: Display) -> None:
    """Print or write the most probable items that each row does not have."""
    _check_output(rows, output, "recommendations", display)
    model, table = _opened(rows, display.is_silent)
    n_rows = len(table)
    chunks = _recommended(model, table, n, rows.absent, run)
    if output is not None:
        lines = (
            (row, rank, item, share)
            for row, items in _named_items(chunks, table)
            for rank, (item, share) in enumerate(items, 1)
        )
        columns = ("row", "rank", "item", "probability")
        write_readable(DataTable(columns, lines, {"probability": ".6f"}), output)
        if display.json:
            print_json({"rows": n_rows, "written": str(output)})
        elif not display.quiet:
            print_line(f"{output_name(output)}: recommendations for {describe_rows(n_rows)}")
    elif display.json:
        found = [
            {"row": row, "items": [{"item": item, "probability": share} for item, share in items]}
            for row, items in _named_items(chunks, table)
        ]
        print_json({"rows": n_rows, "recommendations": found})
    elif not display.quiet:
        for row, items in _named_items(chunks, table):
            print_line(_recommendation_line(row, items))


def _recommended(model: Model, table: Table | Store, n: int, absent: str, run: RunOptions) -> Iterator[Recommendations]:
    """Yield recommendations for the rows of a table, in chunks."""
    if isinstance(table, Store):
        rows = StoreTransform(table, model, run.workers(), run.memory_limit, absent)
        yield from (named(found, model) for found in rows.recommended_chunks(n))
        return
    workers = run.workers(table.data)
    for start in range(0, len(table), _ROWS_AT_A_TIME):
        yield named(recommend(model, table.data[start : start + _ROWS_AT_A_TIME], n, workers), model)


def _named_items(
    chunks: Iterable[Recommendations], table: Table | Store
) -> Iterator[tuple[Any, list[tuple[str, float]]]]:
    """Yield the name of each row with its items and their probabilities."""
    start = 0
    for chunk in chunks:
        names = _row_names(table, start, start + len(chunk.items))
        start += len(names)
        for name, items, shares in zip(names, *chunk, strict=True):
            has_item = ~np.isnan(shares)
            yield name, list(zip(items[has_item].tolist(), shares[has_item].tolist(), strict=True))


def _recommendation_line(row: Any, items: list[tuple[str, float]]) -> str:
    """Return the items of a row with their probabilities as text."""
    listed = ", ".join(f"{quote_name(item)} ({percent(share, 1)})" for item, share in items)
    return f"{_row_text(row)}: {listed or 'it has all items'}"


def score(rows: NewRows, output: Path | None, run: RunOptions, display: Display) -> None:
    """Print the rows that take most bits with the cells that make them so; write all rows to a file."""
    _check_output(rows, output, "scores", display)
    model, table = _opened(rows, display.is_silent)
    if not len(table):
        raise FileError(f"{rows.data.name}: the table has no rows")
    all_bits: list[NDArray[np.float64]] = []
    workers = run.workers(None if isinstance(table, Store) else table.data)
    worst: list[RowFit] = []

    def observed() -> Iterator[ScoredRows]:
        """Yield chunks of rows after their bits, and the worst rows so far, are kept."""
        for chunk in _scored(model, table, rows.absent, run, workers):
            all_bits.append(chunk.bits)
            worst.extend(worst_rows([chunk], display.top, workers))
            worst.sort(key=lambda fit: (-fit.bits, fit.row))
            del worst[display.top :]
            yield chunk

    with show_status(f"Scoring {rows.data.title}", display.is_silent):
        if output is None:
            deque(observed(), maxlen=0)
        else:
            columns = ("row", "bits", "patterns", "unexpected", "missing")
            write_readable(DataTable(columns, _fitted(observed(), table, workers), {"bits": ".4f"}), output)
    bits = np.concatenate(all_bits)
    named = [(_row_names(table, fit.row, fit.row + 1)[0], fit) for fit in worst]
    if display.json:
        print_json(
            {
                "rows": len(bits),
                "mean_bits": float(bits.mean()),
                "median_bits": float(np.median(bits)),
                **({} if output is None else {"written": str(output)}),
                "worst": [_as_json(name, fit) for name, fit in named],
            }
        )
    elif not display.quiet:
        mean, median = f"{bits.mean():.1f} bits per row on average", f"the median is {np.median(bits):.1f}"
        print_line(f"{rows.data.title}: {describe_rows(len(bits))} {verb(len(bits), 'take')} {mean}; {median}.")
        if named:
            print_line("Rows that take most bits, and the cells that their patterns get wrong (with their bits):\n")
            print_line("\n".join(_score_line(name, fit) for name, fit in named))
        if output is not None:
            print_line(f"\nWritten: {output_name(output)}")


def _scored(model: Model, table: Table | Store, absent: str, run: RunOptions, workers: Workers) -> Iterator[ScoredRows]:
    """Yield the rows of a table with their bits, in chunks."""
    if isinstance(table, Store):
        yield from StoreTransform(table, model, workers, run.memory_limit, absent).scored_chunks()
        return
    max_rows = coding_rows(table.data, model, given_memory_limit(run.max_memory))
    for start in range(0, len(table), _ROWS_AT_A_TIME):
        yield score_rows(model, table.data[start : start + _ROWS_AT_A_TIME], workers, start, max_rows)


def _fitted(chunks: Iterable[ScoredRows], table: Table | Store, workers: Workers) -> Iterator[tuple[Any, ...]]:
    """Yield for each row its name, its bits, its patterns, and its wrong cells of both kinds."""
    for chunk in chunks:
        start = int(chunk.indices[0]) if len(chunk.indices) else 0
        names = _row_names(table, start, start + len(chunk.indices))
        for name, fit in zip(names, chunk.fits(workers), strict=True):
            cells = (
                tuple(cell.feature for cell in fit.cells if cell.kind == kind) for kind in ("unexpected", "missing")
            )
            yield name, fit.bits, fit.atoms, *cells


def _as_json(name: Any, fit: RowFit) -> dict[str, Any]:
    """Return the fit of a row as JSON values."""
    cells = [cell._asdict() for cell in fit.cells]
    return {"row": name, "index": fit.row, "bits": fit.bits, "patterns": list(fit.atoms), "cells": cells}


def _score_line(name: Any, fit: RowFit) -> str:
    """Return the fit of a row as a line of text."""
    parts = [f"{fit.bits:.1f} bits"]
    if fit.atoms:
        parts.append(f"{noun(len(fit.atoms), 'pattern')} {', '.join(map(str, fit.atoms))}")
    for kind in ("unexpected", "missing"):
        cells = [cell for cell in fit.cells if cell.kind == kind]
        listed = listed_names(cells, _MAX_CELLS, lambda cell: f"{quote_name(cell.feature, ';')} ({cell.bits:.1f})")
        parts += [f"{kind}: {listed}"] if cells else []
    return f"{_row_text(name)}: {'; '.join(parts)}"


def _opened(rows: NewRows, quiet: bool) -> tuple[Model, Table | Store]:
    """Return the model, and the table or, if it is one, the packed store."""
    store = open_packed(rows.data)
    return load_model_and_table(rows, quiet) if store is None else (load_model(rows.model_path).model, store)


def _check_output(rows: NewRows, output: Path | None, contents: str, display: Display) -> None:
    """Check before long work that a file can be written."""
    check_writable(output, read=(rows.model_path, rows.data.path))
    check_json_output(display.json, output)
    if output is not None:
        check_readable(output, contents)


def _row_names(table: Table | Store, start: int, stop: int) -> list[Any]:
    """Return the names of some rows, their indices if they have none."""
    if isinstance(table, Store):
        names = table.row_names(start, stop)
    else:
        names = None if table.row_names is None else list(table.row_names[start:stop])
    return list(range(start, stop)) if names is None else list(names)


def _row_text(name: Any) -> str:
    """Return the name of a row as text."""
    return f"row {name}" if isinstance(name, int) else escape_name(str(name))
