"""Probabilities of cells given the other cells of their rows, and rows that fit badly, against the oracle."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.imputation.regression import regression_for
from bitatoms.model.conditionals import Conditionals
from bitatoms.model.likelihood import Frequencies
from bitatoms.model.model import Model
from bitatoms.model.row_fit import numbered_rows, score_rows, worst_rows
from bitatoms.parallel import Workers
from bitatoms.sparse_bits import SparseBits

pytestmark = pytest.mark.usefixtures("few_trials")

SINGLE = Workers(1)
DOUBT = 0.01  # weight of the share of a column in every prediction


@pytest.mark.parametrize("unknown", [0.0, 0.2])
def test_probabilities_equal_the_oracle(fitted, unknown):
    model, X = fitted
    cells = X[:12] + 2 * (np.random.default_rng(0).random(X[:12].shape) < unknown).astype(np.uint8)
    cells = np.where(cells > 1, 2, cells).astype(np.uint8)
    assert_probabilities(model, cells)


def assert_probabilities(model, cells):
    """Assert that the probabilities of all cells are those of the oracle; a cell above 1 is unknown."""
    data = ba.Table.from_any(np.where(cells > 1, np.nan, cells)).bits
    codes, counts = model.codes(data, SINGLE), Frequencies.of_result(model)
    given = model.atoms.to_dense(), model.algebra, model.bias, counts.cells, counts.uses
    first = model.tied_columns.first
    expected = [
        [
            naive.hidden_probability(row, column, code, *given, np.flatnonzero(first == first[column]))
            for column in range(cells.shape[1])
        ]
        for row, code in zip(cells, codes.to_dense(), strict=True)
    ]
    np.testing.assert_allclose(Conditionals(model).of_atoms(data), expected, atol=2e-5)  # costs are rounded


@pytest.mark.parametrize("algebra", ["or", "xor"])
def test_many_atoms_may_share_a_column_that_the_bias_sets(algebra):
    """The product of what they contribute is too small for a number."""
    random = np.random.default_rng(0)
    atoms = (random.random((40, 60)) < 0.5).astype(np.uint8)
    atoms[:, 0] = 1
    codes = (random.random((300, 40)) < 0.02).astype(np.uint8)
    X = naive.product(codes, atoms, algebra)
    given = {"search": ba.PaperSearch(coder="greedy", update="mob"), "max_iter": 1}
    model = Model.from_factorization(ba.factorize(X, 40, init=atoms, algebra=algebra, **given))
    flipped = {"ones": len(X) - model.ones, "missed": model.wrong - model.missed}
    model = replace(model, bias=np.ones(60, np.uint8), **flipped)
    assert_probabilities(model, np.vstack([1 - X[:4], np.ones((1, 60), np.uint8)]))


@pytest.fixture(scope="module", params=["or", "xor"])
def with_parts(request):
    """A model of a bundle of three features, of which each may lack one, and of its parts; and its table."""
    random = np.random.default_rng(0)
    X = (random.random((600, 6)) < 0.05).astype(np.uint8)
    X[:200, :3] |= (random.random((200, 3)) < 0.9).astype(np.uint8)
    atoms = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]], np.uint8)
    given = {"search": ba.PaperSearch(coder="greedy", update="mob"), "max_iter": 1, "algebra": request.param}
    return Model.from_factorization(ba.factorize(X, 4, init=atoms, **given)), X


def test_a_part_of_an_atom_is_evidence_for_the_whole(with_parts):
    """Rows that lack one feature of a bundle use a part of it in their code, and yet the feature is probable."""
    model, X = with_parts
    two = np.array([[1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]], np.uint8)
    assert_probabilities(model, np.vstack([two, X[:40], X[-10:]]))
    hidden = Conditionals(model).of_atoms(BitMatrix.from_dense(two))[[0, 1, 2], [2, 1, 0]]
    alike = [X[np.delete(X[:, :3], i, axis=1).all(axis=1), i].mean() for i in (2, 1, 0)]
    np.testing.assert_allclose(hidden, alike, atol=0.1)


# --- variables


@pytest.fixture(scope="module", params=["or", "xor"])
def survey(request):
    """A table of questions with several answers and of single columns, and its model."""
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    group = random.integers(3, size=300)
    frame = pandas.DataFrame(
        {
            name: np.array(["low", "middle", "high"])[np.where(random.random(300) < 0.8, group, random.integers(3))]
            for name in ("income", "age", "size")
        }
    )
    table = ba.encode(frame.assign(urban=(group == 2) ^ (random.random(300) < 0.1)))
    return table, ba.BinaryDictionaryLearning(4, algebra=request.param, random_state=0).fit(table)


def expected_bits(model, table, rows):
    """Return the bits of all values of some rows: a list for each row."""
    cells, ties, found = table.bits.to_dense(), model.tied_columns, []
    regression = model.regression.cell_probabilities(table.bits, SINGLE)
    of_atoms = Conditionals(model).of_atoms(table.bits)
    mean = sum((1 - DOUBT) * each + DOUBT * model.predictors.shares for each in (of_atoms, regression)) / 2
    for row in rows:
        bits = []
        for kind in ties.kinds:
            for columns in kind.columns:
                stated = mean[row, columns]
                if len(columns) == 1:
                    bits.append(-np.log2(stated[0] if cells[row, columns[0]] else 1 - stated[0]))
                else:
                    bits.append(-np.log2((stated / stated.sum())[cells[row, columns] == 1].sum()))
        found.append(bits)
    return found


def test_the_columns_of_a_variable_are_hidden_together(survey):
    table, estimator = survey
    assert_probabilities(estimator.as_model(), table.to_dense()[:10])


def test_an_answer_counts_once(survey):
    table, estimator = survey
    scores = estimator.score_samples(table)
    model = estimator.as_model()
    rows = [0, 7, 299]
    expected = expected_bits(model, table, rows)
    assert len(expected[0]) == 4  # variables, of ten columns
    np.testing.assert_allclose(-scores[rows], [sum(each) for each in expected])
    for fit in estimator.worst_rows(table, 3):
        bits = expected_bits(model, table, [fit.row])[0]
        assert len(fit.cells) <= 4
        assert all(min(abs(cell.bits - each) for each in bits) < 1e-9 for cell in fit.cells)


def test_answers_that_contradict_each_other_take_many_bits(survey):
    table, estimator = survey
    cells = table.to_dense()[:1].repeat(2, axis=0)
    income = [i for i, name in enumerate(table.columns) if name.startswith("income")]
    cells[1, income] = 1  # in 0 only one of them is
    scores = estimator.score_samples(ba.Table(BitMatrix.from_dense(cells), columns=table.columns))
    assert scores[0] - scores[1] > 2 * np.log2(2 * 301)


# --- scores


@pytest.mark.parametrize("unknown", [0.0, 0.2])
@pytest.mark.parametrize("with_regression", [False, True])
def test_scores_are_sums_over_the_known_cells(fitted, with_regression, unknown):
    model, X = fitted
    mask = np.random.default_rng(0).random(X.shape) < unknown
    data = ba.Table.from_any(np.where(mask, np.nan, X)).bits
    stated = [Conditionals(model).of_atoms(data)]
    if with_regression:
        regression = regression_for(BitMatrix.from_dense(X), model.tied_columns)
        model = replace(model, regression=regression)
        stated.append(regression.cell_probabilities(data, SINGLE))
    shares = model.predictors.shares
    mean = np.mean([(1 - DOUBT) * each + DOUBT * shares for each in stated], axis=0)
    bits = np.where(mask, 0, -np.log2(np.where(X == 1, mean, 1 - mean)))
    np.testing.assert_allclose(score_rows(model, data, SINGLE).bits, bits.sum(axis=1))


def test_an_atom_of_one_row_does_not_hide_it():
    """With as many atoms as there are kinds of rows, and one, the odd row has an atom of its own."""
    X = np.zeros((61, 24), np.uint8)
    X[:30, :8] = X[30:60, 8:16] = 1
    X[60, 3:20] = 1
    model = ba.BinaryDictionaryLearning(3, algebra="or", random_state=0).fit(X)
    assert sorted(model.as_model().uses.tolist()) == [1, 30, 30]
    assert (model.inverse_transform(model.transform(X)) == X).all()
    assert model.score_samples(X).argmin() == 60
    learned, rows = replace(model.as_model(), regression=None), BitMatrix.from_dense(X)
    bits, others = score_rows(learned, rows, SINGLE).bits, learned.uses > 1
    assert bits[60] > bits[:60].max() + 20
    of_two = replace(learned, atoms=learned.atoms[others], uses=learned.uses[others])
    np.testing.assert_array_equal(score_rows(of_two, rows, SINGLE).bits, bits)


def test_shuffled_rows_are_found(few_trials):
    """Their columns are as frequent as in other rows, and independent of each other."""
    X = ba.datasets.baskets(2000).to_dense()
    random = np.random.default_rng(0)
    odd = np.column_stack([random.permutation(column)[:100] for column in X.T])
    table, is_odd = np.vstack([X, odd]), np.arange(2100) >= 2000
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
    assert roc_auc_score(is_odd, -model.score_samples(table)) > 0.85
    assert np.mean([fit.row >= 2000 for fit in model.worst_rows(table, 20)]) > 0.5


def test_the_regression_is_fitted_once_and_kept_in_files(tmp_path):
    X = ba.datasets.planted(120, 30, 3, algebra="or", code_density=0.4, noise=0.05, random_state=0).X
    model = ba.BinaryDictionaryLearning(3, algebra="or", random_state=0).fit(X[:100])
    model.save(tmp_path / "before.npz")
    regression = model.as_model().regression
    assert regression is not None
    scores = model.score_samples(X[100:])
    np.testing.assert_array_equal(model.score_samples(X[100:]), scores)
    assert model.as_model().regression is regression
    model.save(tmp_path / "model.npz")
    for name in ("before.npz", "model.npz"):
        np.testing.assert_array_equal(ba.load(tmp_path / name).score_samples(X[100:]), scores)
    np.testing.assert_array_equal(model.calibrate(X[:100]).score_samples(X[100:]), scores)
    regression = model.as_model().regression
    model.recommend(X[100:])
    assert model.as_model().regression is regression
    model.components_ = model.components_[::-1].copy()
    assert model.as_model().regression is None
    stream = ba.BinaryDictionaryLearning(3, algebra="or", random_state=0).partial_fit(X[:100])
    by_atoms = stream.score_samples(X[100:])
    assert stream.scoring_model().regression is None
    assert (stream.calibrate(X[:100]).score_samples(X[100:]) != by_atoms).any()


# --- rows that fit badly


@pytest.fixture(scope="module", params=[0.0, 0.1])
def fitted_rows(request):
    X = ba.datasets.planted(300, 70, 4, algebra="or", code_density=0.3, noise=0.05, random_state=0).X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < request.param] = np.nan
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(X), X


def test_the_worst_rows_have_the_lowest_scores_and_name_all_wrong_cells(fitted_rows):
    model, X = fitted_rows
    scores, codes = model.score_samples(X), model.transform(X)
    conditionals = Conditionals(model.as_model())
    data = ba.Table.from_any(X).bits
    expected = np.mean(conditionals.stated(data), axis=0) > 0.5
    worst = model.worst_rows(X, 7)
    assert [fit.row for fit in worst] == np.argsort(scores, kind="stable")[:7].tolist()
    for fit in worst:
        row = fit.row
        assert fit.bits == pytest.approx(-scores[row])
        assert fit.atoms == tuple(np.flatnonzero(codes[row]) + 1)
        assert fit.n_known == (~np.isnan(X[row])).sum()
        unexpected = {f"x{i}" for i in np.flatnonzero((X[row] == 1) & (expected[row] == 0))}
        missing = {f"x{i}" for i in np.flatnonzero((X[row] == 0) & (expected[row] == 1))}
        assert {cell.feature for cell in fit.cells if cell.kind == "unexpected"} == unexpected
        assert {cell.feature for cell in fit.cells if cell.kind == "missing"} == missing
        bits = [cell.bits for cell in fit.cells]
        assert bits == sorted(bits, reverse=True)
        assert sum(bits) < fit.bits


def test_chunks_and_storage_do_not_matter(fitted_rows):
    model, X = fitted_rows
    learned, data = model.as_model(), ba.Table.from_any(X).bits
    whole = worst_rows([score_rows(learned, data, SINGLE)], 9, SINGLE)
    chunks = numbered_rows(score_rows(learned, data[at : at + 64], SINGLE) for at in range(0, 300, 64))
    assert worst_rows(chunks, 9, SINGLE) == whole
    assert worst_rows([score_rows(learned, data, Workers(3, 64), max_rows=7)], 9, SINGLE) == whole
    if data.unknown is None:
        assert worst_rows([score_rows(learned, SparseBits.from_bits(data), SINGLE)], 9, SINGLE) == whole
    assert worst_rows([score_rows(learned, data, SINGLE)], 0, SINGLE) == []
    assert len(worst_rows([score_rows(learned, data, SINGLE)], 999, SINGLE)) == 300
