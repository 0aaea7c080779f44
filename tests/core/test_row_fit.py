"""Rows that fit badly: their bits, and the cells that their atoms get wrong."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.core.row_fit import score_rows, worst_rows
from bitatoms.parallel import Workers
from bitatoms.sparse_bits import SparseBits

pytestmark = pytest.mark.usefixtures("few_trials")

SINGLE = Workers(1)


@pytest.fixture(scope="module", params=[0.0, 0.1])
def fitted(request):
    X = ba.datasets.planted(300, 70, 4, algebra="or", code_density=0.3, noise=0.05, random_state=0).X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < request.param] = np.nan
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(X), X


def test_the_worst_rows_have_the_lowest_scores_and_name_all_wrong_cells(fitted):
    model, X = fitted
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


def test_chunks_and_storage_do_not_matter(fitted):
    model, X = fitted
    learned, data = model.as_model(), ba.Table.from_any(X).bits
    whole = worst_rows([score_rows(learned, data, SINGLE)], 9, SINGLE)
    chunks = (score_rows(learned, data[at : at + 64], SINGLE, at) for at in range(0, 300, 64))
    assert worst_rows(chunks, 9, SINGLE) == whole
    if data.unknown is None:
        fits = worst_rows([score_rows(learned, SparseBits.from_bits(data), SINGLE)], 9, SINGLE)
        assert [(fit.row, fit.atoms) for fit in fits] == [(fit.row, fit.atoms) for fit in whole]
    assert worst_rows([score_rows(learned, data, SINGLE)], 0, SINGLE) == []
    assert len(worst_rows([score_rows(learned, data, SINGLE)], 999, SINGLE)) == 300
