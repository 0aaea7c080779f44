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

import numpy as np

from ..kernels.cpu import gf2
from ..kernels.structs import CodingRule, ColumnDraw
from .block import Block, Change, coded
from .row_state import Words

MAX_ATOMS = 128  # more are never free of errors, and elimination takes long
N_DRAWS = 48
_DRAWS_AT_ONCE = 8  # from which a thread codes its rows: fewer hand-overs, but what is drawn takes memory
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
