"""Updates of the atoms, given codes and errors.

``"mob"``, the Method of Binary Directions (Section III-B of the paper): an atom becomes the majority vote of its users'
errors with the atom added back. ``"k-prox"`` (Section III-C): an atom and its users are chosen together, by Proximus
on the errors with the atom added back, the users among all rows. Both update one atom at a time, in index order, and
refresh the errors in between. The searches other than the paper's update all atoms together, from one pass of counts.
``"exact"``: every feature takes the best of all columns; for few atoms. A tie gives 0; an unused atom does not change.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..kernels.cpu import exact, votes
from ..kernels.structs import CodingRule
from ..parallel import MAX_CHUNK_NS, Workers
from ..sparse_bits import Bits, SparseBits
from .block import Block, Change
from .counts import are_ones
from .host_rows import transposed
from .prices import EQUAL_COSTS, ErrorCosts
from .row_state import Words

Ints = NDArray[np.integer]
_MAX_CONVERTED = 1 << 16  # votes converted at a time, to the 64 bits that the kernel takes
_VOTE_COST = 1.0  # nanoseconds to choose flips, for each vote


def update_each(block: Block) -> Change:
    """Update stale atoms by a vote of their users, one at a time in index order (MOB)."""
    return _sweep(block, votes.VOTE, CodingRule(block.covers, False, 0, 0))


def fit_each(block: Block, rule: CodingRule) -> Change:
    """Fit each atom together with its users, among all rows, in index order (K-PROX)."""
    return _sweep(block, votes.FIT, rule)


def grow(block: Block, atom: Words, rule: CodingRule) -> Change:
    """Append an atom, and fit it together with its users (Proximus)."""
    block.move_to_host()
    block.append(atom[np.newaxis])
    return _sweep(block, votes.GROW, rule, block.n_atoms - 1)


def _sweep(block: Block, task: int, rule: CodingRule, first: int = 0) -> Change:
    """Update the atoms from ``first`` on, in calls short enough for Ctrl-C to take effect."""
    rows = block.move_to_host()
    scratch, cost = rows.vote_scratch(0), rows.n_rows * (rows.vote_cost(rows.n_rows) + 10.0 * rows.n_words)
    n_per_call = 1 + int(MAX_CHUNK_NS / max(1.0, cost))
    total = Change()
    for k in range(first, block.n_atoms, n_per_call):
        block.workers.check_deadline()
        last = min(k + n_per_call, block.n_atoms)
        total += Change(*votes.sweep_atoms(rows.arrays, block._atoms, rule, task, k, last, scratch))
    return total


def update_together(
    block: Block, costs: ErrorCosts = EQUAL_COSTS, changed: Callable[[Words, NDArray, NDArray], Words] | None = None
) -> Change:
    """Update all atoms from one pass of counts.

    The number of errors, or what they cost, cannot rise, unless flips are ``changed``.
    """
    if block.n_atoms == 0:
        return Change()
    free, wrong = block.votes(0, block.n_atoms)
    pairs, atoms = block.rows.pairs(), block._atoms.words
    flips, flipped = flips_together(free, wrong, pairs, atoms, block.covers, costs, workers=block.workers)
    if changed is not None:
        flips = changed(flips, free, wrong)
        flipped = int(np.bitwise_count(flips).sum())
    return Change(atoms=flipped) + block.flip(flips)


def flips_together(
    free: Ints,
    wrong: Ints,
    pairs: Ints,
    atoms: Words,
    covers: bool,
    costs: ErrorCosts = EQUAL_COSTS,
    n_fixed: int = 0,
    workers: Workers = Workers(),  # noqa: B008 - frozen
) -> tuple[Words, int]:
    """Return the bits of the atoms to flip, and how many, such that the number of errors, or their cost, cannot rise.

    Flipping one bit of one atom fixes exactly twice its wrong votes less all free ones. In a column, flips are admitted
    in falling order of that gain, less the errors that rows shared by two of them could add (the pair bound, see
    ``kernels/cpu/votes.py``). It stops only where no single flip helps, as updating one atom at a time does. The
    first ``n_fixed`` atoms stay as they are.
    """
    factor = (1 if covers else 2) * costs.largest_weight
    free, wrong = costs.weighted_votes_on(atoms, free, wrong)
    (p, m), flips, pairs = free.shape, np.zeros_like(atoms), pairs.astype(np.int64, copy=False)
    n_at_once = 64 * (1 + _MAX_CONVERTED // (64 * max(1, p)))

    def choose(start: int, stop: int) -> int:
        n_flips, size = 0, min(n_at_once, stop - start)
        work = np.empty(size, np.int64), *np.empty((2, size, p), np.int64)
        for first in range(start, stop, n_at_once):
            some = slice(first, min(first + n_at_once, stop))
            counts = (np.ascontiguousarray(table[:, some], np.int64) for table in (free, wrong))
            n_flips += votes.choose_flips(*counts, first, pairs, factor, atoms, n_fixed, *work, flips)
        return n_flips

    return flips, sum(workers.map_rows(choose, m, _VOTE_COST * p))


def flips_by_column(
    free: Ints, wrong: Ints, voted: SparseBits, atoms: Bits, costs: ErrorCosts = EQUAL_COSTS, n_fixed: int = 0
) -> tuple[NDArray[np.intp], Ints]:
    """Return atoms and columns of such flips from votes on some bits: in each column, only the one that gains most.

    Flips in different columns do not interact, so that no bound on the rows shared by two atoms is needed.
    """
    (atom, column), ones = voted.cells(), are_ones(atoms, voted)
    free, wrong = costs.weighted_votes(ones, free, wrong, column)
    gains = 2 * wrong.astype(np.int64) - free
    helpful = np.flatnonzero((atom >= n_fixed) & (free > 0) & ((gains > 0) | ((gains == 0) & ones)))
    order = helpful[np.lexsort((atom[helpful], -gains[helpful], column[helpful]))]
    _, first = np.unique(column[order], return_index=True)
    best = order[first]
    return atom[best], column[best]


def update_exactly(block: Block) -> Change:
    """Give every feature the best of all columns of the atoms; for few atoms."""
    if block.n_atoms == 0:
        return Change()
    rows, atoms = block.move_to_host(), block._atoms.words
    before, old_atoms, unknown = rows.save(), atoms.copy(), rows.arrays.unknown
    columns, hidden = (
        transposed(words, block.n_features) if len(words) else np.empty((0, 0), np.uint64)
        for words in (rows.targets(atoms), unknown)
    )

    def choose(start: int, stop: int) -> int:
        scores = np.empty(1 << block.n_atoms, np.int32)
        return exact.best_columns(columns, hidden, rows.arrays.codes, atoms, block.covers, start, stop, scores)

    flipped = block.workers.map_rows(choose, block.n_features, block.n_rows + block.n_atoms * 2.0**block.n_atoms)
    rows.set_codes(old_atoms, atoms, before[0])
    block.mark_stale()
    return Change(atoms=sum(flipped), errors=rows.changes_since(before)[1])


UPDATES: dict[str, Callable[[Block, CodingRule], Change]] = {
    "mob": lambda block, rule: update_each(block),
    "k-prox": fit_each,
    "exact": lambda block, rule: update_exactly(block),
}
