"""Probabilities of cells and bits of rows under a model, at the frequencies of the data that it was learned from.

The code of a row predicts a value for each of its cells. `Frequencies` counts, for each column, how often each value
was found where each value was predicted, and how many rows used each atom. They are frozen: a new row costs minus log2
of the frequency of each of its cells, and of each use and non-use of an atom. Unknown cells are not counted and cost
nothing. `RowCoder` finds the code with which a row takes the fewest bits, and the probability of a one in each cell,
over the codes of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.coding import NO_LIMIT
from ..kernels.cpu.cell_costs import AtomOnes, CellCosts, CellScratch, shorten_codes
from ..kernels.cpu.code_average import Sampling, average_all_codes, average_sampled_codes
from ..kernels.structs import covering
from ..parallel import Workers
from .result import ResultBase

if TYPE_CHECKING:
    from .model import Model

UNIT = 1 << 20  # costs are integers of this fraction of a bit: sums do not depend on their order
_CELL_COST = 30.0  # nanoseconds per cell; it also limits a chunk to a few million cells
_BIT_COST = 3.0  # nanoseconds per one of an atom, when its cost in a row is computed
_PSEUDOCOUNT = 0.5  # of each outcome: a frequency is never 0

Converted = TypeVar("Converted")


class Averaging(NamedTuple):
    """How the codes of a row are averaged: all of them, or sampled ones if there are more atoms."""

    most_atoms: int = 10
    sampling: Sampling = Sampling(skipped=10, kept=50)


AVERAGING = Averaging()


class DescribedRows(NamedTuple):
    """Rows with the codes that describe them in the fewest bits."""

    codes: BitMatrix
    bits: NDArray[np.float64]  # (n,)


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Counts of the rows that a model was learned from; they add up over chunks of rows.

    Attributes
    ----------
    cells : ndarray of shape (2, 2, n_features), int64
        ``cells[u, v, i]`` is the number of rows in which the code predicts u for column i, and the cell is v.
    uses : ndarray of shape (2, n_atoms), int64
        The number of rows that do not use each atom, and of those that use it.
    """

    cells: NDArray[np.int64]
    uses: NDArray[np.int64]

    @classmethod
    def of_result(cls, result: ResultBase) -> Frequencies:
        """Return the frequencies at the end of a search.

        Results of early versions do not count the ones: there, errors are equally frequent where 0 and 1 are predicted.
        """
        n, wrong, right = result.n_known, result.wrong, result.n_known - result.wrong
        uses = np.array([result.n_samples - result.uses, result.uses])
        if result.ones is None or result.missed is None:
            return cls(np.array([[right, wrong], [wrong, right]]), uses)
        missed, found = result.missed, result.ones - result.missed
        invented = wrong - missed
        return cls(np.array([[n - result.ones - invented, missed], [invented, found]]), uses)

    @classmethod
    def count(cls, data: BitMatrix, predicted: BitMatrix, codes: BitMatrix) -> Frequencies:
        """Return the frequencies in rows with these predictions and codes."""
        known = predicted.words if data.unknown is None else predicted.words & ~data.unknown.words
        packed = data.words, known, data.words & known
        ones, as_one, found = (BitMatrix.from_words(each, data.n_cols, False).column_weights() for each in packed)
        uses = codes.column_weights()
        cells = np.array([[data.n_known - as_one - ones + found, ones - found], [as_one - found, found]])
        return cls(cells, np.array([data.n_rows - uses, uses]))

    def probabilities_of_ones(self) -> NDArray[np.float64]:
        """Return the probability of a one in each column where 0 and where 1 is predicted, of shape (2, n_features)."""
        counts = self.cells + _PSEUDOCOUNT
        return counts[:, 1] / counts.sum(axis=1)

    def costs(self, left_out: int = 0) -> CellCosts:
        """Return minus the logarithms of the frequencies, in units of coding.

        With ``left_out=1`` they are for rows among those counted: each cell is taken out of its own frequency.
        """
        cells = np.zeros((3, 2, self.cells.shape[2]), np.int64)  # an unknown cell costs nothing
        cells[:2] = _cost(self.cells, left_out).swapaxes(0, 1)
        return CellCosts(cells, _cost(self.uses[np.newaxis], left_out)[0])


