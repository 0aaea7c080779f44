"""Recommendations: probabilities against the oracle, ties, and hidden items. Rows that fit badly."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.likelihood import Frequencies
from bitatoms.core.model import Model
from bitatoms.core.recommendation import HiddenItems, largest, recommend
from bitatoms.core.row_fit import score_rows, worst_rows
from bitatoms.parallel import Workers
from bitatoms.sparse_bits import SparseBits

pytestmark = pytest.mark.usefixtures("few_trials")

SINGLE = Workers(1)


@pytest.fixture(scope="module", params=["or", "xor", "bias"])
def fitted(request):
    """A model, and rows of its table."""
    algebra = "or" if request.param == "bias" else request.param
    X = ba.datasets.planted(200, 70, 4, algebra=algebra, code_density=0.4, noise=0.04, random_state=2).X
    X ^= request.param == "bias"
    return ba.BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(X).as_model(), X


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
    expected = [
        [naive.hidden_probability(row, column, code, *given) for column in range(cells.shape[1])]
        for row, code in zip(cells, codes.to_dense(), strict=True)
    ]
    np.testing.assert_allclose(HiddenItems(model).probabilities(data), expected, atol=2e-5)  # costs are rounded


@pytest.mark.parametrize("algebra", ["or", "xor"])
def test_many_atoms_may_share_a_column_that_the_bias_sets(algebra):
    """The product of what they contribute is too small for a number."""
    random = np.random.default_rng(0)
    atoms = (random.random((40, 60)) < 0.5).astype(np.uint8)
    atoms[:, 0] = 1
    codes = (random.random((300, 40)) < 0.02).astype(np.uint8)
    X = naive.product(codes, atoms, algebra)
    given = {"search": "paper", "coder": "greedy", "update": "mob", "max_iter": 1}
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
    given = {"search": "paper", "coder": "greedy", "update": "mob", "max_iter": 1, "algebra": request.param}
    return Model.from_factorization(ba.factorize(X, 4, init=atoms, **given)), X


def test_a_part_of_an_atom_is_evidence_for_the_whole(with_parts):
    """Rows that lack one feature of a bundle use a part of it in their code, and yet the feature is probable."""
    model, X = with_parts
    two = np.array([[1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]], np.uint8)
    assert_probabilities(model, np.vstack([two, X[:40], X[-10:]]))
    hidden = HiddenItems(model).probabilities(BitMatrix.from_dense(two))[[0, 1, 2], [2, 1, 0]]
    alike = [X[np.delete(X[:, :3], i, axis=1).all(axis=1), i].mean() for i in (2, 1, 0)]
    np.testing.assert_allclose(hidden, alike, atol=0.1)


def test_recommendations_are_the_most_probable_zeros_for_any_chunks_and_threads(fitted, monkeypatch):
    model, X = fitted
    data = BitMatrix.from_dense(X)
    found = recommend(model, data, 4, SINGLE)
    probabilities = np.where(X == 1, -1, HiddenItems(model).probabilities(data))
    for row, features in enumerate(found.features):
        chosen = features[features >= 0]
        assert len(chosen) == min(4, (X[row] == 0).sum())
        assert chosen.tolist() == np.argsort(-probabilities[row], kind="stable")[: len(chosen)].tolist()
        np.testing.assert_array_equal(found.probabilities[row, : len(chosen)], probabilities[row, chosen])
    monkeypatch.setattr("bitatoms.core.recommendation._CHUNK_CELLS", 700)
    for rows in (data, SparseBits.from_bits(data)):
        again = recommend(model, rows, 4, Workers(2, chunk_rows=64))
        np.testing.assert_array_equal(again.features, found.features)
        np.testing.assert_array_equal(again.probabilities, found.probabilities)


def test_ties_go_to_the_first_columns():
    values = np.array([[1.0, 3, 2, 3, 2], [0, 0, 0, 0, 0]])
    assert largest(values, 3).tolist() == [[1, 3, 2], [0, 1, 2]]
    assert largest(values, 0).shape == (2, 0)


def test_a_row_that_has_everything_gets_nothing():
    X = np.array([[1, 1, 0], [0, 0, 1]] * 20)
    model = ba.BinaryDictionaryLearning(2, algebra="or", random_state=0).fit(X)
    items, probabilities = model.recommend([[1, 1, 1], [1, 0, 1]], 9)
    assert items.tolist() == [["", "", ""], ["x1", "", ""]]
    assert np.isnan(probabilities[0]).all()


def test_a_model_without_atoms_recommends_what_is_popular():
    X = np.random.default_rng(0).random((60, 5)) < np.array([0.1, 0.5, 0.3, 0.45, 0.2])
    model = replace(ba.BinaryDictionaryLearning(random_state=0).fit(X).as_model())
    assert not model.atoms.n_rows
    order = np.argsort(-X.mean(axis=0), kind="stable")[:2]
    assert recommend(model, BitMatrix.zeros(1, 5), 2, SINGLE).features.tolist() == [order.tolist()]


# --- rows that fit badly


@pytest.fixture(scope="module", params=[0.0, 0.1])
def fitted_rows(request):
    X = ba.datasets.planted(300, 70, 4, algebra="or", code_density=0.3, noise=0.05, random_state=0).X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < request.param] = np.nan
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(X), X


def test_the_worst_rows_have_the_lowest_scores_and_name_all_wrong_cells(fitted_rows):
    model, X = fitted_rows
    scores, codes = model.score_samples(X), model.transform(X)
    expected = model.inverse_transform(codes)
    worst = model.worst_rows(X, 7)
    assert [fit.row for fit in worst] == np.argsort(scores, kind="stable")[:7].tolist()
    for fit in worst:
        row = fit.row
        assert fit.bits == pytest.approx(-scores[row])
        assert fit.atoms == tuple(np.flatnonzero(codes[row]) + 1)
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
    chunks = (score_rows(learned, data[at : at + 64], SINGLE, at) for at in range(0, 300, 64))
    assert worst_rows(chunks, 9, SINGLE) == whole
    if data.unknown is None:
        fits = worst_rows([score_rows(learned, SparseBits.from_bits(data), SINGLE)], 9, SINGLE)
        assert [(fit.row, fit.atoms) for fit in fits] == [(fit.row, fit.atoms) for fit in whole]
    assert worst_rows([score_rows(learned, data, SINGLE)], 0, SINGLE) == []
    assert len(worst_rows([score_rows(learned, data, SINGLE)], 999, SINGLE)) == 300
