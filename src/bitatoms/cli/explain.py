"""`bitatoms show`, `report`, `rules`, `recommend` and `score`: what a model has learned, and states about rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..formatting import counted, escape_name, listed_names, noun, percent, quote_name, times, verb
from ..io.errors import FileError
from ..model.options import RuleOptions
from ..report.options import ReportOptions
from . import options
from .output import STANDARD, Display, print_json, print_line, print_rest, print_result, show_status
from .paths import Input, NewRows, OutputTable, output_file, output_name, print_written

if TYPE_CHECKING:
    from ..bits import BitMatrix
    from ..columns.table import Table
    from ..model.model import Model
    from ..model.row_fit import RowFit, ScoredRows
    from ..model.rules import Rule
    from .stores import ModelRows

_FITTED_ROWS = 10_000  # of a table, to which recommendations are fitted
_MAX_CELLS = 6  # wrong cells of each kind that are printed for a row


@options.command("bitatoms show model.npz", "bitatoms show model.npz --patterns patterns.md --atoms-to atoms.csv")
def show(
    model: Path = options.model_file(),
    atoms_to: OutputTable | None = options.table_file("--atoms-to", "Write the atoms as a table, in any format."),
    patterns: Path | None = options.readable("--patterns", "patterns", "the patterns"),
    shown: Display = options.display(20),
) -> None:
    """Describe a model or a packed store.

    The counts of a model are those of its fit: 'used by' counts the codes that 'bitatoms fit --codes' writes.
    """
    from ..rows.store import Store
    from . import files
    from .stores import show_store
    from .summary import model_json, print_patterns

    written = [path for path in (atoms_to, patterns) if path is not None]
    if files.is_packed(Input(model)):
        show_store(Store(model), bool(written), shown)
        return
    learned = files.load_model(model).model
    files.write_atom_table(learned, atoms_to)
    files.write_pattern_file(learned, patterns)
    if shown.json:
        print_json(model_json(learned))
    elif not shown.quiet:
        print_line(learned.summary())
        print_patterns(learned, shown.top, "")
        print_written(written)


@options.command("bitatoms report model.npz baskets.csv -o report.html")
def report(
    rows: NewRows = options.new_rows(),
    output: Path = options.page("--output -o", "The page to write.", Path("report.html")),
    page: dict[str, Any] = options.declared_options(
        ReportOptions, "Options", build=dict, without=("n_jobs", "device"), max_rows={"minimum": 0}
    ),
    how: options.RunSettings = options.run("n_jobs", "device"),
    shown: Display = options.display(),
) -> None:
    """Write an HTML page to explore the patterns: where they occur, and what they do not explain."""
    from .files import load_model_and_table
    from .summary import table_json

    model, read = load_model_and_table(rows, shown.is_silent)
    page["title"] = page["title"] or rows.data.title
    write_page(model, read, output, how, shown.is_silent, **page)
    if shown.json or output != STANDARD:
        values = {"written": output_name(output), "patterns": model.atoms.n_rows, **table_json(read)}
        print_result(values, shown, f"The report is in {output}; open it in a browser.")


def write_page(model: Model, table: Table, path: Path, how: options.RunSettings, quiet: bool, **more: Any) -> None:
    """Write a report to a file or a stream."""
    from ..report import write_report

    with show_status("Writing the report", quiet), output_file(path, ".html") as file:
        write_report(model, table, file, **more, **how.threads)


@options.command(
    "bitatoms rules model.npz",
    "bitatoms rules model.npz baskets.csv --min-confidence 0.5 -o rules.csv",
    "bitatoms rules model.npz baskets.zarr --json",
)
def rules(
    model: Path = options.model_file(),
    data: Input | None = options.table(
        "The table to count in, which gives shorter rules; by default the counts of the model are used.", required=False
    ),
    output: Path | None = options.readable("--output -o", "rules", "the rules"),
    limits: RuleOptions = options.declared_options(RuleOptions, "Rule options"),
    absent: str = options.absent(),
    how: options.RunSettings = options.run("max_memory", "n_jobs"),
    shown: Display = options.display(20, "rules to print"),
) -> None:
    """Print rules: of the rows with some features of a pattern, which share has another one, and of all rows.

    All counts are exact: those of the training table, or of the table that is given. Without a table, a rule has all
    features of a pattern; with one, few of them from which another one follows about as often. A rule is left out if a
    more general one has about the same confidence.
    """
    from ..html.model_tables import rule_table
    from ..model.rules import find_rules
    from .files import load_model, write_readable
    from .stores import ModelRows

    read = None if data is None else ModelRows.open(NewRows(model, data, absent), how, shown.is_silent)
    learned = load_model(model).model if read is None else read.model
    with show_status("Counting", shown.is_silent):
        found = find_rules(learned, limits, None if read is None else read.chunks)
    if output is not None:
        write_readable(rule_table(found), output)
    if shown.json:
        print_json({"rules": rule_table(found).records(), "patterns": learned.atoms.n_rows})
    elif not shown.quiet and output is not None:
        print_line(f"{output_name(output)}: {counted(len(found), 'rule')}")
    elif not shown.quiet:
        _print_rules(found, counted(learned.atoms.n_rows, "pattern"), shown.top)


def _print_rules(found: list[Rule], patterns: str, n_shown: int) -> None:
    """Print how many rules there are, and the first ones."""
    if not found:
        print_line(f"No rules from {patterns}; lower --min-support, --min-confidence or --min-lift to see more.")
        return
    print_line(
        f"{counted(len(found), 'rule')} from {patterns}, those that account for most rows beyond chance first:\n"
    )
    for rule in found[:n_shown]:
        sentence = str(rule)
        print_line(f"{sentence[0].upper()}{sentence[1:]} ({times(rule.lift)}).")
    print_rest(len(found), n_shown)


@options.command(
    "bitatoms recommend model.npz baskets.csv",
    "bitatoms recommend model.npz baskets.csv -n 3 -o next.csv",
    "bitatoms recommend model.npz baskets.zarr -o next.csv --max-memory 500MB",
)
def recommend(
    rows: NewRows = options.new_rows(),
    n: int = options.option("--number -n", 5, "Number of items per row.", minimum=1),
    output: Path | None = options.readable("--output -o", "recommendations", "row, rank, item and probability"),
    how: options.RunSettings = options.run("max_memory", "n_jobs", "device"),
    shown: Display = options.display(),
) -> None:
    """Print the next items of each row: the most probable ones that it does not have.

    If one item of a row is missing, the probability of an item is that it is this one. It is fitted to rows of the
    table without one of their items.
    """
    from ..html.tables import DataTable
    from .files import write_readable
    from .stores import ModelRows

    read = ModelRows.open(rows, how, shown.is_silent)
    n_rows, named = len(read.table), _recommended(read, n)
    if output is not None:
        lines = ((row, rank, item, share) for row, items in named for rank, (item, share) in enumerate(items, 1))
        columns = ("row", "rank", "item", "probability")
        write_readable(DataTable(columns, lines, {"probability": ".6f"}), output)
        if shown.json:
            print_json({"rows": n_rows, "written": str(output)})
        elif not shown.quiet:
            print_line(f"{output_name(output)}: recommendations for {counted(n_rows, 'row')}")
    elif shown.json:
        found = [
            {"row": row, "items": [{"item": item, "probability": share} for item, share in items]}
            for row, items in named
        ]
        print_json({"rows": n_rows, "recommendations": found})
    elif not shown.quiet:
        for row, items in named:
            print_line(_recommendation_line(row, items))


def _recommended(read: ModelRows, n: int) -> Iterator[tuple[str | int, list[tuple[str, float]]]]:
    """Yield the name of each row with its recommended items and their probabilities."""
    from ..imputation.regression import regression_for
    from ..model import recommendation

    model, start = read.model, 0
    if model.item_pool is None:
        rows, random = _first_rows(read), np.random.default_rng(0)
        model = replace(model, regression=model.regression or regression_for(rows, model.tied_columns))
        item_pool = recommendation.fit_item_pool(rows, model, lambda _: model, random)
        read = replace(read, model=replace(model, item_pool=item_pool))
    for found in read.map_chunks(lambda model, data, workers: recommendation.recommend(model, data, n, workers)):
        stop = start + len(found.items)
        named = recommendation.named(found, read.model)
        for name, items, shares in zip(read.row_names(start, stop), *named, strict=True):
            has_item = ~np.isnan(shares)
            yield name, list(zip(items[has_item].tolist(), shares[has_item].tolist(), strict=True))
        start = stop


def _first_rows(read: ModelRows) -> BitMatrix:
    """Return the first rows of a table."""
    from ..bits import stack_rows
    from ..sparse_bits import packed

    taken: list[BitMatrix] = []
    for chunk in read.chunks():
        taken.append(packed(chunk[: _FITTED_ROWS - sum(map(len, taken))]))
        if sum(map(len, taken)) == _FITTED_ROWS:
            break
    return stack_rows(taken, read.model.atoms.n_cols)


def _recommendation_line(row: Any, items: list[tuple[str, float]]) -> str:
    """Return the items of a row with their probabilities as text."""
    listed = ", ".join(f"{quote_name(item)} ({percent(share, 1)})" for item, share in items)
    return f"{_row_text(row)}: {listed or 'it has all items'}"


@options.command(
    "bitatoms score model.npz baskets.csv",
    "bitatoms score model.npz baskets.csv -n 50 -o scores.csv",
    "bitatoms score model.npz baskets.zarr --json",
)
def score(
    rows: NewRows = options.new_rows(),
    output: Path | None = options.readable(
        "--output -o", "scores", "all rows, their bits and their unexpected and missing cells"
    ),
    how: options.RunSettings = options.run("max_memory", "n_jobs", "device"),
    shown: Display = options.display(10, "rows to print", "--number -n"),
) -> None:
    """Print the rows that fit worst, with the cells that make them so.

    The bits of a row are minus log2 of the probability of each of its cells, given its other cells. The patterns
    predict a cell, and in tables with up to 1000 columns also a regression, which is part of the model. Unexpected: the
    row has the feature, but its other cells speak against it. Missing: the row lacks it, but they speak for it.
    """
    from ..html.tables import DataTable
    from ..model.row_fit import numbered_rows, score_rows, worst_rows
    from .files import write_readable
    from .stores import ModelRows

    read = ModelRows.open(rows, how, shown.is_silent)
    if not len(read.table):
        raise FileError(f"{rows.data.name}: the table has no rows")
    all_bits: list[NDArray[np.float64]] = []
    worst: list[RowFit] = []

    def observed() -> Iterator[ScoredRows]:
        """Yield chunks of rows after their bits, and the worst rows so far, are kept."""
        for chunk in numbered_rows(read.map_chunks(score_rows)):
            all_bits.append(chunk.bits)
            worst.extend(worst_rows([chunk], shown.top, read.workers))
            worst.sort(key=lambda fit: (-fit.bits, fit.row))
            del worst[shown.top :]
            yield chunk

    with show_status(f"Scoring {rows.data.title}", shown.is_silent):
        if output is None:
            deque(observed(), maxlen=0)
        else:
            columns = ("row", "bits", "known", "patterns", "unexpected", "missing")
            write_readable(DataTable(columns, _fitted(observed(), read), {"bits": ".4f"}), output)
    bits = np.concatenate(all_bits)
    named = [(read.row_names(fit.row, fit.row + 1)[0], fit) for fit in worst]
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
        print_line(f"{rows.data.title}: {counted(len(bits), 'row')} {verb(len(bits), 'take')} {mean}; {median}.")
        if named:
            print_line("Rows that take most bits, and their improbable cells (with their bits):\n")
            print_line("\n".join(_score_line(name, fit) for name, fit in named))
        print_written([output])


def _fitted(chunks: Iterable[ScoredRows], read: ModelRows) -> Iterator[tuple[Any, ...]]:
    """Yield for each row its name, its bits, its known cells, its patterns, and its wrong cells of both kinds."""
    for chunk in chunks:
        start = int(chunk.indices[0]) if len(chunk.indices) else 0
        names = read.row_names(start, start + len(chunk.indices))
        for name, fit in zip(names, chunk.fits(read.workers), strict=True):
            cells = (
                tuple(cell.feature for cell in fit.cells if cell.kind == kind) for kind in ("unexpected", "missing")
            )
            yield name, fit.bits, fit.n_known, fit.atoms, *cells


def _as_json(name: Any, fit: RowFit) -> dict[str, Any]:
    """Return the fit of a row as JSON values."""
    cells = [cell._asdict() for cell in fit.cells]
    return {
        "row": name,
        "index": fit.row,
        "bits": fit.bits,
        "known": fit.n_known,
        "patterns": list(fit.atoms),
        "cells": cells,
    }


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


def _row_text(name: Any) -> str:
    """Return the name of a row as text."""
    return f"row {name}" if isinstance(name, int) else escape_name(str(name))
