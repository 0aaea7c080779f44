"""Proximus: the rank-one step is a local optimum and follows the oracle; the recursive method keeps its radius."""

from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import proximus
from bitatoms.engine.coding import coding_rule
from bitatoms.parallel import Workers
from bitatoms.search.paper import append_rank_one, rank_one
from support.blocks import ALGEBRAS, bits_of, block_of, factors, within
from support.strategies import SEEDS, factorisations, matrices, random_bits

WORKERS = st.sampled_from((Workers(), Workers(2, 64)))
SMALL = matrices(st.sampled_from((1, 2, 5, 17, 65)), st.sampled_from((1, 2, 9, 31, 64, 65)))


class Draws:
    """A random generator that always draws the same share of the range."""

    def __init__(self, share):
        self.share = share

    def integers(self, high):
        return int(self.share * high)


DRAWS = st.sampled_from((0.0, 0.3, 0.6, 0.99)).map(Draws)


def drawn(draws, candidates):
    return candidates[draws.integers(len(candidates))]


def fixable(X, atoms, codes, algebra):
    """Return the errors that one more atom could fix: under OR those that are still 0."""
    wrong = naive.errors(X, atoms, codes, algebra)
    return wrong if algebra == "xor" else wrong & X


def appended(X, atoms, codes, atom, algebra, max_atoms=None):
    """The rank-one step by the oracle: the new atom's rows, then its bits and its rows in turn."""
    k = len(atoms)
    atoms = np.vstack([atoms, atom])
    codes = np.hstack([codes, np.zeros((len(X), 1), np.uint8)])
    codes[:, k] = naive.use_where_it_pays(X, atoms, codes, k, algebra, max_atoms)
    while codes[:, k].any():
        before = atoms[k].copy(), codes[:, k].copy()
        atoms[k] = naive.vote(X, atoms, codes, k, algebra)
        codes[:, k] = naive.use_where_it_pays(X, atoms, codes, k, algebra, max_atoms)
        if np.array_equal(before[0], atoms[k]) and np.array_equal(before[1], codes[:, k]):
            break
    return atoms, codes


@settings(max_examples=25)
@given(matrices(), DRAWS, WORKERS)
def test_a_rank_one_fit_matches_the_oracle_and_no_single_flip_lowers_its_error(X, draws, workers):
    """Proposition 1 of the paper."""
    atoms, users = rank_one(bits_of(X), workers, draws)
    if not X.any():
        assert (atoms.shape, users.tolist()) == ((0, X.shape[1]), [False] * len(X))
        return
    row = drawn(draws, np.flatnonzero(X.any(axis=1)))
    expected_users, expected_atom = naive.rank_one(X, X[row])
    np.testing.assert_array_equal(users, expected_users)
    np.testing.assert_array_equal(atoms.to_dense(), [expected_atom])
    assert naive.proximus_is_local_optimum(X, users.astype(np.uint8), expected_atom)


@settings(max_examples=30)
@given(factorisations(), ALGEBRAS, DRAWS, WORKERS, st.sampled_from((None, 1, 2)))
def test_an_appended_atom_matches_the_oracle(problem, algebra, draws, workers, max_atoms):
    X, atoms, codes = problem
    codes = within(codes, max_atoms)
    bits = fixable(X, atoms, codes, algebra)
    fixable_rows = bits.any(axis=1)
    if max_atoms is not None:
        fixable_rows &= codes.sum(axis=1) < max_atoms
    block = block_of(X, atoms, codes, algebra, workers)
    added = append_rank_one(block, coding_rule("greedy", algebra, max_atoms), draws)
    assert added == fixable_rows.any()
    expected = atoms, codes
    if added:
        expected = appended(X, atoms, codes, bits[drawn(draws, np.flatnonzero(fixable_rows))], algebra, max_atoms)
    for found, wanted in zip(factors(block), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@settings(max_examples=30)
@given(st.one_of(matrices(), factorisations().map(itemgetter(0))), st.sampled_from((0, 1, 2, 5, 200)), SEEDS)
def test_each_nonzero_row_has_one_pattern_within_the_radius(X, radius, seed):
    """Unknown cells are neither ones nor wrong."""
    result = proximus(bits_of(X), radius, random_state=seed)
    atoms, codes = result.atoms.to_dense(), result.codes.to_dense()
    np.testing.assert_array_equal(codes.sum(axis=1), (X == 1).any(axis=1))
    assert codes.any(axis=0).all()
    assert atoms.any(axis=1).all()
    wrong = naive.errors(X, atoms, codes, "xor")
    assert (wrong.sum(axis=1) <= radius).all()  # without a radius, the patterns reproduce the data
    np.testing.assert_array_equal(result.wrong, wrong.sum(axis=0))
    length = result.codelength
    assert (length.errors, length.codes, length.atoms) == naive.codelength(X, atoms, codes, "xor")
    assert (result.algebra, result.history, result.converged, result.n_iter) == ("xor", (), True, 1)


def test_proximus_reads_any_table_and_depends_only_on_the_seed():
    X = random_bits(0, 200, 65, 0.3)
    first = proximus(X, 8, random_state=3)
    for other in (
        proximus(X * 0.7, 8, binarize=0.5, random_state=3),
        proximus(bits_of(X), np.int64(8), n_jobs=2, random_state=np.random.default_rng(3)),
    ):
        assert other.atoms == first.atoms
        assert other.codes == first.codes


@pytest.mark.parametrize("radius", [-1, 1.5, True, None])
def test_a_radius_that_is_not_an_integer_raises(radius):
    with pytest.raises(ValueError, match="radius must be a non-negative integer, not"):
        proximus([[1, 0]], radius)
