"""More rows than are searched: the search on a sample of them, which is then taken to all rows.

The sample is drawn by row numbers, so it is the same wherever the rows are. An atom costs the sample only its share,
and states are compared by rows held out, for atoms could fit a sample row by row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..parallel import Workers
from .evidence import AllRows
from .held_out import HeldOut
from .learning import logger
from .passes import NOTHING_KEPT, Journal, Passes, State, Taken, first_order
from .result import Factorization, Interrupted
from .search import search, tell
from .settings import Settings

_MOST_ROWS, _FEWEST_ROWS = 1 << 16, 1 << 12  # of a sample: the first, unless they have more bits than
_MOST_BITS = 1 << 31  # this; then fewer, but not fewer than the second
_HELD_OUT = 9  # one row of so many of the sample is held out


def auto_sample(n_features: int) -> int:
    """How many rows are searched where there are more."""
    return min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_BITS // max(1, n_features)))


def learn(
    rows: AllRows, settings: Settings, workers: Workers, random: np.random.Generator, journal: Journal = NOTHING_KEPT
) -> Factorization | Taken:
    """Search all rows, or where there are more than are searched a sample of them, from which all are gone through."""
    deadline = settings.deadline()
    most = auto_sample(rows.n_features) if settings.sample_rows == "auto" else settings.sample_rows
    needs_all = "update" if settings.update == "k-prox" else "search" if settings.search == "paper" else None
    if needs_all and rows.whole is None:
        raise ValueError(
            f'{needs_all}="{getattr(settings, needs_all)}" needs all rows in memory, and they are not; take '
            'search="fast", or read the table with bitatoms.read if it fits'
        )
    if needs_all or most is None or rows.n_rows <= most:
        data = rows.take(np.arange(rows.n_rows)) if rows.whole is None else rows.whole
        result = search(data, settings, workers, random, deadline)
        tell(result, settings)
        return result
    taken = _search_a_sample(rows, most, settings, workers, random, deadline, journal)
    tell(taken.result, settings)
    return taken


def _search_a_sample(
    rows: AllRows,
    n_drawn: int,
    settings: Settings,
    workers: Workers,
    random: np.random.Generator,
    deadline: float,
    journal: Journal,
) -> Taken:
    """Search a sample of so many rows, some of them held out, and take what is found to all."""
    state = journal.load()
    if state is not None:
        done = "all passes are done" if state.finished else f"pass {len(state.orders)} comes next"
        logger.info("going on from what was kept: %s", done)
    found: Factorization | None = None
    if state is None:
        drawn = random.choice(rows.n_rows, n_drawn, replace=False)
        n_held_out = max(1, n_drawn // _HELD_OUT)
        seen, unseen = np.sort(drawn[n_held_out:]), np.sort(drawn[:n_held_out])
        held_out = HeldOut(rows.take(unseen), rows.n_rows, workers)
        own = replace(settings, init=_init_of(settings.init, rows.n_rows, seen))
        found = search(rows.take(seen), own, workers, random, deadline, held_out, len(seen) / rows.n_rows)
        state = State(found.algebra, found.ended, (first_order(found, settings),), found.history)
        journal.save(state)
    passes = Passes(rows, settings, deadline, journal, state)
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
