"""A start by all atoms together: factors of numbers instead of bits first, and then cut to zeros and ones.

Atoms that are grown one after the other are each good for what those before leave, and hold each other where they are
then. Numbers can move in small steps, all together: non-negative factors by least squares, each number in turn set to
its best value (hierarchical alternating least squares: Cichocki, Zdunek, Amari, "Hierarchical ALS algorithms for
nonnegative matrix and 3D tensor factorization", 2007). What is above a share of an atom's largest number is a one then.
No more than about a second of work goes into it: fewer rows, fewer iterations or fewer starts on larger tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.block import Block
from ..core.coding import code
from ..kernels.cpu import nmf as kernels
from ..kernels.structs import Rule
from ..parallel import Workers

Numbers = NDArray[np.float32]

_NANOSECONDS = 0.7e9  # about what all starts may take together, at the rates measured on one core,
_NANOSECONDS_ALONE = 1e9  # and the first, if it is the only one
_STARTS = 8
_ROWS, _FEWEST_ROWS = 1000, 500  # rows that are looked at: as many as can be, and where that would take too long
_ITERATIONS, _FEWEST_ITERATIONS = 100, 20
_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6)  # of an atom's largest number: what is above is a one, by the best of these


class _Extent(NamedTuple):
    """How much work goes into nmf_starts starts."""

    n_starts: int
    n_rows: int
    n_iterations: int
    row_cost: float  # nanoseconds that a row takes in an iteration


def nmf_starts(
    data: BitMatrix,
    n_atoms: int,
    rule: Rule,
    effort: int,
    is_cut: Callable[[], bool],
    random: np.random.Generator,
    workers: Workers,
) -> Iterator[BitMatrix]:
    """Atoms from factors of numbers, for one start after the other: none where a start would take too long.

    Fewer atoms than asked for come back where some have no ones. The same for any number of threads.
    """
    extent = _extent(data, n_atoms, effort)
    for _ in range(extent.n_starts):
        if is_cut():
            return
        some = data
        if extent.n_rows < data.n_rows:
            some = data[np.sort(random.choice(data.n_rows, extent.n_rows, replace=False))]
        yield _cut(some, _fit(some, n_atoms, extent, is_cut, random, workers), rule, workers)


def _extent(data: BitMatrix, n_atoms: int, effort: int) -> _Extent:
    """As many starts, rows and iterations as take about _NANOSECONDS, by what an iteration was measured to cost."""
    most = effort * _NANOSECONDS_ALONE
    fixed = n_atoms * (30 + 0.15 * n_atoms)  # what a row or a column takes, and on top of that for each one in it:
    row_cost = fixed + 2 * data.density * data.n_cols * (5 + 0.2 * n_atoms)
    n_rows = min(data.n_rows, _ROWS)
    if n_rows * row_cost:
        n_rows = min(n_rows, max(_FEWEST_ROWS, int((most / _ITERATIONS - data.n_cols * fixed) / row_cost)))
    cost = data.n_cols * fixed + n_rows * row_cost
    if n_rows * row_cost == 0 or most < _FEWEST_ITERATIONS * cost:
        return _Extent(0, 0, 0, 0.0)
    n_iterations = min(_ITERATIONS, int(most / cost))
    n_starts = int(effort * _NANOSECONDS / (n_iterations * cost))
    return _Extent(max(1, min(effort * _STARTS, n_starts)), n_rows, n_iterations, row_cost)


def _fit(
    data: BitMatrix,
    n_atoms: int,
    extent: _Extent,
    is_cut: Callable[[], bool],
    random: np.random.Generator,
    workers: Workers,
) -> Numbers:
    """The atoms as numbers, one row for each column of the table, from random ones."""
    columns_of_bits = data.T
    shares = (data.column_weights() / max(1, data.n_rows)).astype(np.float32)
    columns = random.random((data.n_cols, n_atoms), dtype=np.float32) * shares[:, np.newaxis]
    rows = np.zeros((data.n_rows, n_atoms), np.float32)
    column_cost = extent.row_cost * data.n_rows / max(1, data.n_cols)
    for _ in range(extent.n_iterations):
        if is_cut():
            break
        _improve(data, rows, columns, extent.row_cost / 2, workers)
        _improve(columns_of_bits, columns, rows, column_cost / 2, workers)
    return columns


def _improve(bits: BitMatrix, rows: Numbers, columns: Numbers, row_cost: float, workers: Workers) -> None:
    """Fit the numbers of the rows of bits to those of the columns, in place."""
    pairs = np.empty((rows.shape[1], rows.shape[1]), np.float32)
    kernels.products(columns, pairs)

    def fit(start: int, stop: int) -> None:
        kernels.fit_rows(bits.words, columns, pairs, start, stop, np.empty(len(pairs), np.float32), rows)

    workers.map_rows(fit, bits.n_rows, row_cost)


def _cut(data: BitMatrix, columns: Numbers, rule: Rule, workers: Workers) -> BitMatrix:
    """The atoms in zeros and ones, cut where coding the rows with them leaves the fewest bits wrong."""
    largest = columns.max(axis=0, initial=0)
    columns, largest = columns[:, largest > 0], largest[largest > 0]
    cuts = [BitMatrix.from_dense((columns > np.float32(share) * largest).T) for share in _SHARES]
    return min(cuts, key=lambda atoms: _wrong_bits(data, atoms, rule, workers))


def _wrong_bits(data: BitMatrix, atoms: BitMatrix, rule: Rule, workers: Workers) -> int:
    """How many bits are wrong when the rows are coded with these atoms."""
    block = Block(data, atoms, None, rule.covers, workers)
    code(block, rule)
    return int(block.wrong().sum())
