"""Wide tables: search windows of their columns, then join neighbouring windows, and put the atoms side by side.

An atom that a whole row suggests has thousands of columns to fit, and where only some of them belong together, no row
fits the others. In a window of related columns (`search/column_groups.py`), an atom is as easy to find as in a narrow
table. The codelength is a sum over columns and atoms, so that the codelengths of windows add up to that of the table,
if atoms cost what they cost in the table (``Objective.n_features``). Two windows that are joined start from the atoms
and codes of both, and the ordinary moves go on from there: atoms that the same rows use become one. A window keeps the
best state it has had, so that no join makes the description longer.

Windows are independent tasks for the threads, each with its own random numbers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..core.block import Block, Change, Rest
from ..core.complete import hash_rows
from ..core.margins import Margins
from ..core.objective import Objective
from ..core.result import THOROUGH_WINDOW, Factorization
from ..core.side_by_side import Part, side_by_side
from ..mdl import Codelength, string_bits
from ..parallel import OutOfTime, Workers
from ..sparse_bits import Bits, SparseBits
from .best_result import best_result, stopped_result
from .column_groups import column_groups
from .context import SearchContext
from .finish import finish
from .holdout import HoldOut
from .journal import StepRecord, snapshot_of
from .mdl_search import go_on, search_mdl
from .monitor import SearchMonitor, Snapshot
from .params import SearchParams
from .related_columns import can_count_pairs, related_columns
from .stopping import CONVERGED, MAX_ITER, MAX_MEMORY, MAX_TIME, SearchResult
from .window_journal import WindowJournal

Item = TypeVar("Item")
Result = TypeVar("Result")

_SEARCH_SHARE, _JOIN_SHARE = 0.7, 0.9  # of the time, at which windows are all searched, and all joined
_LEAST_SECONDS = 0.5  # for a window
_MIN_ONES = 2  # of a row in a window of a sparse table: an atom of two columns makes other rows worse


def is_wide(n_features: int, params: SearchParams) -> bool:
    """Return whether to search windows of the columns.

    Limits on the atoms of a row or of the table concern all windows together, and so do atoms to start from.
    """
    is_free = params.n_components == "mdl" and params.max_components is None and params.search in ("fast", "thorough")
    is_free &= params.max_atoms_per_sample is None and params.residual_limit == 0
    starts_free = isinstance(params.init, str) and params.init == "auto"
    return is_free and starts_free and n_features >= params.plan.windows.min_features


def is_wide_and_sparse(data: Bits, params: SearchParams) -> bool:
    """Return whether to search windows of columns that occur together, each with the rows that have ones there."""
    if not is_wide(data.n_cols, params) or data.n_unknown:
        return False
    is_sparse = data.count() <= params.plan.windows.max_sparse_share * data.n_rows * data.n_cols
    return is_sparse and can_count_pairs(data.row_weights())


@dataclass(frozen=True, eq=False)
class Window:
    """Some columns of the table, and the best state that was found of them."""

    columns: NDArray[np.intp]
    best: Snapshot
    cost: int
    random: np.random.Generator | None  # None for columns that no atom has
    ended: str = CONVERGED
    iterations: int = 0  # of what was done last
    n_groups: int = 1  # of the columns, as they were divided at first


class _Stopped(Exception):
    """A callback or the deadline ends the search."""


class WindowSearch:
    """A search of a wide table: run it, or ask for the best state that it has found so far.

    Parameters
    ----------
    table : BitMatrix or SparseBits
    params : SearchParams
    objective : Objective
    monitor : SearchMonitor
        Gets the sums over all windows.
    workers : Workers
    random : numpy.random.Generator
    holdout : HoldOut, optional
        Compares states where the table is a sample of the rows.
    margins : Margins, optional
        Atoms that these explain are dropped in the end.
    journal : WindowJournal, optional
        Keeps what finished tasks found.
    """

    def __init__(
        self,
        table: Bits,
        params: SearchParams,
        objective: Objective,
        monitor: SearchMonitor,
        workers: Workers,
        random: np.random.Generator,
        holdout: HoldOut | None = None,
        margins: Margins | None = None,
        journal: WindowJournal | None = None,
    ) -> None:
        self.table, self.params, self.monitor, self.random = table, params, monitor, random
        self.holdout, self.margins, self.journal = holdout, margins, journal or WindowJournal()
        self.objective = replace(objective, n_features=table.n_cols)
        self.workers = replace(workers, cancelled=threading.Event())
        self.windows: list[Window] = []
        self._groups: tuple[Window, ...] = ()  # the windows at first
        self._sums = np.zeros(5, np.int64)  # over all windows: atoms, wrong bits, and the parts of the codelength

    def run(self, end: float) -> tuple[str, Factorization | None]:
        """Return the reason that the search ended, and the best state found by then.

        If it is cut off at the time ``end``, or memory runs out, this is the best state found so far.
        """
        self.workers = replace(self.workers, deadline=end)
        try:
            self._divide()
            self._record("no model", 0)
            self._search()
            while self._join():
                pass
            self._take_earlier(must_stop=self._ended() not in (CONVERGED, MAX_ITER))
            parts = [*self._map(self._result_of, self.windows, 1.0)]
            ended = self._ended()
            return ended, self._assembled(parts, ended)
        except _Stopped:
            ended = self._ended()
        except OutOfTime:
            ended = MAX_TIME
        except MemoryError:
            ended = MAX_MEMORY
            if not self.windows:
                raise
        return ended, self.stopped(ended)

    def stopped(self, ended: str) -> Factorization | None:
        """Return the best state so far of a search that was cut off, or None."""
        self.workers = replace(self.workers, deadline=float("inf"), cancelled=None)
        if not self.windows:
            if not self.journal.has_stopped:
                return None
            self._divide()
        self._take_earlier(must_stop=True)
        try:
            parts = [*self.workers.map_stream(lambda window: self._stopped_part(window, ended), self.windows)]
        except KeyboardInterrupt:  # another one: without sorting the atoms
            parts = [self._stopped_part(window, ended, is_sorted=False) for window in self.windows]
        return self._assembled(parts, ended)

    @property
    def best_cost(self) -> int:
        """The cost of the best state, by which starts are compared."""
        return sum(window.cost for window in self.windows)

    # Steps.

    def _divide(self) -> None:
        """Divide the columns into windows, of which nothing is known yet."""
        table, tuning = self.table, self.params.plan.windows
        if isinstance(table, SparseBits):
            try:
                groups = related_columns(table, tuning.max_related, self.workers.check_deadline)
            except OutOfTime:  # nothing is known to be related, and no window is searched
                groups = []
        else:
            groups = column_groups(table, tuning.width, self.random)
        weights = table.column_weights()
        bits = string_bits(table.n_known, weights)
        costs = bits if self.holdout is None else self.holdout.costs_of_nothing()
        unrelated = np.ones(table.n_cols, bool)
        randoms: list[np.random.Generator | None] = [*self.random.spawn(len(groups))]
        for columns in groups:
            unrelated[columns] = False
        if unrelated.any():
            groups, randoms = [*groups, np.flatnonzero(unrelated)], [*randoms, None]
        for columns, random in zip(groups, randoms, strict=True):
            n_known = table.n_known[columns] if isinstance(table.n_known, np.ndarray) else table.n_known
            length, m = Codelength(int(bits[columns].sum()), 0, 0), len(columns)
            empty = BitMatrix.zeros(0, m), BitMatrix.zeros(table.n_rows, 0), BitMatrix.zeros(1, m)
            cost = int(costs[columns].sum())
            self._add([Window(columns, Snapshot(*empty, length, weights[columns], n_known), cost, random)])
        self._groups = tuple(self.windows)

    def _search(self) -> None:
        """Search each window."""
        move = THOROUGH_WINDOW if self.params.search == "thorough" else "window"
        for number, window in enumerate(self._map(self._searched, self.windows, _SEARCH_SHARE)):
            self._add([window], number)
            if window.random is not None:
                self._record(move, window.iterations)

    def _join(self) -> bool:
        """Join neighbouring windows, two by two; return whether there were any to join."""
        old = self.windows
        pairs, i = [], 0
        while i < len(old):
            pairs.append(old[i : i + 2] if self._may_join(old[i : i + 2]) else old[i : i + 1])
            i += len(pairs[-1])
        if len(pairs) == len(old):
            return False
        for number, window in enumerate(self._map(self._joined, pairs, _JOIN_SHARE)):
            if len(pairs[number]) > 1:
                self._add([window], number, number + 2)
                self._record("join", window.iterations)
        return True

    def _may_join(self, pair: Sequence[Window]) -> bool:
        """Return whether two windows have the same rows, and few enough atoms and columns to be joined."""
        if len(pair) < 2 or isinstance(self.table, SparseBits):
            return False
        n_atoms, n_cols = sum(window.best.atoms.n_rows for window in pair), sum(len(window.columns) for window in pair)
        return n_atoms * n_cols <= self.params.plan.windows.max_atom_cells

    def _take_earlier(self, must_stop: bool) -> None:
        """Take the windows of an earlier search that had to stop, if they are better; keep these, if this one must."""
        earlier = self.journal.load_stopped(self._restored)
        if earlier is not None and sum(window.cost for window in earlier) < self.best_cost:
            self._add(earlier, 0, len(self.windows))
        elif must_stop:
            self.journal.save_stopped(self.windows)

    def _restored(self, record: StepRecord) -> list[Window]:
        """Return the windows of a record: how many groups of columns each has, whether it has a state, and states."""
        windows, groups, states = [], iter(self._groups), iter(record.states)
        sizes, have_state = record.numbers[::2], record.numbers[1::2]
        if min(sizes, default=0) < 1 or sum(sizes) != len(self._groups) or sum(have_state) != len(record.states):
            raise ValueError("its windows do not have the columns of the table")
        for n_groups, has_state in zip(sizes, have_state, strict=True):
            window = reduce(lambda one, other: _side_by_side((one, other)), islice(groups, n_groups))
            if has_state:
                state, (context, _) = next(states), self._context_of(window, float("inf"))
                window = replace(window, best=snapshot_of(context, state), cost=state.cost)
            windows.append(replace(window, ended=MAX_TIME))
        return windows

    # Tasks: each has a window of its own, and runs in one thread.

    def _searched(self, window: Window, deadline: float) -> Window:
        """Search a window."""
        if window.random is None:
            return window
        return self._kept("window", window, deadline, self._search_columns)

    def _joined(self, pair: list[Window], deadline: float) -> Window:
        """Join windows and go on from the atoms and codes of both."""
        if len(pair) == 1:
            return pair[0]
        return self._kept("join", _side_by_side(pair), deadline, self._going_on)

    def _kept(
        self, move: str, window: Window, deadline: float, search: Callable[[Window, SearchContext], SearchResult]
    ) -> Window:
        """Return what a search finds in a window, or what the journal holds of it."""

        def run(window: Window) -> Window:
            if time.perf_counter() >= deadline:
                return replace(window, ended=MAX_TIME)
            context, _ = self._context_of(window, deadline)
            return self._after(window, context, lambda: search(window, context))

        return self.journal.kept(move, window, run, lambda: self._context_of(window, deadline)[0])

    def _search_columns(self, window: Window, context: SearchContext) -> SearchResult:
        """Search the columns of a window."""
        if context.rest is None:
            return search_mdl(context)
        first = SearchResult(context.block(BitMatrix.zeros(0, len(window.columns))), CONVERGED)
        return search_mdl(context, first=first)  # atoms grow from pairs of columns

    def _going_on(self, window: Window, context: SearchContext) -> SearchResult:
        """Go on from the state of joined windows; if they are the whole table, with all starts of an ordinary search.

        Rows of the table can show atoms of many columns that no window shows.
        """
        data, plan = context.data, self.params.plan
        found = go_on(context, window.best, plan.windows.join_rounds)
        if data.n_cols < self.table.n_cols or data.n_rows * data.n_cols > plan.windows.max_cells:
            return found
        return search_mdl(replace(context, plan=plan), first=found)

    def _after(self, window: Window, context: SearchContext, search: Callable[[], SearchResult]) -> Window:
        """Return a window with the best state that a search found, if it is better."""
        monitor = context.monitor
        try:
            ended = search().ended
        except OutOfTime:
            ended = MAX_TIME
        iterations = sum(row.iterations for row in monitor.history)
        if monitor.best is None or monitor.best_cost >= window.cost:
            return replace(window, ended=ended, iterations=iterations)
        return replace(window, best=monitor.best, cost=monitor.best_cost, ended=ended, iterations=iterations)

    def _result_of(self, window: Window, deadline: float) -> Part:
        """Return the result of a window, whose rows are coded as `transform` codes them."""
        if window.random is None:
            return self._part_without_atoms(window)
        (context, rows), coder = self._context_of(window, deadline), self.params.coder_after
        found = finish(context, SearchResult(self._recorded(window, context), window.ended), coder)
        result = best_result(context, found.block, coder, found.ended)
        assert result is not None
        return Part(window.columns, result, rows)

    def _stopped_part(self, window: Window, ended: str, is_sorted: bool = True) -> Part:
        """Return the result of a window, if the search was cut off."""
        if window.random is None or not window.best.atoms.n_rows:
            return self._part_without_atoms(window)
        context, rows = self._context_of(window, float("inf"))
        self._recorded(window, context)
        # The time is up, and to code all rows again, in order to remember hard codes, would take about a second each.
        result = stopped_result(context, self.params.coder_after, ended, is_sorted, remembers=False)
        assert result is not None
        return Part(window.columns, result, rows)

    def _part_without_atoms(self, window: Window) -> Part:
        """Return the result of a window of which nothing was found."""
        best, nothing = window.best, np.zeros(0, np.int64)
        result = Factorization(
            atoms=best.atoms,
            codes=BitMatrix.zeros(self.table.n_rows, 0),
            bias=best.bias.to_dense()[0],
            algebra=self.objective.algebra,
            codelength=best.codelength,
            history=(),
            wrong=best.wrong,
            coder=self.params.coder_after,
            saved=nothing,
            ones=best.wrong,
            missed=best.wrong,
            known=best.n_known if isinstance(best.n_known, np.ndarray) else None,
            complete=nothing,
        )
        return Part(window.columns, result)

    def _recorded(self, window: Window, context: SearchContext) -> Block:
        """Return the best state of a window as a block, after its monitor has seen it."""
        best = window.best
        block = context.block(best.atoms, best.codes if best.atoms.n_rows else None, best.bias)
        context.monitor.record(block, Change(), 0, "start")
        return block

    def _context_of(self, window: Window, deadline: float) -> tuple[SearchContext, NDArray[np.intp] | None]:
        """Return what a search of the columns of a window needs to know, and its rows, if these are not all."""
        table, plan, rows, rest = self.table, self.params.plan, None, None
        if isinstance(table, SparseBits):
            rows, data = table.window(window.columns, _MIN_ONES)
            ones = table.by_column.row_weights()[window.columns] - data.column_weights()
            rest = Rest(table.n_rows - len(rows), ones)
            plan = replace(plan, starts=(), only_starts=True, left_out=plan.left_out | {"bias", "finish"})
        else:
            data = table.take_columns(window.columns)
            if self.params.search == "fast" and not plan.only_starts:
                plan = replace(plan, starts=plan.windows.starts, from_look=False, only_starts=True)
        workers = Workers(1, None, self.workers.deadline, self.workers.cancelled)
        holdout = self.holdout
        if holdout is not None:
            holdout = replace(holdout, rows=holdout.rows.take_columns(window.columns), workers=workers)
        monitor = SearchMonitor(
            by_codelength=True,
            deadline=deadline,
            algebra=self.objective.algebra,
            by_holdout=self.monitor.by_holdout,
            settles_bias=self.monitor.settles_bias,
            n_features=table.n_cols,
        )
        random = window.random or np.random.default_rng(0)
        margins = self.margins and self.margins.take_columns(window.columns)
        return SearchContext(data, self.objective, plan, monitor, workers, random, holdout, rest, margins), rows

    # Threads, time and progress.

    def _map(self, task: Callable[[Item, float], Result], items: Sequence[Item], share: float) -> Iterator[Result]:
        """Run a task on each item and yield the results in order; a task gets its deadline, too.

        All must be done at this share of the time. An item gets an equal share of the time that is left, but no less
        than a task of a small window takes: later items may then get none.
        """
        monitor, n_threads = self.monitor, self.workers.n_threads
        last = monitor.started + share * (monitor.deadline - monitor.started)
        left = iter(range(len(items), 0, -1))  # next() on it is atomic

        def run(item: Item) -> Result:
            now, rounds_left = time.perf_counter(), -(-next(left) // n_threads)
            return task(item, min(last, now + max(_LEAST_SECONDS, (last - now) / rounds_left)))

        return self.workers.map_stream(run, items)

    def _add(self, windows: list[Window], start: int | None = None, stop: int | None = None) -> None:
        """Put windows in the place of those from start to stop, of one by default; without start, at the end."""
        start = len(self.windows) if start is None else start
        replaced = slice(start, start + 1 if stop is None else stop)
        for sign, changed in ((-1, self.windows[replaced]), (1, windows)):
            for window in changed:
                length = window.best.codelength
                parts = window.best.atoms.n_rows, window.best.wrong_bits, length.errors, length.codes, length.atoms
                self._sums += sign * np.array(parts)
        self.windows[replaced] = windows

    def _record(self, move: str, iterations: int) -> None:
        """Add a round to the history, with the sums over all windows; raise _Stopped if that ends the search."""
        n_atoms, wrong, *length = self._sums.tolist()
        self.monitor.record_counts(self.table.n_rows, n_atoms, wrong, Codelength(*length), Change(), iterations, move)
        if self.monitor.should_stop():
            raise _Stopped

    def _ended(self) -> str:
        """Return the reason that the search ended."""
        reasons = [window.ended for window in self.windows if window.ended != CONVERGED]
        return self.monitor.stop_reason or next(iter(reasons), CONVERGED)

    def _assembled(self, parts: list[Part], ended: str) -> Factorization:
        """Return the result for the table from those of its windows."""
        monitor, table = self.monitor, self.table
        result = side_by_side(parts, *table.shape)
        n_atoms, wrong = result.atoms.n_rows, result.wrong_bits
        monitor.record_counts(table.n_rows, n_atoms, wrong, result.codelength, Change(), 0, "finish")
        return replace(result, ended=ended, history=tuple(monitor.history), rows_hash=hash_rows(table))


def _side_by_side(pair: Sequence[Window]) -> Window:
    """Return a window with the columns, atoms and codes of two."""
    one, other = pair
    atoms = np.zeros((one.best.atoms.n_rows + other.best.atoms.n_rows, len(one.columns) + len(other.columns)), np.uint8)
    atoms[: one.best.atoms.n_rows, : len(one.columns)] = one.best.atoms.to_dense()
    atoms[one.best.atoms.n_rows :, len(one.columns) :] = other.best.atoms.to_dense()
    codes = stack_rows([one.best.codes.T, other.best.codes.T], one.best.codes.n_rows).T
    bias = stack_rows([one.best.bias.T, other.best.bias.T], 1).T
    lengths = one.best.codelength, other.best.codelength
    n_known = one.best.n_known
    if not isinstance(n_known, int) or not isinstance(other.best.n_known, int):
        n_known = np.concatenate([np.broadcast_to(each.best.n_known, len(each.columns)) for each in pair])
    best = Snapshot(
        BitMatrix.from_dense(atoms),
        codes,
        bias,
        Codelength(*(sum(getattr(length, part) for length in lengths) for part in ("errors", "codes", "atoms"))),
        np.concatenate([one.best.wrong, other.best.wrong]),
        n_known,
    )
    ended = one.ended if one.ended != CONVERGED else other.ended
    columns = np.concatenate([one.columns, other.columns])
    n_groups = one.n_groups + other.n_groups
    return Window(columns, best, one.cost + other.cost, one.random, ended, n_groups=n_groups)
