"""Codes from information sets: under XOR, the code of a row follows from few of its columns.

With p independent atoms there are sets of p columns in which no sum of atoms is zero (information sets, in the theory
of error-correcting codes). The bits of a row in these columns determine its code, if none of them is an error. Where
rows use many atoms, no single toggle improves a wrong code, but among a few dozen sets of columns drawn at random, one
without errors is likely: a share q of errors spares p columns with probability (1 - q)^p. One error among them is tried
too, which raises it by the factor 1 + p q / (1 - q).

All rows are coded from the same sets. They are drawn from a generator that is passed, so that the code of a row depends
on nothing but the row, the atoms, the rule and the generator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.cpu import gf2
from ..kernels.structs import CodingRule, ColumnDraw
from .block import Block, Change, coded
from .row_state import Words

MAX_ATOMS = 128  # more are never free of errors, and elimination takes long
N_DRAWS = 48
_DRAWS_AT_ONCE = 8  # from which a thread codes its rows: fewer hand-overs, but what is drawn takes memory
_MAX_DRAWS = 4000  # for the rows that are hardest to code
_MISSED = 0.2  # probability that none of the draws is right for one of these
_MAX_CODED = 1_000_000  # rows, counted in each draw: a few seconds
_EARLY = 1 / 8  # of the draws, after which a fifth of these rows should be coded,
_MOST_LEFT = 0.95  # and this share may be left
_HARD = 2.5  # standard deviations by which they have more errors than other rows
_SLACK = 2  # more errors than now that a code may have, if it costs less


def supports(block: Block, rule: CodingRule) -> bool:
    """Whether rows can be coded from information sets: under XOR, by prices, with few atoms."""
    if rule.covers or rule.prices is None or rule.residual_limit > 0:
        return False
    return block.n_rows > 0 and 0 < block.n_atoms <= MAX_ATOMS


def code_from_information_sets(
    block: Block, rule: CodingRule, random: np.random.Generator, n_draws: int = N_DRAWS
) -> Change:
    """Code rows from columns drawn at random, and keep a new code where it costs less.

    Dependent atoms are not used together: each draw selects a maximal independent subset at random.
    """
    if not supports(block, rule):
        return Change()
    targets, before = block.rows.targets(block._atoms.words), block.rows.save()
    for first in range(0, n_draws, _DRAWS_AT_ONCE):
        draws = [draw_columns(block, random) for _ in range(min(_DRAWS_AT_ONCE, n_draws - first))]
        block.rows.code_from_draws(block._atoms, draws, targets, rule, _SLACK)
    block.mark_stale()
    return coded(block.rows.changes_since(before))


class HardRows(NamedTuple):
    """Rows with far more errors than others, and how many draws find the right code of most of them."""

    rows: NDArray[np.intp]
    limit: float  # rows with at most this many errors are not hard
    n_draws: int


def find_hard_rows(block: Block, rule: CodingRule) -> HardRows | None:
    """Return the rows that have far more errors than others; None if more draws than usual do not help or take long.

    If most rows are coded well, rows with far more errors have a wrong code, and the number of draws that finds the
    right one follows from the share of errors of the others.
    """
    if not supports(block, rule):
        return None
    errors, m = block.errors().row_weights(), block.n_features
    share = float(np.median(errors)) / m
    limit, n_draws = m * share + _HARD * np.sqrt(m * share * (1 - share)), _draws_needed(share, block.n_atoms)
    rows = np.flatnonzero(errors > limit)
    return HardRows(rows, limit, int(n_draws)) if len(rows) and N_DRAWS < n_draws <= _MAX_DRAWS else None


def code_hard_rows(block: Block, rule: CodingRule, hard: HardRows, random: np.random.Generator) -> Change:
    """Code hard rows from as many draws as they may need, and keep a new code where it costs less.

    A row is not coded any further once it has as few errors as others. It ends soon if rows seem to be hard for another
    reason.
    """
    before = block.rows.save()
    rows, n_draws, n_coded = hard.rows, 0, 0
    while len(rows) and n_draws < hard.n_draws and n_coded < _MAX_CODED:
        sample = block.sample(rows)
        code_from_information_sets(sample, rule, random)
        block.take_codes(rows, sample)
        n_draws, n_coded = n_draws + N_DRAWS, n_coded + N_DRAWS * len(rows)
        rows = np.flatnonzero(block.errors().row_weights() > hard.limit)
        if n_draws > _EARLY * hard.n_draws and len(rows) > _MOST_LEFT * len(hard.rows):
            break
    block.mark_stale()
    return coded(block.rows.changes_since(before))


def _draws_needed(share: float, n_atoms: int) -> float:
    """Return how many draws it takes until one is likely to have at most one error, by the share of errors."""
    probability = (1 - share) ** n_atoms * (1 + n_atoms * share / (1 - share))
    return -np.log(_MISSED) / probability if probability > 0 else np.inf


def draw_columns(block: Block, random: np.random.Generator) -> ColumnDraw:
    """Reduce the atoms, in random order, to pivots in columns drawn at random."""
    n_atoms = block.n_atoms
    order = random.permutation(n_atoms)
    reduced, sums = block._atoms.words[order], identity(n_atoms)[order]
    pivots = np.empty(n_atoms, np.int64)
    rank = gf2.reduce_rows(reduced, sums, random.permutation(block.n_features), pivots)
    reduced, sums = reduced[:rank], sums[:rank]
    return ColumnDraw(pivots[:rank], reduced, sums, _tabulated(reduced), _tabulated(sums))


def _tabulated(rows: Words) -> Words:
    """Return the sums of eight rows at a time, by the byte that selects them."""
    table = np.empty((-(-len(rows) // 8), 256, rows.shape[1]), np.uint64)
    gf2.tabulate_sums(rows, len(rows), table)
    return table


def identity(n: int) -> Words:
    """Return the rows of the identity matrix, packed."""
    words = np.zeros((n, -(-n // 64)), np.uint64)
    index = np.arange(n)
    words[index, index // 64] = np.uint64(1) << (index % 64).astype(np.uint64)
    return words
