"""Codes and errors to better atoms.

``"mob"``, the Method of Binary Directions (Section III-B): an atom is the majority vote of the rows that use it, with
the atom put back. ``"k-prox"`` (Section III-C): an atom and its rows together, by Proximus on the errors with the
atom put back, its rows chosen among all. Both take one atom at a time, in index order, errors refreshed.
The searches other than the paper's update all atoms together, from one pass of counts. ``"exact"``: every feature takes
the best of all columns; for few atoms. A tie gives 0; an atom that no row uses stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..kernels.cpu import together, votes
from ..kernels.structs import Covers, Rule, VoteScratch
from ..parallel import MAX_CHUNK_NS
from .block import Block, Change, Words, coded
from .exact import update_exactly


def update_each(block: Block) -> Change:
    """MOB: stale atoms by vote of their users, one at a time in index order, errors refreshed."""
    if _small_votes(block):
        return _sweep(block, votes.VOTE, Rule(block.covers, False, 0, 0))
    total = Change()
    for k in range(block.n_atoms):
        if block.atoms.stale[k]:
            total += _update_atom(block, k)
    return total


def fit_each(block: Block, rule: Rule) -> Change:
    """K-PROX: each atom together with its rows, over all rows, in index order."""
    if _small_votes(block):
        return _sweep(block, votes.FIT, rule)
    total = Change()
    for k in range(block.n_atoms):
        total += _fit_atom(block, k, rule)
    return total


def grow(block: Block, atom: Words, rule: Rule) -> Change:
    """Proximus: one more atom, fitted together with its rows from the one given."""
    block.append(atom[np.newaxis])
    if _small_votes(block):
        return _sweep(block, votes.GROW, rule, block.n_atoms - 1)
    return _refit(block, block.n_atoms - 1, rule) + _fit_atom(block, block.n_atoms - 1, rule)


def _sweep(block: Block, work: int, rule: Rule, first: int = 0) -> Change:
    """Better atoms from ``first`` on, as many in one call as leave Ctrl-C a chance."""
    scratch = block.room(0)
    cost = block.n_rows * (block.vote_cost(block.n_rows) + 10.0 * block.rows.errors.shape[1])
    at_once = 1 + int(MAX_CHUNK_NS / max(1.0, cost))
    total = Change()
    for k in range(first, block.n_atoms, at_once):
        last = min(k + at_once, block.n_atoms)
        total += Change(*votes.sweep_atoms(block.rows, block.atoms, rule, work, k, last, scratch))
    return total


def _fit_atom(block: Block, k: int, rule: Rule) -> Change:
    """One atom and its rows in turn until neither changes, block by block."""
    total = _update_atom(block, k)
    while block.rows.users[k].any():
        refit = _refit(block, k, rule)
        total += refit
        if refit.codes == 0:
            break
        update = _update_atom(block, k)
        total += update
        if update.atoms == 0:
            break
    block.atoms.stale[k] = 0
    return total


def _refit(block: Block, k: int, rule: Rule) -> Change:
    """The rows of atom k anew: those in which more than half of its free bits are wrong without it."""
    settled = rule.residual_limit == 0 and bool(block.atoms.changed[k] == 0)

    def refit(start: int, stop: int) -> tuple[int, int]:
        return votes.refit_users(block.rows, block.atoms, k, rule, settled, start, stop, block.room(start))

    return coded(block.each_block(refit, 5.0 * block.rows.errors.shape[1]))


def _small_votes(block: Block) -> bool:
    """Whether votes are too small to share out."""
    return block.workers.is_one_chunk(block.n_rows, block.vote_cost(block.n_rows))


def _update_atom(block: Block, k: int) -> Change:
    """One atom by vote, block by block."""
    block.atoms.stale[k] = 0
    n_users = int(np.bitwise_count(block.rows.users[k]).sum())
    if n_users == 0:
        return Change()
    cost = block.vote_cost(n_users)

    def tally(start: int, stop: int) -> VoteScratch:
        scratch = block.room(start)
        votes.tally_users(block.rows, block.atoms, k, block.covers, start, stop, scratch)
        return scratch

    total, *others = block.each_block(tally, cost)
    for other in others:
        votes.add_tallies(total, other)
    flipped = votes.flip_atom(block.atoms, k, n_users, block.covers, total)
    if flipped == 0:
        return Change()
    block.atoms.changed[k] = 1

    def follow(start: int, stop: int) -> int:
        scratch = block.room(start)
        return votes.flip_users(block.rows, block.atoms, k, block.covers, start, stop, total.flips, scratch)

    return Change(atoms=flipped, errors=sum(block.each_block(follow, cost)))


def update_together(block: Block) -> Change:
    """All atoms from one pass of counts, so that the wrong bits cannot rise."""
    if block.n_atoms == 0:
        return Change()
    free, wrong = block.votes(0, block.n_atoms)
    flips, flipped = flips_together(free, wrong, block.pairs(), block.atoms.words, block.covers)
    return Change(atoms=flipped) + block.flip(flips)


def flips_together(
    free: NDArray[np.integer], wrong: NDArray[np.integer], pairs: NDArray[np.integer], atoms: Words, covers: Covers
) -> tuple[Words, int]:
    """The bits of the atoms to flip, and how many, so that the wrong bits cannot rise.

    Flipping one bit of one atom takes away exactly twice its wrong votes less all free ones. In a column, flips are
    admitted in falling order of that, less what the rows that two of them share could spoil (the pair bound, see
    ``kernels/cpu/together.py``): it stops only where no single flip helps, as one atom at a time does.
    """
    columns, who, helps = _helpful_flips(free, wrong, atoms)
    order = np.lexsort((who, -helps, columns))
    flips, admitted = np.zeros_like(atoms), np.empty(len(atoms), np.int64)
    factor = 1 if covers else 2
    flipped = together.admit_flips(columns[order], who[order], helps[order], pairs, factor, atoms, admitted, flips)
    return flips, flipped


def _helpful_flips(
    free: NDArray[np.integer], wrong: NDArray[np.integer], atoms: Words
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]:
    """Column, atom and wrong bits taken away of each flip that helps alone, or does no harm and clears a bit."""
    room = 4 * len(atoms) + 1024
    while True:
        lists = np.empty((3, room), free.dtype)
        count = together.list_candidates(free, wrong, atoms, *lists)
        if count <= room:
            return lists[0, :count], lists[1, :count], lists[2, :count]
        room = count


UPDATES: dict[str, Callable[[Block, Rule], Change]] = {
    "mob": lambda block, rule: update_each(block),
    "k-prox": fit_each,
    "exact": lambda block, rule: update_exactly(block),
}
