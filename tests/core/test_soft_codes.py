"""Soft codes, compared with the bits of each row with and without each atom."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix, factorize
from bitatoms.core.model import Model
from bitatoms.datasets import planted
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
    assert found.shape == codes.shape and found.dtype == np.float64
    np.testing.assert_allclose(found, naive.soft_codes(X, atoms, codes, algebra, bias, *counts), atol=1e-9)
