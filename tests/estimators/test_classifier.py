"""BinaryDictionaryClassifier: its bits agree with the oracle, and predictions follow from them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.naive_bayes import BernoulliNB
from sklearn.utils import get_tags

import bitatoms as ba
import naive
from bitatoms import BinaryDictionaryClassifier, BitMatrix, base
from bitatoms.datasets import planted
from bitatoms.estimators import classifier
from bitatoms.model.likelihood import Frequencies
from bitatoms.parallel import Workers

pytestmark = pytest.mark.usefixtures("few_trials")


def classes_of(n=80):
    """Return rows of three classes, each with patterns of its own, and their labels."""
    tables = [planted(n, 30, 3, code_density=0.6, noise=0.03, random_state=seed).X for seed in range(3)]
    order = np.random.default_rng(0).permutation(3 * n)
    return np.vstack(tables)[order], np.repeat(["ash", "birch", "cedar"], n)[order]


@pytest.fixture(scope="module")
def split():
    """Return training rows, their labels, new rows and theirs."""
    X, y = classes_of()
    return X[:160], y[:160], X[160:], y[160:]


@pytest.fixture(scope="module")
def fitted(split):
    return BinaryDictionaryClassifier(
        n_models=2, constraints=ba.Constraints(max_components=4), algebra="xor", random_state=0
    ).fit(*split[:2])


def quick(**how):
    """Return a classifier that takes little time, for tests of tables, labels and parameters."""
    return BinaryDictionaryClassifier(3, search="paper", **{"algebra": "xor", "n_models": 1, "random_state": 0, **how})


@pytest.fixture(scope="module")
def quickly_fitted(split):
    return quick(n_models=2).fit(*split[:2])


def test_missing_values_are_unknown_cells(split):
    random = np.random.default_rng(1)
    rows, new = (np.where(random.random(table.shape) < 0.25, np.nan, table) for table in (split[0], split[2]))
    fitted = quick().fit(rows, split[1])
    assert fitted.score(new, split[3]) > 0.8
    bits = BitMatrix.from_dense(new, missing="unknown")
    np.testing.assert_array_equal(fitted.codelengths(bits), fitted.codelengths(new))
    assert get_tags(fitted).input_tags.allow_nan


def naive_bits(model, X, new):
    """Return the bits of new rows under the model of the rows X of a class."""
    atoms, algebra, bias = model.atoms.to_dense(), model.algebra, model.bias

    def shortened(rows, cells, uses):
        start = model.code(BitMatrix.from_dense(rows), Workers(1)).codes().to_dense()
        pairs = zip(rows, start, strict=True)
        return np.array([naive.shorten_code(x, atoms, code, algebra, bias, cells, uses) for x, code in pairs])

    at_search = Frequencies.of_result(model)
    codes = shortened(X, at_search.cells, at_search.uses)
    n_users = codes.sum(axis=0).astype(np.int64)
    frozen = naive.cell_counts(X, naive.product(codes, atoms, algebra) ^ bias), np.array([len(X) - n_users, n_users])
    new_codes = shortened(new, *frozen)
    rows = zip(new, naive.product(new_codes, atoms, algebra) ^ bias, new_codes, strict=True)
    return np.array([naive.row_bits(*row, *frozen) for row in rows])


def naive_bits_without_atoms(X, new):
    """Return the bits of new rows by the shares of ones in the columns of X."""
    counts, uses, none = naive.cell_counts(X, np.zeros_like(X)), np.zeros((2, 0), np.int64), np.zeros(X.shape[1], int)
    return np.array([naive.row_bits(x, none, (), counts, uses) for x in new])


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_codelengths_agree_with_the_oracle(split, algebra):
    X, y, new, _ = split
    fitted = BinaryDictionaryClassifier(
        algebra=algebra, n_models=2, constraints=ba.Constraints(max_components=4), random_state=0
    ).fit(X, y)
    assert {model.algebra for models in fitted.models_ for model in models} == {algebra}
    assert fitted.weights_.shape == (3,)
    assert fitted.weights_.sum() == pytest.approx(1)
    expected = []
    for models, label in zip(fitted.models_, fitted.classes_, strict=True):
        own = X[y == label]
        bits = [naive_bits_without_atoms(own, new[:10]), *(naive_bits(model, own, new[:10]) for model in models)]
        expected.append(np.average(bits, axis=0, weights=fitted.weights_) - np.log2((y == label).mean()))
    np.testing.assert_allclose(fitted.codelengths(new[:10]), np.transpose(expected), atol=1e-3)


def test_predictions_follow_from_the_codelengths(fitted, split):
    X, y, new, truth = split
    bits = fitted.codelengths(new)
    assert fitted.score(new, truth) > max(0.85, BernoulliNB().fit(X, y).score(new, truth))
    np.testing.assert_array_equal(fitted.predict(new), fitted.classes_[bits.argmin(axis=1)])
    np.testing.assert_array_equal(fitted.decision_function(new), -bits)
    odds = 2 ** (-(bits - bits.min(axis=1, keepdims=True)) / fitted.temperature_)
    np.testing.assert_allclose(fitted.predict_proba(new), odds / odds.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(fitted.predict_log_proba(new), np.log(fitted.predict_proba(new)))


def test_the_decision_function_of_two_classes_is_the_bits_that_the_second_one_saves(split):
    X, y, new, _ = split
    two = y != "cedar"
    model = quick().fit(X[two], y[two])
    for (own,), label in zip(model.models_, model.classes_, strict=True):  # one model learns from all rows of its class
        assert own.ones.tolist() == X[y == label].sum(axis=0).tolist()
    bits = model.codelengths(new)
    np.testing.assert_array_equal(model.decision_function(new), bits[:, 0] - bits[:, 1])


def test_models_are_learned_from_rows_of_their_class(fitted, split):
    X, y, _, _ = split
    assert fitted.classes_.tolist() == ["ash", "birch", "cedar"]
    np.testing.assert_array_equal(fitted.class_count_, [(y == label).sum() for label in fitted.classes_])
    np.testing.assert_allclose(fitted.priors_, fitted.class_count_ / 160)
    for models, label in zip(fitted.models_, fitted.classes_, strict=True):
        n = (y == label).sum()
        assert [model.n_samples for model in models] == [n, 2 * n]  # the rows of the second one count twice
        never = ~X[y == label].any(axis=0)
        assert all(not model.ones[never].any() for model in models)
        assert (models[0].ones != models[1].ones).any()  # bootstrap samples
        assert all(model.remembered is None for model in models)  # training rows are coded as new ones
    assert fitted.n_iter_ == max(model.n_iter for models in fitted.models_ for model in models)


def test_the_temperature_makes_probabilities_honest():
    """Twenty copies of each column say no more than one, but their bits count twenty times."""
    X, y = classes_of()
    X = np.hstack([X] * 20) ^ (np.random.default_rng(1).random((len(X), 600)) < 0.05)
    y = np.where(np.random.default_rng(2).random(len(y)) < 0.2, "ash", y)  # some labels are wrong
    model = BinaryDictionaryClassifier(
        n_models=1, algebra="xor", random_state=0, constraints=ba.Constraints(max_components=4)
    ).fit(X[:160], y[:160])
    bits, truth = model.codelengths(X[160:]), y[160:]
    loss = log_loss(truth, model.predict_proba(X[160:]))
    model.temperature_ = 1.0
    assert model.codelengths(X[160:]).tolist() == bits.tolist()
    assert loss < 0.5 * log_loss(truth, model.predict_proba(X[160:]))


def test_priors(split):
    X, y, new, _ = split
    own, other = (quick(priors=priors).fit(X, y) for priors in (None, [0.5, 0.25, 0.25]))
    np.testing.assert_allclose(
        other.codelengths(new) - own.codelengths(new), np.tile(np.log2(own.priors_ / other.priors_), (len(new), 1))
    )
    never = quick(priors=[0, 0.5, 0.5]).fit(X, y)
    assert "ash" not in never.predict(new)
    assert (never.predict_proba(new)[:, 0] == 0).all()


def test_any_type_of_table_and_number_of_threads_gives_the_same_result(quickly_fitted, split):
    X, y, new, _ = split
    other = quick(n_models=2, n_jobs=3).fit(csr_array(X), y.tolist())
    np.testing.assert_array_equal(other.codelengths(new.tolist()), quickly_fitted.codelengths(new))
    assert other.temperature_ == quickly_fitted.temperature_
    scaled = quick(n_models=2, binarize=0.5).fit(X * 0.8, y)
    np.testing.assert_array_equal(scaled.codelengths(new * 0.8), quickly_fitted.codelengths(new))


def test_models_are_added_until_predictions_no_longer_change(split):
    X, y, new, _ = split
    alike = quick(n_models=20).fit(X, y)
    (found,) = {len(models) for models in alike.models_}
    assert found in range(4, 20, 2)  # two at a time
    assert alike.weights_.shape == (1 + found,)
    threads = quick(n_models=20, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threads.codelengths(new), alike.codelengths(new))
    np.testing.assert_array_equal(threads.weights_, alike.weights_)


def test_columns_without_patterns_are_weighed_as_by_naive_bayes():
    """Noise has no atoms: what remains are the shares of the columns."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    X = (random.random((300, 12)) < np.where(y, 0.7, 0.3)[:, np.newaxis]).astype(np.uint8)
    order = random.permutation(300)
    X, y = X[order], y[order]
    model = BinaryDictionaryClassifier(random_state=0).fit(X[:200], y[:200])
    bayes = BernoulliNB(alpha=0.5).fit(X[:200], y[:200])
    assert (model.predict(X[200:]) == bayes.predict(X[200:])).mean() > 0.95


