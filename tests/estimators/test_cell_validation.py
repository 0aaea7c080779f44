"""cross_validate_cells: hidden cells judge models."""

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms import BinaryDictionaryLearning, BinaryImputer, BitMatrix, cross_validate_cells
from bitatoms.datasets import planted
from bitatoms.imputation.hidden_cells import CellScores, without_cells

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def X():
    return planted(200, 60, 3, atom_density=0.3, code_density=0.4, noise=0.03, random_state=0).X


@pytest.fixture(scope="module")
def result(X):
    return cross_validate_cells(X, [1, "mdl", "profiles"], n_folds=2)


def test_the_right_number_of_atoms_predicts_best(X, result):
    columns = result.to_dict()
    assert columns["model"] == ["column majority", "1", "mdl", "profiles"]
    assert columns["n_atoms"] == [None, 1, 3, None]
    assert result.best == "mdl"
    majority, one, mdl, _ = columns["log_loss"]
    assert mdl < one < majority
    assert mdl == pytest.approx(0.2, abs=0.08)  # the noise of 3 % alone takes 0.19 bits
    assert columns["accuracy"][2] > 0.95
    assert columns["calibration_error"][2] < 0.02
    again = cross_validate_cells(X, [1, "mdl", "profiles"], n_folds=2, n_jobs=2)
    assert again.to_dict() == columns


def colours_and_sizes(n_rows):
    """Return a table of two categories, one of them sometimes missing, and of a boolean, and its variables."""
    random = np.random.default_rng(0)
    size = random.integers(0, 3, n_rows)
    colours = np.array(["red", "blue", None], object)[np.where(random.random(n_rows) < 0.8, size, 2)]
    frame = {"colour": colours, "is_new": size == 1, "size": np.array(["S", "M", "L"])[size]}
    return ba.encode(frame), [[0, 1], [2], [3, 4, 5]]


def numbers_of_copies(n_rows):
    """Return a table of genotypes, and its variables."""
    copies = np.random.default_rng(0).integers(0, 3, (n_rows, 4)).astype(float)
    copies[::7, 1] = np.nan
    return ba.Table.from_any(copies, dosage=True), [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("kind", ["array", "encoded", "genotypes", "genotypes, by name", "bits of an encoded table"])
def test_scores_are_those_of_the_hidden_cells(X, kind):
    """The folds, the fits and the scores by hand. The columns of a variable or a genotype are hidden together."""
    if kind == "array":
        table, variables = X, [[column] for column in range(60)]
    else:
        table, variables = colours_and_sizes(150) if "encoded" in kind else numbers_of_copies(150)
    if kind == "genotypes, by name":
        table = table.to_pandas()
    elif kind == "bits of an encoded table":
        table, variables = table.bits, [[column] for column in range(6)]
    result = cross_validate_cells(table, [{"n_components": 2, "algebra": "or"}], n_folds=2, share=0.3, random_state=7)
    random = np.random.default_rng(7)
    seed, data = int(random.integers(2**31)), BitMatrix.from_any(table, missing="unknown")
    truth = np.nan_to_num(np.asarray(data, float), nan=2)
    draws = np.random.default_rng(int(random.integers(2**63))).random(data.shape)
    majority = result.folds["column majority"]
    for number, fold in enumerate(result.folds["n_components=2, algebra='or'"]):
        cells = naive.hidden_cells(truth, variables, draws, number, 0.3)
        visible = without_cells(data, BitMatrix.from_dense(cells))
        if hasattr(table, "with_bits"):
            visible = table.with_bits(visible)
        elif kind == "genotypes, by name":
            visible = numbers_of_copies(150)[0].with_bits(visible)
        model = BinaryDictionaryLearning(2, algebra="or", random_state=seed).fit(visible)
        assert fold.scores == CellScores.of(truth[cells] == 1, model.predict_cell_proba(visible)[cells])
        assert fold.codelength == model.codelength_.total
        seen = np.ma.masked_array(truth, cells | (truth == 2))
        shares = (seen.sum(axis=0).filled(0) + 0.5) / (seen.count(axis=0) + 1)
        expected = CellScores.of(truth[cells] == 1, np.broadcast_to(shares, truth.shape)[cells])
        assert majority[number].scores == expected


def test_models_by_name(X):
    estimator = BinaryImputer(method="profiles", n_profiles=3, algebra="xor", random_state=0)
    result = cross_validate_cells(X, {"few": 2, "groups": estimator}, n_folds=1, search="paper")
    assert list(result.folds) == ["column majority", "few", "groups"]
    assert not hasattr(estimator, "method_")  # a clone is fitted


def test_the_table_is_printed_and_converted(result):
    lines = str(result).splitlines()
    assert lines[0].split() == ["model", "atoms", "codelength", "right", "log", "loss", "calibration"]
    assert lines[3].startswith("mdl ")
    pd = pytest.importorskip("pandas")
    pd.testing.assert_frame_equal(result.to_pandas(), pd.DataFrame(result.to_dict()).set_index("model"))


def test_other_folds_end_soon_after_one_that_fails(X, monkeypatch):
    """They use the threads, and so the cancellation, of the call."""
    monkeypatch.setattr("bitatoms.search.monitor._MIN_CELLS", 1)
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
