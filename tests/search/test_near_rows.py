"""Near rows: pairs that no hash table misses or invents, and the atoms of their sums."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from bitatoms.search.plan import PLANS, LinearBudget
from bitatoms.search.starts import linear
from bitatoms.search.starts.near_rows import atoms_of_near_rows, near_pairs
from support.strategies import random_bits

BUDGET = LinearBudget()


def pairs_of(bits, seed=0, budget=BUDGET):
    """Return pairs of near rows."""
    return near_pairs(BitMatrix.from_dense(bits), np.random.default_rng(seed), budget)


def with_near_rows(n, m, n_near, n_errors, seed=0):
    """Return random rows, of which the first ``n_near`` are copies of the next ones but for a few columns."""
    bits = random_bits(seed, n, m, 0.5)
    bits[:n_near] = bits[n_near : 2 * n_near]
    random = np.random.default_rng(seed)
    for row in bits[:n_near]:
        row[random.choice(m, n_errors, replace=False)] ^= 1
    return bits


@pytest.mark.parametrize(("n", "m", "n_errors"), [(40, 65, 3), (300, 127, 9), (3000, 130, 12)])
def test_pairs_of_near_rows_are_found_and_no_others(n, m, n_errors):
    n_near = n // 8
    bits = with_near_rows(n, m, n_near, n_errors)
    pairs = np.sort(pairs_of(bits), axis=1)
    assert sorted(pairs.tolist()) == [[i, n_near + i] for i in range(n_near)]


def test_each_row_is_in_one_pair():
    bits = np.repeat(random_bits(0, 50, 100, 0.5), 5, axis=0)
    rows = pairs_of(bits).ravel()
    assert len(rows) == len(set(rows.tolist())) >= 4 * 50
    assert set(np.unique(bits[rows[::2]] ^ bits[rows[1::2]])) == {0}


def test_pairs_end_at_the_most_rows_of_a_sample():
    bits = with_near_rows(400, 100, 100, 2)
    pairs = pairs_of(bits, budget=replace(BUDGET, max_rows=30))
    assert len(pairs) == 30
    assert naive.distances(bits)[pairs[:, 0], pairs[:, 1]].max() <= 2


@pytest.mark.parametrize("bits", [np.zeros((0, 5)), np.ones((1, 3)), np.eye(40), np.eye(2)])
def test_tables_without_near_rows_have_no_pairs(bits):
    assert len(pairs_of(bits.astype(np.uint8))) == 0


def test_random_rows_have_hardly_any_pairs():
    assert len(pairs_of(random_bits(0, 2000, 130, 0.3))) <= 3


def test_atoms_of_near_rows_are_the_planted_ones():
    table = planted(8000, 128, 30, algebra="xor", atom_density=0.15, code_density=0.2, noise=0.02, random_state=0)
    atoms = atoms_of_near_rows(BitMatrix.from_dense(table.X), np.random.default_rng(0), Workers(), BUDGET)
    assert {bytes(atom) for atom in table.atoms} <= {bytes(atom) for atom in atoms.to_dense()}


def test_a_basis_comes_from_all_rows_if_the_sample_has_too_few(monkeypatch):
    called = []
    monkeypatch.setattr(linear, "atoms_of_near_rows", lambda data, *rest: called.append(data.shape) or data[:0])
    table = planted(600, 80, 10, algebra="xor", atom_density=0.3, code_density=0.3, noise=0.4, random_state=0)
    tuning = replace(PLANS["fast"].mdl, linear=replace(BUDGET, max_rows=50, max_cols=60))
    monkeypatch.setitem(PLANS, "fast", replace(PLANS["fast"], mdl=tuning))
    ba.factorize(table.X, algebra="xor", random_state=0)
    assert called == [(600, 60)]
    ba.factorize(table.X[:50], algebra="xor", random_state=0)
    assert called == [(600, 60)]
