"""The probability of each cell of a row given all its other cells, and the bits of rows at these probabilities.

Each cell is hidden in turn, and predicted by the atoms and, if the model has one, by a regression on all other columns.
The sum of minus log2 of what is predicted for the values found is minus the log pseudo-likelihood of a row. It says how
well other rows explain the row: atoms that only one row of the fit uses are left out. The columns of a variable are
hidden together, so that an answer counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..imputation.pool import doubted
from ..imputation.tied_columns import Variables
from ..kernels.cpu.cell_costs import AtomOnes, HiddenScratch, hide_cells
from ..parallel import Workers
from ..sparse_bits import Bits
from .likelihood import UNIT, Frequencies, cells_of_rows
from .model import Model, ones_of

if TYPE_CHECKING:
    from ..kernels.gpu.device import Device

_CHUNK_CELLS = 1 << 20  # of rows whose probabilities are computed together
CELL_COST = 200.0  # nanoseconds per cell
_LEAST_USERS = 2  # of an atom that says something about other rows


class ValueBits(NamedTuple):
    """The values that rows have in variables of one kind.

    Attributes
    ----------
    kind : Variables
    bits : ndarray of shape (n_rows, n_variables)
        Minus log2 of their probabilities; 0 where no cell is known.
    most_probable : ndarray of shape (n_rows, n_variables)
        The indices of the values that are most probable, given the other cells of the row.
    """

    kind: Variables
    bits: NDArray[np.float64]
    most_probable: NDArray[np.intp]


class Conditionals:
    """The probability of a one in each cell of rows if that cell is hidden and all others are known as they are."""

    def __init__(self, model: Model, device: Device | None = None) -> None:
        model = _with_shared_atoms(model)
        frequencies = Frequencies.of_result(model)
        self.model, self.shares, self._workers = model, model.predictors.shares, Workers(1, device=device)
        self._costs, self._where_0_and_1 = frequencies.costs(), frequencies.probabilities_of_ones()
        self._atoms, self._parts = ones_of(model.atoms), _parts_of(model.atoms)

    def chunks(
        self, data: Bits, start: int = 0, stop: int | None = None, max_rows: int | None = None
    ) -> Iterator[slice]:
        """Yield chunks of rows that are few enough for the other methods."""
        stop, size = len(data) if stop is None else stop, max(1, _CHUNK_CELLS // max(1, data.n_cols))
        size = min(size, max_rows or size)
        return (slice(at, min(at + size, stop)) for at in range(start, stop, size))

    def bits(self, data: BitMatrix) -> NDArray[np.float64]:
        """Return the bits of a few rows."""
        return sum((values.bits.sum(axis=1) for values in self.values(data)), np.zeros(len(data)))

    def values(self, data: BitMatrix) -> Iterator[ValueBits]:
        """Yield the values of a few rows in all variables, one kind of variables after the other."""
        stated = self.stated(data)
        cells = sum(stated[1:], stated[0]) / len(stated)
        for kind in self.model.tied_columns.kinds:
            probabilities, conflicts = kind.probabilities(cells), kind.conflicts(data)
            fewest = conflicts.min(axis=2)
            found = np.where(conflicts == fewest[:, :, np.newaxis], probabilities, 0).sum(axis=2)
            # A cell that contradicts another one of its variable costs as much as a value of half a row of the fit.
            bits = np.abs(np.log2(np.minimum(found, 1))) + np.log2(2 * (self.model.n_samples + 1)) * fewest
            yield ValueBits(kind, bits, probabilities.argmax(axis=2))

    def stated(self, data: BitMatrix) -> list[NDArray[np.float64]]:
        """Return what the atoms and, if there is one, the regression state of all cells of a few rows."""
        found, regression = [self.of_atoms(data)], self.model.regression
        if regression is not None:
            found.append(regression.cell_probabilities(data, Workers()))
        return doubted(self.shares, found)[1:]

    def of_atoms(self, data: BitMatrix) -> NDArray[np.float64]:
        """Return what the atoms state of all cells of a few rows."""
        model, is_or, (where_0, where_1) = self.model, self.model.algebra == "or", self._where_0_and_1
        cells, codes = cells_of_rows(data), model.codes(data, self._workers).to_dense()
        bias, first = model.bias.astype(np.int64), model.tied_columns.first.astype(np.int64)
        found, scratch = np.empty(data.shape), HiddenScratch(*np.empty((3, data.n_cols), np.int64))
        hide_cells(cells, codes, self._atoms, self._parts, bias, is_or, self._costs, first, UNIT, scratch, found)
        covered = 1 - found if is_or else (1 - found) / 2
        return where_0 + np.where(model.bias, 1 - covered, covered) * (where_1 - where_0)


def _with_shared_atoms(model: Model) -> Model:
    """Return the model without the atoms that only one row of the fit uses."""
    shared = np.flatnonzero(model.uses >= _LEAST_USERS)
    if len(shared) == model.atoms.n_rows:
        return model
    return replace(model, atoms=model.atoms[shared], uses=model.uses[shared], remembered=None)


def _parts_of(atoms: Bits) -> AtomOnes:
    """Return for each atom the others whose columns it has, too."""
    ones = atoms.to_sparse().astype(np.int64)
    shared, sizes = (ones @ ones.T).tocoo(), np.diff(ones.indptr)
    whole, part = shared.coords
    is_part = csr_array(((shared.data == sizes[part]) & (whole != part), (whole, part)), shape=shared.shape)
    is_part.eliminate_zeros()
    is_part.sort_indices()
    return AtomOnes(is_part.indptr.astype(np.int64), is_part.indices.astype(np.int64))
