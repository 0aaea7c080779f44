"""Groups of atoms that share no columns, overlaps and stretches of atoms, against the oracles."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.atom_groups import atom_groups
from bitatoms.core.objective import Objective
from bitatoms.core.recurrence import Recurrence, match_atoms, overlaps
from bitatoms.core.stretches import far_bits
from bitatoms.sparse_bits import SparseBits
from support.strategies import SEEDS, random_bits


@given(st.sampled_from((0, 1, 7, 40)), st.sampled_from((1, 65, 130)), st.sampled_from((0.0, 0.01, 0.05)), SEEDS)
def test_groups_are_the_connected_atoms_and_columns(n_atoms, n_cols, density, seed):
    atoms = random_bits(seed, n_atoms, n_cols, density)
    packed = BitMatrix.from_dense(atoms)
    wanted = sorted(naive.connected_columns(atoms))
    for bits in (packed, SparseBits.from_bits(packed)):
        groups = atom_groups(bits, 1)
        assert sorted(columns.tolist() for _, columns in groups) == wanted
        for own, columns in groups:
            assert (np.diff(own) > 0).all()
            np.testing.assert_array_equal(np.flatnonzero(atoms[own].any(axis=0)), columns)
        if wanted:
            assert sorted(np.concatenate([own for own, _ in groups]).tolist()) == list(range(n_atoms))


@given(st.sampled_from((1, 10, 1000)), SEEDS)
def test_small_groups_are_put_together(width, seed):
    atoms = random_bits(seed, 40, 200, 0.01)
    sizes = [len(columns) for columns in naive.connected_columns(atoms)]
    groups = atom_groups(BitMatrix.from_dense(atoms), width)
    assert sum(len(columns) for _, columns in groups) == sum(sizes)
    assert all(len(columns) < width + max(sizes) for _, columns in groups)
    assert len(groups) <= min(len(sizes), -(-sum(sizes) // width))


# --- overlaps, and atoms matched one to one


def result(atoms, bias):
    return SimpleNamespace(atoms=BitMatrix.from_dense(atoms), bias=np.asarray(bias, np.uint8))


@given(SEEDS, st.sampled_from([1, 63, 64, 65, 130]), st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_overlaps_equal_the_oracle(seed, n_features, n_first, n_second, has_bias):
    density = 4 / n_features
    first, second = (
        random_bits(seed, n_first, n_features, density),
        random_bits(seed + 1, n_second, n_features, density),
    )
    second[: n_first // 2] = first[: min(n_first // 2, n_second)]
    biases = random_bits(seed + 2, 2, n_features, 0.3 * has_bias)
    found = overlaps(result(first, biases[0]), result(second, biases[1]))
    assert found.shape == (n_first, n_second)
    for (j, k), value in np.ndenumerate(found):
        assert value == naive.overlap(first[j], biases[0], second[k], biases[1])


def test_an_atom_without_ones_overlaps_with_none():
    nothing = result([[0, 0, 0]], [1, 0, 0])
    assert overlaps(nothing, nothing) == 0


@settings(max_examples=50)
@given(SEEDS, st.integers(0, 8), st.integers(0, 8))
def test_matching_equals_the_oracle(seed, n_rows, n_columns):
    """With many ties."""
    table = np.random.default_rng(seed).integers(0, 4, (n_rows, n_columns)) / 3
    np.testing.assert_array_equal(match_atoms(table), naive.match_atoms(table))


def test_shares_are_of_the_searches():
    assert Recurrence(np.array([0, 3, 4]), 4, 0.5, 0.8).shares.tolist() == [0, 0.75, 1]


# --- bits at the ends of atoms that are not worth a longer stretch


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
