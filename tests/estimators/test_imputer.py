"""BinaryImputer predicts hidden cells by the method that predicts known ones best."""

import threading
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import bitatoms as ba
from bitatoms import BinaryImputer
from bitatoms.datasets import planted
from bitatoms.errors import InputWarning
from bitatoms.model.profiles import ProfilePlan, fit_profiles
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


def test_atoms_are_chosen_where_they_predict_hidden_cells_better(hidden, fitted):
    factors, mask, X = hidden
    assert fitted.method_ == "atoms"
    assert fitted.model_.atoms.n_rows == 4
    assert fitted.profiles_ is None
    assert fitted.scores_["atoms"].log_loss < fitted.scores_["profiles"].log_loss
    assert {scores.n_cells for scores in fitted.scores_.values()} == {fitted.scores_["atoms"].n_cells}
    assert fitted.scores_["atoms"].n_cells == pytest.approx(0.1 * (~mask).sum(), rel=0.1)  # a tenth of the known ones
    completed = fitted.transform(X)
    assert completed.dtype == float
    np.testing.assert_array_equal(completed[~mask], X[~mask])
    assert (completed != factors.clean)[mask].mean() < 0.005
    np.testing.assert_array_equal(completed[mask], fitted.predict_cell_proba(X)[mask] > 0.5)
    again = BinaryImputer(algebra="xor", random_state=0, n_jobs=2).fit_transform(
        csr_array(X)
    )  # sparse tables stay sparse
    np.testing.assert_array_equal(again.toarray(), completed)


def test_profiles_are_chosen_where_they_predict_hidden_cells_better():
    digits = ba.datasets.digits()[0][:300]
    mask = np.random.default_rng(0).random(digits.shape) < 0.3
    X = np.where(mask, np.nan, digits)
    imputer = BinaryImputer(algebra="xor", random_state=0, constraints=ba.Constraints(max_components=4)).fit(X)
    assert imputer.method_ == "profiles"
    assert imputer.model_ is None
    assert imputer.profiles_.shape == (15, digits.shape[1])
    majority = np.nanmean(X, axis=0) > 0.5
    assert (imputer.transform(X) != digits)[mask].mean() < 0.9 * (majority != digits)[mask].mean()


def test_neighbours_are_used_in_large_tables():
    random = np.random.default_rng(0)
    founders = random.random((6, 640)) < 0.5
    X = founders[np.repeat(random.integers(6, size=(500, 5)), 128, axis=1), np.arange(640)].astype(float)
    mask = random.random(X.shape) < 0.02
    incomplete = np.where(mask, np.nan, X)
    imputer = BinaryImputer(algebra="xor", random_state=0).fit(incomplete)
    assert imputer.method_ == "neighbours"
    assert list(imputer.scores_) == ["neighbours"]  # certain enough to try nothing else
    assert imputer.model_ is None
    assert imputer.profiles_ is None
    assert (imputer.transform(incomplete) == X)[mask].mean() > 0.99


def test_atoms_are_used_in_large_tables_that_they_explain_better():
    factors = planted(1500, 240, 8, algebra="xor", code_density=0.3, noise=0.03, random_state=0)
    mask = np.random.default_rng(0).random(factors.X.shape) < 0.02
    imputer = BinaryImputer(random_state=0, algebra="xor").fit(np.where(mask, np.nan, factors.X))
    assert imputer.method_ == "atoms"
    assert list(imputer.scores_) == ["atoms", "neighbours"]


@pytest.mark.parametrize("most_known", [300_000, 100])
def test_other_columns_of_a_variable_do_not_tell_a_hidden_value(monkeypatch, most_known):
    """Values at random: no method predicts them, also if it is judged on a part of the table."""
    monkeypatch.setattr("bitatoms.estimators.imputer._MOST_KNOWN", most_known)
    monkeypatch.setattr("bitatoms.estimators.imputer._PART_COLUMNS", 8)  # the variables there are not the first ones
    values = np.random.default_rng(0).choice(list("uvw"), (200, 10))
    table = ba.encode({f"v{number}": column for number, column in enumerate(values.T)})
    by_chance = -(np.log2(1 / 3) + 2 * np.log2(2 / 3)) / 3
    fair, leaks = (BinaryImputer(algebra="xor", random_state=0).fit(each).scores_ for each in (table, table.bits))
    assert min(scores.log_loss for scores in fair.values()) > by_chance - 0.05
    assert min(scores.log_loss for scores in leaks.values()) < by_chance - 0.1
    assert list(fair) == ["atoms", "neighbours", "profiles"][: 2 if most_known == 100 else 3]


def test_large_tables_are_judged_on_columns_that_vary(monkeypatch):
    monkeypatch.setattr("bitatoms.estimators.imputer._MOST_KNOWN", 100)
    monkeypatch.setattr("bitatoms.estimators.imputer._PART_COLUMNS", 10)
    random = np.random.default_rng(0).random((128, 12)) < 0.5
    X = np.hstack([np.ones((128, 30)), random])  # columns of ones are predicted at no cost
    scores = BinaryImputer(algebra="xor", random_state=0).fit(X).scores_
    assert min(each.log_loss for each in scores.values()) > 0.95


def test_a_search_without_a_complete_pass_leaves_the_model_of_the_sample(monkeypatch):
    monkeypatch.setattr(MemoryRows, "run_pass", Mock(side_effect=MemoryLimitError("too small for a pass")))
    X = planted(300, 20, 3, code_density=0.4, noise=0, random_state=0).X
    with pytest.warns(InputWarning, match="too small for a pass"):
        imputer = BinaryImputer(method="atoms", search_rows=100, algebra="xor", random_state=0).fit(X)
    assert (imputer.model_.n_samples, imputer.model_.ended) == (89, "max_memory")  # 11 rows are held out


@pytest.mark.parametrize("method", ["atoms", "neighbours", "profiles"])
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


def test_imputers_in_threads_give_the_bits_of_one_after_the_other(monkeypatch):
    """One of them ends, and restores the number of threads of BLAS, while the other one learns."""
    brief = partial(fit_profiles, plan=ProfilePlan(n_starts=1, n_steps=5))
    monkeypatch.setattr("bitatoms.estimators.imputer.fit_profiles", brief)
    X = (np.random.default_rng(0).random((1000, 100)) < 0.4).astype(float)
    first_began, second_began, first_ended = (threading.Event() for _ in range(3))

    def fitted(random_state):
        return (
            BinaryImputer(method="profiles", n_profiles=20, algebra="xor", random_state=random_state).fit(X).profiles_
        )

    def run_second(found):
        assert first_began.wait(60)
        found.append(fitted(HeldGenerator(1, second_began, first_ended)))

    with threadpool_limits(2):  # also on machines with one processor
        alone, found = fitted(1), []
        second = threading.Thread(target=run_second, args=(found,))
        second.start()
        fitted(HeldGenerator(0, first_began, second_began))
        first_ended.set()
        second.join()
    np.testing.assert_array_equal(found[0], alone)
