"""Wide tables: search windows of their columns, then join related windows, and put the atoms side by side.

An atom that a whole row suggests has thousands of columns to fit, and where only some of them belong together, no row
fits the others. In a window of related columns (`column_groups.py`), an atom is as easy to find as in a narrow table.
The codelength is a sum over columns and atoms, so that the codelengths of windows add up to that of the table, if
atoms cost what they cost in the table (``Objective.n_features``). Windows that are joined start from the atoms
and codes of all of them, and the ordinary moves go on from there: atoms that the same rows use become one. A window
keeps the best state it has had, so that no join makes the description longer.

Windows are independent tasks for the threads, each with its own random numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag

from ...bits import BitMatrix, stack_rows
from ...engine.block import Block, Change, CountedRows
from ...engine.codelength import Codelength, string_bits
from ...engine.margins import Margins
from ...engine.objective import Objective
from ...model.join_columns import ColumnFactors, join_columns
from ...model.result import THOROUGH_WINDOW, Factorization
from ...parallel import OutOfTime, Workers
from ...sparse_bits import Bits, SparseBits
from ..context import HoldOut, SearchContext
from ..finish import best_result, finish, result_of_state, stopped_result
from ..mdl_search import go_on, search_mdl
from ..monitor import CONVERGED, MAX_ITER, MAX_TIME, SearchMonitor, SearchResult
from ..params import SearchParams
from ..states import SavedStates, State
from .column_groups import can_count_pairs, column_groups, related_columns, related_windows, runs_of_regions

Item = TypeVar("Item")
Result = TypeVar("Result")

_SEARCH_SHARE, _JOIN_SHARE = 0.7, 0.9  # of the time, at which windows are all searched, and all joined
_LEAST_SECONDS = 0.5  # for a window
_MIN_ONES = 2  # of a row in a window of a sparse table: an atom of two columns makes other rows worse


def is_wide_and_sparse(data: Bits, params: SearchParams) -> bool:
    """Return whether to search windows of columns that occur together, each with the rows that have ones there."""
    if not params.is_wide(data.n_cols) or data.n_unknown:
        return False
    is_sparse = data.count() <= params.plan.windows.max_sparse_share * data.n_rows * data.n_cols
    return is_sparse and can_count_pairs(data.row_weights())


@dataclass(frozen=True, eq=False)
class Window:
    """Some columns of the table, and the best state that was found of them."""

    columns: NDArray[np.intp]
    best: State
    random: np.random.Generator | None  # None for columns that are not searched
    is_searched: bool = False
    ended: str = CONVERGED
    iterations: int = 0  # of what was done last

    @property
    def cost(self) -> int:
        """The cost of the best state."""
        return self.best.cost

    @cached_property
    def described(self) -> NDArray[np.bool_]:
        """Which of the columns the state describes, by an atom or by the bias."""
        return (self.best.atoms.column_weights() > 0) | (self.best.bias.to_dense()[0] == 1)


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
        code = replace(self.objective.code, n_features=self.table.n_cols)  # of all columns
        self.objective = replace(self.objective, code=code)
        self.windows: list[Window] = []
        self._joins_all = True  # whether columns and windows without atoms are joined, too
        self._sums = np.zeros(5, np.int64)  # over all windows: atoms, wrong bits, and the parts of the codelength

    def run(self, end: float) -> tuple[str, Factorization | None]:
        """Return the reason that the search ended, and its result; raise OutOfTime at the time ``end``."""
        self.workers = replace(self.workers, deadline=end)
        saver = self.monitor.saver
        is_resumed = saver is not None and saver.load(lambda saved: True) is not None
        # Windows that were saved consist of the same groups: these are found, however long it takes.
        self._divide(Workers() if is_resumed else self.workers)
        is_finished = saver is not None and bool(saver.load(self._restore))
        self._record("no model", 0)
        self._search()
        while not is_finished and self._join():
            pass
        parts = [*self._map(self._result_of, self._described(), 1.0)]
        reasons = (window.ended for window in self.windows if window.ended != CONVERGED)
        ended = self.monitor.stop_reason or next(reasons, CONVERGED)
        self._save(ended if ended in (CONVERGED, MAX_ITER) else None)
        return ended, self._assembled(parts, ended)

    def stopped(self, ended: str, workers: Workers | None = None) -> Factorization | None:
        """Return the best state so far of a search that was cut off, or None; other threads may be given for this."""
        self.workers = replace(workers or self.workers, deadline=float("inf"))
        if not self.windows:
            return None
        self._save()
        windows = self._described()
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
        return sum(window.cost for window in self.windows)

    # Steps.

    def _restore(self, saved: SavedStates) -> bool:
        """Put windows that were saved in the place of their columns; return whether the search was finished."""
        for columns, state in zip(saved.columns, saved.states, strict=True):
            parts = [window for window in self.windows if np.isin(window.columns, columns).all()]
            own = replace(joined(parts), best=state) if parts else None
            if own is None or not np.array_equal(own.columns, columns) or state.atoms.n_cols != len(columns):
                raise ValueError("its windows do not have the columns of the table")
            if state.atoms.n_rows and state.codes.n_rows != self._context_of(own)[0].data.n_rows:
                raise ValueError("its windows do not have the rows of the table")
            place = next(n for n, window in enumerate(self.windows) if window is parts[0])
            others = [window for window in self.windows if not any(window is part for part in parts)]
            self._add([*others[:place], own, *others[place:]], 0, len(self.windows))
        return saved.ended is not None

    def _save(self, ended: str | None = None) -> None:
        """Save the windows that were searched, with the reason that the search ended."""
        if self.monitor.saver is not None:
            windows = [window for window in self.windows if window.is_searched]
            saved = SavedStates([each.best for each in windows], ended, [each.columns for each in windows])
            self.monitor.saver.save(lambda: saved)

    def _divide(self, workers: Workers) -> None:
        """Divide the columns into windows, of which nothing is known yet."""
        table, tuning = self.table, self.params.plan.windows
        if isinstance(table, SparseBits):
            try:
                groups = related_columns(table, tuning.max_related, workers.check_deadline)
            except OutOfTime:  # nothing is known to be related, and no window is searched
                groups = []
        elif self.params.regions is not None:
            groups, self._joins_all = runs_of_regions(self.params.regions, tuning.width), True
        else:
            groups = column_groups(table, tuning.width, self.random)
            is_ordered = all(np.ptp(columns) < len(columns) for columns in groups)
            self._joins_all = is_ordered or table.n_rows * table.n_cols <= tuning.max_cells
        self._ones, self._known = table.column_weights(), table.n_known
        self._bits = string_bits(self._known, self._ones)  # that each column takes without a model
        # The same, by which states are compared.
        self._costs = self._bits if self.holdout is None else self.holdout.costs_of_nothing()
        unrelated = np.ones(table.n_cols, bool)
        randoms: list[np.random.Generator | None] = [*self.random.spawn(len(groups))]
        for columns in groups:
            unrelated[columns] = False
        if unrelated.any():
            groups, randoms = [*groups, np.flatnonzero(unrelated)], [*randoms, None]
        for columns, random in zip(groups, randoms, strict=True):
            self._add([replace(self._without_model(columns), random=random)])

    def _without_model(self, columns: NDArray[np.intp]) -> Window:
        """Return a window of columns of which nothing is known."""
        m = len(columns)
        empty = BitMatrix.zeros(0, m), BitMatrix.zeros(self.table.n_rows, 0), BitMatrix.zeros(1, m)
        length = Codelength(int(self._bits[columns].sum()), 0, 0)
        cost = int(self._costs[columns].sum())
        return Window(columns, State(cost, *empty, self._ones[columns], length), None)

    def _search(self) -> None:
        """Search each window."""
        move = THOROUGH_WINDOW if self.params.search == "thorough" else "window"
        places = [n for n, each in enumerate(self.windows) if each.random is not None and not each.is_searched]
        with closing(self._map(self._searched, [self.windows[place] for place in places], _SEARCH_SHARE)) as found:
            for place, window in zip(places, found, strict=True):
                self._add([replace(window, is_searched=True)], place)
                self._save()
                self._record(move, window.iterations)

    def _join(self) -> bool:
        """Join windows; return whether there were any to join."""
        clusters = self._neighbours() or self._related()
        if not clusters:
            return False
        members = {number for cluster in clusters for number in cluster}
        singles = [[number] for number in range(len(self.windows)) if number not in members]
        tasks = [[self.windows[number] for number in cluster] for cluster in sorted(clusters + singles)]
        self.windows = [window for task in tasks for window in task]
        places = [place for place, task in enumerate(tasks) if len(task) > 1]  # after those before them are joined
        with closing(self._map(self._joined, [tasks[place] for place in places], _JOIN_SHARE)) as found:
            for place, window in zip(places, found, strict=True):
                self._add([window], place, place + len(tasks[place]))
                self._save()
                self._record("join", window.iterations)
        return True

    def _neighbours(self) -> list[list[int]]:
        """Return pairs of neighbouring windows; windows without atoms only where all are joined."""
        pairs, i = [], 0
        free = [n for n, window in enumerate(self.windows) if self._joins_all or window.best.atoms.n_rows]
        while i + 1 < len(free):
            may_join = self._may_join(free[i : i + 2])
            if may_join:
                pairs.append(free[i : i + 2])
            i += 1 + may_join
        return pairs

    def _related(self) -> list[list[int]]:
        """Return windows with atoms of which most users are the same, if the order of the columns means nothing."""
        if self._joins_all:
            return []
        codes = stack_rows([window.best.codes.T for window in self.windows], self.table.n_rows).T
        window_of = np.repeat(np.arange(len(self.windows)), [window.best.atoms.n_rows for window in self.windows])
        groups = related_windows(codes, window_of, self._may_join, self.workers.check_deadline)
        return [group.tolist() for group in groups]

    def _may_join(self, numbers: Sequence[int]) -> bool:
        """Return whether windows have the same rows, and few enough atoms and columns to be joined."""
        if isinstance(self.table, SparseBits):
            return False
        windows = [self.windows[number] for number in numbers]
        n_atoms = sum(each.best.atoms.n_rows for each in windows)
        n_cols = sum(len(each.columns) if self._joins_all else int(each.described.sum()) for each in windows)
        return n_atoms * n_cols <= self.params.plan.windows.max_atom_cells

    def _described(self) -> list[Window]:
        """Return the windows, or where not all columns are joined, windows with those that have atoms, and the rest."""
        if self._joins_all:
            return self.windows
        return [part for window in self.windows for part in self._divided(window) if len(part.columns)]

    def _divided(self, window: Window) -> tuple[Window, Window]:
        """Return a window with the columns that the state of another one describes, and one with the others."""
        rest = self._without_model(window.columns[~window.described])
        return without(window, rest), rest

    # Tasks: each has a window of its own.

    def _searched(self, window: Window, deadline: float, workers: Workers) -> Window:
        """Search a window.

        Atoms are described by strings at first, even where stretches cost less: of atoms that cost less, more are found
        in windows, and fewer of them become one when windows are joined. Where no atom is worth a string, some may be
        worth a stretch.
        """
        found = self._improved(window, self._search_columns, deadline, workers, by_stretches=False)
        if not self.objective.code.by_stretches:
            return found
        if not found.best.atoms.n_rows:
            return self._improved(found, self._search_columns, deadline, workers)
        stretched = self._by_stretches(found)
        is_better = stretched.cost < window.cost
        return stretched if is_better else replace(window, ended=found.ended, iterations=found.iterations)

    def _by_stretches(self, window: Window) -> Window:
        """Return a window with what its state costs if atoms are described by stretches."""
        context, _ = self._context_of(window)
        block = _block_of(window, context)
        length = context.monitor.codelength(block, block.wrong(), block.bias)
        cost = context.monitor.cost(block, length)
        if context.holdout is not None:
            cost = context.holdout.cost(block, context.objective)
        return replace(window, best=window.best._replace(cost=cost, wrong=block.wrong(), codelength=length))

    def _joined(self, windows: list[Window], deadline: float, workers: Workers) -> Window:
        """Join windows and go on from the atoms and codes of all of them.

        Columns without atoms are left out where the order of columns means nothing: they could be in any window.
        """
        window = joined(windows)
        if self._joins_all:
            return self._improved(window, self._going_on, deadline, workers)
        part, rest = self._divided(window)
        if self.holdout is not None:
            # A column of held-out rows costs less by its own number of ones than by that of the rows searched.
            context, _ = self._context_of(part)
            assert context.holdout is not None
            cost = context.holdout.cost(_block_of(part, context), context.objective)
            part = replace(part, best=part.best._replace(cost=cost))
            rest = replace(rest, best=rest.best._replace(cost=window.cost - cost))
        found = self._improved(part, self._going_on, deadline, workers)
        return replace(joined([found, rest]), iterations=found.iterations)

    def _improved(
        self,
        window: Window,
        search: Callable[[Window, SearchContext], SearchResult],
        deadline: float,
        workers: Workers,
        by_stretches: bool = True,
    ) -> Window:
        """Return a window with the best state that a search finds, if it is better."""
        if time.perf_counter() >= deadline:
            return replace(window, ended=MAX_TIME)
        context, _ = self._context_of(window, deadline, workers, by_stretches)
        try:
            ended = search(window, context).ended
        except OutOfTime:
            ended = MAX_TIME
        best = context.monitor.best
        found = replace(window, ended=ended, iterations=sum(row.iterations for row in context.monitor.history))
        return found if best is None or best.cost >= window.cost else replace(found, best=best)

    def _search_columns(self, window: Window, context: SearchContext) -> SearchResult:
        """Search the columns of a window."""
        if context.counted is None:
            return search_mdl(context)
        first = SearchResult(context.block(BitMatrix.zeros(0, len(window.columns))), CONVERGED)
        return search_mdl(context, first=lambda: first)

    def _going_on(self, window: Window, context: SearchContext) -> SearchResult:
        """Go on from the state of joined windows; if they are the whole table, with all starts of an ordinary search.

        Rows of the table can show atoms of many columns that no window shows.
        """
        data, plan = context.data, self.params.plan
        found = go_on(context, window.best, plan.windows.join_rounds)
        if data.n_cols < self.table.n_cols or data.n_rows * data.n_cols > plan.windows.max_cells:
            return found
        return search_mdl(replace(context, plan=plan), first=lambda: found)

    def _result_of(self, window: Window, deadline: float, workers: Workers) -> ColumnFactors:
        """Return the result of a window, whose rows are coded as `transform` codes them."""
        if window.random is None:
            return self._part_without_atoms(window)
        (context, rows), coder = self._context_of(window, deadline, workers), self.params.coder_after
        block = _recorded(window, context)
        block = finish(context, block, coder) if window.ended == CONVERGED else block
        result = best_result(context, block, coder, context.monitor.stop_reason or window.ended)
        assert result is not None
        return ColumnFactors(window.columns, result, rows)

    def _stopped_part(self, window: Window, ended: str, is_sorted: bool = True) -> ColumnFactors:
        """Return the result of a window, if the search was cut off."""
        if window.random is None or not window.best.atoms.n_rows:
            return self._part_without_atoms(window)
        context, rows = self._context_of(window)
        _recorded(window, context)
        # The time is up, and to code all rows again, in order to remember hard codes, would take about a second each.
        result = stopped_result(context, self.params.coder_after, ended, is_sorted, remembers=False)
        assert result is not None
        return ColumnFactors(window.columns, result, rows)

    def _part_without_atoms(self, window: Window) -> ColumnFactors:
        """Return the result of a window of which nothing was found."""
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
        self, window: Window, deadline: float = float("inf"), workers: Workers | None = None, by_stretches: bool = True
    ) -> tuple[SearchContext, NDArray[np.intp] | None]:
        """Return what a search of the columns of a window needs to know, and its rows, if these are not all.

        Unless ``by_stretches``, atoms are described by strings, whether columns have an order or not.
        """
        workers = workers or Workers(device=self.workers.device)
        columns, table, plan, rows, counted = window.columns, self.table, self.params.plan, None, None
        if isinstance(table, SparseBits):
            rows, data = table.window(columns, _MIN_ONES)
            counted = CountedRows(table.n_rows - len(rows), self._ones[columns] - data.column_weights())
            plan = replace(plan, starts=(), only_starts=True, left_out=plan.left_out | {"bias", "finish"})
        else:
            data = table.take_columns(columns)
            if self.params.search == "fast" and not plan.only_starts:
                plan = replace(plan, starts=plan.windows.starts, from_look=False, only_starts=True)
        holdout = self.holdout and replace(self.holdout, rows=self.holdout.rows.take_columns(columns))
        code = self.objective.code if by_stretches else replace(self.objective.code, ranks=None)
        costs = self.objective.costs.take_columns(columns)
        objective = replace(self.objective, code=code.take_columns(columns), costs=costs)
        monitor = replace(
            self.monitor, deadline=deadline, callbacks=(), stop_after=None, history=[], saver=None, objective=objective
        )
        random = window.random or np.random.default_rng(0)
        margins = self.margins and self.margins.take_columns(columns)
        return SearchContext(data, objective, plan, monitor, workers, random, holdout, counted, margins), rows

    # Threads, time and progress.

    def _map(
        self, task: Callable[[Item, float, Workers], Result], items: Sequence[Item], until: float
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

    def _add(self, windows: list[Window], start: int | None = None, stop: int | None = None) -> None:
        """Put windows in the place of those from start to stop, of one by default; without start, at the end."""
        start = len(self.windows) if start is None else start
        replaced = slice(start, start + 1 if stop is None else stop)
        for sign, changed in ((-1, self.windows[replaced]), (1, windows)):
            for window in changed:
                best, length = window.best, window.best.codelength
                parts = best.atoms.n_rows, int(best.wrong.sum()), length.errors, length.codes, length.atoms
                self._sums += sign * np.array(parts)
        self.windows[replaced] = windows

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


def _block_of(window: Window, context: SearchContext) -> Block:
    """Return the best state of a window as a block."""
    best = window.best
    return context.block(best.atoms, best.codes if best.atoms.n_rows else None, best.bias)


def _recorded(window: Window, context: SearchContext) -> Block:
    """Return the best state of a window as a block, after its monitor has seen it."""
    block = _block_of(window, context)
    context.monitor.record(block, Change(), 0, "start")
    return block


def joined(windows: Sequence[Window]) -> Window:
    """Return a window with the columns, atoms and codes of several; its random numbers are those of the first.

    Its columns are in increasing order, in whatever order windows were joined.
    """
    states = [window.best for window in windows]
    columns = np.concatenate([window.columns for window in windows])
    order, lengths = np.argsort(columns), [state.codelength for state in states]
    best = State(
        sum(window.cost for window in windows),
        BitMatrix.from_sparse(block_diag([state.atoms.to_sparse() for state in states], "csr")).take_columns(order),
        stack_rows([state.codes.T for state in states], states[0].codes.n_rows).T,
        stack_rows([state.bias.T for state in states], 1).T.take_columns(order),
        np.concatenate([state.wrong for state in states])[order],
        Codelength(*(sum(getattr(length, part) for length in lengths) for part in ("errors", "codes", "atoms"))),
    )
    return Window(
        columns=columns[order],
        best=best,
        random=windows[0].random,
        is_searched=True,
        ended=next((window.ended for window in windows if window.ended != CONVERGED), CONVERGED),
    )


def without(window: Window, rest: Window) -> Window:
    """Return a window without the columns that its state does not describe, which are those of another window."""
    best, length, kept = window.best, window.best.codelength, np.flatnonzero(window.described)
    state = State(
        window.cost - rest.cost,
        best.atoms.take_columns(kept),
        best.codes,
        best.bias.take_columns(kept),
        best.wrong[kept],
        replace(length, errors=length.errors - rest.best.codelength.errors),
    )
    return replace(window, columns=window.columns[kept], best=state)
