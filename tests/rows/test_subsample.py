"""Tables with more rows than are searched: the result of a search by sample, and held-out rows."""

import warnings

import numpy as np
import pytest

from bitatoms import BinaryDictionaryLearning, BitMatrix, Resources, factorize, pack
from bitatoms.base import SearchLimitWarning
from bitatoms.datasets import planted
from bitatoms.engine.objective import Objective
from bitatoms.errors import InputWarning
from bitatoms.parallel import Workers
from bitatoms.rows.budget import MemoryLimitError
from bitatoms.rows.source import MemoryRows
from bitatoms.rows.subsample import default_search_rows, learn
from support.clock import WorkClock, allowed
from support.contexts import assert_held_out, context_of_search
from support.plans import use_budget
from support.results import assert_matches_oracle
from support.sources import params_for
from support.strategies import random_bits

SETS = {
    "xor": planted(2000, 70, 6, code_density=0.25, noise=0.02, random_state=0),
    "or": planted(2000, 70, 6, code_density=0.25, noise=0.02, algebra="or", random_state=0),
}


@pytest.mark.parametrize(("wanted", "unit"), [("mdl", "bits"), (6, "wrong cells")])
def test_both_algebras_are_compared_on_the_sample_and_after_resuming(wanted, unit, tmp_path):
    X, how = SETS["or"].X, {"algebra": "auto", "search_rows": 500, "random_state": 0}
    result = factorize(X, wanted, **how, resources=Resources(checkpoint=tmp_path))
    resumed = factorize(X, wanted, **how, resources=Resources(checkpoint=tmp_path, resume=True))
    assert result.algebra == "or"
    assert resumed.compared == result.compared
    assert resumed.atoms == result.atoms
    assert list(result.compared) == ["or", "xor"]
    actual = result.codelength.total if wanted == "mdl" else result.wrong_bits
    assert abs(result.compared["or"] / actual - 1) < 0.2  # an estimate for all rows
    assert (
        f"XOR would {'need' if wanted == 'mdl' else 'leave'} about {result.compared['xor']} {unit}" in result.summary()
    )


def test_all_rows_are_searched_if_they_are_few():
    X = SETS["xor"].X[:500]
    plain, one, other = (factorize(X, algebra="xor", random_state=0, search_rows=rows) for rows in (None, 500, "auto"))
    for result in (one, other):
        assert (result.atoms, result.codes) == (plain.atoms, plain.codes)
        assert {row.rows for row in result.history} == {500}


def test_default_search_rows_by_width():
    widths = {1: 65536, 1000: 65536, 2**15: 65536, 2**17: 16384, 10**6: 4096, 10**9: 4096}
    assert {width: default_search_rows(width) for width in widths} == widths


