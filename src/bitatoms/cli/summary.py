"""Tables and models in words, and models as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.text import Text

from ..columns.encoding import Encoding
from ..columns.table import Table
from ..formatting import counted, escape_name, few, percent, quote_name, times
from ..html.model_tables import pattern_table
from ..model.model import Model
from ..model.patterns import LIFTS_READING, Pattern
from ..rows.store import Store
from .output import first_names, new_grid, print_line, print_rest, print_rich, width_of_lines

_MAX_PICTURE_WIDTH = 40  # pixels of a picture that is drawn in the terminal
_MAX_UNKNOWN = 3  # columns and rows with most unknown cells


def describe_table(table: Table | Store) -> str:
    """Describe a table as it was read, so that users notice a wrong guess, or a store without reading its rows."""
    if isinstance(table, Table):
        return f"{describe_shape(table)}, {describe_names(table.row_names, table.columns)}"
    form = "packed" if table.n_ones is None else "sparse"
    unknown = ", some cells unknown" if table.has_unknown else ""
    return f"{describe_size(table.shape)}, {form}{unknown}, {describe_names(table.has_row_names, table.columns)}"


def describe_shape(table: Table) -> str:
    """Describe the size and the density of a table."""
    n_cells, n_unknown = math.prod(table.shape), table.data.n_unknown
    ones = f"{describe_size(table.shape)}, {percent(table.data.count(), n_cells - n_unknown)} ones"
    return f"{ones} among the known cells, {percent(n_unknown, n_cells)} unknown" if n_unknown else ones


def table_json(table: Table) -> dict[str, Any]:
    """Return the size of a table, and how many of its cells are ones and unknown, for ``--json``."""
    rows, columns = table.shape
    return {"rows": rows, "columns": columns, "ones": table.data.count(), "unknown": table.data.n_unknown}


def describe_encoding(table: Table | Store) -> list[str]:
    """Describe what columns of a table of categories stand for; no lines for other tables, also of genotypes."""
    encoding = Encoding.of(table)
    return [] if encoding is None or encoding.is_of_copies else [f"Encoded: {encoding.described()}"]


def describe_unknown(table: Table) -> str:
    """Describe where most unknown cells are; empty if there are none."""
    unknown = table.data.unknown
    if unknown is None or not table.data.n_unknown:
        return ""
    columns = _most(unknown.column_weights(), len(table), lambda column: table.names_of([column])[0])
    rows = _most(unknown.row_weights(), table.shape[1], table.row_name)
    return f"Most unknown cells are in the columns {columns}, and in the rows {rows}."


def _most(counts: np.ndarray, total: int, name: Callable[[int], str]) -> str:
    """Return the names of the highest counts, each with its share of the total."""
    order = np.argsort(-counts, kind="stable")[:_MAX_UNKNOWN].tolist()
    return ", ".join(
        f"{quote_name(name(index))} ({percent(int(counts[index]), total)})" for index in order if counts[index]
    )


def describe_size(shape: tuple[int, int]) -> str:
    """Describe the number of rows and columns."""
    return f"{counted(shape[0], 'row')} of {counted(shape[1], 'column')}"


def describe_codes(shape: tuple[int, ...]) -> str:
    """Describe the number of rows and atoms."""
    return f"{counted(shape[0], 'row')} by {counted(shape[1], 'atom')}"


def describe_names(row_names: object, columns: object) -> str:
    """Describe whether rows and columns have names."""
    named = [axis for axis, names in (("rows", row_names), ("columns", columns)) if names]
    return f"{' and '.join(named)} have names" if named else "without names"


def print_patterns(model: Model, n_shown: int, heading: str) -> None:
    """Print the atoms that save most bits, with the names of their features."""
    patterns = model.patterns(max(0, n_shown))
    if not patterns:
        return
    print_line(heading)
    print_line(model.reading)
    if model.recurrence is not None:
        print_line(model.recurrence.reading)
    if model.lifts is not None and model.picture is None:
        print_line(LIFTS_READING)
    if model.picture is not None and model.picture.tile[1] <= _MAX_PICTURE_WIDTH:
        _print_pictures(model, len(patterns))
        return
    recurrence = model.recurrence
    known = ("complete in\n(expected)" if model.lifts is not None else "complete in",) * (model.complete is not None)
    lift = ("lift",) if model.lifts is not None else ()
    recurs = ("recurs",) if recurrence is not None else ()
    shown = new_grid()
    shown.add_column("atom", justify="right")
    shown.add_column("features", ratio=1)
    for column in ("used by", *known, *lift, "bits saved", *recurs):
        shown.add_column(column, justify="right", no_wrap=True)
    for pattern in patterns:
        names = _features(pattern)
        used_by = f"{counted(pattern.rows, 'row')}\n({percent(pattern.rows, model.n_samples)})"
        expected = "" if pattern.expected is None else f"\n({few(pattern.expected)})"
        complete_in = () if pattern.complete is None else (f"{counted(pattern.complete, 'row')}{expected}",)
        whole = () if pattern.expected is None else (times(pattern.lift),)
        recurs = () if pattern.recurs is None else (percent(pattern.recurs, 1),)
        if pattern.span is not None:
            names += f" (at {escape_name(pattern.span)})"
        shown.add_row(str(pattern.atom), Text(names), used_by, *complete_in, *whole, str(pattern.bits_saved), *recurs)
    print_rich(shown, soft_wrap=False)
    print_rest(model.atoms.n_rows, len(patterns))


def _features(pattern: Pattern) -> str:
    """Return the names of the first features of a pattern as text of a terminal, each with its lift."""
    names = list(map(quote_name, pattern.features))  # before the widths of columns are computed
    if pattern.member_lifts is not None and len(names) > 1:
        lifts = map(times, pattern.member_lifts)
        names = [f"{name}\N{NO-BREAK SPACE}{lift}" for name, lift in zip(names, lifts, strict=True)]
    return first_names(names, str)


def _print_pictures(model: Model, n_atoms: int) -> None:
    """Print the atoms, added to the bias, as pictures side by side."""
    assert model.picture is not None
    height, width = model.picture.tile
    captions = [[f"{pattern.atom}: used by {pattern.rows}"] for pattern in model.patterns(n_atoms)]
    if model.complete is not None:
        captions = [[*caption, f"complete in {model.complete[atom]}"] for atom, caption in enumerate(captions)]
    if model.recurrence is not None:
        shares = model.recurrence.shares
        captions = [[*caption, f"recurs: {percent(shares[atom], 1)}"] for atom, caption in enumerate(captions)]
    column_width = max(width, *(len(line) for caption in captions for line in caption))
    per_line = max(1, width_of_lines() // (column_width + 3))
    for first in range(0, n_atoms, per_line):
        atoms = range(first, min(first + per_line, n_atoms))
        pictures = [_half_blocks((model.atoms[atom] ^ model.bias).reshape(height, width)) for atom in atoms]
        for lines in (*zip(*pictures, strict=True), *zip(*(captions[atom] for atom in atoms), strict=True)):
            print_line("   ".join(line.ljust(column_width) for line in lines).rstrip())
        print_line("")


def _half_blocks(picture: np.ndarray) -> list[str]:
    """Return a picture in half-block characters, two lines of pixels per line of text."""
    if len(picture) % 2:
        picture = np.vstack([picture, np.zeros_like(picture[:1])])
    pairs = picture.reshape(-1, 2, picture.shape[1])
    return ["".join(" ▀▄█"[top + 2 * bottom] for top, bottom in pair.T) for pair in pairs]


def model_json(model: Model, n_patterns: int | None = None) -> dict[str, Any]:
    """Return the figures of a model and its patterns, for ``--json``."""
    length = model.codelength
    return {
        "atoms": model.atoms.n_rows,
        "algebra": model.algebra,
        "samples": model.n_samples,
        "features": model.atoms.n_cols,
        "unknown_cells": model.n_samples * model.atoms.n_cols - model.n_known_cells,
        "bits": length.total,
        "bits_errors": length.errors,
        "bits_codes": length.codes,
        "bits_atoms": length.atoms,
        "bits_without": model.bits_without,
        "wrong_bits": model.wrong_bits,
        "ones": None if model.ones is None else int(model.ones.sum()),
        "ones_missed": None if model.missed is None else int(model.missed.sum()),
        "ended": model.ended,
        "codelengths": dict(model.codelengths),
        "compared": dict(model.compared),
        "recurrence": None if model.recurrence is None else model.recurrence.settings,
        "patterns": pattern_table(model.patterns(n_patterns)).records(),
    }
