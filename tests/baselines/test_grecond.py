"""GreConD: equal to a naive version of the paper's Algorithm 2."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.baselines.grecond import GreConD
from bitatoms.datasets import digits, planted
from bitatoms.search import concept_start
from support.strategies import ROWS, matrices, random_bits

TINY = {"n_rows": st.sampled_from((1, 2, 5, 17)), "n_cols": st.sampled_from((1, 2, 7, 9))}
FEW_COLUMNS = st.sampled_from((1, 2, 7, 9, 31))
SOME_ROWS = ROWS.filter(bool)


def concepts_of(model):
    """Return the factors as pairs (rows, columns)."""
    found = zip(model.codes_.T, model.components_, strict=True)
    return [(np.flatnonzero(rows).tolist(), np.flatnonzero(columns).tolist()) for rows, columns in found]


def product(model):
    """Return the OR product."""
    return (model.codes_.astype(int) @ model.components_ > 0).astype(np.uint8)


@given(
    matrices(n_rows=st.sampled_from((1, 2, 5, 17)), n_cols=st.sampled_from((1, 2, 7, 9))), st.sampled_from((2, None))
)
@settings(max_examples=30)
def test_equals_the_naive_algorithm(X, n_components):
    assert concepts_of(GreConD(n_components).fit(X)) == naive.concepts(X, n_components)


@pytest.mark.parametrize(("n_rows", "n_cols"), [(65, 12), (20, 66), (130, 7)])
def test_equals_the_naive_algorithm_beyond_one_word(n_rows, n_cols):
    X = planted(n_rows, n_cols, 4, algebra="or", atom_density=0.3, code_density=0.4, random_state=0).X
    assert concepts_of(GreConD(4).fit(X)) == naive.concepts(X, 4)


@given(matrices(n_rows=SOME_ROWS))
@settings(max_examples=40)
def test_without_a_limit_the_product_equals_the_table(X):
    model = GreConD().fit(X)
    np.testing.assert_array_equal(product(model), X)
    np.testing.assert_array_equal(model.inverse_transform(model.codes_), X)


@given(matrices(n_rows=SOME_ROWS, n_cols=FEW_COLUMNS), st.integers(1, 4))
@settings(max_examples=40)
def test_factors_are_concepts_and_cover_no_zero(X, n_components):
    model = GreConD(n_components).fit(X)
    assert model.n_components_ <= n_components
    assert not (product(model) & ~X & 1).any()
    for rows, columns in concepts_of(model):
        assert rows == naive.rows_with(X, columns)
        assert columns == naive.columns_of(X, rows)


@given(matrices(n_rows=SOME_ROWS, n_cols=FEW_COLUMNS), st.integers(0, 9))
@settings(max_examples=40)
def test_transform_uses_all_concepts_that_new_rows_have_and_covers_no_zero(X, seed):
    model = GreConD(4).fit(X)
    assert (model.transform(X) == model.codes_).all()
    new = random_bits(seed, 30, X.shape[1], 0.7)
    codes = model.transform(new)
    assert not (model.inverse_transform(codes) & ~new & 1).any()
    for users, atom in zip(codes.T, model.components_, strict=True):
        assert np.flatnonzero(users).tolist() == naive.rows_with(new, np.flatnonzero(atom))


def test_fewer_factors_are_a_prefix_of_more():
    X = random_bits(1, 60, 20, 0.5)
    few, many = GreConD(3).fit(X), GreConD().fit(X)
    np.testing.assert_array_equal(few.components_, many.components_[:3])
    np.testing.assert_array_equal(few.codes_, many.codes_[:, :3])


def test_every_factor_covers_something_new():
    X = random_bits(2, 80, 30, 0.4)
    model = GreConD().fit(X)
    covered = np.zeros(X.shape, bool)
    for rows, columns in concepts_of(model):
        cells = np.ix_(rows, columns)
        assert not covered[cells].all()
        covered[cells] = True


def test_small_chunks_give_the_same_result(monkeypatch):
    X = random_bits(3, 70, 25, 0.6)
    whole = concepts_of(GreConD().fit(X))
    monkeypatch.setattr(concept_start, "_CHUNK_PAIRS", 30)
    assert concepts_of(GreConD().fit(X)) == whole


def test_blocks_of_ones_are_found():
    X = np.kron(np.eye(3, dtype=np.uint8), np.ones((40, 25), np.uint8))
    model = GreConD().fit(X)
    assert concepts_of(model) == [
        (list(range(40 * block, 40 * block + 40)), list(range(25 * block, 25 * block + 25))) for block in range(3)
    ]


def test_wrong_cells_on_digits():
    X, _ = digits()
    assert float((product(GreConD(16).fit(X)) != X).mean()) < 0.0973
    # a public implementation that changes the concept while it scans the columns: 0.267


@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, 1)),
        np.zeros((3, 4)),
        np.ones((5, 3)),
        np.ones((1, 70)),
        np.ones((70, 1)),
        np.repeat([[1, 0, 1, 1]], 6, axis=0),
    ],
    ids=["one cell", "zeros", "ones", "one row", "one column", "equal rows"],
)
def test_tables_of_at_most_one_pattern(X):
    model = GreConD().fit(X)
    assert model.n_components_ == X.any()
    np.testing.assert_array_equal(product(model), X)


def test_two_fits_give_the_same_bits():
    X = random_bits(4, 90, 40, 0.3)
    assert concepts_of(GreConD(9).fit(X)) == concepts_of(GreConD(9).fit(X))


@pytest.mark.parametrize(("n_components", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError)])
def test_invalid_n_components_raises(n_components, error):
    with pytest.raises(error, match="n_components must be"):
        GreConD(n_components).fit(np.eye(3))
