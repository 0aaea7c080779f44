"""stability: atoms that other searches find again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
import naive
from bitatoms import BinaryDictionaryLearning, BitMatrix, stability
from bitatoms.base import SearchLimitWarning
from bitatoms.datasets import digits
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

PAPER = {"n_components": 6, "search": "paper"}  # it takes little time


@pytest.fixture(scope="module")
def X():
    return digits()[0][:240]


@pytest.fixture(scope="module")
def model(X):
    return BinaryDictionaryLearning(**PAPER, random_state=0).fit(X)


@pytest.fixture(scope="module")
def result(X, model):
    return stability(X, model, n_resamples=3)


def test_overlaps_are_those_of_searches_of_half_of_the_rows(X):
    """The rows, the searches, the overlaps and the matching by hand."""
    X = X[:160]
    model = BinaryDictionaryLearning(algebra="auto", random_state=0).fit(X)
    assert model.bias_.any()
    result = stability(X, model, n_resamples=2, random_state=5)
    for seed, found in zip(np.random.default_rng(5).integers(2**63, size=(2, 4)), result.overlaps, strict=True):
        random = np.random.default_rng(seed)
        rows = np.sort(random.choice(160, 80, replace=False))
        other = ba.factorize(X[rows], algebra=model.algebra_, random_state=random)
        table = [
            [naive.overlap(atom, model.bias_, each, other.bias) for each in other.atoms.to_dense()]
            for atom in model.components_
        ]
        np.testing.assert_array_equal(found, naive.match_atoms(np.array(table)))
    assert 0 < result.recurs.mean() < 1
    np.testing.assert_array_equal(result.recurs, (result.overlaps >= 0.8).mean(axis=0))
    np.testing.assert_array_equal(result.mean_overlap, result.overlaps.mean(axis=0))
    thrice = replace(result, overlaps=np.array([[0.8, 0.79]] + [[0.8, 0.8]] * 2 + [[0.7, 0.7]]))
    assert thrice.recurs.tolist() == [0.75, 0.5]
    assert thrice.is_stable.tolist() == [True, False]


def test_only_the_seed_differs_if_all_rows_are_searched(X):
    """A search that does not depend on its seed finds every atom again."""
    result = stability(X, n_resamples=2, share=1, init=X[:6], **PAPER)
    np.testing.assert_array_equal(result.overlaps, 1)
    assert "by at least 75% of 2 searches, each of all rows with another seed." in result.summary()


@pytest.mark.parametrize("kind", ["file", "Model", "Factorization"])
def test_a_model_of_any_kind(kind, X, model, result, tmp_path):
    given, how = model.as_model(), {"search": "paper"}  # the number of atoms is that of the model
    if kind == "file":
        given, how = tmp_path / "model.npz", {}
        model.save(given)
    elif kind == "Factorization":
        given = ba.factorize(X, random_state=0, **PAPER)
    for table, binarize in ((X, None), (csr_array(X), None), (5 * X, 2)):
        again = stability(table, given, n_resamples=3, n_jobs=2, binarize=binarize, **how)
        np.testing.assert_array_equal(again.overlaps, result.overlaps)
    if kind == "Factorization":
        named = stability(pd.DataFrame(X).add_prefix("c"), given, n_resamples=1, **how)
        assert named.model.patterns()[0].features[0].startswith("c")


def test_rows_in_a_store_and_on_a_cluster(X, tmp_path):
    """Also where a search sees only a sample of its share."""
    pytest.importorskip("zarr")
    array = pytest.importorskip("dask.array")
    X = X[:100, 16:48]
    frame = pd.DataFrame(X).add_prefix("c")
    store = ba.pack(frame, tmp_path / "rows.zarr")
    model = BinaryDictionaryLearning(algebra="xor", random_state=0).fit(X)
    rows = array.from_array(X, chunks=(30, 32))
    how = {"n_resamples": 2, "share": 0.9, "search_rows": 70}
    expected = stability(X, model, **how).overlaps
    assert 0 < expected.mean() < 1
    for table in (store, store.path, rows):
        np.testing.assert_array_equal(stability(table, model, n_jobs=2, **how).overlaps, expected)
    other = BinaryDictionaryLearning(**PAPER).fit(frame.iloc[:, ::-1])
    with pytest.raises(ba.InputError, match="columns of X are not in the order of the model"):
        stability(store, other, search="fast")


def test_unknown_cells_stay_unknown(X):
    """What their bits are does not matter."""
    unknown = BitMatrix.from_dense(random_bits(0, *X.shape, 0.2))
    result = stability(np.where(unknown.to_dense(), np.nan, X), n_resamples=2, **PAPER)
    assert result.model.as_model().known.tolist() == (240 - unknown.column_weights()).tolist()
    masked = np.ma.masked_array(X ^ unknown.to_dense(), unknown.to_dense())
    again = stability(masked, n_resamples=2, **PAPER)
    np.testing.assert_array_equal(again.overlaps, result.overlaps)
    assert 0 < result.mean_overlap.mean() < 1


def test_patterns_files_and_reports_show_how_often_atoms_recur(X, model, result, tmp_path):
    assert all(pattern.recurs is None for pattern in model.patterns())  # the argument is not changed
    shares = [pattern.recurs for pattern in result.model.patterns()]
    assert shares == result.recurs.tolist()
    columns = result.to_dict()
    assert list(columns) == ["atom", "features", "rows", "bits_saved", "recurs", "mean_overlap", "is_stable"]
    pd.testing.assert_frame_equal(result.to_pandas(), pd.DataFrame(columns).set_index("atom"))
    assert str(result) == result.summary()
    result.model.save(tmp_path / "model.npz")
    again = ba.load(tmp_path / "model.npz")
    assert [pattern.recurs for pattern in again.patterns()] == shares
    assert again.as_model().recurrence[1:] == (3, 0.5, 0.8)
    assert [pattern.recurs for pattern in again.fit(X).patterns()] == [None] * len(model.components_)


def test_a_model_without_atoms():
    result = stability(random_bits(0, 50, 20, 0.5), n_resamples=2)
    assert (result.overlaps.shape, result.recurs.shape, result.model.patterns()) == ((2, 0), (0,), [])
    assert result.summary() == "The model has no atoms, so none can recur."


def test_duplicates_and_atoms_without_ones(X):
    """Only one of two equal atoms is found again, and an atom that says nothing never is."""
    how = {"n_components": 3, "search": "paper", "init": X[:3]}
    model = BinaryDictionaryLearning(**how).fit(X)
    atoms = np.vstack([model.components_, model.components_[:1], np.zeros((1, 64), np.uint8)])
    learned = replace(model.as_model(), atoms=BitMatrix.from_dense(atoms), uses=np.ones(5, int), saved=None)
    learned = replace(learned, complete=None)
    assert stability(X, learned, n_resamples=2, share=1, **how).recurs.tolist() == [1, 1, 1, 0, 0]


def test_a_callback_sees_each_resample_and_may_end_them(X, model, result):
    seen = []
    ended = stability(X, model, n_resamples=9, callback=lambda so_far: seen.append(so_far) or len(seen) == 2)
    assert [each.n_resamples for each in seen] == [1, 2]
    np.testing.assert_array_equal(ended.overlaps, result.overlaps[:2])


def test_searches_that_reach_a_limit_are_reported_once(X, model):
    with pytest.warns(SearchLimitWarning, match="max_iter ended 2 of 2 searches before they converged") as caught:
        stability(X, model, n_resamples=2, max_iter=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_other_tables_algebras_and_weights_are_reported(X, model):
    plain, weighted = (ba.factorize(X, sample_weight=weights, **PAPER) for weights in (np.ones(240), np.arange(240)))
    for table, learned, how, message in [
        (X, model, {"algebra": "or"}, "algebra=\"or\" is not the algebra of the model, 'xor'; omit it, or model"),
        (X[:, :63], model, {}, "63 features"),
        (X[:, :63], plain, {}, "X has 63 columns, but the model was learned from 64"),
        (X, weighted, {}, r"repeat the rows by their weights, X = np\.repeat\(X, weights, axis=0\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            stability(table, learned, **how)
    assert stability(X, plain, n_resamples=1).n_resamples == 1
