"""Initial atoms for XOR by linear algebra: a basis of the space that the rows span, apart from noise.

Without noise, the rows of a table with k atoms span a space of dimension k, and elimination finds a basis of it. With
noise, the basis comes from rows that parity checks free of noise (`parity_checks.py`), and is completed by peeling
(below). In a long table, where a sample has too few rows for either, it comes from the nearest of all rows
(`near_rows.py`). Any basis will do: others have the same products, and the moves of a search find the best one
(`search/moves/basis.py`).

The same is done with columns in place of rows, which is better where rows are many and atoms have few ones. A basis of
the space that the columns span consists of columns of the codes, and the atoms follow by coding the columns with them.
Without noise, that would give the same products.

Both fail if rows use many of many atoms, so that few sums of four rows are zero, or if there is so much noise that such
sums do not stand out. Most tables are not products of this kind: the numbers of ones of sums of four rows show at once
where rows (or columns) are too alike, peeling ends where its first vectors code few rows, and a basis with which a few
rows cost more than in the first look of the search is not a start. Unknown cells count as zeros here, that is as noise.

Peeling: complete a basis of the space that rows span, from pairs of rows that differ by what is known already.

Two rows whose codes differ only in known atoms are equal after the known atoms are subtracted, apart from noise. The
subtraction is exact if both rows have no error in the pivot columns of a reduced basis (an information set); pivots are
drawn anew until some pairs stand out. Such a group of rows is one more dimension, and its majority the vector. The more
vectors are known, the more rows coincide. The first groups are rows with equal codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ...bits import BitMatrix
from ...engine.block import Block, Words
from ...engine.information_sets import MAX_ATOMS, N_DRAWS, code_from_information_sets, draw_columns
from ...engine.objective import Objective
from ...engine.update import update_together
from ...kernels.cpu import gf2
from ..context import SearchContext
from ..moves.basis import lighten
from ..plan import LinearBudget
from ..states import State
from .near_rows import atoms_of_near_rows
from .parity_checks import rows_without_noise, spread_of_sums

Bits = NDArray[np.uint8]
_FEWEST_ERRORS, _CODELENGTH = Objective(False, "xor"), Objective(True, "xor")
_MAX_RANK = 0.75  # of the number of rows or columns; a larger basis is one of noise
_JUDGED_ROWS = 256  # by which a basis is compared with the first look
_COMPARED_ROWS = 600  # that are compared with each other, for each draw of pivots
_CODING_DRAWS = 16  # for rows that are coded in each round of peeling
_N_CONTROLS = 64  # shuffled rows, to see how well rows outside the space are coded
_FEW = 0.01  # share of the rows too small for a vector
_MAX_FALSE = 0.03  # share of the pairs compared as near that are so by chance
_LEAST_DEVIATION = 0.9  # of distances, relative to those of independent bits: clusters of rows must not hide it
_NEW_VECTORS = 4  # per round of peeling, at most


def linear_starts(context: SearchContext, budget: LinearBudget) -> Iterator[BitMatrix]:
    """Yield initial atoms: from a basis of rows and, if there is noise, from a basis of columns."""
    data, random = context.data, context.random
    sample = data[random.permutation(data.n_rows)[: budget.max_rows]].filled()
    columns = random.permutation(data.n_cols)[: budget.max_cols]
    few, part = sample[: budget.max_cols], sample.T[columns].T
    basis = _basis(part)
    has_noise = basis.n_rows > _MAX_RANK * min(part.shape)
    if has_noise:
        all_rows = data.filled().T[columns].T if data.n_rows > part.n_rows else None
        basis = _spanning_rows(context, part, budget, all_rows)
    if _can_be_used(basis) and len(columns) == data.n_cols:
        yield basis.T[np.argsort(columns)].T
    elif _can_be_used(basis):
        yield _coded(context, few.T, _coded(context, part[: few.n_rows], basis).codes().T).codes().T
    if has_noise:  # otherwise columns have a basis of the same products
        basis = _spanning_rows(context, few.T[columns], budget)
        if _can_be_used(basis):
            yield _coded(context, few.T, basis).codes().T


def is_promising(context: SearchContext, atoms: BitMatrix, look: State | None, budget: LinearBudget) -> bool:
    """Whether some rows cost as little with these atoms as in the first look, or hardly more."""
    n = context.data.n_rows
    rows = np.sort(context.random.permutation(n)[:_JUDGED_ROWS])
    data, objective = context.data[rows], replace(context.objective, share=context.objective.share * len(rows) / n)
    block = _coded(context, data, atoms)
    lighten(block, objective, context.random)
    if look is None:
        before = objective.cost_of_nothing(data)
    else:
        before = objective.cost(Block(data, look.atoms, look.codes[rows], False, context.workers, look.bias))
    return objective.cost(block) <= budget.max_judged * before


def _can_be_used(basis: BitMatrix) -> bool:
    """Whether there is a basis, of so few vectors that rows can be coded with it."""
    return 0 < basis.n_rows <= MAX_ATOMS


def _spanning_rows(
    context: SearchContext, data: BitMatrix, budget: LinearBudget, all_rows: BitMatrix | None = None
) -> BitMatrix:
    """Return a basis of the space that the rows span without noise; without vectors if none is found.

    If these rows are a sample that is too small, one is sought from near ones of ``all_rows``.
    """
    if spread_of_sums(data, context.random) > budget.max_spread:
        return data[:0]
    clean = rows_without_noise(data, context.random, context.workers, budget)
    basis = _basis(clean)
    if basis.n_rows > _MAX_RANK * min(clean.shape):
        basis = basis[:0]
    basis = completed_basis(context, data, basis, budget)
    if basis.n_rows == 0 and all_rows is not None:
        atoms = atoms_of_near_rows(all_rows, context.random, context.workers, budget)
        basis = completed_basis(context, data, atoms, budget)
    return basis


def _basis(data: BitMatrix) -> BitMatrix:
    """Return a basis of the space that the rows span."""
    n, m = data.shape
    words = data.words.copy()
    rank = gf2.reduce_rows(words, np.empty((n, 0), np.uint64), np.arange(m), np.empty(n, np.int64))
    return BitMatrix.from_words(words[:rank].copy(), m, check=False)


def _coded(context: SearchContext, data: BitMatrix, atoms: BitMatrix, n_draws: int = N_DRAWS) -> Block:
    """Return rows coded from information sets with the fewest errors."""
    block = Block(data, atoms, None, False, context.workers)
    code_from_information_sets(block, _FEWEST_ERRORS.rule(block), context.random, n_draws)
    return block


class _Known(NamedTuple):
    """A basis, and the rows that are coded well with it."""

    basis: BitMatrix
    codes: Bits
    rows: NDArray[np.intp]  # indices of the coded rows
    left: NDArray[np.intp]  # of the other ones


def completed_basis(context: SearchContext, data: BitMatrix, basis: BitMatrix, budget: LinearBudget) -> BitMatrix:
    """Return a basis of the space that the rows span without noise, which extends this one as far as possible."""
    every = np.arange(data.n_rows)
    known = _Known(basis, np.zeros((0, basis.n_rows), np.uint8), every[:0], every)
    n_coded, failures = 0, budget.peeling_patience - 1  # at least the first round must code rows
    while failures < budget.peeling_patience:
        if known.basis.n_rows:
            known = _fitted(context, data, known, budget)
            failures += 1
            if len(known.rows) >= n_coded + budget.least_progress * data.n_rows:
                n_coded, failures = len(known.rows), 0
        if len(known.left) < max(2, _FEW * data.n_rows):
            break
        new = _new_vectors(context, data[known.left], known.basis)
        if len(new) == 0 or known.basis.n_rows + len(new) > _MAX_RANK * min(data.shape):
            break
        longer = BitMatrix.from_words(np.vstack([known.basis.words, new]), data.n_cols, check=False)
        known = known._replace(basis=longer, codes=np.pad(known.codes, ((0, 0), (0, len(new)))))
    return known.basis if n_coded else basis


def _fitted(context: SearchContext, data: BitMatrix, known: _Known, budget: LinearBudget) -> _Known:
    """Code the rows that are left, and fit the basis to all rows that are coded well.

    Vectors that few of these rows use are dropped: those that hold noise, in a basis of which rows use few.
    """
    share = data.column_weights() / max(1, data.n_rows)  # of ones in each column, by itself
    shuffled = BitMatrix.from_dense(context.random.random((_N_CONTROLS, data.n_cols)) < share)
    ones = _coded(context, shuffled, known.basis, _CODING_DRAWS).errors().row_weights()
    limit = ones.mean() - budget.coded_deviations * max(1.0, ones.std())
    block = _coded(context, data[known.left], known.basis, _CODING_DRAWS)
    is_coded = block.errors().row_weights() <= limit
    rows = np.append(known.rows, known.left[is_coded])
    codes = np.vstack([known.codes, block.codes()[np.flatnonzero(is_coded)].to_dense()])
    if len(rows) < 2:
        return known
    fit = Block(data[rows], known.basis, BitMatrix.from_dense(codes), False, context.workers)
    while update_together(fit):
        pass
    lighten(fit, _CODELENGTH, context.random)
    is_rare = fit.uses() < max(2, _FEW * len(rows))
    if is_rare.any() and not is_rare.all():
        fit.discard(is_rare)
    is_coded = fit.errors().row_weights() <= limit
    left = np.setdiff1d(np.arange(data.n_rows), rows[is_coded])
    return _Known(fit.atoms(), fit.codes().to_dense()[is_coded], rows[is_coded], left)


def _new_vectors(context: SearchContext, data: BitMatrix, basis: BitMatrix) -> Words:
    """Return the majorities of the largest groups of rows that are equal, apart from noise and known vectors."""
    block, random = Block(data, basis, None, False, context.workers), context.random
    for _ in range(N_DRAWS if basis.n_rows else 1):
        rows = data.words
        if data.n_rows > _COMPARED_ROWS:
            rows = rows[random.choice(data.n_rows, _COMPARED_ROWS, replace=False)]
        cleared = rows.copy()
        if basis.n_rows:
            gf2.clear_pivots(rows.copy(), draw_columns(block, random), cleared)
        limit = _near_limit(cleared, data.n_cols, _MAX_FALSE)
        vectors = _group_majorities(cleared, data.n_cols, limit, _NEW_VECTORS) if limit >= 0 else cleared[:0]
        if len(vectors):
            return vectors
    return np.empty((0, basis.words.shape[1]), np.uint64)


def _near_limit(rows: Words, n_cols: int, max_false: float) -> int:
    """Return the largest distance at which few pairs of rows are as near by chance; -1 if there is none.

    By chance, distances are normally distributed, with the median and the upper quantile that are found.
    """
    counts = np.empty(n_cols + 1, np.int64)
    gf2.count_distances(rows, counts)
    below = np.cumsum(counts)
    median, upper = np.searchsorted(below, [below[-1] / 2, below[-1] * ndtr(1)])
    by_independent_bits = np.sqrt(median * (1 - median / max(1, n_cols)))
    deviation = max(1.0, upper - median, _LEAST_DEVIATION * by_independent_bits)
    distances = np.arange(n_cols + 1)
    by_chance = below[-1] * ndtr((distances + 0.5 - median) / deviation)
    near = np.flatnonzero((below > 0) & (by_chance <= max_false * below) & (distances < median))
    return int(near[-1]) if len(near) else -1


def _group_majorities(rows: Words, n_cols: int, limit: int, n_groups: int) -> Words:
    """Return the majorities of the largest groups of near rows, those of at least half the size of the largest.

    A group is a row and the rows near it that are in no larger group. Groups near zero are passed over.
    """
    near = np.empty((len(rows), len(rows)), np.uint8)
    gf2.mark_near(rows, limit, near)
    is_free = np.ones(len(rows), bool)
    vectors: list[Words] = []
    largest = 0
    while len(vectors) < n_groups:
        sizes = (near @ is_free.astype(np.int64)) * is_free
        centre = int(sizes.argmax())
        if sizes[centre] == 0 or 2 * (sizes[centre] + 1) < largest:
            break
        group = np.append(np.flatnonzero(near[centre].astype(bool) & is_free), centre)
        is_free[group] = False
        bits = BitMatrix.from_words(rows[group], n_cols, check=False)
        ones = 2 * bits.column_weights()
        majority = np.where(ones == len(group), bits[-1:].to_dense()[0], ones > len(group))
        if majority.sum() > limit / 2:
            largest = largest or len(group)
            vectors.append(BitMatrix.from_dense(majority[np.newaxis]).words[0])
    return np.array(vectors, np.uint64).reshape(len(vectors), rows.shape[1])
