"""The report states what it means that patterns save few bits, or none."""

from dataclasses import replace

import pytest

import bitatoms as ba
from bitatoms.core.model import Model
from bitatoms.report.advice import verdict


@pytest.fixture(scope="module")
def model():
    X = ba.datasets.planted(100, 20, 2, algebra="or", noise=0.02, random_state=0).X
    return Model.from_factorization(ba.factorize(X, algebra="or", random_state=0))


@pytest.mark.parametrize(
    ("n_atoms", "beyond", "ended", "expected"),
    [
        (2, None, "converged", "The table has few patterns, or the search did not find them. You can try more rows, "),
        (2, 1, "converged", "But 1 pattern of 2 has columns that occur together more or less often than chance "),
        (1, 1, "converged", "But the pattern has columns that occur together more or less often than chance "),
        (2, 0, "converged", "No columns of a pattern occur together more or less often than chance explains, "),
        (2, None, "max_iter", "The search was cut short, so it is not known how many patterns the table has."),
        (0, 0, "converged", "No two columns occur together more or less often than chance explains, "),
        (0, 1, "converged", "But 1 pair of columns occurs together more or less often than chance explains, "),
        (0, 3, "converged", "But 3 pairs of columns occur together more or less often than chance explains, "),
    ],
)
def test_verdicts(model, n_atoms, beyond, ended, expected):
    text = verdict(replace(model, atoms=model.atoms[:n_atoms], beyond_chance=beyond, ended=ended))
    assert text.startswith(expected)
    assert text.endswith(".")
