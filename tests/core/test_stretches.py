"""Bits at the ends of atoms that are not worth a longer stretch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.core.objective import Objective
from bitatoms.core.stretches import far_bits
from support.strategies import SEEDS, random_bits


@given(st.sampled_from((1, 2, 63, 64, 65, 130)), st.sampled_from((0.03, 0.2, 1)), SEEDS)
def test_far_bits_are_those_without_which_an_atom_costs_least(n_features, density, seed):
    """Of all cuts at one end, the one that saves most is made, if it saves anything."""
    random, atoms = np.random.default_rng(seed), random_bits(seed, 4, n_features, density)
    order = random.permutation(n_features)
    saved = random.integers(-5, 30, atoms.shape)
    of_bit, columns = np.nonzero(atoms)
    objective = Objective(True, "or", ranks=np.argsort(order))
    far = np.zeros(atoms.shape, bool)
    far[of_bit, columns] = far_bits(objective, n_features, of_bit, columns, saved[of_bit, columns])
    assert not (far & (atoms == 0)).any()
    for k, atom in enumerate(atoms):
        ordered = [column for column in order if atom[column]]
        cuts = [ordered[cut:] for cut in range(len(ordered))] + [ordered[:cut] for cut in range(1, len(ordered))]
        costs = [_cost(atom, set(ordered) - set(left), saved[k], order) for left in cuts]
        found = _cost(atom, set(np.flatnonzero(far[k])), saved[k], order)
        assert found == min(costs, default=found)
        assert not far[k].any() or found < costs[0]


def _cost(atom, cleared, saved, order):
    """Return what an atom costs without some bits, and what these would save."""
    left = np.array([bit and column not in cleared for column, bit in enumerate(atom)], np.uint8)
    return naive.stretch_bits(left, order) + sum(int(saved[column]) for column in cleared)


def test_columns_without_an_order_have_no_far_bits():
    bits = np.zeros(3, np.intp), np.array([0, 1, 90]), np.array([9, 9, -9])
    assert far_bits(Objective(True, "or"), 100, *bits).tolist() == [False] * 3
    ordered = Objective(True, "or", ranks=np.arange(100))
    assert far_bits(ordered, 100, *bits).tolist() == [False, False, True]
    assert far_bits(ordered, 100, *(array[:0] for array in bits)).tolist() == []