def test_columns_are_matched_by_name(quickly_fitted, split):
    X, y, new, _ = split
    table, rows = (pd.DataFrame(each).add_prefix("bit ") for each in (X, new))
    model = quick(n_models=2).fit(table, y)
    assert model.feature_names_in_.tolist() == list(model.models_[0][0].columns) == list(table.columns)
    np.testing.assert_array_equal(model.codelengths(rows.iloc[:, ::-1]), quickly_fitted.codelengths(new))


def test_a_class_of_one_row_and_a_table_of_one_class():
    X = np.eye(6, 9, dtype=np.uint8)
    model = BinaryDictionaryClassifier(n_models=1, algebra="xor", random_state=0)
    assert model.fit(X, [0, 1, 1, 1, 1, 1]).predict(X).tolist() == [1] * 6
    assert model.fit(X, ["one"] * 6).predict(X).tolist() == ["one"] * 6
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((6, 1)))


def test_a_limit_warns_once(split):
    with pytest.warns(ConvergenceWarning, match="max_iter ended the search of a class") as caught:
        quick(max_iter=1).fit(*split[:2])
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_the_time_is_divided_among_the_classes(monkeypatch, split):
    searches, clock, learn_rows = [], [100.0], base.learn

    def learn(source, params, *how, **more):
        searches.append((source.n_rows, params.max_time))
        clock[0] += params.max_time
        return learn_rows(source, replace(params, max_time=None), *how, **more)

    monkeypatch.setattr(base, "learn", learn)
    monkeypatch.setattr(classifier.time, "perf_counter", lambda: clock[0])
    quick(max_time=24.0).fit(*split[:2])
    rows, limits = np.transpose(searches)
    np.testing.assert_allclose(limits, 24.0 * rows / 160)


def test_an_interrupt_leaves_no_model(split):
    def interrupt(row):
        raise KeyboardInterrupt

    model = quick().fit(*split[:2])
    with pytest.raises(ba.Interrupted) as caught:
        model.set_params(callbacks=interrupt).fit(*split[:2])
    assert caught.value.result is None
    with pytest.raises(NotFittedError):
        model.predict(split[2])


def test_stores_are_reported(tmp_path, split):
    pytest.importorskip("zarr")
    with pytest.raises(TypeError, match="BinaryDictionaryClassifier takes tables in memory, not Store"):
        quick().fit(ba.pack(split[0], tmp_path / "rows.zarr"), split[1])
