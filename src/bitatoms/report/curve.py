"""The codelength of a table with only the k most useful atoms, for a few k."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.model import Model
from ..mdl import Codelength, codelength_from_counts
from ..parallel import Workers

ALL = 20  # with up to so many atoms every number of them is a point of the curve
BENT = 1.7  # with more, the points are this much denser where there are few atoms, which save most
MOST_WORK = 10**11  # rows x features x atoms over all points: some five seconds of one thread


class Point(NamedTuple):
    """Bits with the first so many atoms."""

    atoms: int
    bits_errors: int
    bits_codes: int
    bits_atoms: int

    @property
    def bits(self) -> int:
        """The bits in all."""
        return self.bits_errors + self.bits_codes + self.bits_atoms


def codelength_by_atoms(
    model: Model, data: BitMatrix, full: Codelength, workers: Workers
) -> tuple[tuple[Point, ...], int]:
    """The codelength with the first k atoms for some k, the rows coded afresh by each; ``full`` is that with all.

    Where that would take too long, one row in so many stands for all; that number comes along, else 1.
    """
    ks = numbers_of_atoms(model.atoms.n_rows)[:-1]
    work = data.n_rows * data.n_cols * sum(ks)
    stride = max(1, -(-work // MOST_WORK))
    rows = data if stride == 1 else data[::stride]
    points = [_point(model, k, rows, data.n_rows, workers) for k in ks]
    return (*points, _as_point(model.atoms.n_rows, full)), stride


def numbers_of_atoms(n_atoms: int) -> list[int]:
    """The numbers of atoms for which the codelength is computed: 0, ..., all of them."""
    if n_atoms <= ALL:
        return list(range(n_atoms + 1))
    return sorted({round(n_atoms * (step / ALL) ** BENT) for step in range(ALL + 1)} | {1})


def _point(model: Model, k: int, rows: BitMatrix, n_rows: int, workers: Workers) -> Point:
    """The bits with the first k atoms, of a table of n_rows of which these are some."""
    few = replace(model, atoms=model.atoms[:k], uses=model.uses[:k])
    block = few.code(rows, workers)
    wrong, uses = (_scaled(counts, rows.n_rows, n_rows) for counts in (block.wrong(), block.uses()))
    weights, bias = few.atoms.row_weights(), int(model.bias.sum())
    return _as_point(k, codelength_from_counts(n_rows, rows.n_cols, wrong, uses, weights, bias))


def _scaled(counts: NDArray[np.int64], seen: int, of: int) -> NDArray[np.int64]:
    """Counts among the rows seen as they would be among all."""
    return counts if seen == of else np.rint(counts * (of / seen)).astype(np.int64)


def _as_point(k: int, length: Codelength) -> Point:
    return Point(k, length.errors, length.codes, length.atoms)
