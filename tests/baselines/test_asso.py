"""Asso: equal to the naive greedy loop of the paper."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitatoms.baselines import asso
from bitatoms.baselines.asso import Asso
from bitatoms.datasets import planted
from support.strategies import matrices, random_bits

SHAPES = {"n_rows": st.sampled_from((1, 2, 5, 17)), "n_cols": st.sampled_from((1, 2, 7, 9, 12))}


def naive_candidates(X, threshold):
    """Return for each column with ones the columns that are one in at least ``threshold`` of its rows."""
    found = []
    for i in range(X.shape[1]):
        rows = X[X[:, i] == 1]
        if len(rows):
            found.append([int(int(rows[:, j].sum()) / len(rows) >= threshold) for j in range(X.shape[1])])
    return np.array(found, np.uint8).reshape(-1, X.shape[1])


def naive_asso(X, n_components, threshold, reward=1, penalty=1):
    """Run the greedy loop by its definition, with all gains recomputed in every round."""
    candidates = naive_candidates(X, threshold)
    covered = np.zeros(X.shape, bool)
    atoms, codes = [], []
    while n_components is None or len(atoms) < n_components:
        best, most = None, 0
        for candidate in candidates:
            gains = []
            for j in range(len(X)):
                new = [i for i in range(X.shape[1]) if candidate[i] and not covered[j, i]]
                ones = sum(int(X[j, i]) for i in new)
                gains.append(Fraction(reward) * ones - Fraction(penalty) * (len(new) - ones))
            total = sum(gain for gain in gains if gain > 0)
            if total > most:
                best, most = (candidate, np.array([gain > 0 for gain in gains], np.uint8)), total
        if best is None:
            break
        covered |= np.outer(best[1], best[0]) == 1
        atoms.append(best[0])
        codes.append(best[1])
    return np.array(atoms).reshape(-1, X.shape[1]), np.array(codes).reshape(-1, len(X)).T


def assert_equals_the_naive_loop(X, n_components, threshold, **weights):
    model = Asso(n_components, threshold=threshold, **weights).fit(X)
    atoms, codes = naive_asso(X, n_components, threshold, **weights)
    np.testing.assert_array_equal(model.components_, atoms)
    np.testing.assert_array_equal(model.codes_, codes)


@given(matrices(**SHAPES), st.sampled_from((0.1, 0.3, 0.5, 0.75, 1.0)), st.sampled_from((1, 2, 4, None)))
@settings(max_examples=30)
def test_equals_the_naive_greedy_loop(X, threshold, n_components):
    assert_equals_the_naive_loop(X, n_components, threshold)


@pytest.mark.parametrize(
    ("reward", "penalty", "shape"),
    [*[(3, 1, (40, 12)), (1, 2, (40, 12)), (0.5, 0.75, (40, 12)), (2.5, 1, (40, 12))], (99999, 99998, (12, 90))],
)
def test_weights_and_small_chunks_equal_the_naive_greedy_loop(reward, penalty, shape, monkeypatch):
    """The last weights, times 90 columns, are too long for single precision."""
    monkeypatch.setattr(asso, "_CHUNK_CELLS", 100)
    assert_equals_the_naive_loop(random_bits(3, *shape, 0.4), 5, 0.5, reward=reward, penalty=penalty)


def test_confidence_equal_to_the_threshold_counts():
    X = np.zeros((20, 2), np.float32)
    X[:, 0] = 1
    X[:11, 1] = 1  # 11 of 20 is 0.55, though 0.55 * 20 is more than 11 in floating point
    confidences = asso._confidences(X)
    assert asso._candidates(confidences, 0.55).tolist() == [[True, True]]
    assert asso._candidates(confidences, 0.56).tolist() == [[True, False], [True, True]]


def test_best_threshold_is_kept():
    X = planted(200, 50, 5, algebra="or", random_state=3).X
    thresholds = (0.9, 0.3, 0.6, 0.6)
    models = [Asso(5, threshold=one).fit(X) for one in (*thresholds, np.array(thresholds), "sweep")]
    *each, best, swept = [int((model.inverse_transform(model.codes_) != X).sum()) for model in models]
    assert best == min(each)
    assert models[-2].threshold_ == thresholds[each.index(best)]
    assert swept <= best  # the sweep contains them all
