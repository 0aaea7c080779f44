"""Non-negative factorization of rows of bits: fit one factor, given the other.

Each row and each column has one number per atom. With the table transposed, the same kernels fit the columns. Sums have
a fixed order, rows are independent, and only + - * / are used: results are identical on every machine and for any
chunks of rows. Zeros are skipped.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..views import view
from .words import NONE, fill, first_one

_ZERO = np.float32(0)
_SWEEPS = 2  # over the numbers of a row: a second sweep is cheap once the sums over the bits are known


@kernel
def products(factor, out):
    """out[k, q] = the sum over i of factor[i, k] * factor[i, q]."""
    factor, out = view((factor, out))
    for k in range(out.shape[0]):
        fill(out[k], _ZERO)
    for i in range(factor.shape[0]):
        for k in range(out.shape[0]):
            number = factor[i, k]
            if number != _ZERO:
                for q in range(out.shape[1]):
                    out[k, q] += number * factor[i, q]


@kernel
def fit_rows(words, unknown, columns, pairs, start, stop, residual, rows):
    """Set each number of rows start..stop in turn to its non-negative least-squares optimum, given all others; twice.

    Bit j of row i is approximated by the dot product of rows[i] and columns[j]. An unknown bit takes the value of its
    approximation so far; ``unknown`` has no rows if all bits are known. ``pairs`` is the result of `products` for the
    columns; ``residual`` is a work array with one number per atom.
    """
    words, unknown, columns, pairs, residual, rows = view((words, unknown, columns, pairs, residual, rows))
    n_atoms = pairs.shape[0]
    for i in range(start, stop):
        fill(residual, _ZERO)
        for w in range(words.shape[1]):
            word = words[i, w]
            while word != NONE:
                j, word = first_one(word, w)
                for k in range(n_atoms):
                    residual[k] += columns[j, k]
            word = unknown[i, w] if unknown.shape[0] > 0 else NONE
            while word != NONE:
                j, word = first_one(word, w)
                value = _ZERO
                for k in range(n_atoms):
                    value += rows[i, k] * columns[j, k]
                for k in range(n_atoms):
                    residual[k] += value * columns[j, k]
        for k in range(n_atoms):
            number = rows[i, k]
            if number != _ZERO:
                for q in range(n_atoms):
                    residual[q] -= number * pairs[k, q]
        for _ in range(_SWEEPS):
            for k in range(n_atoms):
                if pairs[k, k] > _ZERO:
                    before = rows[i, k]
                    number = max(_ZERO, before + residual[k] / pairs[k, k])
                    change = number - before
                    if change != _ZERO:
                        rows[i, k] = number
                        for q in range(n_atoms):
                            residual[q] -= change * pairs[k, q]
