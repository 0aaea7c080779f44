"""More rows than are searched: the search on a sample of them, which is then taken to all rows.

The sample is drawn by row numbers, so it is the same wherever the rows are. An atom costs the sample only its share,
and states are compared by rows held out, for atoms could fit a sample row by row.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.result import Factorization, Interrupted
from ..parallel import Workers
from ..search.driver import report_result, search
from ..search.holdout import HoldOut, split_rows
from ..search.params import SearchParams
from .passes import NO_JOURNAL, Journal, Passes, PassResult, PassState, first_pass
from .source import RowSource

logger = logging.getLogger(__name__)

_MOST_ROWS, _FEWEST_ROWS = 1 << 16, 1 << 12  # of a sample: the first, unless they have more bits than
_MOST_BITS = 1 << 31  # this; then fewer, but not fewer than the second


def auto_sample(n_features: int) -> int:
    """How many rows are searched where there are more."""
    return min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_BITS // max(1, n_features)))


def learn(
    rows: RowSource,
    params: SearchParams,
    workers: Workers,
    random: np.random.Generator,
    journal: Journal = NO_JOURNAL,
) -> Factorization | PassResult:
    """Search all rows, or where there are more than are searched a sample of them, from which all are gone through."""
    deadline = params.deadline()
    most = auto_sample(rows.n_features) if params.search_rows == "auto" else params.search_rows
    needs_all = "update" if params.update == "k-prox" else "search" if params.search == "paper" else None
    if needs_all and rows.whole is None:
        raise ValueError(
            f'{needs_all}="{getattr(params, needs_all)}" needs all rows in memory, and they are not; take '
            'search="fast", or read the table with bitatoms.read if it fits'
        )
    if needs_all or most is None or rows.n_rows <= most:
        data = rows.take(np.arange(rows.n_rows)) if rows.whole is None else rows.whole
        result = search(data, params, workers, random, deadline)
        report_result(result, params)
        return result
    taken = _search_a_sample(rows, most, params, workers, random, deadline, journal)
    report_result(taken.result, params)
    return taken


def _search_a_sample(
    rows: RowSource,
    n_drawn: int,
    params: SearchParams,
    workers: Workers,
    random: np.random.Generator,
    deadline: float,
    journal: Journal,
) -> PassResult:
    """Search a sample of so many rows, some of them held out, and take what is found to all."""
    state = journal.load()
    if state is not None:
        done = "all passes are done" if state.finished else f"pass {len(state.orders)} comes next"
        logger.info("going on from what was kept: %s", done)
    found: Factorization | None = None
    if state is None:
        drawn = random.choice(rows.n_rows, n_drawn, replace=False)
        seen, unseen = split_rows(drawn)
        holdout = HoldOut(rows.take(unseen), rows.n_rows, workers)
        own = replace(params, init=_init_of(params.init, rows.n_rows, seen))
        found = search(rows.take(seen), own, workers, random, deadline, holdout, len(seen) / rows.n_rows)
        state = PassState(found.algebra, found.ended, (first_pass(found, params),), found.history)
        journal.save(state)
    passes = Passes(rows, params, deadline, journal, state)
    try:
        passes.run()
    except KeyboardInterrupt:
        if passes.state.best:
            raise Interrupted(passes.taken("interrupted").result) from None
        raise Interrupted(found and replace(found, ended="interrupted")) from None
    return passes.taken()


def _init_of(init: Any, n_rows: int, seen: NDArray[np.int64]) -> Any:
    """Where the search on a sample starts: the codes of its rows, where codes are given."""
    if not isinstance(init, tuple) or len(init) != 2 or init[1] is None:
        return init
    codes = BitMatrix.from_any(init[1], name="init (codes)")
    if codes.n_rows != n_rows:
        raise ValueError(f"the codes in init have {codes.n_rows} rows, and X has {n_rows}")
    return init[0], codes[seen]
