"""What a search for the shortest codelength gets: its rows and the rows held out of it."""

import pytest

from bitatoms.search import mdl_search


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
