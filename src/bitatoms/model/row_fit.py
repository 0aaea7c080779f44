"""Rows that fit badly: those that take most bits, with the cells that their patterns get wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..columns.table import feature_names
from ..parallel import Workers
from ..sparse_bits import Bits
from .model import Model


class WrongCell(NamedTuple):
    """A cell that the patterns of a row get wrong."""

    feature: str
    kind: Literal["unexpected", "missing"]  # the row has the feature and its patterns do not, or the other way round
    bits: float  # that the cell takes: the rarer it is that this column is wrong, the more


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
        The cells that its atoms get wrong, those that take most bits first: named tuples ``(feature, kind,
        bits)``.
    """

    row: int
    bits: float
    atoms: tuple[int, ...]
    cells: tuple[WrongCell, ...]


class ScoredRows(NamedTuple):
    """Rows with their bits, and all that is needed to describe them."""

    indices: NDArray[np.int64]
    bits: NDArray[np.float64]
    rows: Bits
    codes: BitMatrix
    model: Model

    def take(self, chosen: NDArray[np.intp]) -> ScoredRows:
        """Return some of the rows."""
        own = {name: getattr(self, name)[chosen] for name in ("indices", "bits", "rows", "codes")}
        return self._replace(**own)

    def fits(self, workers: Workers) -> Iterator[RowFit]:
        """Yield the rows with their atoms and wrong cells."""
        model, codes = self.model, self.codes
        errors, costs = model.errors(self.rows, codes, workers).filled(), model.bits_if_wrong
        names = model.columns
        for k, (index, bits) in enumerate(zip(self.indices.tolist(), self.bits.tolist(), strict=True)):
            wrong = np.flatnonzero(errors[k])
            wrong = wrong[np.argsort(-costs[wrong], kind="stable")]
            has = np.asarray(self.rows[k])[wrong] == 1
            cells = (
                WrongCell(name, "unexpected" if present else "missing", float(costs[column]))
                for name, present, column in zip(feature_names(names, wrong), has, wrong, strict=True)
            )
            yield RowFit(index, bits, tuple((np.flatnonzero(codes[k]) + 1).tolist()), tuple(cells))


def score_rows(model: Model, data: Bits, workers: Workers, start: int = 0, max_rows: int | None = None) -> ScoredRows:
    """Return rows with the bits that they take; the first one has the index ``start``."""
    codes = model.codes(data, workers, max_rows)
    bits = model.row_bits(data, codes, workers, max_rows)
    return ScoredRows(np.arange(start, start + len(data)), bits, data, codes, model)


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
