"""The end of a search: the coder of transform, where it gains."""

from dataclasses import replace

import pytest

from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.engine.coding import code
from bitatoms.search import finish as finish_module
from bitatoms.search.finish import finish
from support.contexts import search_context
from support.parameters import resolved

ATOMS = 20


def context_of(X, by_codelength=True, **limits):
    params = resolved(ATOMS, algebra="xor", objective="codelength" if by_codelength else "errors", **limits)
    return search_context(X, params.objective("xor"), params.plan, settles_bias=params.settles_bias)


def found_by_toggles(by_codelength=True, **limits):
    """Return a context, and a block of planted XOR atoms whose rows are coded by single toggles, which get stuck."""
    made = planted(300, 130, ATOMS, algebra="xor", atom_density=0.3, code_density=0.2, noise=0.02, random_state=0)
    context = context_of(made.X, by_codelength, **limits)
    block, objective = context.block(BitMatrix.from_dense(made.atoms)), context.objective
    code(block, objective.rule(block, flat=True))
    context.monitor.record(block, code(block, objective.rule(block)), 1, "sweep")
    return context, block


@pytest.mark.parametrize("by_codelength", [True, False])
def test_it_leaves_the_local_optima_of_toggles(by_codelength):
    context, found = found_by_toggles(by_codelength)
    before = context.monitor.best_cost
    block = finish(context, found, "beam")
    assert context.objective.cost(block) == context.monitor.best_cost < 0.9 * before
    assert {row.move for row in context.monitor.history} - {"drop"} == {"sweep", "finish"}


def test_it_begins_with_the_block_it_is_given_not_with_the_best_one():
    context, found = found_by_toggles()
    other = context.block(found.atoms()[:10])
    block = finish(context, other, "beam")
    assert block.n_atoms == 10
    assert found.n_atoms == context.monitor.best.atoms.n_rows == ATOMS


@pytest.mark.parametrize("why", ["no atoms", "another coder", "left out", "must stop"])
def test_some_states_are_left_as_they_are(why):
    context, block = found_by_toggles()
    if why == "no atoms":
        block = context.block(block.atoms()[:0])
    elif why == "left out":
        context = replace(context, plan=context.plan.without("finish"))
    elif why == "must stop":
        context.monitor.deadline = 0.0
    before = block.factors()
    assert finish(context, block, "mdl" if why == "another coder" else "beam") is block
    assert block.factors() == before
    assert [row.move for row in context.monitor.history] == ["sweep"]


@pytest.mark.parametrize(("gain", "is_finished"), [(1e-3, True), (1e-5, False)])
def test_of_many_rows_a_sample_decides(gain, is_finished, monkeypatch):
    made = planted(1001, 60, 8, noise=0.05, random_state=0)
    context = context_of(made.X)
    monkeypatch.setattr(finish_module, "gain_of_sample", lambda *args: gain)
    finish(context, context.block(*map(BitMatrix.from_dense, (made.atoms, made.codes))), "beam")
    assert ("finish" in {row.move for row in context.monitor.history}) == is_finished
