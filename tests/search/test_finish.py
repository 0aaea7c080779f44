"""The end of a search: the coder of transform, where it gains."""

from dataclasses import replace

import numpy as np
import pytest

from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.engine.coding import code
from bitatoms.search.finish import finish
from bitatoms.search.monitor import CONVERGED, MAX_ITER, SearchResult
from support.contexts import search_context
from support.parameters import resolved

ATOMS = 20


def context_of(X, by_codelength=True, **limits):
    params = resolved(ATOMS, algebra="xor", objective="codelength" if by_codelength else "errors", **limits)
    return search_context(X, params.objective("xor"), params.plan, settles_bias=params.settles_bias)


def found_by_toggles(by_codelength=True, **limits):
    """Return a context, and a state of planted XOR atoms whose rows are coded by single toggles, which get stuck."""
    made = planted(300, 130, ATOMS, algebra="xor", atom_density=0.3, code_density=0.2, noise=0.02, random_state=0)
    context = context_of(made.X, by_codelength, **limits)
    block, objective = context.block(BitMatrix.from_dense(made.atoms)), context.objective
    code(block, objective.rule(block, flat=True))
    context.monitor.record(block, code(block, objective.rule(block)), 1, "sweep")
    return context, SearchResult(block, CONVERGED)


@pytest.mark.parametrize("by_codelength", [True, False])
def test_it_leaves_the_local_optima_of_toggles(by_codelength):
    context, found = found_by_toggles(by_codelength)
    before = context.monitor.best_cost
    block, ended = finish(context, found, "beam")
    assert ended == CONVERGED
    assert context.objective.cost(block) == context.monitor.best_cost < 0.9 * before
    assert {row.move for row in context.monitor.history} - {"drop"} == {"sweep", "finish"}


def test_it_begins_with_the_best_state_not_the_last():
    context, found = found_by_toggles()
    expected = finish(*found_by_toggles(), "beam").block
    found.block.discard(np.arange(ATOMS) < 10)
    block = finish(context, found, "beam").block
    assert block.factors() == expected.factors()


@pytest.mark.parametrize("why", ["ended early", "another coder", "left out"])
def test_some_searches_end_without_it(why):
    context, found = found_by_toggles()
    if why == "ended early":
        found = found._replace(ended=MAX_ITER)
    elif why == "left out":
        context = replace(context, plan=replace(context.plan, left_out=frozenset({"finish"})))
    assert finish(context, found, "mdl" if why == "another coder" else "beam") is found
    assert [row.move for row in context.monitor.history] == ["sweep"]
