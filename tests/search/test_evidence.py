"""Whether what a search found, or did not find, is more than chance."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.search.evidence import beyond_chance
from bitatoms.sparse_bits import SparseBits
from support.results import every_algebra
from support.strategies import heterogeneous_rows, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def sparse():
    """A sparse table with one pattern that saves few bits, and a result that has two atoms for it and one by chance."""
    X = heterogeneous_rows(1, 400, 100)
    X[:15, [70, 80, 90]] = 1
    result = ba.factorize(X, algebra="or", random_state=0)
    atoms, codes = np.zeros((3, 100), np.uint8), np.zeros((400, 3), np.uint8)
    atoms[0, [70, 80, 90]] = atoms[1, [70, 80]] = atoms[2, [0, 1]] = 1
    codes[:15, 0] = codes[:10, 1] = 1
    codes[:, 2] = X[:, 0] & X[:, 1]
    return X, replace(result, atoms=BitMatrix.from_dense(atoms), codes=BitMatrix.from_dense(codes))


@every_algebra
def test_noise_has_no_related_columns(algebra):
    result = ba.factorize(random_bits(0, 300, 40, 0.3), algebra=algebra, random_state=0)
    assert (result.atoms.n_rows, result.beyond_chance) == (0, 0)
    assert result.saves_little
    assert "No atom makes the description shorter, and no two features occur together" in result.summary()


def test_related_columns_are_counted_where_there_are_no_atoms():
    X = random_bits(0, 300, 40, 0.3)
    nothing = ba.factorize(X, random_state=0)
    X[:, 1] = np.where(random_bits(1, 300, 1, 0.9)[:, 0], X[:, 0], X[:, 1])  # alike
    X[:, 3] = np.where(random_bits(2, 300, 1, 0.9)[:, 0], X[:, 2] ^ 1, X[:, 3])  # exclusive
    X[:, 4], X[:, 5] = 1, 1
    assert beyond_chance(nothing, BitMatrix.from_dense(X), 0.05) == 2


def test_what_is_saved_in_sparse_tables_is_more_than_chance(sparse):
    X, _ = sparse
    result = ba.factorize(X, algebra="or", random_state=0)
    small = ba.factorize(np.vstack([X, heterogeneous_rows(2, 3600, 100)]), algebra="or", random_state=0)
    assert not result.saves_little
    assert result.beyond_chance is None
    assert small.saves_little
    assert 1 <= small.beyond_chance <= small.atoms.n_rows
    assert "That is a small saving, but more than chance" in small.summary()


@pytest.mark.parametrize("form", [BitMatrix.from_dense, lambda X: SparseBits.from_bits(BitMatrix.from_dense(X))])
def test_atoms_beyond_chance_are_counted(sparse, form):
    X, result = sparse
    assert beyond_chance(result, form(X), 0.05) == 2


def test_where_nothing_is_known(sparse):
    X, result = sparse
    table, nothing = BitMatrix.from_dense(X), replace(result, atoms=result.atoms[:0], codes=BitMatrix.zeros(400, 0))
    assert beyond_chance(nothing, table, 0.05) > 0
    assert beyond_chance(nothing, SparseBits.from_bits(table), 0.05) is None  # all pairs are too many
    for cut in ("max_time", "max_iter", "callback", "interrupted", "max_memory"):
        assert beyond_chance(replace(result, ended=cut), table, 0.05) is None
    unknown = table.with_unknown(BitMatrix.from_dense(random_bits(0, 400, 100, 0.01)))
    assert beyond_chance(result, unknown, 0.05) is None
    assert beyond_chance(nothing, BitMatrix.from_dense(random_bits(0, 401, 10, 0.5)), 0.05) is None  # too few columns
    assert beyond_chance(nothing, BitMatrix.from_dense(random_bits(0, 400, 10, 0.5)), 0.05) == 0
