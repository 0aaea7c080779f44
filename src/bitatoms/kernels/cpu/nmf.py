"""Half a step of a factorisation over the numbers from 0 up: one factor fitted to rows of bits, given the other.

Rows of bits stand on one side; a row has a number for each atom, and so has a column. Swapped and transposed, the same
kernels fit the columns. All sums run in a fixed order, each row's apart from the others', and nothing but + - * / is
used: the numbers are the same on every machine, for any blocks of rows. What is zero is skipped, as most of it is.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, lowest_bit
from .words import NONE, ONE

_ZERO = np.float32(0)
_SWEEPS = 2  # over the numbers of a row: the second costs little, for what the bits ask for is added up already


@kernel
def products(factor, out):
    """out[k, q] = the sum over i of factor[i, k] * factor[i, q]."""
    for k in range(out.shape[0]):
        for q in range(out.shape[1]):
            out[k, q] = _ZERO
    for i in range(factor.shape[0]):
        for k in range(out.shape[0]):
            number = factor[i, k]
            if number != _ZERO:
                for q in range(out.shape[1]):
                    out[k, q] += number * factor[i, q]


@kernel
def fit_rows(words, columns, pairs, start, stop, left, rows):
    """Of rows start..stop, set each number in turn to the best that is not negative, given all others; twice.

    The best by squares: the bits of row i should be the products of rows[i] and columns[j]. ``pairs`` is what
    `products` makes of the columns; ``left`` is room for a number for each atom.
    """
    n_atoms = pairs.shape[0]
    for i in range(start, stop):
        for k in range(n_atoms):
            left[k] = _ZERO
        for w in range(words.shape[1]):
            word = words[i, w]
            while word != NONE:
                j = 64 * w + lowest_bit(word)
                word &= word - ONE
                for k in range(n_atoms):
                    left[k] += columns[j, k]
        for k in range(n_atoms):
            number = rows[i, k]
            if number != _ZERO:
                for q in range(n_atoms):
                    left[q] -= number * pairs[k, q]
        for _ in range(_SWEEPS):
            for k in range(n_atoms):
                if pairs[k, k] > _ZERO:
                    before = rows[i, k]
                    number = max(_ZERO, before + left[k] / pairs[k, k])
                    change = number - before
                    if change != _ZERO:
                        rows[i, k] = number
                        for q in range(n_atoms):
                            left[q] -= change * pairs[k, q]
