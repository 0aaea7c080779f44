"""Starts, both algebras and the bias."""

import numpy as np
import pytest

from bitatoms import Interrupted, factorize
from bitatoms.datasets import planted
from support.clock import WorkClock
from support.faults import ctrl_c_when
from support.parameters import resolved
from support.results import assert_matches_oracle, planted_in

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.mark.parametrize(
    ("init", "search", "n_components", "objective"),
    [
        *[("samples", "thorough", "mdl", "auto"), ("bernoulli", "fast", 5, "codelength")],
        *[("spread", "thorough", 5, "errors"), ("greedy", "fast", "mdl", "auto")],
    ],
)
def test_a_start_may_be_named(small, search, init, n_components, objective):
    how = {"init": init, "search": search, "objective": objective, "random_state": 0, "algebra": "xor"}
    result = factorize(small, n_components, **how)
    first = next(row for row in result.history if row.move == "start")
    assert first.atoms in (range(2, 65) if n_components == "mdl" else (5,))
    assert sum(row.move == "start" for row in result.history) == 1
    assert n_components in ("mdl", result.atoms.n_rows)
    assert_matches_oracle(result, small)


@pytest.mark.parametrize(("algebra", "search"), [("or", "fast"), ("xor", "thorough")])
def test_both_algebras_are_tried_by_default(algebra, search):
    X = planted_in(algebra, 150, 40, 5).X
    rounds = []
    auto = factorize(X, search=search, random_state=0, callbacks=rounds.append)
    either = factorize(X, algebra="or", search=search, random_state=0)
    assert list(auto.codelengths) == ["or", "xor"]
    for name, bits in auto.codelengths.items():
        assert bits == min(row.bits for row in rounds if row.algebra == name)
    assert auto.codelengths["or"] == either.codelength.total
    assert auto.codelength.total == auto.codelengths[auto.algebra] == min(auto.codelengths.values())
    assert auto.algebra == algebra
    assert either.codelengths == {"or": either.codelength.total}
    other = "or" if algebra == "xor" else "xor"
    bits = auto.codelengths[other]
    assert f"{other.upper()} needs {bits} bits, {bits - auto.codelength.total} more" in auto.summary()


def mixed(seed, code_density, n_xor=2):
    """Return a table of OR patterns beside XOR patterns, on which the algebras come close."""
    either = planted(
        120, 30, 4, algebra="or", atom_density=0.3, code_density=code_density, noise=0.03, random_state=seed
    )
    xor = planted(120, 30, n_xor, algebra="xor", atom_density=0.4, code_density=0.5, noise=0.03, random_state=seed)
    return np.hstack([either.X, xor.X])


def test_or_is_kept_unless_xor_is_shorter_by_5_percent():
    params = resolved(algebra="auto")
    assert params.algebras == ("or", "xor")
    compared = ((100, 90), (100, 94), (100, 95), (100, 120), (0, 0))
    assert [params.best_algebra(costs) for costs in compared] == [1, 1, 0, 0, 0]
    assert resolved(search="paper").algebras == ("xor",)
    assert resolved(search="paper", algebra="or").algebras == ("or",)
    assert resolved(false_positive_cost=2).algebras == ("or",)


@pytest.mark.parametrize(("seed", "code_density", "kept"), [(4, 0.25, "or"), (3, 0.2, "xor")])
def test_with_a_number_of_atoms_the_preference_counts_wrong_cells(seed, code_density, kept):
    X = mixed(seed, code_density)
    result = factorize(X, 4, random_state=0)
    either = factorize(X, 4, algebra="or", random_state=0)
    assert result.algebra == kept
    assert result.compared["or"] == either.wrong_bits
    assert result.compared[kept] == result.wrong_bits
    assert result.compared["xor"] < result.compared["or"]
    assert (result.compared["xor"] < 0.95 * result.compared["or"]) == (kept == "xor")
    other = "or" if kept == "xor" else "xor"
    assert f"{other.upper()} leaves {result.compared[other]} wrong cells" in result.summary()


def test_each_algebra_gets_its_share_of_the_time(monkeypatch):
    WorkClock(monkeypatch)
    result = factorize(mixed(5, 0.4), max_time=5, random_state=0)
    assert set(result.codelengths) == {"xor", "or"}
    assert result.ended == "max_time"


def test_of_algebras_and_starts_that_are_as_short_the_first_is_kept():
    X = np.zeros((60, 20), np.uint8)
    X[:20, :8] = 1
    result = factorize(X, n_init=2, random_state=0)
    assert result.codelengths["xor"] == result.codelengths["or"]
    assert result.algebra == "or"
    assert {row.start for row in result.history} == {1}
    stopped = factorize(X, n_init=2, algebra="xor", random_state=0, callbacks=lambda row: row.start == 2)
    assert ({row.start for row in stopped.history}, stopped.ended) == ({1}, "callback")


def test_an_interrupt_in_the_second_algebra_is_no_converged_result(small):
    with pytest.raises(Interrupted) as caught:
        factorize(small, random_state=0, callbacks=ctrl_c_when(lambda row: row.algebra == "xor"))
    assert caught.value.result.ended == "interrupted"
    assert caught.value.result.other_algebra is None
