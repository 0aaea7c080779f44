"""Overlaps of atoms, and atoms matched one to one, against the oracle."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.recurrence import Recurrence, match_atoms, overlaps
from support.strategies import SEEDS, random_bits


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
