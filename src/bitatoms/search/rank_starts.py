"""Starting atoms of the search for a fixed number of atoms: of several kinds, because none is the best on all tables.

Atoms grown one after the other miss those that overlap; atoms of a non-negative factorization do not. Where the number
of atoms is high, the best factorizations build from below: they hardly ever cover a zero, as formal concepts and single
columns do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from ..bits import BitMatrix
from .concept_start import concepts
from .context import SearchContext
from .initial import greedy, samples, spread
from .nmf_start import nmf_starts


def start_atoms(context: SearchContext) -> Iterator[BitMatrix]:
    """Yield the atoms of each start, at most ``plan.fewest`` of them."""
    data, n_atoms, rule = context.data, context.plan.fewest, context.greedy_rule
    yield greedy(data, n_atoms, rule.covers, context.random, context.workers, context.monitor.is_late)
    exact = atoms_without_errors(data, n_atoms, rule.max_atoms)
    if exact is not None:
        yield exact
    if rule.max_atoms < n_atoms:  # grown atoms soon fill the codes of the rows
        yield samples(data, n_atoms, context.random)
    if rule.covers and data.n_rows * data.n_cols**2 * n_atoms <= context.plan.fixed_rank.max_concept_work:
        yield _concept_atoms(data, n_atoms)
    if n_atoms < data.n_cols:  # otherwise they are the table itself
        yield _columns_as_atoms(data, n_atoms)
    is_wide = True
    for atoms in nmf_starts(context):
        is_wide = False
        yield atoms
    if is_wide:  # centres of clusters of rows, which atoms grown in turn never reach
        yield spread(data, n_atoms, rule.covers, context.random, context.workers)


def atoms_without_errors(data: BitMatrix, n_atoms: int, max_uses: int) -> BitMatrix | None:
    """Return the distinct rows, or one atom per set of equal columns, whichever are fewer: they leave no errors.

    Returns None if both are more than ``n_atoms``. Columns are ignored if rows, which may use ``max_uses`` atoms each,
    may need more.
    """
    bits = data.filled()
    rows = _distinct_rows(bits, n_atoms)
    most = min(n_atoms if rows is None else rows.n_rows - 1, max_uses)
    if _distinct_rows(bits[: 2 * most + 1].T, most) is None:  # too many already, without transposing a long table
        return rows
    columns = bits.T
    distinct = _distinct_rows(columns, most)
    if distinct is None:
        return rows
    number = {row.tobytes(): k for k, row in enumerate(distinct.words)}
    atoms = np.zeros((distinct.n_rows, data.n_cols), np.uint8)
    for column in np.flatnonzero(columns.row_weights()):
        atoms[number[columns.words[column].tobytes()], column] = 1
    return BitMatrix.from_dense(atoms)


def _distinct_rows(bits: BitMatrix, most: int) -> BitMatrix | None:
    """Return the distinct rows that are not all zeros, or None if they are more than ``most``."""
    distinct: dict[bytes, int] = {}
    for j in np.flatnonzero(bits.words.any(axis=1)):
        distinct.setdefault(bits.words[j].tobytes(), int(j))
        if len(distinct) > most:
            return None
    return bits[np.array(list(distinct.values()), np.intp)]


def _concept_atoms(data: BitMatrix, n_atoms: int) -> BitMatrix:
    """Return the columns of the first concepts."""
    words = [concept.columns for concept in islice(concepts(data), n_atoms)]
    return BitMatrix.from_words(np.array(words, np.uint64).reshape(-1, data.words.shape[1]), data.n_cols, check=False)


def _columns_as_atoms(data: BitMatrix, n_atoms: int) -> BitMatrix:
    """Return an atom with a single one for each of the columns with the most ones."""
    weights = data.column_weights()
    chosen = np.argsort(-weights, kind="stable")[: min(n_atoms, int((weights > 0).sum()))]
    atoms = np.zeros((len(chosen), data.n_cols), np.uint8)
    atoms[np.arange(len(chosen)), chosen] = 1
    return BitMatrix.from_dense(atoms)
