"""BinaryImputer predicts hidden cells by the method that predicts known ones best."""

import threading
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import bitatoms as ba
from bitatoms import BinaryImputer, BitMatrix
from bitatoms.datasets import planted
from bitatoms.errors import InputError, InputWarning
from bitatoms.estimators.imputer import _part
from bitatoms.imputation.profiles import ProfilePlan, fit_profiles
from bitatoms.imputation.tied_columns import TiedColumns, exclusive
from bitatoms.rows.budget import MemoryLimitError
from bitatoms.rows.source import MemoryRows

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def hidden():
    """Return planted factors and their table with hidden cells."""
    factors = planted(300, 80, 4, code_density=0.4, noise=0.02, random_state=0)
    mask = np.random.default_rng(0).random(factors.X.shape) < 0.2
    return factors, mask, np.where(mask, np.nan, factors.X)


@pytest.fixture(scope="module")
def fitted(hidden):
    return BinaryImputer(algebra="xor", random_state=0).fit(hidden[2])


def test_atoms_weigh_most_where_they_predict_hidden_cells_better(hidden, fitted):
    factors, mask, X = hidden
    assert fitted.method_ == "atoms"
    assert fitted.weights_["atoms"] > 0.5
    assert fitted.model_.atoms.n_rows == 4
    assert list(fitted.scores_) == ["atoms", "neighbours", "profiles", "regression"]
    assert fitted.scores_["atoms"].log_loss < fitted.scores_["profiles"].log_loss
    # a twentieth of the known cells in five folds
    assert {scores.n_cells for scores in fitted.scores_.values()} == {fitted.scores_["atoms"].n_cells}
    assert fitted.scores_["atoms"].n_cells == pytest.approx(0.25 * (~mask).sum(), rel=0.1)
    completed = fitted.transform(X)
    assert completed.dtype == float
    np.testing.assert_array_equal(completed[~mask], X[~mask])
    assert (completed != factors.clean)[mask].mean() < 0.005
    probabilities = fitted.predict_cell_proba(X)
    np.testing.assert_array_equal(completed[mask], probabilities[mask] > 0.5)
    np.testing.assert_array_equal(probabilities[~mask], X[~mask])
    again = BinaryImputer(algebra="xor", random_state=0, n_jobs=2).fit_transform(
        csr_array(X)
    )  # sparse tables stay sparse
    np.testing.assert_array_equal(again.toarray(), completed)


def test_a_named_method_is_the_one_that_auto_uses(hidden, fitted):
    alone = BinaryImputer(method="atoms", algebra="xor", random_state=0).fit(hidden[2])
    assert alone.model_.atoms == fitted.model_.atoms
    assert alone.method_ == "atoms"
    assert list(alone.weights_) == ["columns", "atoms"]
    assert list(alone.scores_) == ["atoms"]


def test_several_methods_predict_better_than_each():
    digits = ba.datasets.digits()[0][:600]
    mask = np.random.default_rng(0).random(digits.shape) < 0.3
    X = np.where(mask, np.nan, digits)

    def log_loss(method):
        how = {"algebra": "xor", "random_state": 0, "constraints": ba.Constraints(max_components=4)}
        imputer = BinaryImputer(method=method, **how).fit(X)
        found = imputer.predict_cell_proba(X)
        return -np.log2(np.where(digits == 1, found, 1 - found)[mask]).mean(), imputer

    loss, imputer = log_loss("auto")
    assert "profiles" in imputer.weights_
    assert imputer.profiles_.shape == (30, digits.shape[1])
    assert loss < 0.98 * min(log_loss(method)[0] for method in ("neighbours", "profiles", "regression"))
    assert loss < 0.75 * -np.log2(np.where(digits == 1, *shares(X))[mask]).mean()


def shares(X):
    """Return the shares of ones and of zeros in the columns of a table with missing values."""
    of_ones = np.broadcast_to(np.nanmean(X, axis=0).clip(0.01, 0.99), X.shape)
    return of_ones, 1 - of_ones


def questions(n_rows, seed=0):
    """Return answers of two groups of people to eight questions."""
    random = np.random.default_rng(seed)
    group = random.integers(2, size=n_rows)
    likely = random.integers(3, size=(2, 8))
    answers = np.where(random.random((n_rows, 8)) < 0.6, likely[group], random.integers(3, size=(n_rows, 8)))
    names = np.array(["no", "perhaps", "yes"])
    return answers, {f"q{number}": names[column] for number, column in enumerate(answers.T)}


