"""Initial atoms for XOR by linear algebra: a basis of the space that the rows span, apart from noise.

Without noise, the rows of a table with k atoms span a space of dimension k, and elimination finds a basis of it. With
noise, the basis comes from rows that parity checks free of noise (`parity_checks.py`), and is completed by peeling
(`peeling.py`). Any basis will do: others have the same products, and the moves of a search find the best one
(`search/moves/light_sums.py`).

The same is done with columns in place of rows, which is better where rows are many and atoms have few ones. A basis of
the space that the columns span consists of columns of the codes, and the atoms follow by coding the columns with them.
Without noise, that would give the same products.

Both fail if rows use many of many atoms, so that few sums of four rows are zero, or if there is so much noise that such
sums do not stand out. Unknown cells count as zeros here, that is as noise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..bits import BitMatrix
from ..core.information_sets import MAX_ATOMS
from ..kernels.cpu import gf2
from .context import SearchContext
from .parity_checks import rows_without_noise
from .peeling import coded_with_fewest_errors, completed_basis
from .plan import LinearStartBudget


def linear_starts(context: SearchContext, budget: LinearStartBudget) -> Iterator[BitMatrix]:
    """Yield initial atoms: from a basis of rows and, if there is noise, from a basis of columns."""
    data, random = context.data, context.random
    if min(data.shape) < budget.min_side or data.n_cols > budget.max_wide:
        return
    sample = data[random.permutation(data.n_rows)[: budget.max_rows]].filled()
    columns = random.permutation(data.n_cols)[: budget.max_cols]
    part = sample.T[columns].T
    basis = _basis(part)
    has_noise = basis.n_rows > budget.peeling.max_rank * min(part.shape)
    if has_noise:
        basis = _spanning_rows(context, part, budget)
    if _can_be_used(basis) and len(columns) == data.n_cols:
        yield basis.T[np.argsort(columns)].T
    elif _can_be_used(basis):
        yield _codes(context, sample.T, _codes(context, part, basis).T).T
    if has_noise:  # otherwise columns have a basis of the same products
        basis = _spanning_rows(context, part.T, budget)
        if _can_be_used(basis):
            yield _codes(context, sample.T, basis).T


def _can_be_used(basis: BitMatrix) -> bool:
    """Whether there is a basis, of so few vectors that rows can be coded with it."""
    return 0 < basis.n_rows <= MAX_ATOMS


def _spanning_rows(context: SearchContext, data: BitMatrix, budget: LinearStartBudget) -> BitMatrix:
    """Return a basis of the space that the rows span without noise; without vectors if none is found."""
    clean = rows_without_noise(data, context.random, context.workers, budget.checks)
    basis = _basis(clean)
    if basis.n_rows > budget.peeling.max_rank * min(clean.shape):
        basis = basis[:0]
    return completed_basis(data, basis, context.random, context.workers, budget.peeling)


def _basis(data: BitMatrix) -> BitMatrix:
    """Return a basis of the space that the rows span."""
    n, m = data.shape
    words = data.words.copy()
    rank = gf2.reduce_rows(words, np.empty((n, 0), np.uint64), np.arange(m), np.empty(n, np.int64))
    return BitMatrix.from_words(words[:rank].copy(), m, check=False)


def _codes(context: SearchContext, data: BitMatrix, atoms: BitMatrix) -> BitMatrix:
    """Return the codes of rows with the fewest errors, from information sets."""
    return coded_with_fewest_errors(data, atoms, context.random, context.workers).codes()
