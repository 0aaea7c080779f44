"""Measurements on the curve of forward selection."""

import numpy as np
import pytest

from bitatoms.core.result import Round
from bitatoms.reproduce.runs import (
    stopping_round,
)
from bitatoms.reproduce.selection_curve import SelectionCurve, count_minima, fit_decay, running_median


def naive_stop(costs, patience):
    """Return the index of the lowest cost before the first run of ``patience`` costs that are no lower."""
    for end in range(patience, len(costs)):
        if all(costs[index] >= min(costs[: end - patience + 1]) for index in range(end - patience + 1, end + 1)):
            return costs.index(min(costs[: end + 1]))
    return costs.index(min(costs))


@pytest.mark.parametrize("patience", [1, 2, 3, 5])
def test_stopping_round_equals_a_naive_search(patience):
    random = np.random.default_rng(patience)
    for _ in range(50):
        costs = random.integers(0, 12, random.integers(1, 15)).tolist()
        rounds = [Round(*([0] * 16))._replace(round=n, bits=bits) for n, bits in enumerate(costs)]
        assert stopping_round(rounds, patience).round == naive_stop(costs, patience)


@pytest.mark.parametrize(
    ("curve", "n_minima"),
    [
        ([10.0], 1),
        ([10, 9, 8, 8.5, 9], 1),
        ([10, 8, 9, 7, 9], 2),
        ([10, 8, 8.01, 7.99, 9], 1),
        ([5, 6, 7, 6, 5, 9], 2),
        ([9, 8, 7, 6], 1),
    ],
)
def test_minima_are_separated_by_a_rise(curve, n_minima):
    assert count_minima(np.array(curve, float)) == n_minima


def test_running_median_is_the_median_of_a_window():
    values = np.random.default_rng(0).random(30)
    expected = [np.median(values[max(0, at - 2) : at + 3]) for at in range(30)]
    assert (running_median(values, reach=2) == expected).all()


class GivenCurve(SelectionCurve):
    """A curve with given codelengths."""

    def __init__(self, bits):
        object.__setattr__(self, "given", np.asarray(bits, float))

    atoms = property(lambda self: 16 + np.arange(len(self.given)))
    bits = property(lambda self: self.given)


def test_fit_decay_distinguishes_an_exponential_from_a_power_law():
    atoms = 16 + np.arange(120)
    fast = fit_decay(GivenCurve(50 + 100 * np.exp(-atoms / 15) - 100 * np.exp(-atoms[-1] / 15)))
    slow = fit_decay(GivenCurve(50 + 1e5 * atoms**-2.0))
    assert fast.exponential > max(0.99, fast.power)
    assert slow.power > slow.exponential
    assert fit_decay(GivenCurve([10, 5, 1, 1, 1])) is None
