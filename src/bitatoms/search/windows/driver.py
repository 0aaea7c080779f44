"""Wide tables: search windows of their columns, then join neighbouring windows, and put the atoms side by side.

An atom that a whole row suggests has thousands of columns to fit, and where only some of them belong together, no row
fits the others. In a window of related columns (`column_groups.py`), an atom is as easy to find as in a narrow table.
The codelength is a sum over columns and atoms, so that the codelengths of windows add up to that of the table, if
atoms cost what they cost in the table (``Objective.n_features``). Two windows that are joined start from the atoms
and codes of both, and the ordinary moves go on from there: atoms that the same rows use become one. A window
keeps the best state it has had, so that no join makes the description longer. Columns in no window have no atoms.

Windows are independent tasks for the threads, each with its own random numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag

from ...bits import BitMatrix, stack_rows
from ...engine.block import Change, CountedRows
from ...engine.codelength import Codelength, string_bits
from ...engine.objective import Objective
from ...model.join_columns import ColumnFactors, join_columns
from ...model.result import THOROUGH_WINDOW, Factorization
from ...parallel import OutOfTime, Workers
from ...sparse_bits import Bits, SparseBits, is_smaller_sparse
from ..context import HoldOut, SearchContext
from ..finish import best_result, finish, result_of_state, stopped_result
from ..margins import Margins
from ..mdl_search import go_on, search_mdl
from ..monitor import CONVERGED, MAX_ITER, MAX_TIME, SearchMonitor, SearchResult
from ..params import SearchParams
from ..states import SavedStates, State
from .column_groups import can_count_pairs, column_groups, related_columns, runs_of_regions

Item = TypeVar("Item")
Result = TypeVar("Result")

_SEARCH_SHARE = 0.7  # of the time, at which windows are all searched
_LEAST_SECONDS = 0.5  # for a window
_MIN_ONES = 2  # of a row in a window of a sparse table: an atom of two columns makes other rows worse


def is_wide_and_sparse(data: Bits, params: SearchParams) -> bool:
    """Return whether to search windows of columns that occur together, each with the rows that have ones there."""
    if not params.is_wide(data.n_cols) or data.n_unknown:
        return False
    return is_smaller_sparse(data.shape, data.count()) and can_count_pairs(data.row_weights())


@dataclass(frozen=True, eq=False)
class Window:
    """Some columns of the table, in increasing order, and the best state that was found of them."""

    columns: NDArray[np.intp]
    best: State
    ended: str = CONVERGED
    iterations: int = 0  # of what was done last

    @property
    def counts(self) -> NDArray[np.int64]:
        """The numbers of atoms and of wrong bits, and the parts of the codelength."""
        best, length = self.best, self.best.codelength
        return np.array([best.atoms.n_rows, best.wrong.sum(), length.errors, length.codes, length.atoms])


@dataclass(eq=False)
class WindowSearch:
    """A search of a wide table: run it, or ask for the best state that it has found so far."""

    table: Bits
    params: SearchParams
    objective: Objective
    monitor: SearchMonitor  # gets the sums over all windows
    workers: Workers
    random: np.random.Generator
    holdout: HoldOut | None = None  # compares states where the table is a sample of the rows
    margins: Margins | None = None  # atoms that these explain are dropped in the end

    def __post_init__(self) -> None:
        table = self.table
        code = replace(self.objective.code, n_features=table.n_cols)  # of all columns
        self.objective = replace(self.objective, code=code)
        self._seed = int(self.random.integers(2**63))  # of the windows
        self._ones, self._known = table.column_weights(), table.n_known
        self._bits = string_bits(self._known, self._ones)  # that each column takes without a model
        # The same, by which states are compared.
        self._costs = self._bits if self.holdout is None else self.holdout.costs_of_nothing()
        self.windows: list[Window] = []
        self._sums = np.array([0, self._ones.sum(), self._bits.sum(), 0, 0])  # of the counts of windows, over the table

    def run(self, end: float) -> tuple[str, Factorization]:
        """Return the reason that the search ended, and its result; raise OutOfTime at the time ``end``."""
        self.workers = replace(self.workers, deadline=end)
        saver = self.monitor.saver
        is_finished = saver is not None and bool(saver.load(self._restore))
        if not self.windows:
            self.windows = [self._without_model(columns) for columns in self._groups()]
        self._record("no model", 0)
        if not is_finished:
            self._search()
            while self._join():
                pass
        parts = [*self._map(self._result_of, self._parts())]
        reasons = (window.ended for window in self.windows if window.ended != CONVERGED)
        ended = self.monitor.stop_reason or next(reasons, CONVERGED)
        self._save(ended if ended in (CONVERGED, MAX_ITER) else None)
        return ended, self._assembled(parts, ended)

    def stopped(self, ended: str, workers: Workers | None = None) -> Factorization:
        """Return the best state so far of a search that was cut off; other threads may be given for this."""
        self.workers = replace(workers or self.workers, deadline=float("inf"))
        self._save()
        windows = self._parts()
        try:
            parts = [*self.workers.map_tasks(lambda _, window: self._stopped_part(window, ended), windows)]
        except KeyboardInterrupt:  # another one: without sorting the atoms
            parts = [self._stopped_part(window, ended, is_sorted=False) for window in windows]
        return self._assembled(parts, ended)

    @property
    def has_state(self) -> bool:
        """Whether there is a best state."""
        return bool(self.windows)

    @property
    def best_cost(self) -> int:
        """The cost of the best state, by which starts are compared."""
        return sum(window.best.cost for window in self._parts())

    # Steps.

    def _restore(self, saved: SavedStates) -> bool:
        """Take the windows that were saved; return whether the search was finished."""
        columns = np.concatenate([np.empty(0, np.intp), *saved.columns])
        if len(np.unique(columns)) != len(columns) or not np.isin(columns, np.arange(self.table.n_cols)).all():
            raise ValueError("its windows do not have the columns of the table")
        self.windows = [self._without_model(columns) for columns in saved.columns]
        for n, (window, state) in enumerate(zip(self.windows, saved.states, strict=True)):
            if state.atoms.n_rows and state.codes.n_rows != self._context_of(window)[0].data.n_rows:
                raise ValueError("its windows do not have the rows of the table")
            self._put(replace(window, best=state), n, n + 1)
        return saved.ended is not None

    def _save(self, ended: str | None = None) -> None:
        """Save the windows, with the reason that the search ended."""
        windows = [*self.windows]
        if self.monitor.saver is not None and windows:
            self.monitor.saver.save(
                lambda: SavedStates([each.best for each in windows], ended, [each.columns for each in windows])
            )

    def _groups(self) -> list[NDArray[np.intp]]:
        """Divide the columns, or those of a sparse table that are related to others, into groups to be searched."""
        tuning = self.params.plan.windows
        if isinstance(self.table, SparseBits):
            return related_columns(self.table, tuning.max_related, self.workers.check_deadline)
        if self.params.regions is not None:
            return runs_of_regions(self.params.regions, tuning.width)
        return column_groups(self.table, tuning.width, self.random)

    def _without_model(self, columns: NDArray[np.intp]) -> Window:
        """Return a window of columns of which nothing is known."""
        m = len(columns)
        empty = BitMatrix.zeros(0, m), BitMatrix.zeros(self.table.n_rows, 0), BitMatrix.zeros(1, m)
        length = Codelength(int(self._bits[columns].sum()), 0, 0)
        return Window(columns, State(int(self._costs[columns].sum()), *empty, self._ones[columns], length))

    def _search(self) -> None:
        """Search each window, unless atoms of it were saved."""
        move = THOROUGH_WINDOW if self.params.search == "thorough" else "window"
        places = [n for n, window in enumerate(self.windows) if not window.best.atoms.n_rows]
        with closing(self._map(self._searched, [self.windows[n] for n in places], _SEARCH_SHARE)) as found:
            for n, window in zip(places, found, strict=True):
                self._put(window, n, n + 1)
                self._save()
                self._record(move, window.iterations)

    def _join(self) -> bool:
        """Join pairs of neighbouring windows; return whether there were any to join."""
        pairs: list[int] = []  # the first window of each
        for n in range(len(self.windows) - 1):
            if pairs[-1:] != [n - 1] and self._may_join(self.windows[n : n + 2]):
                pairs.append(n)
        with closing(self._map(self._joined, [self.windows[n : n + 2] for n in pairs])) as found:
            for n_before, (n, window) in enumerate(zip(pairs, found, strict=True)):
                self._put(window, n - n_before, n - n_before + 2)
                self._save()
                self._record("join", window.iterations)
        return bool(pairs)

    def _may_join(self, windows: list[Window]) -> bool:
        """Return whether windows have the same rows, and few enough atoms and columns to be joined."""
        if isinstance(self.table, SparseBits):
            return False
        n_atoms = sum(window.best.atoms.n_rows for window in windows)
        n_cols = sum(len(window.columns) for window in windows)
        return (n_atoms + self.table.n_rows // 64) * n_cols <= self.params.plan.windows.max_joined

    def _parts(self) -> list[Window]:
        """Return the windows, and one of the columns that are in none."""
        is_left = np.ones(self.table.n_cols, bool)
        for window in self.windows:
            is_left[window.columns] = False
        return [*self.windows, *([self._without_model(np.flatnonzero(is_left))] if is_left.any() else [])]

    # Tasks: each has a window of its own.

    def _searched(self, window: Window, deadline: float, workers: Workers) -> Window:
        """Search a window."""

        def search(context: SearchContext) -> SearchResult:
            if context.counted is None:
                return search_mdl(context)
            empty = SearchResult(context.block(window.best.atoms), CONVERGED)
            return search_mdl(context, first=lambda: empty)

        return self._improved(window, search, deadline, workers)

    def _joined(self, windows: list[Window], deadline: float, workers: Workers) -> Window:
        """Join windows and go on from the atoms and codes of all of them.

        If they are the whole table, all starts of an ordinary search follow: rows of the table can show atoms of many
        columns that no window shows.
        """
        window, plan = joined(windows), self.params.plan

        def search(context: SearchContext) -> SearchResult:
            found = go_on(context, window.best, plan.mdl.cycle_rounds)
            n, m = context.data.shape
            if m < self.table.n_cols or n * m > plan.windows.max_cells:
                return found
            return search_mdl(replace(context, plan=plan), first=lambda: found)

        return self._improved(window, search, deadline, workers)

    def _improved(
        self, window: Window, search: Callable[[SearchContext], SearchResult], deadline: float, workers: Workers
    ) -> Window:
        """Return a window with the best state that a search finds, if it is better."""
        if time.perf_counter() >= deadline:
            return replace(window, ended=MAX_TIME)
        context, _ = self._context_of(window, deadline, workers)
        try:
            ended = search(context).ended
        except OutOfTime:
            ended = MAX_TIME
        best = context.monitor.best
        found = replace(window, ended=ended, iterations=sum(row.iterations for row in context.monitor.history))
        return found if best is None or best.cost >= window.best.cost else replace(found, best=best)

    def _result_of(self, window: Window, deadline: float, workers: Workers) -> ColumnFactors:
        """Return the result of a window, whose rows are coded as `transform` codes them."""
        if not window.best.atoms.n_rows:
            return self._part_without_atoms(window)
        (context, rows), coder = self._context_of(window, deadline, workers), self.params.coder_after
        block = context.block_of(window.best)
        context.monitor.record(block, Change(), 0, "start")
        if window.ended == CONVERGED:
            block = finish(context, block, coder)
        result = best_result(context, block, coder, context.monitor.stop_reason or window.ended)
        assert result is not None
        return ColumnFactors(window.columns, result, rows)

    def _stopped_part(self, window: Window, ended: str, is_sorted: bool = True) -> ColumnFactors:
        """Return the result of a window, if the search was cut off."""
        if not window.best.atoms.n_rows:
            return self._part_without_atoms(window)
        context, rows = self._context_of(window)
        context.monitor.record(context.block_of(window.best), Change(), 0, "start")
        # The time is up, and to code all rows again, in order to remember hard codes, would take about a second each.
        result = stopped_result(context, self.params.coder_after, ended, is_sorted, remembers=False)
        assert result is not None
        return ColumnFactors(window.columns, result, rows)

    def _part_without_atoms(self, window: Window) -> ColumnFactors:
        """Return the result of a window of which nothing was found but perhaps a bias."""
        best = window.best._replace(codes=BitMatrix.zeros(self.table.n_rows, 0))
        result = result_of_state(
            best,
            self.monitor,
            self.params.coder_after,
            CONVERGED,
            saved=np.zeros(0, np.int64),
            ones=self._ones[window.columns],
            missed=np.where(best.bias.to_dense()[0], 0, best.wrong),
            known=None if self.table.unknown is None else self._known[window.columns],
        )
        return ColumnFactors(window.columns, result)

    def _context_of(
        self, window: Window, deadline: float = float("inf"), workers: Workers | None = None
    ) -> tuple[SearchContext, NDArray[np.intp] | None]:
        """Return what a search of the columns of a window needs to know, and its rows, if these are not all."""
        columns, table, plan, rows, counted = window.columns, self.table, self.params.plan, None, None
        if isinstance(table, SparseBits):
            rows, data = table.window(columns, _MIN_ONES)
            counted = CountedRows(table.n_rows - len(rows), self._ones[columns] - data.column_weights())
            plan = plan.with_starts().without("finish")
        else:
            data = table.take_columns(columns)
            if self.params.search == "fast":
                plan = plan.with_starts(*plan.windows.starts).without("first look")
        objective = replace(
            self.objective,
            code=self.objective.code.take_columns(columns),
            costs=self.objective.costs.take_columns(columns),
        )
        monitor = replace(
            self.monitor, deadline=deadline, callbacks=(), stop_after=None, history=[], saver=None, objective=objective
        )
        context = SearchContext(
            data,
            objective,
            plan,
            monitor,
            workers or Workers(device=self.workers.device),
            np.random.default_rng([self._seed, len(columns), int(columns[0])]),
            self.holdout and replace(self.holdout, rows=self.holdout.rows.take_columns(columns)),
            counted,
            self.margins and self.margins.take_columns(columns),
        )
        return context, rows

    # Threads, time and progress.

    def _map(
        self, task: Callable[[Item, float, Workers], Result], items: Sequence[Item], until: float = 1.0
    ) -> Generator[Result]:
        """Run a task on each item, with a deadline and threads, and yield the results in order.

        All must be done at this part of the time. An item gets an equal share of what is left, but no less than a task
        of a small window takes: later items may then get none.
        """
        monitor, n_threads = self.monitor, self.workers.n_threads
        last = monitor.started + until * (monitor.deadline - monitor.started)
        left = iter(range(len(items), 0, -1))  # next() on it is atomic

        def run(workers: Workers, item: Item) -> Result:
            now, rounds_left = time.perf_counter(), -(-next(left) // n_threads)
            return task(item, min(last, now + max(_LEAST_SECONDS, (last - now) / rounds_left)), workers)

        return self.workers.map_tasks(run, items)

    def _put(self, window: Window, start: int, stop: int) -> None:
        """Put a window in the place of others, from start to stop."""
        self._sums += window.counts - sum(before.counts for before in self.windows[start:stop])
        self.windows[start:stop] = [window]

    def _record(self, move: str, iterations: int) -> None:
        """Add a round to the history, with the sums over all windows; raise OutOfTime if that ends the search."""
        n_atoms, wrong, *length = self._sums.tolist()
        self.monitor.record_counts(self.table.n_rows, n_atoms, wrong, Codelength(*length), Change(), iterations, move)
        if self.monitor.should_stop():
            raise OutOfTime

    def _assembled(self, parts: list[ColumnFactors], ended: str) -> Factorization:
        """Return the result for the table from those of its windows."""
        monitor, table = self.monitor, self.table
        result = join_columns(parts, *table.shape, self.objective.code)
        n_atoms, wrong = result.atoms.n_rows, result.wrong_bits
        monitor.record_counts(table.n_rows, n_atoms, wrong, result.codelength, Change(), 0, "finish")
        return replace(result, ended=ended, history=tuple(monitor.history))


def joined(windows: Sequence[Window]) -> Window:
    """Return a window with the columns, atoms and codes of several, in whatever order they are given."""
    states = [window.best for window in windows]
    columns = np.concatenate([window.columns for window in windows])
    order, lengths = np.argsort(columns), [state.codelength for state in states]
    best = State(
        sum(state.cost for state in states),
        BitMatrix.from_sparse(block_diag([state.atoms.to_sparse() for state in states], "csr")).take_columns(order),
        stack_rows([state.codes.T for state in states], states[0].codes.n_rows).T,
        stack_rows([state.bias.T for state in states], 1).T.take_columns(order),
        np.concatenate([state.wrong for state in states])[order],
        Codelength(*(sum(getattr(length, part) for length in lengths) for part in ("errors", "codes", "atoms"))),
    )
    return Window(columns[order], best)
