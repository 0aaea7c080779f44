"""Searches of the sample of a stream: which rows they see, and which are held out."""

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.online.stream import StreamLearner
from bitatoms.online.tuning import StreamTuning
from bitatoms.parallel import Workers
from support.contexts import assert_held_out, context_of_search
from support.sources import params_for
from support.strategies import random_bits

ALONE = Workers(1)
SMALL = StreamTuning(max_sample_rows=90, min_sample_rows=90, scratch_rows=100)


def learner(algebra):
    return StreamLearner(params_for(algebra=algebra, max_iter=1), 0.0, np.random.default_rng(0), SMALL)


@pytest.mark.parametrize(("algebra", "n_before"), [("xor", 0), ("or", 300)])
def test_a_search_of_a_sample_holds_rows_out(algebra, n_before, monkeypatch):
    """The first search, and a later one."""
    rows, online, twin = BitMatrix.from_dense(random_bits(1, 600, 40, 0.3)), learner(algebra), learner(algebra)
    for each in (online, twin):
        if n_before:
            each.partial_fit(rows[:n_before], ALONE)
    batch = rows[n_before : n_before + 300]
    context = context_of_search(monkeypatch, lambda: online.partial_fit(batch, ALONE))
    twin.partial_fit(batch, ALONE)
    assert_held_out(context, twin.state.sample.rows)
    assert context.holdout.n_all == n_before + 300
    assert context.objective.share == 80 / (n_before + 300)
