"""Soft codes, compared with the bits of each row with and without each atom."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix, factorize
from bitatoms.core.model import Model
from bitatoms.parallel import Workers
from bitatoms.sparse_bits import SparseBits
from support.blocks import bits_of
from support.strategies import SEEDS, factorisations, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

ALGEBRAS = st.sampled_from(("xor", "or"))
WIDTHS = st.sampled_from((1, 63, 64, 65, 130))
SINGLE = Workers(1)


def model_of(atoms, algebra, bias, counts):
    """Return a model with these atoms, which counted right and wrong cells and rows without and with each atom."""
    cells, uses = counts
    found = factorize(np.zeros((1, atoms.shape[1]), np.uint8), search="paper", max_components=0)
    n_samples = int(uses[:, 0].sum()) if len(atoms) else 9
    counted = {"wrong": cells[1], "known": cells.sum(axis=0), "uses": uses[1], "n_samples": n_samples}
    model = Model.from_factorization(found)
    return replace(model, atoms=BitMatrix.from_dense(atoms), bias=bias, algebra=algebra, coder="greedy", **counted)


def random_counts(seed, n_cols, n_atoms, n_samples=20):
    """Return counts of right and wrong cells and of rows without and with each atom."""
    random = np.random.default_rng(seed)
    known, used = random.integers(1, n_samples + 1, n_cols), random.integers(0, n_samples + 1, n_atoms)
    wrong = random.integers(0, known + 1)
    return np.array([known - wrong, wrong]), np.array([n_samples - used, used])


@settings(max_examples=40)
@given(factorisations(st.sampled_from((0, 1, 5, 17)), WIDTHS), ALGEBRAS, st.sampled_from((0.0, 0.3)), SEEDS)
def test_soft_codes_are_differences_of_bits_with_and_without_an_atom(factors, algebra, bias_density, seed):
    X, atoms, codes = factors
    bias = random_bits(seed, 1, X.shape[1], bias_density)[0]
    counts = random_counts(seed, X.shape[1], len(atoms))
    model = model_of(atoms, algebra, bias, counts)
    found = model.soft_codes(bits_of(X), BitMatrix.from_dense(codes), SINGLE)
    assert found.shape == codes.shape
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, naive.soft_codes(X, atoms, codes, algebra, bias, *counts), atol=1e-9)


@given(ALGEBRAS, st.sampled_from((65, 200)), st.sampled_from((0.0, 0.1)), st.integers(1, 4), st.booleans(), SEEDS)
def test_soft_codes_by_groups_of_atoms(algebra, n_cols, unknown, n_groups, has_bias, seed):
    """Groups of atoms that share no columns, and chunks of rows, give the same values; so do the ones of a table."""
    random = np.random.default_rng(seed)
    atoms = random_bits(seed, 5, n_cols, 0.3)
    atoms *= random.integers(n_groups, size=(5, 1)) == random.integers(n_groups, size=n_cols)
    X, codes = random_bits(seed + 1, 12, n_cols, 0.3), random_bits(seed + 2, 12, 5, 0.4)
    X[random_bits(seed + 3, 12, n_cols, unknown) == 1] = 2
    bias = random_bits(seed + 4, 1, n_cols, 0.1 * has_bias)[0]
    counts = random_counts(seed, n_cols, 5)
    data, packed_codes = bits_of(X), BitMatrix.from_dense(codes)
    expected = naive.soft_codes(X, atoms, codes, algebra, bias, *counts)
    with (
        mock.patch.multiple("bitatoms.core.pass_spec", _MIN_SPLIT=1, _GROUP_COLUMNS=seed % 30 + 1),
        mock.patch("bitatoms.core.model._CHUNK_CELLS", 1000),
    ):
        model = model_of(atoms, algebra, bias, counts)
        np.testing.assert_allclose(model.soft_codes(data, packed_codes, SINGLE), expected, atol=1e-9)
        if not unknown:
            sparse = SparseBits.from_bits(data.filled())
            np.testing.assert_allclose(model.soft_codes(sparse, packed_codes, SINGLE), expected, atol=1e-9)


@pytest.mark.parametrize("has_ones", [False, True])
def test_an_atom_without_ones_costs_its_use(has_ones):
    atoms = np.zeros((2, 65), np.uint8)
    atoms[1, :9] = has_ones
    counts = random_counts(0, 65, 2)
    with mock.patch("bitatoms.core.pass_spec._MIN_SPLIT", 1 - has_ones):
        model = model_of(atoms, "or", np.zeros(65, np.uint8), counts)
        found = model.soft_codes(BitMatrix.zeros(3, 65), BitMatrix.zeros(3, 2), SINGLE)
    unused, used = counts[1][:, 0] + 0.5
    np.testing.assert_allclose(found[:, 0], np.log2(used / unused))
