"""Estimators with weights equal estimators of repeated rows, also where scikit-learn routes the weights."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import bitatoms as ba
import naive
from bitatoms import BinaryDictionaryClassifier, BinaryDictionaryLearning, BinaryImputer

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def table():
    """Return rows with unknown cells, their weights, and the repeated rows."""
    X = ba.datasets.planted(150, 30, 4, code_density=0.4, noise=0.02, random_state=0).X.astype(float)
    random = np.random.default_rng(1)
    X[random.random(X.shape) < 0.05] = np.nan
    weights = random.integers(0, 4, 150)
    return X, weights, naive.repeat_rows(X, weights)


def assert_same_model(first, second):
    np.testing.assert_array_equal(first.components_, second.components_)
    np.testing.assert_array_equal(first.bias_, second.bias_)
    assert first.codelength_ == second.codelength_
    assert first.summary_ == second.summary_
    np.testing.assert_array_equal(first.as_model().uses, second.as_model().uses)
    assert first.patterns() == second.patterns()


def test_fit_transform_and_score(table):
    X, weights, repeated = table
    weighted, plain = (BinaryDictionaryLearning(algebra="xor", random_state=0) for _ in range(2))
    codes = weighted.fit_transform(X, sample_weight=weights)
    assert_same_model(weighted, plain.fit(repeated))
    np.testing.assert_array_equal(codes, plain.transform(X))
    np.testing.assert_array_equal(naive.repeat_rows(codes, weights), plain.transform(repeated))
    assert weighted.score(X, sample_weight=weights) == plain.score(repeated)
    assert weighted.score(X, sample_weight=np.ones(150)) == weighted.score(X)


def test_initial_codes_of_a_stream_are_repeated_with_their_rows(table):
    X, weights, repeated = table
    atoms, codes = np.eye(2, 30, dtype=np.uint8), np.arange(300).reshape(150, 2) % 3 % 2
    weighted, plain = (
        BinaryDictionaryLearning(2, init=(atoms, own), algebra="xor", random_state=0)
        for own in (codes, naive.repeat_rows(codes, weights))
    )
    assert_same_model(weighted.partial_fit(X, sample_weight=weights), plain.partial_fit(repeated))


def test_partial_fit(table):
    X, weights, _ = table
    weighted, plain = (BinaryDictionaryLearning(algebra="xor", random_state=0) for _ in range(2))
    for start in (0, 50):
        batch, own = X[start : start + 50], weights[start : start + 50]
        weighted.partial_fit(batch, sample_weight=own)
        plain.partial_fit(naive.repeat_rows(batch, own))
        assert_same_model(weighted, plain)
    with pytest.raises(ValueError, match=r"the weight of row 1 is 0\.5"):
        weighted.partial_fit(X[:2], sample_weight=[1, 0.5])
    with pytest.raises(ValueError, match="zero for every row"):
        weighted.partial_fit(X[:2], sample_weight=[0, 0])
    assert_same_model(weighted, plain)


@pytest.mark.parametrize("n_models", [1, 3])
def test_classifier(table, n_models):
    X, weights, repeated = table
    y = np.where(np.arange(150) < 70, "ash", "birch")
    y[weights == 0] = "cedar"  # a class without rows
    how = {"n_models": n_models, "n_components": 2, "search": "paper", "random_state": 0}
    weighted = BinaryDictionaryClassifier(**how).fit(X, y, sample_weight=weights)
    plain = BinaryDictionaryClassifier(**how).fit(repeated, np.repeat(y, weights))
    assert weighted.classes_.tolist() == ["ash", "birch"]
    np.testing.assert_array_equal(weighted.class_count_, plain.class_count_)
    np.testing.assert_array_equal(weighted.predict_proba(X), plain.predict_proba(X))
    assert weighted.score(X, y, sample_weight=weights) == pytest.approx(plain.score(repeated, np.repeat(y, weights)))


@pytest.mark.parametrize("method", ["atoms", "neighbours", "profiles"])
def test_imputer(table, method):
    X, weights, repeated = table
    weighted = BinaryImputer(method=method, algebra="xor", random_state=0).fit(X, sample_weight=weights)
    plain = BinaryImputer(method=method, algebra="xor", random_state=0).fit(repeated)
    np.testing.assert_array_equal(weighted.predict_cell_proba(X), plain.predict_cell_proba(X))


def test_pipeline_and_grid_search_route_weights(table):
    X, weights, repeated = table
    estimator = BinaryDictionaryLearning(search="paper", random_state=0)
    folds = np.arange(150) % 2
    with sklearn.config_context(enable_metadata_routing=True):
        routed = estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), routed)
        grid = GridSearchCV(pipeline, {"binarydictionarylearning__n_components": [1, 3]}, cv=PredefinedSplit(folds))
        grid.fit(X, sample_weight=weights)
        assert routed.set_partial_fit_request(sample_weight=True) is routed
    expected = GridSearchCV(
        BinaryDictionaryLearning(search="paper", random_state=0),
        {"n_components": [1, 3]},
        cv=PredefinedSplit(np.repeat(folds, weights)),
    ).fit(repeated)
    np.testing.assert_array_equal(grid.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    assert_same_model(grid.best_estimator_[-1], expected.best_estimator_)


def test_files_take_weights_but_stores_and_dask_collections_do_not(table, tmp_path):
    import dask.array

    X, weights = np.nan_to_num(table[0]), table[1]
    store = ba.pack(X, tmp_path / "rows.zarr")
    ba.write(X, tmp_path / "rows.npz")
    model, plain = (BinaryDictionaryLearning(3, search="paper", random_state=0) for _ in range(2))
    model.fit(tmp_path / "rows.npz", sample_weight=weights)
    assert_same_model(model, plain.fit(naive.repeat_rows(X, weights)))
    for rows in (store, tmp_path / "rows.zarr", dask.array.from_array(X, chunks=(50, 30))):
        with pytest.raises(ValueError, match="sample_weight is for tables in memory, not for a "):
            BinaryDictionaryLearning().fit(rows, sample_weight=weights)
        assert model.score(rows, sample_weight=weights) == model.score(X, sample_weight=weights)
