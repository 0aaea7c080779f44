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
ROWS, WIDTHS = st.sampled_from((0, 1, 5, 12)), st.sampled_from((1, 63, 64, 65, 130))
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
@given(factorisations(ROWS, WIDTHS), ALGEBRAS, st.sampled_from((0.0, 0.3)), st.integers(0, 4), SEEDS)
def test_soft_codes_are_differences_of_bits_with_and_without_an_atom(factors, algebra, bias_density, n_groups, seed):
    """Also by groups of atoms that share no columns, in chunks of rows, and for the ones of a table."""
    (X, atoms, codes), random = factors, np.random.default_rng(seed)
    if n_groups:
        atoms *= random.integers(n_groups, size=(len(atoms), 1)) == random.integers(n_groups, size=X.shape[1])
    bias = random_bits(seed, 1, X.shape[1], bias_density)[0]
    counts = random_counts(seed, X.shape[1], len(atoms))
    expected = naive.soft_codes(X, atoms, codes, algebra, bias, *counts)
    sizes = {"_MIN_SPLIT": 1, "_GROUP_COLUMNS": seed % 30 + 1} if n_groups else {"_MIN_SPLIT": 1 << 11}
    with mock.patch.multiple("bitatoms.core.pass_spec", **sizes), mock.patch("bitatoms.core.model._CHUNK_CELLS", 700):
        model, data = model_of(atoms, algebra, bias, counts), bits_of(X)
        for rows in (data, *([SparseBits.from_bits(data)] if data.unknown is None else [])):
            found = model.soft_codes(rows, BitMatrix.from_dense(codes), SINGLE)
            assert (found.shape, found.dtype) == (codes.shape, np.float64)
            np.testing.assert_allclose(found, expected, atol=1e-9)


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
