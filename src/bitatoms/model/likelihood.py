"""Bits of rows under a model, at the frequencies of the data that it was learned from.

The code of a row predicts a value for each of its cells. `Frequencies` counts, for each column, how often each value
was found where each value was predicted, and how many rows used each atom. They are frozen: a new row costs minus log2
of the frequency of each of its cells, and of each use and non-use of an atom. Unknown cells are not counted and cost
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..engine.block import Block, Words
from ..kernels.cpu.cell_costs import CellCosts
from ..sparse_bits import Bits
from .result import ResultBase

UNIT = 1 << 20  # costs are integers of this fraction of a bit: sums do not depend on their order
_PSEUDOCOUNT = 0.5  # of each outcome: a frequency is never 0


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

        A search that was interrupted twice has not counted the ones: errors are then equally frequent where 0 and 1 are
        predicted.
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


def cells_of_rows(data: BitMatrix) -> NDArray[np.uint8]:
    """Return rows as an array of 0, 1 and, for unknown cells, 2."""
    cells = data.filled().to_dense()
    if data.unknown is not None:
        cells += 2 * data.unknown.to_dense()
    return cells


def bits_of_cells_saved(block: Block, rises: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how many bits the cells of each row take less with each atom than without it, of shape (n, p).

    ``rises`` (m,) are the bits by which a wrong cell of each column costs more than a right one. An atom changes only
    the free cells of a row: the known ones and, under OR, only those that no other atom of its code covers. The sums of
    a row depend on nothing but the row.
    """
    rows = block.rows.on_host()
    by_column = csr_array(block.atoms().to_sparse() * rises).T.tocsr()  # (m, p): what an error costs an atom

    def sums(words: Words) -> NDArray[np.float64]:
        """Return the sum of what errors in these cells cost each atom."""
        return np.asarray((BitMatrix.from_words(words, block.n_features, False).to_sparse() @ by_column).toarray())

    # If an atom is added, its free cells that are right become wrong, and those that are wrong become right.
    added = by_column.sum(axis=0) - 2 * sums(rows.errors & ~rows.covered if block.covers else rows.errors.copy())
    fixed = rows.covered if block.covers else rows.unknown
    if len(fixed):
        added -= sums(fixed.copy())
    dropped = added
    if block.covers:
        once = rows.covered & ~rows.twice
        dropped = sums(once) - 2 * sums(rows.errors & once)
    return np.where(block.codes().to_dense(np.bool_), dropped, -added)


def bits_of_values(
    counts: NDArray[np.int64], n: int | NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bits of a zero and of a one in each column, if there are this many ones among ``n`` cells."""
    share = (counts + 0.5) / (n + 1)  # strictly between 0 and 1
    return -np.log2(1 - share), -np.log2(share)


def sum_bits(table: Bits, zero: NDArray[np.float64], one: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum over the known cells of each row, by what a zero and a one cost in each column."""
    sums = np.asarray(table.filled().to_sparse() @ (one - zero)) + zero.sum()
    return sums if table.unknown is None else sums - np.asarray(table.unknown.to_sparse() @ zero)
