"""GreConD: equal to a naive version of the paper's Algorithm 2."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.baselines.grecond import GreConD
from bitatoms.datasets import planted
from support.strategies import ROWS, matrices, random_bits

TINY = {"n_rows": st.sampled_from((1, 2, 5, 17)), "n_cols": st.sampled_from((1, 2, 7, 9))}
FEW_COLUMNS = st.sampled_from((1, 2, 7, 9, 31))
SOME_ROWS = ROWS.filter(bool)


def concepts_of(model):
    """Return the factors as pairs (rows, columns)."""
    found = zip(model.codes_.T, model.components_, strict=True)
    return [(np.flatnonzero(rows).tolist(), np.flatnonzero(columns).tolist()) for rows, columns in found]


@given(matrices(**TINY), st.sampled_from((2, None)))
@settings(max_examples=30)
def test_equals_the_naive_algorithm(X, n_components):
    assert concepts_of(GreConD(n_components).fit(X)) == naive.concepts(X, n_components)


@pytest.mark.parametrize(("n_rows", "n_cols"), [(65, 12), (20, 66), (130, 7)])
def test_equals_the_naive_algorithm_beyond_one_word_and_chunk(monkeypatch, n_rows, n_cols):
    monkeypatch.setattr("bitatoms.search.starts.rank._CHUNK_PAIRS", 30)
    X = planted(n_rows, n_cols, 4, algebra="or", atom_density=0.3, code_density=0.4, random_state=0).X
    assert concepts_of(GreConD(4).fit(X)) == naive.concepts(X, 4)


@given(matrices(n_rows=SOME_ROWS, n_cols=FEW_COLUMNS), st.integers(0, 9))
def test_transform_uses_all_concepts_that_new_rows_have_and_covers_no_zero(X, seed):
    model = GreConD(4).fit(X)
    assert (model.transform(X) == model.codes_).all()
    new = random_bits(seed, 30, X.shape[1], 0.7)
    codes = model.transform(new)
    assert not (model.inverse_transform(codes) & ~new & 1).any()
    for users, atom in zip(codes.T, model.components_, strict=True):
        assert np.flatnonzero(users).tolist() == naive.rows_with(new, np.flatnonzero(atom))