@pytest.mark.parametrize("rows", [2, 9])
def test_the_smallest_samples_work(rows):
    X = SETS["xor"].X[:40]
    result = factorize(X, algebra="xor", search_rows=rows, random_state=0)
    assert_matches_oracle(result, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows need fewer atoms
        assert factorize(X, 5, algebra="xor", search_rows=rows, random_state=0).codes.shape[0] == 40


def test_a_sample_starts_from_given_atoms_and_codes():
    data = SETS["xor"]
    given = factorize(data.X, algebra="xor", init=(data.atoms, data.codes), search_rows=500, random_state=0)
    assert given.wrong_bits <= (data.X != data.clean).sum()
    for codes, problem in (
        (data.codes[:20], "the codes in init have 20 rows, but X has 2000"),
        (data.codes + 1, r"init \(codes\) contains values other than 0 and 1"),
    ):
        with pytest.raises(ValueError, match=problem):
            factorize(data.X, algebra="xor", init=(data.atoms, codes), search_rows=500)


@pytest.mark.parametrize(
    ("n_components", "in_store", "max_time"),
    [(5, False, 0.5), (5, True, 3), ("mdl", False, 3), ("mdl", True, 0.5), ("mdl", True, 200)],
)
def test_time_limits_are_kept_by_passes(monkeypatch, tmp_path, n_components, in_store, max_time):
    """If the first pass is not complete in time, the model is that of the sample."""
    X = SETS["xor"].X
    rows = pack(X, tmp_path / "rows.zarr") if in_store else X
    monkeypatch.setattr("bitatoms.rows.budget.chunk_rows", lambda *_: 64)
    clock = WorkClock(monkeypatch)
    model = BinaryDictionaryLearning(n_components, algebra="xor", search_rows=300, max_time=max_time, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows)
    assert clock.elapsed <= allowed(max_time)
    in_time = max_time == 200
    assert in_time or [warning.category for warning in caught] == [SearchLimitWarning]
    assert model.as_model().n_samples == (len(X) if in_time else 267)
    assert model.transform(X).shape == (len(X), model.n_components_)


def test_a_share_of_the_time_is_left_to_passes(monkeypatch):
    monkeypatch.setattr("bitatoms.rows.budget.chunk_rows", lambda *_: 256)
    WorkClock(monkeypatch)
    found = BinaryDictionaryLearning(algebra="xor", search="anytime", search_rows=300, max_time=60, random_state=0).fit(
        SETS["xor"].X
    )
    assert (found.as_model().ended, found.as_model().n_samples) == ("max_time", 2000)


@pytest.mark.parametrize(
    ("error", "failing_pass"), [(MemoryError(), 3), (MemoryLimitError("max_memory is too small for 300 atoms"), 1)]
)
def test_if_memory_runs_out_in_a_pass_the_best_so_far_is_kept(monkeypatch, error, failing_pass):
    X, run_pass = SETS["xor"].X, MemoryRows.run_pass

    def failing(self, spec, codes, run):
        if run.number == failing_pass:
            raise error
        return run_pass(self, spec, codes, run)

    monkeypatch.setattr(MemoryRows, "run_pass", failing)
    with pytest.warns(InputWarning) as caught:
        model = BinaryDictionaryLearning(algebra="xor", search_rows=300, random_state=0).fit(X).as_model()
    assert (model.ended, model.n_samples) == ("max_memory", 267 if failing_pass == 1 else len(X))
    messages = [str(warning.message) for warning in caught]
    assert messages[-1] == "memory ran out before the search converged; this is the best model so far"
    assert (str(error) in messages) or not str(error)
    if failing_pass == 1:
        with pytest.raises(type(error)):
            factorize(X, algebra="xor", search_rows=300, random_state=0)


@pytest.mark.parametrize("how", [{}, {"n_components": 6, "objective": "codelength"}])
@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_the_rows_that_a_search_sees_are_not_those_held_out(algebra, how, monkeypatch):
    use_budget(monkeypatch, max_trials=1, nmf_starts=1)
    X = BitMatrix.from_dense(random_bits(0, 2000, 60, 0.3))  # no two rows are equal
    taken = []

    class Rows(MemoryRows):
        def take(self, rows):
            taken.append(rows)
            return super().take(rows)

    params = params_for(algebra=algebra, search_rows=450, **how)
    random = np.random.default_rng(0)
    context = context_of_search(monkeypatch, lambda: learn(Rows(X, Workers()), params, Workers(), random))
    drawn = np.concatenate(taken)
    assert len(drawn) == 450
    assert_held_out(context, X[drawn])
    assert context.holdout.n_all == 2000
    assert context.objective.share == 400 / 2000


def test_an_atom_costs_a_sample_its_share():
    objective, ones = Objective(True, "xor", share=0.25), np.array([0, 3, 10])
    full, atoms = Objective(True, "xor"), BitMatrix.from_dense(np.arange(64) < ones[:, np.newaxis])
    bits = full.of_atoms(atoms)
    np.testing.assert_array_equal(objective.of_atoms(atoms), bits - np.rint(0.75 * bits))
    np.testing.assert_array_equal(objective.of_uses(1000, ones), full.of_uses(1000, ones) - round(0.75 * 10))
    assert not Objective(False, "xor", share=0.25).of_atoms(atoms).any()
