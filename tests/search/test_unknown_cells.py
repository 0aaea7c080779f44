"""Searches of tables with unknown cells: what they find, and that unknown cells decide nothing."""

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms import factorize, proximus
from bitatoms.bits import BitMatrix
from support.blocks import bits_of, table_of
from support.results import every_algebra
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")
HOW = [
    {"algebra": "xor"},
    {"algebra": "or", "search": "thorough"},
    {"algebra": "xor", "n_components": 20},
    {"algebra": "or", "n_components": 3, "objective": "codelength"},
    {"algebra": "xor", "search_rows": 100},
    {"algebra": "or", "search": "paper"},
    {"algebra": "or", "search": "paper", "n_components": 4, "update": "k-prox", "init": "spread"},
]


def hidden(X, share, seed=0):
    """Return the table with this share of the cells as NaN, and which these are."""
    mask = random_bits(seed, *X.shape, share) == 1
    return np.where(mask, np.nan, X), mask


@pytest.mark.parametrize("how", HOW)
def test_counts_and_codelength_are_those_of_the_known_cells(how):
    algebra = how["algebra"]
    X, _ = hidden(ba.datasets.planted(150, 40, 4, algebra=algebra, noise=0.05, random_state=1).X, 0.2)
    result = factorize(X, random_state=0, **how)
    atoms, codes = result.atoms.to_dense(), result.codes.to_dense()
    table = table_of(BitMatrix.from_any(X, missing="unknown"))
    wrong = naive.errors(table, atoms, codes, algebra, result.bias)
    np.testing.assert_array_equal(result.wrong, wrong.sum(axis=0))
    length = result.codelength
    assert (length.errors, length.codes, length.atoms) == naive.codelength(table, atoms, codes, algebra, result.bias)
    assert ba.codelength(X, atoms, codes, algebra=algebra, bias=result.bias) == length
    assert result.bits_without == ba.codelength(X).total
    np.testing.assert_array_equal(result.ones, (table == 1).sum(axis=0))


@every_algebra
def test_a_table_whose_cells_are_all_unknown_has_no_atoms(algebra):
    result = factorize(np.full((20, 5), np.nan), algebra=algebra, random_state=0)
    assert result.atoms.n_rows == 0
    assert result.codelength.total == result.wrong_bits == 0


def test_proximus_counts_known_differences():
    X = np.array([[1, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1], [2, 2, 2, 2]], np.uint8)
    result = proximus(bits_of(X), random_state=0)
    assert result.wrong_bits == 0
    assert result.atoms.n_rows == 2
    assert result.codes.row_weights().tolist() == [1, 1, 1, 1, 0]
