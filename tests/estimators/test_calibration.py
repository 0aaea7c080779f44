"""What a model states about unknown cells is fitted to hidden cells, when it is first asked for."""

import json
import pickle

import numpy as np
import pytest

import bitatoms as ba
from bitatoms import BinaryDictionaryLearning
from bitatoms.estimators.model_estimator import ModelEstimator
from bitatoms.io.errors import FileError
from bitatoms.io.npz import METADATA_KEY

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def table():
    """Return a table in which atoms explain little: rows with patterns of other rows, and much noise."""
    X = ba.datasets.planted(300, 40, 12, algebra="or", code_density=0.1, noise=0.15, random_state=3).X
    return np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)


def new_model(**how):
    return BinaryDictionaryLearning(6, algebra="or", random_state=0, **how)


@pytest.fixture
def searches(monkeypatch):
    """Return a list to which each further search adds its table."""
    search, seen = ModelEstimator._search, []

    def counted(self, data, *given, **how):
        seen.append(data)
        return search(self, data, *given, **how)

    monkeypatch.setattr(ModelEstimator, "_search", counted)
    return seen


def test_the_first_prediction_searches_and_later_ones_do_not(table, searches):
    model = new_model().fit(table)
    model.transform(table)
    model.score(table)
    assert not searches
    assert model.as_model().pool is None
    first = model.predict_cell_proba(table)
    assert len(searches) == 5  # a twentieth of 10,800 cells is few
    assert all(0.04 < (data.n_unknown - np.isnan(table).sum()) / 10_800 < 0.06 for data in searches)
    np.testing.assert_array_equal(model.predict_cell_proba(table), first)
    model.complete(table)
    assert len(searches) == 5
    assert model.fit(table).as_model().pool is None


def test_further_searches_find_as_many_atoms_as_the_fit(monkeypatch):
    """With few cells known, the codelength would choose fewer."""
    X = ba.datasets.planted(200, 30, 5, algebra="or", code_density=0.3, noise=0.05, random_state=3).X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    search, numbers = ModelEstimator._search, []

    def counted(self, *given, **how):
        model = search(self, *given, **how)
        numbers.append(model.atoms.n_rows)
        return model

    model = BinaryDictionaryLearning(algebra="or", random_state=0).fit(X)
    monkeypatch.setattr(ModelEstimator, "_search", counted)
    model.predict_cell_proba(X)
    assert model.n_components_ > 0
    assert numbers == [model.n_components_] * 5


def test_predictions_do_not_depend_on_threads_and_other_calls(table):
    expected = new_model().fit(table).predict_cell_proba(table)
    other = new_model(n_jobs=3).fit(table)
    again = pickle.loads(pickle.dumps(other))  # before its first prediction
    filled = other.complete(table)
    np.testing.assert_array_equal(other.predict_cell_proba(table), expected)
    np.testing.assert_array_equal(again.predict_cell_proba(table), expected)
    unknown = np.isnan(table)
    np.testing.assert_array_equal(filled[unknown], expected[unknown] > 0.5)


def test_a_file_keeps_what_was_fitted(table, tmp_path):
    model = new_model().fit(table)
    model.save(tmp_path / "before.npz")
    expected = model.predict_cell_proba(table)
    model.save(tmp_path / "after.npz")
    np.testing.assert_array_equal(ba.load(tmp_path / "after.npz").predict_cell_proba(table), expected)
    before = ba.load(tmp_path / "before.npz")
    assert before.as_model().pool is None
    assert (before.predict_cell_proba(table) != expected).any()


@pytest.mark.parametrize("weights", [[1.0], [0.5, float("nan")], ["a", 1], None])
def test_a_corrupt_pool_is_refused(table, tmp_path, weights):
    path = tmp_path / "model.npz"
    model = new_model().fit(table[:60])
    model.predict_cell_proba(table[:1])
    model.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    metadata = json.loads(arrays[METADATA_KEY].tobytes())
    metadata["pool"]["weights"] = weights
    arrays[METADATA_KEY] = np.frombuffer(json.dumps(metadata).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(FileError, match="corrupt"):
        ba.load(path)


def test_other_atoms_are_not_stated_by_what_was_fitted_to_these(table):
    model = new_model().fit(table)
    model.predict_cell_proba(table)
    model.components_ = model.components_[::-1]
    assert model.as_model().pool is None
    assert model.predict_cell_proba(table).shape == table.shape


def test_a_model_of_a_stream_is_fitted_to_a_table_that_is_passed(table, searches):
    model = BinaryDictionaryLearning(6, algebra="or", random_state=0).partial_fit(table[:200])
    before = model.predict_cell_proba(table[200:])
    assert not searches  # it has no table
    assert model.calibrate(table[200:]) is model
    assert not searches  # nor other atoms
    after = model.predict_cell_proba(table[200:])
    assert (before != after).any()
    assert model.partial_fit(table[200:]).as_model().pool is None


def test_large_tables_are_sampled(table, searches, monkeypatch):
    monkeypatch.setattr("bitatoms.estimators.dictionary_learning._LEAST_KEPT_ROWS", 50)
    monkeypatch.setattr("bitatoms.estimators.dictionary_learning._MOST_KEPT_CELLS", 4000)
    new_model().fit(table).predict_cell_proba(table)
    assert {data.shape for data in searches} == {(100, 40)}