def without(frame, hidden):
    """Return columns without hidden values."""
    return {name: np.where(own, None, frame[name]) for name, own in zip(frame, hidden.T, strict=True)}


@pytest.mark.parametrize("method", ["auto", "atoms", "neighbours", "profiles", "regression"])
def test_the_values_of_a_variable_share_one_distribution(method):
    answers, frame = questions(300)
    hidden = np.random.default_rng(1).random(answers.shape) < 0.2
    table = ba.encode(without(frame, hidden))
    imputer = BinaryImputer(method=method, algebra="or", random_state=0).fit(table)
    found = np.asarray(imputer.predict_cell_proba(table)).reshape(300, 8, 3)
    np.testing.assert_allclose(found.sum(axis=2), 1)
    filled = imputer.transform(table)
    filled = np.asarray(filled).reshape(300, 8, 3)
    np.testing.assert_array_equal(filled.sum(axis=2), 1)
    np.testing.assert_array_equal(filled.argmax(axis=2)[hidden], found.argmax(axis=2)[hidden])
    right = np.take_along_axis(found, answers[:, :, np.newaxis], axis=2)[..., 0][hidden]
    assert -np.log2(right).mean() < 1.5  # log2 of 3 is 1.58


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_stated_probabilities_come_true(share):
    """At every fifth, within three standard deviations and .03; the log loss is not above that of the columns."""
    answers, frame = questions(900, 3)
    hidden = np.random.default_rng(1).random(answers.shape) < share
    table = ba.encode(without(frame, hidden))
    for model in (BinaryImputer(random_state=0), ba.BinaryDictionaryLearning(random_state=0)):
        found = np.asarray(model.fit(table).predict_cell_proba(table)).reshape(900, 8, 3)[hidden]
        truth = answers[hidden][:, np.newaxis] == np.arange(3)
        fifths = np.minimum((found * 5).astype(int), 4)
        for fifth in range(5):
            own = fifths == fifth
            if own.sum() >= 200:
                assert abs((found - truth)[own].mean()) < 0.03 + 1.5 / np.sqrt(own.sum())
        of_values = np.stack([np.nanmean(np.where(hidden, np.nan, answers == value), axis=0) for value in range(3)], 1)
        alone = of_values[np.nonzero(hidden)[1], answers[hidden]]
        assert -np.log2(found[truth]).mean() < 1.01 * -np.log2(alone).mean()


def test_atoms_are_not_searched_in_large_tables_where_they_do_not_pay():
    random = np.random.default_rng(0)
    founders = random.random((6, 640)) < 0.5
    X = founders[np.repeat(random.integers(6, size=(500, 5)), 128, axis=1), np.arange(640)].astype(float)
    mask = random.random(X.shape) < 0.02
    incomplete = np.where(mask, np.nan, X)
    imputer = BinaryImputer(algebra="xor", random_state=0).fit(incomplete)
    assert "neighbours" in imputer.weights_
    assert imputer.model_ is None
    assert "atoms" not in imputer.scores_
    assert (imputer.transform(incomplete) == X)[mask].mean() > 0.99


def test_atoms_are_used_in_large_tables_that_they_explain_better():
    factors = planted(1500, 240, 8, algebra="xor", code_density=0.3, noise=0.03, random_state=0)
    mask = np.random.default_rng(0).random(factors.X.shape) < 0.02
    imputer = BinaryImputer(random_state=0, algebra="xor").fit(np.where(mask, np.nan, factors.X))
    assert imputer.method_ == "atoms"


def test_wide_tables_have_neither_profiles_nor_regression():
    X = planted(60, 1100, 3, algebra="or", code_density=0.4, noise=0.01, random_state=0).X
    imputer = BinaryImputer(algebra="or", random_state=0).fit(X)
    assert list(imputer.scores_) == ["atoms", "neighbours"]
    with pytest.raises(InputError, match='up to 1000 columns, and X has 1100; pass method="neighbours"'):
        BinaryImputer(method="regression").fit(X)


