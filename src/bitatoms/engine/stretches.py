"""Stretches of atoms along columns that have an order: the bits at their ends that are not worth a longer stretch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from .block import Block, Words
from .objective import Objective


def far_bits(
    objective: Objective,
    n_features: int,
    of_bit: NDArray[np.intp],
    columns: NDArray[np.intp],
    saved: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return which bits at one end of each atom are not worth a longer stretch: without them, all costs less.

    ``of_bit`` and ``columns`` are the atom and the column of each bit, atom by atom, and ``saved`` is what it saves.
    """
    far = np.zeros(len(of_bit), bool)
    if objective.ranks is None or not len(of_bit):
        return far
    ranks = objective.ranks[columns]
    order = np.lexsort((ranks, of_bit))
    ranks, saved = ranks[order], saved[order]
    edges = np.append(np.flatnonzero(np.diff(of_bit, prepend=-1)), len(of_bit))
    starts, weights = edges[:-1], np.diff(edges)
    first, last = np.repeat(starts, weights), np.repeat(edges[1:] - 1, weights)
    index, sums = np.arange(len(of_bit)), np.append(0, np.cumsum(saved))
    # What an atom costs that ends, or begins, at each of its bits, and what the bits that it loses save.
    until, since = sums[last + 1] - sums[index + 1], sums[index] - sums[first]
    until += objective.of_atoms(n_features, index - first + 1, ranks - ranks[first] + 1)
    since += objective.of_atoms(n_features, last - index + 1, ranks[last] - ranks + 1)
    least = np.minimum(np.minimum.reduceat(until, starts), np.minimum.reduceat(since, starts))
    gains = least < since[starts]
    for start, stop in zip(starts[gains].tolist(), edges[1:][gains].tolist(), strict=True):
        end, begin = int(until[start:stop].argmin()), int(since[start:stop].argmin())
        if until[start + end] <= since[start + begin]:
            far[order[start + end + 1 : stop]] = True
        else:
            far[order[start : start + begin]] = True
    return far


def without_far_bits(
    flips: Words, free: NDArray[np.integer], bad: NDArray[np.integer], block: Block, objective: Objective
) -> Words:
    """Return flips of bits of atoms by which these get no far bits, and lose those that they have.

    ``free`` and ``bad`` are the votes on all bits (see `Block.votes`).
    """
    m, atoms = block.n_features, block.atoms().words
    new = BitMatrix.from_words(atoms ^ flips, m, check=False)
    are_ones = block.atoms().to_dense(bool)
    flipped = block.n_known, block.wrong(), new.to_dense(bool), are_ones, free, bad
    of_bit, columns, costs = objective.of_each_flip(*flipped)
    is_set = BitMatrix.from_words(flips.copy(), m, check=False).to_dense(bool)[of_bit, columns]
    far = far_bits(objective, m, of_bit, columns, np.where(is_set, -costs, costs))
    if not far.any():
        return flips
    cleared = np.zeros((len(atoms), m), bool)
    cleared[of_bit[far], columns[far]] = True
    return flips ^ BitMatrix.from_dense(cleared).words
