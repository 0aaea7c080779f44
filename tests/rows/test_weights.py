"""A weight equals that many repetitions of a row, bit for bit, wherever rows are learned from or scored."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.parallel import Workers
from bitatoms.rows.budget import MemoryLimitError
from bitatoms.rows.weights import WeightedRows, checked_weights
from support.faults import ctrl_c_when
from support.plans import use_windows
from support.strategies import SEEDS, UNKNOWN, factorisations, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

FIELDS = ("wrong", "uses", "bias", "saved", "ones", "missed", "known", "complete", "lacking", "atom_known")


def assert_same_result(weighted, repeated, weights):
    """Assert that all but the codes is equal to the bit, and that rows have the codes of their first repetitions."""
    for name in ("atoms", "codelength", "n_samples", "algebra", "coder", "rows_hash"):
        assert getattr(weighted, name) == getattr(repeated, name), name
    assert weighted.summary() == repeated.summary()
    assert [row[:-1] for row in weighted.history] == [row[:-1] for row in repeated.history]
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name), err_msg=name)
    firsts = [sum(weights[:row]) for row in range(len(weights)) if weights[row]]
    assert len(weighted.codes) == len(weights)
    assert weighted.codes[weights > 0] == repeated.codes[firsts]


@st.composite
def weighted_tables(draw):
    """Draw tables with unknown cells, and weights that are not all 0."""
    X = draw(factorisations(n_rows=st.sampled_from((1, 3, 17)), n_cols=st.sampled_from((1, 9, 65))))[0]
    weights = np.random.default_rng(draw(SEEDS)).integers(0, draw(st.sampled_from((2, 4))), len(X))
    weights[draw(st.integers(0, len(X) - 1))] = draw(st.integers(1, 70))
    return np.where(X == UNKNOWN, np.nan, X), weights


@given(
    weighted_tables(),
    st.sampled_from(("mdl", 2)),
    st.sampled_from(("xor", "or", "auto")),
    st.sampled_from(("fast", "fast", "paper")),
)
@settings(max_examples=8)
@pytest.mark.filterwarnings("ignore:.*atoms? w(as|ere) requested:UserWarning")
@pytest.mark.filterwarnings("ignore:init=.* finds only:UserWarning")
def test_factorize_with_weights_equals_repeated_rows(table, n_components, algebra, search):
    X, weights = table
    limits = ba.Constraints(max_components=3) if n_components == "mdl" else None
    how = {"algebra": algebra, "search": search, "random_state": 0, "constraints": limits}
    weighted = ba.factorize(X, n_components, sample_weight=weights, **how)
    repeated = ba.factorize(naive.repeat_rows(X, weights), n_components, **how)
    assert_same_result(weighted, repeated, weights)


def planted_with_weights(n_rows=120, n_cols=40, max_weight=4):
    X = ba.datasets.planted(n_rows, n_cols, 4, code_density=0.4, noise=0.02, random_state=0).X
    return X, np.random.default_rng(1).integers(0, max_weight, n_rows)


def test_unknown_cells_of_rows_with_weight_zero_do_not_count():
    X, weights = planted_with_weights()
    X = np.where(random_bits(2, *X.shape, 0.1) & (weights == 0)[:, np.newaxis], np.nan, X)
    assert np.isnan(X).any()
    weighted = ba.factorize(X, algebra="xor", sample_weight=weights, random_state=0)
    assert weighted.known is None
    assert_same_result(weighted, ba.factorize(naive.repeat_rows(X, weights), algebra="xor", random_state=0), weights)


def test_a_row_has_the_code_of_its_first_repetition():
    """A search may leave repetitions of a row with different codes."""
    codes, new = random_bits(0, 6, 5, 0.5), random_bits(1, 1, 5, 0.5)
    model = SimpleNamespace(codes=lambda rows, workers: BitMatrix.from_dense(new[: len(rows)]))
    weighted = WeightedRows(BitMatrix.zeros(4, 9), np.array([2, 0, 1, 3]))
    found = weighted.own_codes(BitMatrix.from_dense(codes), model, Workers())
    np.testing.assert_array_equal(found.to_dense(), [codes[0], new[0], codes[2], codes[3]])


def test_rows_with_weight_zero_are_coded_as_new_ones():
    X, weights = planted_with_weights()
    model = ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(X, sample_weight=weights)
    codes = ba.factorize(X, algebra="xor", sample_weight=weights, random_state=0).codes
    np.testing.assert_array_equal(codes[weights == 0].to_dense(), model.transform(X[weights == 0]))


def test_a_search_of_a_sample_and_passes_see_repeated_rows():
    X, weights = planted_with_weights(400, max_weight=7)
    how = {"algebra": "xor", "search_rows": 300, "random_state": 0, "resources": ba.Resources(max_memory="20 MB")}
    weighted = ba.factorize(X, sample_weight=weights, **how)
    assert_same_result(weighted, ba.factorize(naive.repeat_rows(X, weights), **how), weights)


def test_wide_sparse_tables(monkeypatch):
    use_windows(monkeypatch, min_features=100)
    X = csr_array(np.kron(np.eye(3, dtype=np.uint8), random_bits(0, 40, 60, 0.08)))
    weights = np.random.default_rng(1).integers(0, 3, 120)
    weighted = ba.factorize(X, algebra="xor", sample_weight=weights, random_state=0)
    repeated = ba.factorize(csr_array(naive.repeat_rows(X.toarray(), weights)), algebra="xor", random_state=0)
    assert_same_result(weighted, repeated, weights)


def test_initial_codes_are_repeated():
    X, weights = planted_with_weights()
    atoms, codes = random_bits(1, 3, 40, 0.3), random_bits(2, 120, 3, 0.3)
    how = {"search": "paper", "random_state": 0}
    weighted = ba.factorize(X, 3, init=(atoms, codes), sample_weight=weights, **how)
    repeated = naive.repeat_rows(X, weights), naive.repeat_rows(codes, weights)
    assert_same_result(weighted, ba.factorize(repeated[0], 3, init=(atoms, repeated[1]), **how), weights)
    with pytest.raises(ValueError, match="the codes in init have 119 rows, but X has 120"):
        ba.factorize(X, 3, init=(atoms, codes[:-1]), sample_weight=weights, **how)


def test_interrupted_search_has_the_codes_of_the_rows_passed():
    X, weights = planted_with_weights()
    with pytest.raises(ba.Interrupted) as caught:
        ba.factorize(X, algebra="xor", sample_weight=weights, callbacks=ctrl_c_when(), random_state=0)
    found = caught.value.result
    assert (found.n_samples, len(found.codes)) == (weights.sum(), 120)


# --- checks


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([np.nan, 1, np.nan], "the weight of row 0 is missing .2 in all.; pass 0 to leave a row out"),
        (np.array([1, "3", 1], object), r"the weight of row 1 is text \('3'\); convert it"),
        (pd.Series(["1", "3", "1"]), r"the weight of row 0 is text \('1'\)"),
        (np.array([1, b"3", 1], object), "the weight of row 1 is text"),
        ([1, np.inf, 1], "the weight of row 1 is inf .1 in all.; a weight is how often a row counts, and below"),
        (np.ma.masked_array([1, 1, 1], [0, 1, 0]), "the weight of row 1 is missing"),
        ([1, 2**62, 1], "row 1 is 4611686018427387904 .1 in all.; a weight is how often a row counts"),
        (2, r"has shape \(\)"),
    ],
)
def test_weights_that_are_not_whole_numbers(weights, message):
    with pytest.raises(ValueError, match=message):
        checked_weights(weights, 3)


@pytest.mark.parametrize(
    "weights", [[3, 0, 1], (3.0, 0.0, 1.0), np.array([3, 0, 1], np.uint8), np.array([3, 0, 1], object)]
)
def test_valid_weights(weights):
    checked = checked_weights(weights, 3)
    assert (checked.tolist(), checked.dtype) == ([3, 0, 1], np.int64)
    assert checked_weights([True, False, True], 3).tolist() == [1, 0, 1]


@pytest.mark.parametrize("table", [np.eye(200, dtype=np.uint8), csr_array(np.eye(200, 4000, dtype=np.uint8))])
@pytest.mark.parametrize(
    ("weight", "how", "limit"),
    [
        (10**12, {}, "more than half of the memory"),
        (10**5, {"resources": ba.Resources(max_memory="1 MB")}, "more than max_memory=1000000;"),
    ],
)
def test_too_many_repetitions_are_an_error(table, weight, how, limit):
    weights, message = np.full(200, weight), f"sum of sample_weight is .*{limit}.* divide all weights"
    with pytest.raises(MemoryLimitError, match=message):
        ba.factorize(table, sample_weight=weights, **how)
    model = ba.BinaryDictionaryLearning(3, search="paper", random_state=0).fit(np.eye(20, dtype=np.uint8))
    with pytest.raises(MemoryLimitError, match=r"sum of sample_weight is 2e\+13"):
        model.score(np.eye(20, dtype=np.uint8), sample_weight=np.full(20, 10**12))
