"""Starting atoms: random rows, random bits, spread rows, grown atoms, or as given; and errors of a wrong ``init``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import bitatoms
import naive
from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from bitatoms.search.starts import initial
from support.blocks import bits_of
from support.parameters import nested, resolved
from support.strategies import SEEDS, factorisations, matrices, random_bits


def factorize(X, n_components="mdl", **how):
    """Return what the published search finds; starts of the other searches are in test_driver.py."""
    return bitatoms.factorize(X, n_components, **nested(**{"search": "paper", **how}))


def distinct_rows(X):
    """The rows of X that are not all zeros, each once."""
    return {tuple(row) for row in X.tolist() if any(row)}


@given(matrices(), st.integers(0, 20), SEEDS)
def test_samples_are_distinct_nonzero_rows(X, wanted, seed):
    atoms = initial.samples(BitMatrix.from_dense(X), wanted, np.random.default_rng(seed)).to_dense()
    found = list(map(tuple, atoms.tolist()))
    assert len(set(found)) == len(found) == min(wanted, len(distinct_rows(X)))
    assert set(found) <= distinct_rows(X)
    assert atoms.shape[1] == X.shape[1]


@settings(max_examples=30)
@given(matrices(), st.integers(0, 8), SEEDS)
def test_spread_gives_as_many_atoms_as_asked_or_as_there_are_distinct_rows(X, wanted, seed):
    data = BitMatrix.from_dense(X)
    atoms = initial.spread(data, wanted, None, np.random.default_rng(seed), Workers())
    assert atoms.shape == (min(wanted, len(distinct_rows(X))), X.shape[1])
    assert initial.spread(data, wanted, None, np.random.default_rng(seed), Workers(2, 64)) == atoms
    assert initial.spread(data, wanted, True, np.random.default_rng(seed), Workers()) == atoms  # in either algebra


def test_spread_atoms_find_the_centres_of_groups():
    centres = random_bits(0, 8, 256, 0.3)
    group = np.repeat(np.arange(8), 30)
    X = centres[group] ^ random_bits(1, 240, 256, 0.01)
    found = 0
    for seed in range(5):
        atoms = initial.spread(BitMatrix.from_dense(X), 8, None, np.random.default_rng(seed), Workers())
        found += len(distinct_rows(atoms.to_dense()) & distinct_rows(centres))
    assert found > 37  # of 40; a row drawn at random is rarely such a centre


@pytest.mark.parametrize("init", ["auto", "samples", "spread"])
def test_fewer_distinct_rows_than_atoms_warn(init):
    X = np.repeat(random_bits(0, 3, 20, 0.5), 4, axis=0)
    expected = "finds only 3 distinct atoms in X, but 5 were requested; 3 are learned"
    with pytest.warns(UserWarning, match=expected) as caught:
        result = factorize(X, 5, init=init, algebra="xor", random_state=0)
    assert result.atoms.shape == (3, 20)
    assert result.wrong_bits == 0
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("as_type", "n_components"),
    [(np.asarray, 4), (list, "mdl"), (csr_array, 4), (BitMatrix.from_dense, "mdl"), (lambda X: X.astype(bool), 4)],
)
def test_learning_starts_from_given_atoms(as_type, n_components):
    data = planted(200, 65, 4, noise=0.0, atom_density=0.3, random_state=1)
    given_atoms, how = as_type(data.atoms), {"coder": "exact", "start_components": 2, "random_state": 0}
    result = factorize(data.X, n_components, init=given_atoms, **how)
    pair = factorize(data.X, n_components, init=(given_atoms, None), **how)
    assert (pair.atoms, pair.codes) == (result.atoms, result.codes)
    assert result.wrong_bits == 0
    assert result.history[0].atoms == 4
    assert sorted(result.atoms.to_dense().tolist()) == sorted(data.atoms.tolist())


@pytest.mark.parametrize("as_type", [np.array, BitMatrix.from_dense])
def test_coding_starts_from_given_codes_which_are_not_modified(as_type):
    X, atoms, codes = random_bits(0, 50, 65, 0.4), random_bits(1, 6, 65, 0.3), random_bits(2, 50, 6, 0.5)
    init = as_type(atoms), as_type(codes)
    expected = naive.code(X, atoms, codes, "greedy", "xor")
    assert not np.array_equal(expected, naive.code(X, atoms, np.zeros_like(codes), "greedy", "xor"))
    result = factorize(X, 6, init=init, coder="greedy", max_iter=1, algebra="xor")
    assert sorted(result.codes.to_dense().T.tolist()) == sorted(expected.T.tolist())
    for search, n_components in (("paper", "mdl"), ("fast", 6), ("thorough", "mdl")):
        factorize(X, n_components, algebra="xor", search=search, init=init, max_iter=3)
    for given_to_it, before in zip(init, (atoms, codes), strict=True):
        assert BitMatrix.from_any(given_to_it) == BitMatrix.from_dense(before)


def start_of(X, n_components, **how):
    """Return the atoms and codes from which a search under OR starts."""
    params = resolved(n_components, algebra="or", search="paper", **how)
    return initial.start_factors(BitMatrix.from_dense(X), params, True, Workers(), np.random.default_rng(0))


@pytest.mark.parametrize("uses", [None, 0, 1])
def test_further_atoms_are_what_those_given_leave_of_rows(uses):
    """Without codes, rows are coded first; the codes given, of no row or of all rows, stay as they are."""
    first, second = np.repeat(np.eye(2, dtype=np.uint8), 35, axis=1)
    X = np.stack([first, first | second] * 3)
    codes = None if uses is None else np.full((6, 1), uses, np.uint8)
    atoms, found = start_of(X, 2, init=(first[np.newaxis], codes))
    left = {tuple(row) for row in X} if uses == 0 else {tuple(second)}
    assert atoms.shape == (2, 70)
    assert atoms.to_dense()[0].tolist() == first.tolist()
    assert tuple(atoms.to_dense()[1]) in left
    assert uses is None or found.to_dense().tolist() == [[uses, 0]] * 6


def test_as_many_random_atoms_are_drawn_as_are_allowed(monkeypatch):
    monkeypatch.setattr(initial, "_MAX_DRAWN", 5)
    X = random_bits(0, 9, 20, 0.5)
    assert start_of(X, 5, init="bernoulli")[0].shape == (5, 20)
    with pytest.raises(ValueError, match="draws at most 5 atoms, not 6"):
        start_of(X, 6, init="bernoulli")


@given(factorisations(n_rows=st.sampled_from((1, 3, 65))), st.sampled_from((0, 1, 4, 70)), SEEDS)
def test_far_rows_are_those_of_the_oracle(problem, most, seed):
    X = problem[0]
    found = initial.far_rows(bits_of(X), most, np.random.default_rng(seed))
    assert found.tolist() == naive.far_rows(X, most, np.random.default_rng(seed))
