"""A start from numbers instead of bits: bit for bit against the rule, the same for any threads, within its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix, factorize
from bitatoms.core.coding import coding_rule
from bitatoms.datasets import planted
from bitatoms.kernels.cpu import nmf as kernels
from bitatoms.parallel import Workers
from bitatoms.search import fixed_rank
from bitatoms.search.fixed_rank import _most_like
from bitatoms.search.nmf_start import _extent, nmf_starts
from support.blocks import ALGEBRAS
from support.strategies import SEEDS, matrices, random_bits

widths = pytest.mark.parametrize("n_features", [1, 63, 64, 65, 130])


def numbers(random, *shape):
    """Numbers from 0 to 1, some of them 0."""
    return np.maximum(0, random.random(shape, dtype=np.float32) - np.float32(0.3))


def fitted(X, rows, columns, edges):
    """What the kernels make of the rows, in blocks that end there."""
    pairs, out = np.empty((columns.shape[1],) * 2, np.float32), rows.copy()
    kernels.products(columns, pairs)
    for start, stop in zip([0, *edges], [*edges, len(X)], strict=True):
        room = np.empty(len(pairs), np.float32)
        kernels.fit_rows(BitMatrix.from_dense(X).words, columns, pairs, start, stop, room, out)
    return out


def starts(X, n_atoms, algebra="or", seed=0, workers=Workers(), effort=1, **limits):  # noqa: B008 - frozen
    """The atoms of all nmf_starts starts."""
    random, rule = np.random.default_rng(seed), coding_rule("greedy", algebra, **limits)
    return list(nmf_starts(BitMatrix.from_dense(X), n_atoms, rule, effort, lambda: False, random, workers))


@widths
@pytest.mark.parametrize("n_atoms", [1, 7, 17])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_numbers_of_rows_match_the_rule_to_the_last_bit(n_features, n_atoms, density):
    random = np.random.default_rng(n_features)
    X = random_bits(n_atoms, 9, n_features, density)
    rows, columns = numbers(random, 9, n_atoms), numbers(random, n_features, n_atoms)
    expected = naive.best_numbers(X, rows, columns)
    np.testing.assert_array_equal(fitted(X, rows, columns, []), expected)
    np.testing.assert_array_equal(fitted(X, rows, columns, [2, 3, 8]), expected)


@given(SEEDS, st.integers(1, 6), st.integers(1, 40))
def test_products_match_the_rule_to_the_last_bit(seed, n_atoms, n_rows):
    factor = numbers(np.random.default_rng(seed), n_rows, n_atoms)
    pairs = np.empty((n_atoms, n_atoms), np.float32)
    kernels.products(factor, pairs)
    np.testing.assert_array_equal(pairs, naive.pair_sums(factor))


@given(SEEDS, st.integers(1, 6))
def test_fitting_rows_never_raises_the_squares(seed, n_atoms):
    random = np.random.default_rng(seed)
    X = random_bits(seed, 20, 30, 0.4)
    rows, columns = numbers(random, 20, n_atoms), numbers(random, 30, n_atoms)
    after = fitted(X, rows, columns, [])

    def squares(of_rows):
        return ((X - of_rows.astype(float) @ columns.T) ** 2).sum(axis=1)

    assert (squares(after) <= squares(rows) + 1e-4).all()
    assert (after >= 0).all()


@pytest.mark.parametrize("algebra", ["or", "xor"])
def test_starts_are_the_same_for_any_threads_and_blocks(algebra):
    X = planted(300, 130, 6, algebra=algebra, noise=0.05, random_state=1).X
    alone = starts(X, 6, algebra)
    assert len(alone) > 1
    assert len(set(alone)) == len(alone)  # each from numbers of its own
    for workers in (Workers(2), Workers(3), Workers(1, 64), Workers(2, 64), Workers(3, 128)):
        assert starts(X, 6, algebra, workers=workers) == alone


def test_most_starts_find_planted_atoms_at_once():
    data = planted(400, 60, 5, algebra="or", noise=0.02, random_state=3)
    hidden = set(map(bytes, data.atoms.astype(np.uint8)))
    found = [len(hidden & set(map(bytes, atoms.to_dense()))) for atoms in starts(data.X, 5)]
    assert np.median(found) == 5


@settings(max_examples=30)
@given(matrices(), ALGEBRAS, st.integers(0, 9))
def test_any_table_gives_atoms_that_have_ones(X, algebra, n_atoms):
    for atoms in starts(X, n_atoms, algebra):
        assert atoms.n_cols == X.shape[1]
        assert atoms.n_rows <= n_atoms
        assert atoms.row_weights().all()


@pytest.mark.parametrize("X", [np.zeros((20, 9), np.uint8), np.zeros((0, 9), np.uint8)])
def test_without_ones_there_are_no_atoms(X):
    assert all(atoms.n_rows == 0 for atoms in starts(X, 3))


def test_a_cut_ends_the_starts():
    X = random_bits(0, 100, 40, 0.3)
    rule, random = coding_rule("greedy", "or"), np.random.default_rng(0)
    assert not list(nmf_starts(BitMatrix.from_dense(X), 4, rule, 1, lambda: True, random, Workers()))


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_atoms"),
    [(4000, 64, 8), (4000, 300, 64), (4000, 300, 200), (4000, 3000, 20), (300, 20000, 30), (4000, 2000, 900)],
)
def test_the_work_is_bounded_whatever_the_table(n_rows, n_features, n_atoms):
    """About a second at the rates assumed, for one start or for several; twice that for a thorough search."""
    data = BitMatrix.from_dense(random_bits(0, n_rows, n_features, 0.1))
    for effort in (1, 2):
        extent = _extent(data, n_atoms, effort)
        total = extent.n_starts * extent.n_iterations * extent.n_rows * extent.row_cost
        assert total <= effort * 1e9
        assert extent.n_rows <= min(n_rows, 1000)
        assert extent.n_starts == 0 or 20 <= extent.n_iterations <= 100
    assert (extent.n_starts == 0) == (n_atoms == 900)


@pytest.mark.parametrize("seed", [0, 1])
def test_atoms_that_growing_one_by_one_does_not_find_are_found(seed):
    """Blocks that overlap: each looks best together with its neighbours, for atoms grown one after the other."""
    atoms = np.array([np.roll(np.arange(60) < 20, 10 * k) for k in range(6)], np.uint8)
    codes = random_bits(seed, 400, 6, 0.4)
    X = naive.product(codes, atoms, "or")
    assert factorize(X, 6, algebra="or", max_iter=1, random_state=seed).wrong_bits == 0


@pytest.mark.parametrize("algebra", ["or", "xor"])
def test_the_first_round_is_the_start_and_says_what_changed(algebra):
    X = planted(200, 70, 5, algebra=algebra, noise=0.1, random_state=2).X
    result = factorize(X, 5, algebra=algebra, random_state=0)
    first = result.history[0]
    assert (first.move, first.atoms) == ("start", 5)
    assert first.codes_changed > 0
    assert first.wrong_bits >= result.wrong_bits


def test_no_row_uses_more_atoms_than_it_may():
    X = planted(200, 70, 8, algebra="or", noise=0.05, random_state=2).X
    result = factorize(X, 8, algebra="or", max_atoms_per_sample=2, random_state=0)
    assert result.codes.row_weights().max() == 2
    assert result.atoms.n_rows == 8


def test_atoms_that_are_given_are_where_it_starts():
    data = planted(200, 70, 5, algebra="or", noise=0.05, random_state=2)
    result = factorize(data.X, 5, algebra="or", init=data.atoms, random_state=0)
    assert result.history[0].atoms_changed == 0


@pytest.mark.parametrize("workers", [Workers(), Workers(2, 64), Workers(3)])
def test_a_row_that_trials_do_not_see_takes_after_the_seen_row_most_like_it(workers):
    X = random_bits(0, 300, 70, 0.3)
    seen = np.sort(np.random.default_rng(1).choice(300, 40, replace=False))
    like = _most_like(BitMatrix.from_dense(X), seen, workers)
    distances = (X[:, np.newaxis] != X[seen]).sum(axis=2)
    np.testing.assert_array_equal(like, distances.argmin(axis=1))
    np.testing.assert_array_equal(seen[like[seen]], seen)


def test_of_very_wide_rows_fewer_are_tried(monkeypatch):
    X = random_bits(0, 40, 65, 0.4)
    seen = np.arange(0, 40, 2)
    monkeypatch.setattr(fixed_rank, "_MOST_LOOKED_AT", 20 * 20 * 2 // 4)
    like = _most_like(BitMatrix.from_dense(X), seen, Workers())
    tried = seen[::4]
    for row in range(1, 40, 2):
        distances = (X[tried] != X[row]).sum(axis=1)
        assert like[row] == 4 * int(distances.argmin())
    assert (like[seen] == np.arange(20)).all()


@pytest.mark.parametrize("algebra", ["or", "xor"])
def test_rows_that_trials_do_not_see_are_coded_as_well_as_the_same_rows_seen(algebra, monkeypatch):
    """All of 60 rows are among 200 seen of 300, in which each comes five times."""
    monkeypatch.setattr(fixed_rank, "_SAMPLE", 200)
    X = np.repeat(random_bits(0, 60, 40, 0.4), 5, axis=0)
    codes = factorize(X, 20, algebra=algebra, random_state=0).codes.to_dense().reshape(60, 5, 20)
    assert (codes == codes[:, :1]).all()
