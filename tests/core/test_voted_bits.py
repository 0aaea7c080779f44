"""Votes on some bits of the atoms of wide tables: which bits, the same votes as on all bits, and flips that help."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.core import voted_bits as module
from bitatoms.core.atoms import flips_by_column
from bitatoms.core.bias import flip_counts
from bitatoms.core.counts import Counts
from bitatoms.core.row_pass import count
from bitatoms.core.voted_bits import voted_bits
from bitatoms.sparse_bits import SparseBits, toggled
from support.blocks import ALGEBRAS, bits_of, block_of
from support.strategies import SEEDS, factorisations, random_bits


@pytest.fixture
def few_votes(monkeypatch):
    """Let atoms of narrow tables have votes on some bits, with up to 20 candidates in all."""
    monkeypatch.setattr(module, "_MIN_FEATURES", 1)
    monkeypatch.setattr(module, "MAX_VOTES", 20)


def dense(voted):
    return voted.bits.to_dense().astype(bool)


def test_all_bits_have_votes_where_they_are_not_many(monkeypatch):
    monkeypatch.setattr(module, "MAX_VOTES", 3 * 2048)
    assert voted_bits(BitMatrix.zeros(3, 2048)) is None
    assert voted_bits(BitMatrix.zeros(4, 2047)) is None
    assert voted_bits(BitMatrix.zeros(4, 2048)) is not None


@pytest.mark.usefixtures("few_votes")
def test_candidates_are_the_ones_of_atoms_with_which_an_atom_shares_ones(monkeypatch):
    atoms = np.zeros((4, 12), np.uint8)
    atoms[0, [0, 1, 2]] = atoms[1, [2, 3]] = atoms[2, [1, 2, 5, 7]] = atoms[3, [9, 10]] = 1
    expected = atoms.astype(bool)
    expected[0, [3, 5, 7]] = expected[1, [0, 1, 5, 7]] = expected[2, [0, 3]] = True
    np.testing.assert_array_equal(dense(voted_bits(BitMatrix.from_dense(atoms))), expected)
    monkeypatch.setattr(module, "_MAX_CANDIDATES", 2)  # by the number of shared ones, then by column
    expected[0, 3] = False
    expected[1, [5, 7]] = False
    np.testing.assert_array_equal(dense(voted_bits(BitMatrix.from_dense(atoms))), expected)
    monkeypatch.setattr(module, "_MAX_LINKED", 2)  # three atoms have column 2
    expected[1] = atoms[1]
    expected[0, 7] = expected[0, 5] = True
    expected[2, 3] = False
    np.testing.assert_array_equal(dense(voted_bits(BitMatrix.from_dense(atoms))), expected)


@pytest.mark.usefixtures("few_votes")
def test_many_atoms_are_done_step_by_step(monkeypatch):
    atoms = BitMatrix.from_dense(random_bits(3, 70, 200, 0.03))
    voted = voted_bits(atoms)
    assert (dense(voted) >= atoms.to_dense()).all()
    monkeypatch.setattr(module, "_ATOMS_PER_STEP", 1000)
    assert voted_bits(atoms) == voted


def listed(X, atoms, codes, algebra, seed):
    """Return a block, votes on the ones of the atoms and on random other bits, and the counts with these votes."""
    block = block_of(X, atoms, codes, algebra)
    voted = SparseBits.from_bits(BitMatrix.from_dense(random_bits(seed, *atoms.shape, 0.3) | atoms))
    return block, voted, count(block, bits_of(X), voted=voted)


@given(factorisations(n_atoms=st.integers(1, 6)), ALGEBRAS, SEEDS, st.sampled_from((1, 200, 10**6)))
def test_votes_are_those_on_all_bits(problem, algebra, seed, n_votes_at_a_time):
    X, atoms, codes = problem
    with patch("bitatoms.core.row_pass._VOTES_AT_A_TIME", n_votes_at_a_time):
        block, voted, counts = listed(X, atoms, codes, algebra, seed)
    every, has_vote = count(block, bits_of(X)), dense(voted)
    assert counts.pairs.size == 0
    for name in ("uses", "wrong", "ones", "missed", "known", "complete"):
        np.testing.assert_array_equal(getattr(counts, name), getattr(every, name))

    def assert_same_votes(some, all_of_them):
        for name in ("free", "bad"):
            np.testing.assert_array_equal(getattr(some, name), getattr(all_of_them, name)[has_vote])
        packed_atoms = BitMatrix.from_dense(atoms)
        for form in (packed_atoms, SparseBits.from_bits(packed_atoms)):
            for votes, expected in zip(some.votes_on_ones(form), all_of_them.votes_on_ones(form), strict=True):
                np.testing.assert_array_equal(votes, expected)
        np.testing.assert_array_equal(all_of_them.votes_on_ones(packed_atoms)[0], all_of_them.free[atoms == 1])

    assert_same_votes(counts, every)
    none = Counts.none(*atoms.shape, voted, int(atoms.sum()))
    assert_same_votes(none.add(counts).add(counts), every + every)
    assert_same_votes(counts.copy(), every)
    flips = random_bits(seed, 1, X.shape[1], 0.5)[0].astype(bool)
    assert_same_votes(flip_counts(counts, flips), flip_counts(every, flips))


@given(factorisations(n_atoms=st.integers(1, 6)), ALGEBRAS, SEEDS)
def test_the_flip_that_fixes_most_errors_of_each_column_is_taken(problem, algebra, seed):
    X, atoms, codes = problem
    _, voted, counts = listed(X, atoms, codes, algebra, seed)
    packed_atoms = BitMatrix.from_dense(atoms)
    cells = flips_by_column(counts.free, counts.bad, voted, packed_atoms)
    flipped = np.zeros_like(atoms)
    flipped[cells] = 1
    for form in (packed_atoms, SparseBits.from_bits(packed_atoms)):
        changed = toggled(form, *cells)
        assert type(changed) is type(form)
        np.testing.assert_array_equal(changed.to_dense(), atoms ^ flipped)
    votes = [naive.free_and_wrong(X, atoms, codes, k, algebra) for k in range(len(atoms))]
    gains = np.array(
        [np.where(free > 0, 2 * wrong - free + 0.5 * atoms[k], -1) for k, (free, wrong) in enumerate(votes)]
    )
    gains = np.where(dense(voted) & (gains > 0), np.floor(gains), -1)  # 0.5: a one is cleared if that does no harm
    expected = np.zeros_like(atoms)
    helped = gains.max(axis=0) >= 0
    expected[gains.argmax(axis=0)[helped], np.flatnonzero(helped)] = 1
    np.testing.assert_array_equal(flipped, expected)
    assert len(cells[0]) == expected.sum()
    before, after = (int(naive.errors(X, each, codes, algebra).sum()) for each in (atoms, atoms ^ flipped))
    assert after == before - gains[expected.astype(bool)].sum()