@pytest.mark.parametrize("most_known", [300_000, 100])
def test_other_columns_of_a_variable_do_not_tell_a_hidden_value(monkeypatch, most_known):
    """Values at random: no method predicts them, also if atoms are judged on a part of the table."""
    monkeypatch.setattr("bitatoms.estimators.imputer._MOST_KNOWN", most_known)
    values = np.random.default_rng(0).choice(list("uvw"), (200, 10))
    table = ba.encode({f"v{number}": column for number, column in enumerate(values.T)})
    by_chance = -(np.log2(1 / 3) + 2 * np.log2(2 / 3)) / 3
    fair, leaks = (BinaryImputer(algebra="xor", random_state=0).fit(each).scores_ for each in (table, table.bits))
    assert min(scores.log_loss for scores in fair.values()) > by_chance - 0.05
    assert min(scores.log_loss for scores in leaks.values()) < by_chance - 0.1


def test_atoms_are_judged_on_variables_that_vary(monkeypatch):
    monkeypatch.setattr("bitatoms.estimators.imputer._MOST_KNOWN", 2000)
    columns = np.random.default_rng(0).random((200, 12)) < 0.5
    answers = ba.encode({"q": np.random.default_rng(1).choice(list("uvw"), 200)}).bits.to_dense()
    data = BitMatrix.from_dense(np.hstack([np.ones((200, 30)), columns, answers]))
    tied = TiedColumns.of_groups(45, [exclusive(np.array([[42, 43, 44]]), may_be_none=False)])
    seen = set()
    for seed in range(20):
        part, its_ties = _part(data, tied, np.random.default_rng(seed))
        assert part.n_rows == 200
        assert 10 <= part.n_cols <= 12
        assert 0 < part.column_weights().min()
        assert part.column_weights().max() < 200
        seen |= {len(kind.values) for kind in its_ties.kinds}
    assert seen == {2, 3}


def test_a_search_without_a_complete_pass_leaves_the_model_of_the_sample(monkeypatch):
    monkeypatch.setattr(MemoryRows, "run_pass", Mock(side_effect=MemoryLimitError("too small for a pass")))
    X = planted(300, 20, 3, code_density=0.4, noise=0, random_state=0).X
    with pytest.warns(InputWarning, match="too small for a pass"):
        imputer = BinaryImputer(method="atoms", search_rows=100, algebra="xor", random_state=0).fit(X)
    assert (imputer.model_.n_samples, imputer.model_.ended) == (89, "max_memory")  # 11 rows are held out


@pytest.mark.parametrize("method", ["atoms", "neighbours", "profiles", "regression"])
def test_a_column_without_known_values_is_filled_with_zeros(method):
    X = np.where(np.arange(5) == 2, np.nan, planted(60, 5, 1, noise=0, random_state=0).X)
    with pytest.warns(UserWarning, match="columns without any known value are filled with 0: 'x2'"):
        imputer = BinaryImputer(method=method, algebra="xor", random_state=0).fit(X)
    assert not imputer.transform(X)[:, 2].any()
    assert (imputer.predict_cell_proba(X)[:, 2] == 0.5).all()
    X[:, 2] = 1
    assert imputer.transform(X)[:, 2].all()  # known values stay


class HeldGenerator(np.random.Generator):
    """A generator that signals when rows are drawn for the first time, and then waits."""

    def __init__(self, seed, drawn, go_on):
        super().__init__(np.random.PCG64(seed))
        self.drawn, self.go_on = drawn, go_on

    def choice(self, *args, **kwargs):
        self.drawn.set()
        assert self.go_on.wait(60)
        return super().choice(*args, **kwargs)


def test_profiles_in_threads_have_the_bits_of_one_after_the_other():
    """One of them ends, and restores the number of threads of BLAS, while the other one learns."""
    data = BitMatrix.from_dense(np.random.default_rng(0).random((1000, 100)) < 0.4)
    first_began, second_began, first_ended = (threading.Event() for _ in range(3))

    def fitted(random):
        plan = ProfilePlan(n_starts=1, n_steps=5)
        return fit_profiles(data, TiedColumns.of_groups(100, ()), 20, random, plan).mixtures[0].shares

    def run_second(found):
        assert first_began.wait(60)
        found.append(fitted(HeldGenerator(1, second_began, first_ended)))

    with threadpool_limits(2):  # also on machines with one processor
        alone, found = fitted(np.random.default_rng(1)), []
        second = threading.Thread(target=run_second, args=(found,))
        second.start()
        fitted(HeldGenerator(0, first_began, second_began))
        first_ended.set()
        second.join()
    np.testing.assert_array_equal(found[0], alone)
