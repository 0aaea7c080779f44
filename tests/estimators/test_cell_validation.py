"""cross_validate_cells: hidden cells judge models."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms import BinaryDictionaryLearning, BinaryImputer, BitMatrix, cross_validate_cells
from bitatoms.core.hidden_cells import CellScores, hidden_folds, without_cells
from bitatoms.datasets import planted

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def X():
    return planted(200, 60, 3, atom_density=0.3, code_density=0.4, noise=0.03, random_state=0).X


@pytest.fixture(scope="module")
def result(X):
    return cross_validate_cells(X, [1, "mdl", "profiles"], n_folds=2)


def test_the_right_number_of_atoms_predicts_best(result):
    columns = result.to_dict()
    assert columns["model"] == ["column majority", "1", "mdl", "profiles"]
    assert columns["n_atoms"] == [None, 1, 3, None]
    assert result.best == "mdl"
    majority, one, mdl, _ = columns["log_loss"]
    assert mdl < one < majority
    assert mdl == pytest.approx(0.2, abs=0.08)  # the noise of 3 % alone takes 0.19 bits
    assert columns["accuracy"][2] > 0.95
    assert columns["calibration_error"][2] < 0.02


def test_noise_has_no_structure():
    noise = np.random.default_rng(0).integers(0, 2, (150, 30))
    result = cross_validate_cells(noise, [4], n_folds=2)
    majority, four = result.to_dict()["log_loss"]
    assert majority == pytest.approx(1, abs=0.03)
    assert four > majority
    assert result.best == "column majority"


def test_scores_are_those_of_the_hidden_cells(X):
    """The folds, the fits and the scores by hand."""
    result = cross_validate_cells(X, [{"n_components": 2, "algebra": "or"}], n_folds=2, share=0.3, random_state=7)
    random = np.random.default_rng(7)
    seed, data = int(random.integers(2**31)), BitMatrix.from_dense(X)
    for fold, hidden in zip(
        result.folds["n_components=2, algebra='or'"], hidden_folds(data, 2, 0.3, random), strict=True
    ):
        visible, cells = without_cells(data, hidden), hidden.to_dense(bool)
        model = BinaryDictionaryLearning(2, algebra="or", random_state=seed).fit(visible)
        assert fold.scores == CellScores.of(X[cells] == 1, model.predict_cell_proba(visible)[cells])
        assert fold.codelength == model.codelength_.total


def test_missing_values_stay_missing(X):
    incomplete = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    result = cross_validate_cells(incomplete, "mdl", n_folds=1, share=0.5)
    (fold,) = result.folds["mdl"]
    assert fold.scores.n_cells == pytest.approx(0.35 * X.size, rel=0.05)
    assert fold.scores.accuracy > 0.9


def test_models_by_name(X):
    estimator = BinaryImputer(method="profiles", n_profiles=3, random_state=0)
    result = cross_validate_cells(X, {"few": 2, "groups": estimator}, n_folds=1, search="paper")
    assert list(result.folds) == ["column majority", "few", "groups"]
    assert not hasattr(estimator, "method_")  # a clone is fitted


def test_the_table_is_printed_and_converted(result):
    lines = str(result).splitlines()
    assert len(lines) == 5
    assert lines[0].split() == ["model", "atoms", "codelength", "right", "log", "loss", "calibration"]
    assert lines[3].startswith("mdl ")
    pd = pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert frame.loc["mdl", "n_atoms"] == 3
    pd.testing.assert_frame_equal(frame, pd.DataFrame(result.to_dict()).set_index("model"))


def test_the_same_seed_gives_the_same_result(X, result):
    again = cross_validate_cells(X, [1, "mdl", "profiles"], n_folds=2, n_jobs=2)
    assert again.to_dict() == result.to_dict()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"share": 0}, ValueError, "share must be above 0 and below 1"),
        ({"n_folds": 0}, ValueError, "n_folds"),
        ({"models": [2, 2]}, ValueError, "two models have the name '2'"),
        ({"models": [None]}, TypeError, "a model is a number of atoms"),
    ],
)
def test_wrong_arguments_are_reported(X, arguments, error, message):
    with pytest.raises(error, match=message):
        cross_validate_cells(X, **arguments)


def test_a_table_without_known_cells_is_reported():
    with pytest.raises(ValueError, match="no cell was hidden"):
        ba.cross_validate_cells(np.full((3, 3), np.nan))


def test_folds_at_the_same_time_give_the_same_scores(X, monkeypatch):
    monkeypatch.setattr("bitatoms.search.branches._MIN_CELLS", 1)
    one, three = (cross_validate_cells(X, [2], n_folds=3, n_jobs=n_jobs).folds for n_jobs in (1, 3))
    assert one == three


def test_other_folds_end_soon_after_one_that_fails(X, monkeypatch):
    """They use the threads, and so the cancellation, of the call."""
    monkeypatch.setattr("bitatoms.search.branches._MIN_CELLS", 1)
    fit, seen = BinaryDictionaryLearning.fit, []

    def fail_first(estimator, *given):
        seen.append(estimator._shared_workers)
        if len(seen) == 1:
            raise RuntimeError("no fold")
        return fit(estimator, *given)

    monkeypatch.setattr(BinaryDictionaryLearning, "fit", fail_first)
    with pytest.raises(RuntimeError, match="no fold"):
        cross_validate_cells(X, [2], n_folds=3, n_jobs=2)
    assert None not in seen
