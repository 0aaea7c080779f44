"""Tables with more rows than are searched: search a sample, then run passes over all rows.

The sample is drawn by row index, so it does not depend on where the rows are. An atom costs the sample only its share.
States are compared by held-out rows, because atoms could overfit the sample.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, Parameter
from ..kernels.gpu.device import is_out_of_memory
from ..model.result import Factorization, Interrupted
from ..parallel import OutOfTime, Workers
from ..search.constraints import search
from ..search.context import HoldOut, split_rows
from ..search.driver import SearchRequest, report_result
from ..search.monitor import CONVERGED, MAX_ITER, cut_off
from ..search.params import SearchParams
from ..search.states import StateStore
from ..search.verification import verified
from ..search.windows.driver import is_wide_and_sparse
from ..sparse_bits import Bits, SparseBits
from .budget import DEFAULT_LIMIT, SEARCH_FACTOR, MemoryLimitError, bytes_of
from .checkpoint import Checkpoint
from .passes import PassLimits, PassResult, ended_by, initial_state, run_passes
from .source import RowSource, init_of_rows

logger = logging.getLogger(__name__)

_MAX_ROWS, _MIN_ROWS = 1 << 16, 1 << 12  # of a sample
_MAX_BITS, _MAX_WIDE_BITS = 1 << 31, 1 << 33  # of a sample of more than _MIN_ROWS, and of one searched by windows
_LEAST_ROWS = 1 << 10  # of a sample within a memory limit
_MAX_RESERVED, _RESERVED_PER_SAMPLE = 0.5, 0.05  # shares of max_time for passes: all rows may be many samples


def default_search_rows(n_features: int, by_windows: bool = False) -> int:
    """Return the number of rows that are searched by default, as a whole or by windows of columns."""
    return min(_MAX_ROWS, max(_MIN_ROWS, (_MAX_WIDE_BITS if by_windows else _MAX_BITS) // max(1, n_features)))


def learn(
    rows: RowSource,
    params: SearchParams,
    workers: Workers,
    random: np.random.Generator,
    checkpoint: Checkpoint | None = None,
    must_cover_all_rows: bool = True,
    keeps_codes: bool = False,
) -> Factorization | PassResult:
    """Search all rows, or, where there are more than are searched, a sample followed by passes over all rows.

    If the first pass is not complete in time, or memory runs out, the result is that of the sample, unless it
    ``must_cover_all_rows``. ``keeps_codes``: a `PassResult` holds the codes of rows that are not in memory, too.
    Results are verified before they are returned.
    """
    start, deadline, shape = time.perf_counter(), params.deadline(), (rows.n_rows, rows.n_features)
    store = None if checkpoint is None else checkpoint.states
    ones, max_rows = _searched(rows, params)
    if max_rows is None or rows.n_rows <= max_rows:
        data = rows.in_memory if ones is None else ones
        data = rows.take(np.arange(rows.n_rows)) if data is None else data
        own = _for_tasks(workers, rows, data, params)
        result = search(SearchRequest(data, params, own, random, deadline, store=store))
        if checkpoint is not None:
            checkpoint.end_search(finished=result.ended in (CONVERGED, MAX_ITER))
        report_result(verified(result, params, *shape), params)
        return result
    state = None if checkpoint is None else checkpoint.load(params)
    found: Factorization | None = None
    if state is None:
        reserved = min(_MAX_RESERVED, _RESERVED_PER_SAMPLE * rows.n_rows / max_rows)
        search_deadline = deadline - reserved * (params.max_time or 0.0)
        found = _search_sample(rows, max_rows, params, workers, random, search_deadline, store=store)
        state = initial_state(found, params)
        if checkpoint is not None:
            checkpoint.save(state)
    else:
        progress = "all passes are complete" if state.finished else f"pass {len(state.specs)} is next"
        logger.info("resuming from the checkpoint: %s", progress)
    must_cover_all_rows |= found is None
    limits = PassLimits(deadline, cut_off(start, deadline), must_cover_all_rows)
    try:
        passes = run_passes(rows, state, params, limits, checkpoint, keeps_codes)
    except Interrupted as interrupted:
        if interrupted.result is None and found is not None:
            raise Interrupted(replace(found, ended="interrupted")) from None
        raise
    except (OutOfTime, MemoryError, MemoryLimitError) as error:
        if found is None or must_cover_all_rows or is_out_of_memory(error):
            raise
        found = replace(found, ended=ended_by(error))
        report_result(verified(found, params, *shape), params)
        return found
    report_result(verified(passes.result, params, *shape), params)
    return passes


def _searched(rows: RowSource, params: SearchParams) -> tuple[SparseBits | None, int | None]:
    """Return all rows by their ones, if they are searched by them, or the number of rows to search; None for all."""
    if params.options.search_rows == "auto" and params.is_wide(rows.n_features):
        ones = rows.ones()
        if ones is not None and is_wide_and_sparse(ones, params):
            return ones, None
    return None, _max_search_rows(rows, params)


def _max_search_rows(rows: RowSource, params: SearchParams) -> int | None:
    """Return the number of rows to search, or None for all, within the memory limit.

    Raises
    ------
    InputError
        All rows are needed and not in memory, or the memory limit is too small.
    """
    needs_all = "update" if params.paper.update == "k-prox" else "search" if params.search == "paper" else None
    if needs_all is not None and rows.in_memory is None:
        raise InputError(
            Parameter(needs_all, "k-prox" if needs_all == "update" else "paper"),
            " needs all rows in memory; pass ",
            Parameter("search", "fast"),
            ", or load the table with bitatoms.read if it fits into memory",
        )
    given, by_windows = None if needs_all is not None else params.options.search_rows, params.is_wide(rows.n_features)
    if given != "auto":
        rows.max_search_rows(rows.n_rows if given is None else min(given, rows.n_rows), by_windows)
        return given
    fitting = rows.max_search_rows(min(_LEAST_ROWS, rows.n_rows), by_windows)
    by_default = default_search_rows(rows.n_features, by_windows)
    return by_default if fitting is None else min(by_default, fitting)


def _search_sample(
    rows: RowSource,
    n_drawn: int,
    params: SearchParams,
    workers: Workers,
    random: np.random.Generator,
    deadline: float,
    part: NDArray[np.int64] | None = None,
    store: StateStore | None = None,
) -> Factorization:
    """Search a random sample of the rows, or of a part of them, with some of it held out."""
    n_rows = rows.n_rows if part is None else len(part)
    drawn = random.choice(n_rows, n_drawn, replace=False)
    seen, held_out = split_rows(drawn if part is None else part[drawn])
    holdout = HoldOut(rows.take(held_out), n_rows)
    params = replace(params, init=init_of_rows(params.init, rows.n_rows, lambda codes: codes[seen]))
    data = rows.take(seen)
    workers = _for_tasks(workers, rows, data, params)
    share = len(seen) / n_rows
    return search(SearchRequest(data, params, workers, random, deadline, holdout, share, store))


def _for_tasks(workers: Workers, rows: RowSource, data: Bits, params: SearchParams) -> Workers:
    """Return workers for a search of this data that run only as many tasks at once as memory allows.

    Windows of a wide table are small tasks.
    """
    if params.is_wide(rows.n_features):
        return workers
    fitting = rows.max_search_rows(1, by_windows=False)
    if fitting is None:
        fitting = DEFAULT_LIMIT * len(data) // max(1, SEARCH_FACTOR * bytes_of(data))
    max_tasks = max(1, fitting // max(1, len(data)))
    return replace(workers, max_tasks=min(max_tasks, workers.max_tasks or max_tasks))


def search_part(
    rows: RowSource, part: NDArray[np.int64], params: SearchParams, workers: Workers, random: np.random.Generator
) -> Factorization:
    """Search the rows with these indices, which are in increasing order; if they are too many, a sample of them.

    The result is that of the rows searched: no passes follow.
    """
    deadline, (ones, max_rows) = params.deadline(), _searched(rows, params)
    params = replace(params, limits=params.limits.of_share(len(part) / max(1, rows.n_rows)))
    if max_rows is not None and len(part) > max_rows:
        return _search_sample(rows, max_rows, params, workers, random, deadline, part)
    params = replace(params, init=init_of_rows(params.init, rows.n_rows, lambda codes: codes[part]))
    data = rows.take(part) if ones is None else ones[part]
    workers = _for_tasks(workers, rows, data, params)
    return search(SearchRequest(data, params, workers, random, deadline))
