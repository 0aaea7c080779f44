"""What ends a search, what it leaves, and what its history and its callbacks see."""

from functools import cache, partial
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bitatoms import BinaryDictionaryLearning, BitMatrix, Interrupted, factorize
from bitatoms.engine.block import Block, Change
from bitatoms.engine.objective import Objective
from bitatoms.parallel import Workers
from bitatoms.search.monitor import SearchMonitor
from support import clock as clocks
from support.clock import WorkClock, allowed
from support.faults import FaultAtChunk, ctrl_c_when
from support.parameters import nested
from support.results import (
    FITS,
    assert_matches_oracle,
    assert_same_search,
    bits_of_bias_alone,
    bits_without_atoms,
    every_fit,
    every_search,
)

pytestmark = pytest.mark.usefixtures("few_trials")
SWEEPS = {
    *("first look", "flat sweep", "grow", "sweep", "fresh sweep", "beam sweep"),
    *("perturb", "trial", "exact", "recombine", "finish", "extend"),
}
MOVES = SWEEPS | {"no model", "start", "change basis", "trim", "drop", "continue", "go back"}


@pytest.fixture(scope="module")
def to_the_end(small):
    """Return a function that runs a search that nothing ends; it also returns the rounds, and counts of chunks."""

    @cache
    def searched(name):
        with pytest.MonkeyPatch.context() as patch:
            faults, rounds, chunks = FaultAtChunk(patch), [], []
            seen = [rounds.append, lambda row: chunks.append(faults.n_chunks), lambda row: "continue"]
            result = factorize(small, **nested(**FITS[name], callbacks=seen))
        return SimpleNamespace(result=result, rounds=tuple(rounds), n_before=chunks[0], n_chunks=faults.n_chunks)

    return searched


every_name = pytest.mark.parametrize("name", FITS)
every_other_at_the_first_round = pytest.mark.parametrize(
    ("name", "is_first"), [(name, number % 4 in (0, 3)) for number, name in enumerate(FITS)]
)


def without_seconds(history):
    return [row[:-1] for row in history]


def assert_best(result, history, how):
    """Assert that the result is the best round, among those that have the number of atoms asked for, if one has."""
    able = [row for row in history if how["n_components"] in ("mdl", row.atoms)] or history
    by_errors, found = how["objective"] == "errors", (result.codelength.total, result.atoms.n_rows, result.wrong_bits)
    assert found in [(row.bits, row.atoms, row.wrong_bits) for row in able]
    if by_errors:
        assert result.wrong_bits == min(row.wrong_bits for row in able)
    elif how["n_components"] == "mdl":  # a given number of atoms must also be used
        assert result.codelength.total == min(row.bits for row in able)


@every_name
def test_every_round_names_its_move_and_the_best_is_the_result(to_the_end, small, name):
    how, result = FITS[name], to_the_end(name).result
    history, n_components = result.history, how["n_components"]
    assert_matches_oracle(result, small)
    assert to_the_end(name).rounds == history
    assert [row.round for row in history] == list(range(1, len(history) + 1))
    assert {row.move for row in history} <= MOVES
    assert {(row.start, row.algebra) for row in history} == {(1, how["algebra"])}
    assert all(row.bits == row.bits_errors + row.bits_codes + row.bits_atoms for row in history)
    assert sorted(row.seconds for row in history) == [row.seconds for row in history]
    assert result.n_iter == sum(row.iterations for row in history)
    assert (result.ended, result.converged, result.n_unused) == ("converged", True, 0)
    if n_components == "mdl":
        assert all((row.iterations > 0) == (row.move in SWEEPS) for row in history)
    assert_best(result, history, how)


def drawn(name, least, most):
    """Return a number from ``least`` to ``most``, always the same for a name."""
    return Random(f"{name} {most}").randint(least, max(least, most))


@every_other_at_the_first_round
def test_a_callback_that_returns_true_ends_the_search_with_the_best_so_far(to_the_end, small, name, is_first):
    how, full = FITS[name], to_the_end(name)
    at = 1 if is_first else drawn(name, 2, len(full.rounds) - 1)
    rounds = []
    result = factorize(small, **nested(**how, callbacks=lambda row: rounds.append(row) or row.round == at))
    assert (result.ended, result.converged) == ("callback", False)
    assert tuple(rounds) == result.history[:at]  # it is not called again
    assert without_seconds(rounds) == without_seconds(full.rounds[:at])
    assert {row.move for row in result.history[at:]}.isdisjoint({"start", "perturb", "recombine", "trial"})
    assert_matches_oracle(result, small)
    assert how["n_components"] in ("mdl", result.atoms.n_rows)
    assert_best(result, result.history, how)


