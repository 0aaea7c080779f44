"""The commands `complete` and `crossvalidate`: missing cells filled in, and hidden cells predicted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..bits import BitMatrix
from ..columns.encoding import ColumnTies
from ..columns.table import Names, Table, feature_names
from ..columns.variants import are_variants
from ..formatting import counted
from ..html.tables import DataTable
from ..io.errors import FileError
from ..model.model import Model
from ..model.similar_rows import SimilarRows, fit_similar_rows
from ..model.unknown_cells import GenotypeScores, TiedColumns, hidden_genotypes, tied_columns, without_cells
from ..parallel import Workers
from .commands import OutputTable
from .console import Display, print_json, print_line, print_result
from .files import (
    Original,
    check_json_output,
    check_output,
    check_readable,
    check_writable,
    count_missing,
    decoded_values,
    load_model_and_original,
    load_model_and_table,
    read_with_status,
    write_decoded,
    write_readable,
    write_table,
)
from .options import Input, NewRows
from .progress import show_status
from .stores import RunOptions
from .streams import output_name
from .summary import describe_shape, describe_size, describe_table

_HIDDEN_SHARE = 0.02  # of the known genotypes, for the check
_SCORED_CELLS = 1 << 24  # cells of the rows that are checked


def complete(
    rows: NewRows,
    output: OutputTable,
    only_missing: bool,
    is_decoded: bool,
    by_neighbours: bool,
    run: RunOptions,
    display: Display,
) -> None:
    """Write a table with its missing values filled in, by the model or by its own rows, or a list of these values.

    Of encoded variables, the values are written if the table is decoded: those that are known as they are in the file.
    """
    quiet = display.is_silent
    check_json_output(display.json, output.path)
    check_writable(output.path, read=(rows.model_path, rows.data.path))
    if only_missing:
        _check_list(output)
    else:
        check_output(output.path, output.format, rows.model_path if is_decoded else None)
    original = Original({}, "")
    if is_decoded:
        model, table, original = load_model_and_original(rows, quiet)
    else:
        model, table = load_model_and_table(rows, quiet)
    workers, n_filled, n_columns = run.workers(table.bits), table.bits.n_unknown, table.shape[1]
    with show_status("Comparing rows" if by_neighbours else "Predicting", quiet):
        predictor = _predictor(model, table.bits, by_neighbours, workers)
    with show_status("Predicting", quiet):
        completed = predictor.completed(table.bits, workers, _tied(model, table.bits, by_neighbours))
        if only_missing:
            _write_list(predictor, completed, model.columns, table, output.path, workers)
            written = f"{_missing_values(n_filled)} predicted"
        else:
            made = table.with_bits(completed)
            if table.columns is None or (is_decoded and table.column_data is None):
                data = model.column_data if is_decoded else None
                made = Table(made.data, table.row_names, model.columns, table.picture, column_data=data)
            if is_decoded:
                n_missing = count_missing(decoded_values(made.with_bits(table.bits), original))
                size = write_decoded(made, *output, original)
                n_filled, n_columns = n_missing - size.missing, size.columns
            else:
                write_table(made, *output)
            described = describe_size((len(made), n_columns)) if is_decoded else describe_shape(made)
            written = f"{described}, {_missing_values(n_filled)} filled in"
    if display.quiet and not display.json:
        return
    name, lines, checked = output_name(output.path), [], {}
    if are_variants(table.column_data) and 0 not in table.shape:
        with show_status("Hiding genotypes to predict them", quiet):
            scores = _scores(model, table, by_neighbours, workers)
        lines, checked = [_described(scores, by_neighbours)], {"check": scores._asdict()}
    values = {"written": name, "rows": len(table), "columns": n_columns, "filled": n_filled, **checked}
    print_result(values, display, f"{name}: {written}", *lines)


def _missing_values(n: int) -> str:
    """Return a number of missing values in words."""
    return counted(n, "missing value")


def _predictor(model: Model, data: BitMatrix, by_neighbours: bool, workers: Workers) -> Model | SimilarRows:
    """Return what predicts the missing values: the model, or the rows of the table."""
    return fit_similar_rows(data, np.random.default_rng(0), workers) if by_neighbours else model


def _tied(model: Model, data: BitMatrix, by_neighbours: bool) -> TiedColumns:
    """Return the columns that are filled in together: those that the model knows, or that the table shows, too."""
    return tied_columns(data, *model.tied_columns) if by_neighbours else model.tied_columns


def _scores(model: Model, table: Table, by_neighbours: bool, workers: Workers) -> GenotypeScores:
    """Return how well known genotypes of a part of the rows are predicted if they are hidden."""
    random, bits = np.random.default_rng(0), table.bits
    pairs = ColumnTies.of(table.header).nested
    chosen = np.sort(random.permutation(len(bits))[: max(1, _SCORED_CELLS // bits.n_cols)])
    hidden = hidden_genotypes(bits[chosen], pairs, _HIDDEN_SHARE, random)
    words = np.zeros_like(bits.words)
    words[chosen] = hidden.words
    visible = without_cells(bits, BitMatrix.from_words(words, bits.n_cols, check=False))
    predictor = _predictor(model, visible, by_neighbours, workers)
    probabilities = predictor.cell_probabilities(visible[chosen], workers)
    predicted = _tied(model, visible, by_neighbours).most_probable(probabilities, visible[chosen])
    truth = bits.filled()[chosen].to_dense(bool)
    return GenotypeScores.of(truth, probabilities, predicted, hidden.to_dense(bool), pairs)


def _described(scores: GenotypeScores, by_neighbours: bool) -> str:
    """Return a sentence on how well hidden genotypes are predicted."""
    by = "similar rows" if by_neighbours else "the model, which has learned from them"
    return (
        f"Check: of {scores.n_genotypes} known genotypes, hidden and predicted by {by}, {scores.concordance:.1%} are "
        f"right (concordance); dosage r2 {scores.dosage_r2:.3f}."
    )


def _check_list(output: OutputTable) -> None:
    """Check that a list can be written."""
    path, format = output
    if format not in (None, "csv"):
        raise FileError(
            f"{output_name(path)}: a list of missing values is not written as {format}; use the extension .csv"
        )
    check_readable(path, "lists of missing values")


def _write_list(
    predictor: Model | SimilarRows,
    completed: BitMatrix,
    columns_of_model: Names | None,
    table: Table,
    path: Path,
    workers: Workers,
) -> None:
    """Write row, column, value and probability of each missing value, row by row."""

    def filled_cells() -> Iterator[tuple[Any, ...]]:
        unknown = table.bits.unknown
        if unknown is None:
            return
        rows = np.flatnonzero(unknown.words.any(axis=1))
        columns = feature_names(columns_of_model if table.columns is None else table.columns, range(unknown.n_cols))
        mask, probabilities = unknown[rows].to_dense(bool), predictor.cell_probabilities(table.bits[rows], workers)
        values = completed[rows].to_dense()
        for row, own, of_row, filled in zip(rows.tolist(), mask, probabilities, values, strict=True):
            name = row if table.row_names is None else table.row_names[row]
            for column in np.flatnonzero(own).tolist():
                yield name, columns[column], int(filled[column]), float(of_row[column])

    names = ("row", "column", "value", "probability")
    write_readable(DataTable(names, filled_cells(), {"probability": ".6f"}), path)


def crossvalidate(data: Input, models: list[Any], options: dict[str, Any], quiet: bool, json: bool) -> None:
    """Print how well models predict cells that are hidden from them."""
    from ..estimators.cell_validation import cross_validate_cells

    table = read_with_status(data, quiet or json)
    if 0 in table.shape:
        raise FileError(f"{data.name}: the table has no {'rows' if len(table) == 0 else 'columns'}")
    if not quiet and not json:
        print_line(f"{data.title}: {describe_table(table)}\n")
    with show_status("Cross-validating", quiet or json):
        result = cross_validate_cells(table, models, **options)
    if json:
        columns = result.to_dict()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        print_json({"share": result.share, "n_folds": options["n_folds"], "best": result.best, "models": rows})
        return
    print_line(str(result))
    if not quiet:
        print_line(f"\nThe log loss, in bits per hidden cell, is lowest with: {result.best}.")
