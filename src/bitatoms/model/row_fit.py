"""Rows that fit badly: those whose cells the other rows explain least, with the cells that make them so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..columns.table import feature_names
from ..imputation.tied_columns import known_cells
from ..parallel import Workers
from ..sparse_bits import Bits, packed
from .conditionals import CELL_COST, Conditionals
from .model import Model


class WrongCell(NamedTuple):
    """A cell whose value is not the most probable one, given the other cells of its row.

    Of several cells that stand for one variable, it is the first one that differs, if possible one that the row has.
    """

    feature: str
    kind: Literal["unexpected", "missing"]  # the row has the feature, or lacks it
    bits: float  # that the value takes: minus log2 of its probability


class RowFit(NamedTuple):
    """How well a row fits a model.

    Attributes
    ----------
    row : int
        Its index, from 0.
    bits : float
        The bits that it takes: minus `BinaryDictionaryLearning.score_samples`.
    atoms : tuple of int
        The atoms that it uses, by their numbers from 1.
    cells : tuple of WrongCell
        The cells with a value that is not the most probable one, those that take most bits first: named tuples
        ``(feature, kind, bits)``.
    n_known : int
        The number of its known cells: a row with few of them takes few bits.
    """

    row: int
    bits: float
    atoms: tuple[int, ...]
    cells: tuple[WrongCell, ...]
    n_known: int


class ScoredRows(NamedTuple):
    """Rows with their bits, and all that is needed to describe them."""

    indices: NDArray[np.int64]
    bits: NDArray[np.float64]
    rows: Bits
    model: Model

    def take(self, chosen: NDArray[np.intp]) -> ScoredRows:
        """Return some of the rows."""
        return self._replace(indices=self.indices[chosen], bits=self.bits[chosen], rows=self.rows[chosen])

    def fits(self, workers: Workers) -> Iterator[RowFit]:
        """Yield the rows with their atoms and wrong cells."""
        conditionals, names = Conditionals(self.model, workers.device), self.model.columns
        for chunk in conditionals.chunks(self.rows):
            rows = packed(self.rows[chunk])
            codes, cells = self.model.codes(rows, workers), _wrong_cells(conditionals, rows)
            indices, bits = self.indices[chunk].tolist(), self.bits[chunk].tolist()
            n_known = known_cells(rows).sum(axis=1).tolist()
            for k in range(len(rows)):
                wrong = sorted(cells[k], key=lambda cell: (-cell[2], cell[0]))
                names_of = feature_names(names, [column for column, _, _ in wrong])
                found = (
                    WrongCell(name, "unexpected" if present else "missing", cost)
                    for name, (_, present, cost) in zip(names_of, wrong, strict=True)
                )
                atoms = tuple((np.flatnonzero(codes[k]) + 1).tolist())
                yield RowFit(indices[k], bits[k], atoms, tuple(found), n_known[k])


def _wrong_cells(conditionals: Conditionals, rows: BitMatrix) -> list[list[tuple[int, bool, float]]]:
    """Return for each row the columns of its wrong cells, whether they are ones, and their bits."""
    found: list[list[tuple[int, bool, float]]] = [[] for _ in range(len(rows))]
    cells, known = rows.filled().to_dense(bool), known_cells(rows)
    for kind, bits, most_probable in conditionals.values(rows):
        expected = kind.values[most_probable] == 1  # (n, n_variables, n_columns)
        differs = known[:, kind.columns] & (cells[:, kind.columns] != expected)
        for row, variable in np.argwhere(differs.any(axis=2)).tolist():
            own = kind.columns[variable][differs[row, variable]]
            column = int(own[cells[row, own].argmax()])
            found[row].append((column, bool(cells[row, column]), float(bits[row, variable])))
    return found


def score_rows(model: Model, data: Bits, workers: Workers, max_rows: int | None = None) -> ScoredRows:
    """Return rows with the bits that they take, at most so many at a time."""
    conditionals = Conditionals(model, workers.device)

    def run(start: int, stop: int) -> list[NDArray[np.float64]]:
        return [conditionals.bits(packed(data[rows])) for rows in conditionals.chunks(data, start, stop, max_rows)]

    parts = workers.map_rows(run, len(data), CELL_COST * data.n_cols)
    bits = np.concatenate([np.empty(0), *(each for part in parts for each in part)])
    return ScoredRows(np.arange(len(data)), bits, data, model)


def numbered_rows(chunks: Iterable[ScoredRows]) -> Iterator[ScoredRows]:
    """Yield chunks of rows with the indices that they have in all chunks together."""
    start = 0
    for chunk in chunks:
        yield chunk._replace(indices=chunk.indices + start)
        start += len(chunk.bits)


def worst_rows(chunks: Iterable[ScoredRows], n: int, workers: Workers) -> list[RowFit]:
    """Return the ``n`` rows of chunks that take most bits, those that take most first."""
    kept: list[ScoredRows] = []
    for chunk in chunks:
        kept.append(chunk)
        bits, indices = (np.concatenate([getattr(part, name) for part in kept]) for name in ("bits", "indices"))
        if len(bits) > n:
            chosen = indices[np.lexsort((indices, -bits))[:n]]
            parts = ((part, np.flatnonzero(np.isin(part.indices, chosen))) for part in kept)
            kept = [part.take(own) for part, own in parts if len(own)]
    return sorted((fit for part in kept for fit in part.fits(workers)), key=lambda fit: (-fit.bits, fit.row))
