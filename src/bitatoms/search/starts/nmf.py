"""Starting atoms from a non-negative matrix factorization (NMF), thresholded to zeros and ones.

Atoms that are grown one after the other each fit what the earlier ones leave, and get stuck there. Real numbers can
move in small steps, all atoms together. The factorization minimizes the squared error by hierarchical alternating least
squares, which sets each number in turn to its best value (Cichocki, Zdunek, Amari, "Hierarchical ALS algorithms for
nonnegative matrix and 3D tensor factorization", 2007). A bit of an atom is one where the number exceeds a share of the
atom's largest number. On larger tables, fewer starts, rows and iterations keep the work within a budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...engine.coding import code
from ...kernels.cpu import nmf as kernels
from ...parallel import Workers
from ..context import SearchContext
from ..plan import NmfBudget

Floats = NDArray[np.float32]
_OPERATIONS_PER_NS = 20  # about, to divide rows into chunks


class NmfExtent(NamedTuple):
    """How much work goes into the starts."""

    n_starts: int
    n_rows: int
    n_iterations: int
    row_operations: float  # per row and iteration


def nmf_starts(context: SearchContext, n_atoms: int, budget: NmfBudget) -> Iterator[BitMatrix]:
    """Yield the atoms of each start; none if a start would take too long.

    Atoms without ones are left out, so some starts may have fewer than ``n_atoms``. The result does not depend on the
    number of threads.
    """
    data, random = context.data, context.random
    extent = nmf_extent(data, n_atoms, budget)
    for _ in range(extent.n_starts):
        if context.monitor.should_stop():
            return
        sample = data
        if extent.n_rows < data.n_rows:
            sample = data[np.sort(random.choice(data.n_rows, extent.n_rows, replace=False))]
        columns = _factorize(context, sample, n_atoms, extent)
        yield _thresholded(context, sample, columns, budget.thresholds)


def nmf_extent(data: BitMatrix, n_atoms: int, budget: NmfBudget) -> NmfExtent:
    """Return how many starts, rows and iterations fit into the budget of operations.

    To fit a row or a column takes about ``n_atoms`` squared multiplications, three operations each, and as many as
    ``n_atoms`` for each of its ones. Loops take the rest.
    """
    fixed = n_atoms * (600 + 3 * n_atoms)  # of a row or a column
    share = (data.count() + 2 * data.n_unknown) / max(1, data.n_rows * data.n_cols)  # an unknown cell costs twice
    per_row = fixed + 2 * share * data.n_cols * (100 + 4 * n_atoms)
    n_rows = min(data.n_rows, budget.max_rows)
    per_iteration = data.n_cols * fixed + n_rows * per_row
    n_iterations = budget.max_iterations
    if per_iteration:
        n_iterations = min(n_iterations, int(budget.operations / per_iteration))
    if n_rows * per_row == 0 or n_iterations < budget.min_iterations:
        return NmfExtent(0, 0, 0, 0.0)
    n_starts = min(budget.max_starts, int(budget.operations / (n_iterations * per_iteration)))
    return NmfExtent(n_starts, n_rows, n_iterations, per_row)


def _factorize(context: SearchContext, data: BitMatrix, n_atoms: int, extent: NmfExtent) -> Floats:
    """Return the atoms as real numbers, one row per column of the table, from a random start."""
    workers, transposed = context.workers, data.T
    shares = (data.column_weights() / np.maximum(1, data.n_known)).astype(np.float32)
    columns = context.random.random((data.n_cols, n_atoms), dtype=np.float32) * shares[:, np.newaxis]
    rows = np.zeros((data.n_rows, n_atoms), np.float32)
    row_cost = extent.row_operations / _OPERATIONS_PER_NS / 2  # half of it for the columns
    column_cost = row_cost * data.n_rows / max(1, data.n_cols)
    for _ in range(extent.n_iterations):
        if context.monitor.should_stop():
            break
        _fit_rows(data, rows, columns, row_cost, workers)
        _fit_rows(transposed, columns, rows, column_cost, workers)
    return columns


def _fit_rows(bits: BitMatrix, rows: Floats, columns: Floats, row_cost: float, workers: Workers) -> None:
    """Fit the factor of the rows to that of the columns, in place."""
    pairs = np.empty((rows.shape[1], rows.shape[1]), np.float32)
    kernels.products(columns, pairs)

    def fit(start: int, stop: int) -> None:
        room = np.empty(len(pairs), np.float32)
        kernels.fit_rows(bits.words, bits.unknown_words, columns, pairs, start, stop, room, rows)

    workers.map_rows(fit, bits.n_rows, row_cost)


def _thresholded(context: SearchContext, data: BitMatrix, columns: Floats, thresholds: tuple[float, ...]) -> BitMatrix:
    """Return the atoms as bits, by the threshold with which coding the rows leaves the fewest errors."""
    largest = columns.max(axis=0, initial=0)
    columns, largest = columns[:, largest > 0], largest[largest > 0]
    candidates = [BitMatrix.from_dense((columns > np.float32(share) * largest).T) for share in thresholds]
    return min(candidates, key=lambda atoms: _wrong_bits(context, data, atoms))


def _wrong_bits(context: SearchContext, data: BitMatrix, atoms: BitMatrix) -> int:
    """Return the number of errors when the rows are coded with these atoms for the fewest errors."""
    block = replace(context, data=data, counted=None).block(atoms)
    code(block, context.objective.errors_only().rule(block)._replace(swaps=False))  # at prices: no further kernel
    return int(block.wrong().sum())