def _cost(counts: NDArray[np.int64], left_out: int) -> NDArray[np.int64]:
    """Return the costs of the outcomes on axis 1 that occurred this many times."""
    others = np.maximum(counts - left_out, 0) + _PSEUDOCOUNT
    total = np.maximum(counts.sum(axis=1, keepdims=True) - left_out, 0) + 2 * _PSEUDOCOUNT
    return np.rint(UNIT * np.log2(total / others)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class RowCoder:
    """Codes rows with the atoms of a model in the fewest bits at frozen frequencies."""

    model: Model
    frequencies: Frequencies
    averaging: Averaging = AVERAGING

    def describe(self, data: BitMatrix, workers: Workers) -> DescribedRows:
        """Return the rows with the codes that take the fewest bits; the search starts from the codes of the model."""
        codes = self.model.codes(data, workers)
        return self._run(data, codes, workers, self._max_atoms, self.frequencies.costs())

    def row_bits(self, data: BitMatrix, codes: BitMatrix, workers: Workers, left_out: int = 0) -> NDArray[np.float64]:
        """Return the bits of rows with these codes.

        With ``left_out=1`` the rows are among those whose frequencies these are, and each is taken out of them.
        """
        return self._run(data, codes, workers, -1, self.frequencies.costs(left_out)).bits

    def refitted(self, data: BitMatrix, codes: BitMatrix) -> RowCoder:
        """Return the same atoms with the frequencies in rows with these codes."""
        return RowCoder(self.model, Frequencies.count(data, self.model.reconstruct(codes), codes))

    def cell_probabilities(self, data: BitMatrix, workers: Workers) -> NDArray[np.float64]:
        """Return the probability of a one in every cell, given the known cells of its row.

        It is the mean over the codes of the row, weighted by 2^-bits: over all codes with few atoms, otherwise over
        sampled ones. The samples depend on nothing but the row.
        """
        chunks = self.map_probabilities(data, workers, lambda probabilities, _: probabilities)
        return np.concatenate(chunks)

    def map_probabilities(
        self, data: BitMatrix, workers: Workers, convert: Callable[[NDArray[np.float64], BitMatrix], Converted]
    ) -> list[Converted]:
        """Return what a function makes of the probabilities of each chunk of rows; all of them take much memory."""
        model, is_sampled = self.model, self.model.atoms.n_rows > self.averaging.most_atoms
        all_codes = model.codes(data, workers) if is_sampled else None
        atoms, bias, covers = self._factors()
        costs, where_0, where_1 = self.frequencies.costs(), *self.frequencies.probabilities_of_ones()

        def run(start: int, stop: int) -> Converted:
            chunk, shares = data[start:stop], np.empty((stop - start, data.n_cols))
            codes = np.zeros((stop - start, model.atoms.n_rows), np.uint8)
            if all_codes is not None:
                codes = all_codes[start:stop].to_dense()
            given = cells_of_rows(chunk), codes, atoms, bias, covers, self._max_atoms, costs, UNIT
            if is_sampled:
                average_sampled_codes(*given, self.averaging.sampling, _scratch(data.n_cols), shares)
            else:
                average_all_codes(*given, _scratch(data.n_cols), shares)
            return convert(where_0 + shares * (where_1 - where_0), chunk)

        n_codes = sum(self.averaging.sampling) if is_sampled else 2**model.atoms.n_rows
        row_cost = _CELL_COST * data.n_cols + _BIT_COST * n_codes * len(atoms.columns)
        return workers.map_rows(run, data.n_rows, row_cost)

    def _run(
        self, data: BitMatrix, codes: BitMatrix, workers: Workers, max_atoms: int, costs: CellCosts
    ) -> DescribedRows:
        """Run the kernel on chunks of rows."""
        atoms, bias, covers = self._factors()

        def run(start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
            chunk, total = codes[start:stop].to_dense(), np.empty(stop - start, np.int64)
            cells, scratch = cells_of_rows(data[start:stop]), _scratch(data.n_cols)
            shorten_codes(cells, chunk, atoms, bias, covers, max_atoms, costs, scratch, total)
            return chunk, total

        chunks, totals = zip(*workers.map_rows(run, data.n_rows, _CELL_COST * data.n_cols), strict=True)
        return DescribedRows(BitMatrix.from_dense(np.concatenate(chunks)), np.concatenate(totals) / UNIT)

    @property
    def _max_atoms(self) -> int:
        """The largest number of atoms that a row may use."""
        return NO_LIMIT if self.model.max_atoms_per_sample is None else self.model.max_atoms_per_sample

    def _factors(self) -> tuple[AtomOnes, NDArray[np.int64], Any]:
        """Return the atoms, the bias and the algebra as the kernels take them."""
        ones = self.model.atoms.to_sparse()
        atoms = AtomOnes(ones.indptr.astype(np.int64), ones.indices.astype(np.int64))
        return atoms, self.model.bias.astype(np.int64), covering(self.model.algebra)


def cells_of_rows(data: BitMatrix) -> NDArray[np.uint8]:
    """Return rows as an array of 0, 1 and, for unknown cells, 2."""
    cells = data.filled().to_dense()
    if data.unknown is not None:
        cells += 2 * data.unknown.to_dense()
    return cells


def _scratch(n_cols: int) -> CellScratch:
    """Return the work arrays of the kernels."""
    return CellScratch(np.empty(n_cols, np.int64), np.empty(n_cols, np.int64))
