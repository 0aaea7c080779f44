"""The codelength of a table as a function of the number of atoms used, most useful atoms first."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engine.codelength import Codelength, codelength_from_counts
from ..model.model import Model
from ..parallel import Workers
from ..sparse_bits import Bits

N_STEPS = 20  # up to this many atoms, the curve has one point per number of atoms
EXPONENT = 1.7  # with more atoms, points are denser where there are few, since these save most
MAX_WORK = 10**11  # rows x features x atoms, summed over all points: about five seconds of one thread


class Point(NamedTuple):
    """Bits with the first ``atoms`` atoms."""

    atoms: int
    bits_errors: int
    bits_codes: int
    bits_atoms: int

    @property
    def bits(self) -> int:
        """The sum of the three parts."""
        return self.bits_errors + self.bits_codes + self.bits_atoms


def codelength_curve(
    model: Model, data: Bits, full: Codelength, workers: Workers, max_work: int = MAX_WORK
) -> tuple[tuple[Point, ...], int]:
    """Return the codelength with the first k atoms for several k, and the stride of the rows coded for it.

    The rows are coded again for each k; ``full`` is the codelength with all atoms. Where coding all rows would exceed
    ``max_work``, only every stride-th row is coded.
    """
    sizes = curve_sizes(model.atoms.n_rows)[:-1]
    work = data.n_rows * data.n_cols * sum(sizes)
    stride = max(1, -(-work // max_work))
    rows = data if stride == 1 else data[::stride]
    points = [_point(model, k, rows, data, workers) for k in sizes]
    return (*points, _to_point(model.atoms.n_rows, full)), stride


def curve_sizes(n_atoms: int) -> list[int]:
    """Return the numbers of atoms on the curve, from 0 to all."""
    if n_atoms <= N_STEPS:
        return list(range(n_atoms + 1))
    return sorted({round(n_atoms * (step / N_STEPS) ** EXPONENT) for step in range(N_STEPS + 1)} | {1})


def _point(model: Model, k: int, rows: Bits, data: Bits, workers: Workers) -> Point:
    """Return the bits with the first k atoms, estimated for all data from some rows."""
    first = replace(model, atoms=model.atoms[:k], uses=model.uses[:k], remembered=None)
    codes = first.codes(rows, workers)
    wrong = first.errors(rows, codes, workers).column_weights()
    wrong = np.minimum(_extrapolated(wrong, rows.n_rows, data.n_rows), data.n_known)
    uses = _extrapolated(codes.column_weights(), rows.n_rows, data.n_rows)
    weights, bias = first.atoms.row_weights(), int(model.bias.sum())
    length = codelength_from_counts(*data.shape, wrong, uses, weights, bias, data.n_known, first.atom_spans)
    return _to_point(k, length)


def _extrapolated(counts: NDArray[np.int64], n_sampled: int, n_rows: int) -> NDArray[np.int64]:
    """Return counts of the sampled rows, scaled to all rows."""
    return counts if n_sampled == n_rows else np.rint(counts * (n_rows / n_sampled)).astype(np.int64)


def _to_point(k: int, codelength: Codelength) -> Point:
    return Point(k, codelength.errors, codelength.codes, codelength.atoms)
