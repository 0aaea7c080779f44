"""Wide tables: search windows of their columns, then join related windows, and put the atoms side by side.

An atom that a whole row suggests has thousands of columns to fit, and where only some of them belong together, no row
fits the others. In a window of related columns (`column_groups.py`), an atom is as easy to find as in a narrow table.
 The codelength is a sum over columns and atoms, so that the codelengths of windows add up to that of the table,
if atoms cost what they cost in the table (``Objective.n_features``). Windows that are joined start from the atoms
and codes of all of them, and the ordinary moves go on from there: atoms that the same rows use become one. A window
keeps the best state it has had, so that no join makes the description longer.

Windows are independent tasks for the threads, each with its own random numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, stack_rows
from ...engine.block import Block, Change, Rest
from ...engine.codelength import Codelength, string_bits
from ...engine.complete import hash_rows
from ...engine.margins import Margins
from ...engine.objective import Objective
from ...model.result import THOROUGH_WINDOW, Factorization
from ...model.side_by_side import Part, side_by_side
from ...parallel import OutOfTime, Workers
from ...sparse_bits import Bits, SparseBits
from ..context import HoldOut, SearchContext
from ..finish import best_result, finish, result_of_state, stopped_result
from ..journal import StepRecord, snapshot_of
from ..mdl_search import go_on, search_mdl
from ..monitor import CONVERGED, MAX_ITER, MAX_MEMORY, MAX_TIME, CostedState, SearchMonitor, SearchResult, Snapshot
from ..params import SearchParams
from .column_groups import can_count_pairs, column_groups, related_columns, related_windows, runs_of_regions
from .journal import WindowJournal
from .window import Window, joined, without

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
    journal: WindowJournal = field(default_factory=WindowJournal)  # keeps what finished tasks found

    def __post_init__(self) -> None:
        self.objective = replace(self.objective, n_features=self.table.n_cols)  # of all columns
        self.windows: list[Window] = []
        self._groups: tuple[Window, ...] = ()  # the windows at first
        self._joins_all = True  # whether columns and windows without atoms are joined, too
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
            windows = self._described()
            searched = [window for window in windows if window.random is not None]
            found = iter([*self._map(self._result_of, searched, 1.0)])
            parts = [self._part_without_atoms(each) if each.random is None else next(found) for each in windows]
            ended = self._ended()
            return ended, self._assembled(parts, ended)
        except OutOfTime:
            ended = self.monitor.stop_reason or MAX_TIME
        except MemoryError:
            ended = MAX_MEMORY
            if not self.windows:
                raise
        return ended, self.stopped(ended)

    def stopped(self, ended: str, workers: Workers | None = None) -> Factorization | None:
        """Return the best state so far of a search that was cut off, or None; other threads may be given for this."""
        self.workers = replace(workers or self.workers, deadline=float("inf"))
        if not self.windows:
            if not self.journal.has_stopped:
                return None
            self._divide()
        self._take_earlier(must_stop=True)
        windows = self._described()
        try:
            parts = [*self.workers.map_tasks(lambda _, window: self._stopped_part(window, ended), windows)]
        except KeyboardInterrupt:  # another one: without sorting the atoms
            parts = [self._stopped_part(window, ended, is_sorted=False) for window in windows]
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
            # Windows that were kept have these groups: they are found, however long it takes.
            workers = Workers() if self.journal.has_stopped else self.workers
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
        for number, (columns, random) in enumerate(zip(groups, randoms, strict=True)):
            self._add([replace(self._without_model(columns), random=random, groups=(number,))])
        self._groups = tuple(self.windows)

    def _without_model(self, columns: NDArray[np.intp]) -> Window:
        """Return a window of columns of which nothing is known."""
        m = len(columns)
        empty = BitMatrix.zeros(0, m), BitMatrix.zeros(self.table.n_rows, 0), BitMatrix.zeros(1, m)
        length = Codelength(int(self._bits[columns].sum()), 0, 0)
        best = Snapshot(*empty, length, self._ones[columns], self._known[columns])
        return Window(columns, best, int(self._costs[columns].sum()), None)

    def _search(self) -> None:
        """Search each window."""
        move = THOROUGH_WINDOW if self.params.search == "thorough" else "window"
        searched = [window for window in self.windows if window.random is not None]  # the others come last
        with closing(self._map(self._searched, searched, _SEARCH_SHARE)) as found:
            for number, window in enumerate(found):
                self._add([window], number)
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

    def _take_earlier(self, must_stop: bool) -> None:
        """Take the windows of an earlier search that had to stop, if they are better; keep these, if this one must."""
        earlier = self.journal.load_stopped(self._restored)
        if earlier is not None and sum(window.cost for window in earlier) < self.best_cost:
            self._add(earlier, 0, len(self.windows))
        elif must_stop:
            self.journal.save_stopped(self.windows)

    def _restored(self, record: StepRecord) -> list[Window]:
        """Return the windows of a record: for each, whether it has a state, how many groups of columns, and which."""
        numbers, states = iter(record.numbers), iter(record.states)
        members = [(has_state, [*islice(numbers, next(numbers, 0))]) for has_state in numbers]
        if sorted(group for _, groups in members for group in groups) != [*range(len(self._groups))]:
            raise ValueError("its windows do not have the columns of the table")
        if sum(has_state for has_state, _ in members) != len(record.states):
            raise ValueError("it has more or fewer states than windows")
        return [self._restored_window(next(states) if has_state else None, groups) for has_state, groups in members]

    def _restored_window(self, state: CostedState | None, groups: list[int]) -> Window:
        """Return a window of groups of columns, with a state that was kept."""
        window = replace(joined([self._groups[group] for group in groups]), ended=MAX_TIME)
        if state is None:
            return window
        context, _ = self._context_of(window)
        return replace(window, best=snapshot_of(context, state), cost=state.cost)

    # Tasks: each has a window of its own.

    def _searched(self, window: Window, deadline: float, workers: Workers) -> Window:
        """Search a window.

        Atoms are described by strings at first, even where stretches cost less: of atoms that cost less, more are found
        in windows, and fewer of them become one when windows are joined. Where no atom is worth a string, some may be
        worth a stretch.
        """
        found = self._kept("window", window, self._search_columns, deadline, workers, by_stretches=False)
        if self.objective.ranks is None:
            return found
        if not found.best.atoms.n_rows:
            return self._kept("stretches", found, self._search_columns, deadline, workers)
        stretched = self._by_stretches(found)
        is_better = stretched.cost < window.cost
        return stretched if is_better else replace(window, ended=found.ended, iterations=found.iterations)

    def _by_stretches(self, window: Window) -> Window:
        """Return a window with what its state costs if atoms are described by stretches."""
        context, _ = self._context_of(window)
        best = snapshot_of(context, CostedState(0, window.best.atoms, window.best.codes, window.best.bias))
        window = replace(window, best=best)
        return replace(window, cost=_cost_of(window, context))

    def _joined(self, windows: list[Window], deadline: float, workers: Workers) -> Window:
        """Join windows and go on from the atoms and codes of all of them.

        Columns without atoms are left out where the order of columns means nothing: they could be in any window.
        """
        window = joined(windows)
        if self._joins_all:
            return self._kept("join", window, self._going_on, deadline, workers)
        part, rest = self._divided(window)
        if self.holdout is not None:
            # A column of held-out rows costs less by its own number of ones than by that of the rows searched.
            cost = _cost_of(part, self._context_of(part)[0])
            part, rest = replace(part, cost=cost), replace(rest, cost=window.cost - cost)
        found = self._kept("join", part, self._going_on, deadline, workers)
        return replace(joined([found, rest]), iterations=found.iterations)

    def _kept(
        self,
        move: str,
        window: Window,
        search: Callable[[Window, SearchContext], SearchResult],
        deadline: float,
        workers: Workers,
        by_stretches: bool = True,
    ) -> Window:
        """Return a window with the best state that a search finds, if it is better, or what the journal holds of it."""

        def context_of_window() -> SearchContext:
            return self._context_of(window, deadline, workers, by_stretches)[0]

        def searched(window: Window) -> Window:
            if time.perf_counter() >= deadline:
                return replace(window, ended=MAX_TIME)
            context = context_of_window()
            try:
                ended = search(window, context).ended
            except OutOfTime:
                ended = MAX_TIME
            monitor = context.monitor
            found = replace(window, ended=ended, iterations=sum(row.iterations for row in monitor.history))
            if monitor.best is None or monitor.best_cost >= window.cost:
                return found
            return replace(found, best=monitor.best, cost=monitor.best_cost)

        return self.journal.kept(move, window, searched, context_of_window)

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

    def _result_of(self, window: Window, deadline: float, workers: Workers) -> Part:
        """Return the result of a window, whose rows are coded as `transform` codes them."""
        (context, rows), coder = self._context_of(window, deadline, workers), self.params.coder_after
        found = finish(context, SearchResult(_recorded(window, context), window.ended), coder)
        result = best_result(context, found.block, coder, found.ended)
        assert result is not None
        return Part(window.columns, result, rows)

    def _stopped_part(self, window: Window, ended: str, is_sorted: bool = True) -> Part:
        """Return the result of a window, if the search was cut off."""
        if window.random is None or not window.best.atoms.n_rows:
            return self._part_without_atoms(window)
        context, rows = self._context_of(window)
        _recorded(window, context)
        # The time is up, and to code all rows again, in order to remember hard codes, would take about a second each.
        result = stopped_result(context, self.params.coder_after, ended, is_sorted, remembers=False)
        assert result is not None
        return Part(window.columns, result, rows)

    def _part_without_atoms(self, window: Window) -> Part:
        """Return the result of a window of which nothing was found."""
        best, nothing = replace(window.best, codes=BitMatrix.zeros(self.table.n_rows, 0)), np.zeros(0, np.int64)
        result = result_of_state(
            best,
            self.monitor,
            self.params.coder_after,
            CONVERGED,
            saved=nothing,
            ones=self._ones[window.columns],
            missed=np.where(best.bias.to_dense()[0], 0, best.wrong),
            known=None if self.table.unknown is None else best.n_known,
            complete=nothing,
            lacking=nothing,
            atom_known=nothing,
        )
        return Part(window.columns, result)

    def _context_of(
        self, window: Window, deadline: float = float("inf"), workers: Workers | None = None, by_stretches: bool = True
    ) -> tuple[SearchContext, NDArray[np.intp] | None]:
        """Return what a search of the columns of a window needs to know, and its rows, if these are not all.

        Unless ``by_stretches``, atoms are described by strings, whether columns have an order or not.
        """
        workers = workers or Workers(device=self.workers.device)
        columns, table, plan, rows, rest = window.columns, self.table, self.params.plan, None, None
        if isinstance(table, SparseBits):
            rows, data = table.window(columns, _MIN_ONES)
            rest = Rest(table.n_rows - len(rows), self._ones[columns] - data.column_weights())
            plan = replace(plan, starts=(), only_starts=True, left_out=plan.left_out | {"bias", "finish"})
        else:
            data = table.take_columns(columns)
            plan = replace(plan, left_out=plan.left_out | {"regrow"})
            if self.params.search == "fast" and not plan.only_starts:
                plan = replace(plan, starts=plan.windows.starts, from_look=False, only_starts=True)
        holdout = self.holdout
        if holdout is not None:
            holdout = replace(holdout, rows=holdout.rows.take_columns(columns), workers=workers)
        ranks = self.objective.ranks if by_stretches else None
        ranks = None if ranks is None else ranks[columns]
        costs = self.objective.costs and self.objective.costs.take_columns(columns)
        objective = replace(self.objective, ranks=ranks, costs=costs)
        monitor = replace(
            self.monitor,
            deadline=deadline,
            callbacks=(),
            stop_after=None,
            history=[],
            objective=objective,
            n_features=table.n_cols,
            ranks=ranks,
        )
        random = window.random or np.random.default_rng(0)
        margins = self.margins and self.margins.take_columns(columns)
        return SearchContext(data, objective, plan, monitor, workers, random, holdout, rest, margins), rows

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
                length = window.best.codelength
                parts = window.best.atoms.n_rows, window.best.wrong_bits, length.errors, length.codes, length.atoms
                self._sums += sign * np.array(parts)
        self.windows[replaced] = windows

    def _record(self, move: str, iterations: int) -> None:
        """Add a round to the history, with the sums over all windows; raise OutOfTime if that ends the search."""
        n_atoms, wrong, *length = self._sums.tolist()
        self.monitor.record_counts(self.table.n_rows, n_atoms, wrong, Codelength(*length), Change(), iterations, move)
        if self.monitor.should_stop():
            raise OutOfTime

    def _ended(self) -> str:
        """Return the reason that the search ended."""
        reasons = [window.ended for window in self.windows if window.ended != CONVERGED]
        return self.monitor.stop_reason or next(iter(reasons), CONVERGED)

    def _assembled(self, parts: list[Part], ended: str) -> Factorization:
        """Return the result for the table from those of its windows."""
        monitor, table = self.monitor, self.table
        result = side_by_side(parts, *table.shape, self.objective.ranks)
        n_atoms, wrong = result.atoms.n_rows, result.wrong_bits
        monitor.record_counts(table.n_rows, n_atoms, wrong, result.codelength, Change(), 0, "finish")
        return replace(result, ended=ended, history=tuple(monitor.history), rows_hash=hash_rows(table))


def _block_of(window: Window, context: SearchContext) -> Block:
    """Return the best state of a window as a block."""
    best = window.best
    return context.block(best.atoms, best.codes if best.atoms.n_rows else None, best.bias)


def _cost_of(window: Window, context: SearchContext) -> int:
    """Return what the best state of a window costs, of held-out rows where there are any."""
    block = _block_of(window, context)
    if context.holdout is not None:
        return context.holdout.cost(block, context.objective)
    return context.monitor.cost(block, window.best.codelength)


def _recorded(window: Window, context: SearchContext) -> Block:
    """Return the best state of a window as a block, after its monitor has seen it."""
    block = _block_of(window, context)
    context.monitor.record(block, Change(), 0, "start")
    return block
