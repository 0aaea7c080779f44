"""What searches get: their rows, objective, plan and monitor, and the rows held out of them."""

import numpy as np
import pytest

from bitatoms.parallel import Workers
from bitatoms.search import mdl_search
from bitatoms.search.context import SearchContext
from bitatoms.search.monitor import SearchMonitor
from bitatoms.search.plan import PLANS
from support.blocks import bits_of


def search_context(X, objective, plan=PLANS["fast"], workers=Workers(), seed=0, holdout=None, **monitor):  # noqa: B008
    """Return what a search of a table gets; ``monitor`` are the arguments of its monitor."""
    watcher = SearchMonitor(objective, **monitor)
    return SearchContext(bits_of(X), objective, plan, watcher, workers, np.random.default_rng(seed), holdout)


class Started(Exception):
    """Raised at the start of a search, whose context is of interest and not its result."""


def context_of_search(patch, run):
    """Return the context of the first search for the shortest codelength that a function starts."""
    contexts = []

    def stop(context):
        contexts.append(context)
        raise Started

    with patch.context() as within:
        within.setattr(mdl_search, "MdlSearch", stop)
        with pytest.raises(Started):
            run()
    return contexts[0]


def assert_held_out(context, drawn):
    """Assert that a search sees eight of nine of these rows, all different, and that the others decide."""
    searched, held_out = ({row.tobytes() for row in rows.words} for rows in (context.data, context.holdout.rows))
    assert len(context.data) + len(context.holdout.rows) == len(drawn)
    assert len(searched) + len(held_out) == len(drawn)
    assert searched | held_out == {row.tobytes() for row in drawn.words}
    assert len(held_out) == len(drawn) // 9
    assert context.monitor.by_holdout