@every_other_at_the_first_round
def test_ctrl_c_leaves_the_best_so_far(to_the_end, small, name, is_first):
    how = FITS[name]
    at = drawn(name, 2, len(to_the_end(name).rounds)) if is_first else 1
    model = BinaryDictionaryLearning(**nested(**how, callbacks=ctrl_c_when(lambda row: row.round == at)))
    with pytest.raises(Interrupted, match="the best result so far") as caught:
        model.fit(small)
    result = caught.value.result
    assert_matches_oracle(result, small)
    assert (result.ended, len(result.history), len(model.history_)) == ("interrupted", at, at)
    assert result.bits_without == bits_without_atoms(small)
    assert result.codelengths == {how["algebra"]: result.codelength.total}
    assert result.saved.tolist() == sorted(result.saved.tolist(), reverse=True)
    assert_best(result, result.history, how)
    np.testing.assert_array_equal(model.components_, result.atoms.to_dense())
    assert model.codelength_ == result.codelength
    assert model.transform(small[:7]).shape == (7, model.n_components_)


@every_name
def test_if_memory_runs_out_the_best_so_far_is_kept(to_the_end, small, name):
    """Before the first round there is no state to keep."""
    how, full = FITS[name], to_the_end(name)
    for at in (1, full.n_before, full.n_before + 1, drawn(name, full.n_before + 1, full.n_chunks)):
        rounds = []
        with pytest.MonkeyPatch.context() as patch:
            FaultAtChunk(patch, at, MemoryError())
            if at <= full.n_before:
                with pytest.raises(MemoryError):
                    factorize(small, **nested(**how, callbacks=rounds.append))
                assert not rounds
                continue
            result = factorize(small, **nested(**how, callbacks=rounds.append))
        assert result.ended == "max_memory"
        assert without_seconds(rounds) == without_seconds(full.rounds[: len(rounds)])
        assert_best(result, result.history, how)
        assert_matches_oracle(result, small)


@every_name
def test_time_limits_are_kept(to_the_end, small, monkeypatch, name):
    """The clock advances with the work: a move that takes long is cut off, and the best state so far is the result."""
    how, full = FITS[name], to_the_end(name)
    seconds = clocks.CHUNK_SECONDS * full.n_chunks
    for max_time, ended in ((0.05, "max_time"), (seconds / 4, "max_time"), (100 * seconds, "converged")):
        with monkeypatch.context() as patch:
            clock = WorkClock(patch)
            result = factorize(small, **nested(**how, max_time=max_time))
        assert result.ended == ended
        assert clock.elapsed <= allowed(max_time)
        assert all(0 <= row.seconds <= clock.elapsed for row in result.history)
        assert_matches_oracle(result, small)
        assert how["objective"] != "errors" or result.atoms.n_rows == how["n_components"]
    assert_same_search(result, full.result)


@pytest.mark.parametrize(
    ("n_components", "how"),
    [(5, {"coder": "greedy", "update": "k-prox"}), (5, {"init": "greedy"}), ("mdl", {"algebra": "auto"})],
)
def test_time_limits_are_kept_by_the_search_of_the_paper(small, monkeypatch, n_components, how):
    for max_time in (1, 1e-9):
        with monkeypatch.context() as patch:
            clock = WorkClock(patch)
            result = factorize(
                small, n_components, **nested(search="paper", n_init=3, **how, max_time=max_time, random_state=0)
            )
        assert clock.elapsed <= allowed(max_time)
        assert result.n_iter >= 1
        assert_matches_oracle(result, small)


@every_search
@pytest.mark.parametrize("n_components", [5, "mdl"])
def test_a_search_that_is_cut_off_before_its_first_state_has_one_round(small, monkeypatch, search, n_components):
    WorkClock(monkeypatch)
    monkeypatch.setattr(clocks, "CHUNK_SECONDS", 60.0)
    result = factorize(small, n_components, algebra="xor", search=search, max_time=1, random_state=0)
    n_atoms = 0 if n_components == "mdl" else 5
    assert [(row.move, row.iterations, row.atoms) for row in result.history] == [("start", 1, n_atoms)]
    assert (result.ended, result.n_iter, result.atoms.n_rows) == ("max_time", 1, n_atoms)


@every_fit
def test_max_iter_ends_the_search_with_a_usable_model(small, how):
    rounds = []
    how = {**how, "max_iter": 1 if how["search"] == "fast" else 3}
    result = factorize(small, **nested(**how, callbacks=rounds.append))
    assert (result.ended, result.converged) == ("max_iter", False)
    assert tuple(rounds) == result.history
    assert_matches_oracle(result, small)
    assert_best(result, rounds, how)
    if how["objective"] == "errors":
        assert result.wrong_bits < small.sum() / 2
    elif how["n_components"] == "mdl":
        assert result.codelength.total <= bits_of_bias_alone(small)
    with pytest.warns(ConvergenceWarning, match="max_iter ended the search before it converged; raise it") as caught:
        model = BinaryDictionaryLearning(**nested(**how)).fit(small)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.components_, result.atoms.to_dense())
    assert how["n_components"] in ("mdl", model.n_components_)


def test_interrupt_while_held_out_rows_are_coded_keeps_the_best_so_far(small, monkeypatch):
    data = BitMatrix.from_dense(small)
    block = Block(data, data[:3], None, None, Workers())
    monitor = SearchMonitor(Objective(True, "xor"), by_holdout=True)
    monitor.record(block, Change(), 0)
    monkeypatch.setattr(block, "wrong", partial(ctrl_c_when(), None))
    with pytest.raises(KeyboardInterrupt):
        monitor.record_holdout_cost(block, 1)
    assert monitor.best.atoms == data[:3]
