"""Sweeps: code all rows at the current prices, then update all atoms from one pass of counts.

Extend atoms under OR, so that one atom can take the place of two that are parts of it.

Where other atoms cover a bit in every row that uses an atom, it makes no difference whether the atom has the bit, and
updates clear it. So an atom can be learned as two: one has most of its bits, the other has the rest and is used where
nothing else covers them. Neither can be dropped, and no flip of a bit gains anything. `extend` gives all atoms the bits
that do no harm. Rows coded anew then use fewer atoms, and atoms that no row needs any more are dropped.

Trim atoms: clear the bits that save less than they cost. An update sets a bit if most users of the atom have it. If the
column is common anyway, most users have it by chance, and the bit saves less than it takes to describe. Where atoms are
described by stretches, the bits beyond a gap may together save less than a longer stretch costs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...engine.block import Block, Change
from ...engine.coding import code, code_from_scratch
from ...engine.information_sets import code_from_information_sets
from ...engine.objective import Objective
from ...engine.update import update_together
from ...kernels.structs import CodingRule

_SAMPLE_ROWS = 256  # by which it is decided whether to code all rows
_SAMPLE_DRAWS = 16  # of columns for their codes
_LEAST_GAIN = 2e-3  # of the cost of the sample
_ATOMS_PER_CHUNK = 64  # that are trimmed


def sweep(
    block: Block, objective: Objective, coder: Callable[[Block, CodingRule], Change] = code, swaps: bool = True
) -> Change:
    """Make one sweep; undo it if it raises the cost, which can happen because prices are from the previous sweep.

    Without ``swaps``, rows only toggle atoms, the fastest kind of sweep. Coders that start from scratch leave local
    optima.
    """
    before, saved = objective.cost(block), block.save()
    change = coder(block, objective.rule(block)._replace(swaps=swaps)) + _update(block, objective)
    if objective.cost(block) > before:
        block.restore(saved)
        return Change()
    return change


def _update(block: Block, objective: Objective) -> Change:
    """Update all atoms; their stretches become no longer than is worth it, where atoms are described by them."""
    return update_together(block, objective.costs, partial(objective.without_far_bits, block))


def flat_sweep(block: Block, objective: Objective) -> Change:
    """Sweep at one price for all features, without undoing it: for the first sweeps of a start."""
    return code(block, objective.rule(block, flat=True)._replace(swaps=False)) + _update(block, objective)


def gain_of_sample(block: Block, objective: Objective, code: Callable[[Block], Change]) -> float:
    """Return the share of its cost that a sample of the rows saves if it is coded in this way."""
    sample = block.sample(np.unique(np.linspace(0, block.n_rows - 1, _SAMPLE_ROWS).astype(np.intp)))
    before = objective.cost(sample)
    code(sample)
    return 1 - objective.cost(sample) / max(1, before)


def fewest_errors_sweep(block: Block, objective: Objective, random: np.random.Generator) -> Change:
    """Sweep for the fewest errors with rows coded from information sets, without undoing it: for a start."""
    rule = objective.errors_only().rule(block)
    return code_from_information_sets(block, rule, random) + update_together(block, objective.costs)


def extend(block: Block, objective: Objective) -> Change:
    """Extend the atoms and sweep; undo it if it raises the cost."""
    if not block.covers or block.n_atoms < 2:
        return Change()
    atoms, codes = block.factors()
    sweep(block, objective, _extend_and_code)
    return Change(codes=(codes ^ block.codes()).count(), atoms=(atoms ^ block.atoms()).count())


def harmless_bits(block: Block) -> NDArray[np.bool_]:
    """Return which bits the atoms in use lack that would make no cell wrong, if one atom got one of them."""
    free, wrong = block.votes(0, block.n_atoms)
    return (free == wrong) & (block.atoms().to_dense() == 0) & block.in_use()[:, np.newaxis]


def _extend_and_code(block: Block, rule: CodingRule) -> Change:
    """Give the atoms all harmless bits, and code the rows."""
    return block.flip(BitMatrix.from_dense(harmless_bits(block)).words) + code_from_scratch(block, rule)


def trim(block: Block, objective: Objective) -> int:
    """Clear bits of atoms, each of which costs more than it saves, the codes left as they are; return how many."""
    n_cleared = 0
    while True:
        before, cost = block.save(), objective.cost(block)
        useless = _useless_bits(block, objective)
        if not useless.count():
            return n_cleared
        block.flip(useless.words.copy())
        if objective.cost(block) >= cost:
            block.restore(before)
            return n_cleared
        n_cleared += useless.count()


def _useless_bits(block: Block, objective: Objective) -> BitMatrix:
    """Return bits of atoms that cost more than they save, at most one of each column: they depend on each other."""
    m, atoms = block.n_features, block.atoms()
    useless, is_taken = np.zeros((block.n_atoms, m), bool), np.zeros(m, bool)
    for first in range(0, block.n_atoms, _ATOMS_PER_CHUNK):
        last = min(first + _ATOMS_PER_CHUNK, block.n_atoms)
        ones, ends = atoms[first:last].to_dense(bool), objective.code.ends(atoms[first:last])
        of_bit, columns, saved = objective.of_each_flip(block, ones, True, *block.votes(first, last))
        weights = ones.sum(axis=1)
        is_far = objective.far_bits(m, of_bit, columns, saved)
        fewer = np.maximum(0, weights - 1)
        limits = objective.of_ones(m, weights, ends) - objective.of_ones(m, fewer, ends)
        for k in np.unique(of_bit[is_far | (saved < limits[of_bit])]):
            far = columns[is_far & (of_bit == k)]
            if len(far):  # all of them or none: later, if others are cleared in one of these columns
                cleared = far[: 0 if is_taken[far].any() else None]
            else:
                bits = np.flatnonzero((of_bit == k) & ~is_taken[columns])
                bits = bits[np.argsort(saved[bits], kind="stable")]
                costs = _costs_of_bits(objective, m, weights[k], ends[:, k : k + 1])
                is_worth_it = saved[bits] >= costs[weights[k] - np.arange(len(bits))]
                cleared = columns[bits[: int(is_worth_it.argmax()) if is_worth_it.any() else None]]
            useless[first + k, cleared] = is_taken[cleared] = True
    return BitMatrix.from_dense(useless)


def _costs_of_bits(objective: Objective, n_features: int, most: int, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cost of one of the bits of an atom, by their number; its ends remain."""
    costs = objective.of_ones(n_features, np.arange(most + 1), np.repeat(ends, most + 1, axis=1))
    return np.diff(costs, prepend=costs[0])
