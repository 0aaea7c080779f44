"""More rows than are searched: the search on a sample of them, then passes over all rows.

The sample is drawn by row numbers, so it is the same wherever the rows are. An atom costs the sample only its share,
and states are compared by rows held out, for atoms could fit a sample row by row. What was found is then taken to all
rows: they are coded, all atoms are updated from the counts of one pass, and atoms that do not pay for themselves are
dropped, pass by pass, as long as that gains.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.tables import Rule
from ..mdl import string_bits
from ..parallel import Workers
from .atoms import flips_together
from .block import Change
from .coding import MOST_EXACT_ATOMS, typical_cost
from .evidence import AllRows, Counts, Order, Partial
from .held_out import HeldOut
from .learning import Watch
from .moves.drop import savings_from_counts
from .pricing import Aim
from .result import Counted, Factorization, Interrupted, Round
from .search import search, tell
from .settings import Settings

_MOST_ROWS, _FEWEST_ROWS = 1 << 16, 1 << 12  # of a sample: the first, unless they have more bits than
_MOST_BITS = 1 << 31  # this; then fewer, but not fewer than the second
_HELD_OUT = 9  # one row of so many of the sample is held out
_MOST_PASSES = {"fast": 6, "thorough": 12}


def auto_sample(n_features: int) -> int:
    """How many rows are searched where there are more."""
    return min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_BITS // max(1, n_features)))


@dataclass(frozen=True, eq=False)
class State:
    """How far the passes have come: all that going on takes, but for the codes of the pass before."""

    algebra: str
    ended: str  # what ended the search on the sample
    orders: tuple[Order, ...]  # of the passes so far; the last is still to be done,
    history: tuple[Round, ...]
    partial: Partial | None = None  # or so much of it is done
    best: int = 0  # the number of the best pass, from 1 on; 0: none is done
    counts: Counts | None = None  # what the best pass counted
    finished: bool = False


class Journal(Protocol):
    """Where the state is kept while a search runs, for another to go on from there."""

    def load(self) -> State | None:
        """The state that was kept last, if any."""
        ...

    def save(self, state: State) -> None:
        """Keep a state in place of the one before."""
        ...


class _NoJournal:
    """Nothing is kept."""

    def load(self) -> None:
        """There is nothing."""

    def save(self, state: State) -> None:
        """Nothing is done."""


NOTHING_KEPT = _NoJournal()


@dataclass(frozen=True, eq=False)
class Taken:
    """What passes over all rows came to."""

    result: Counted
    order: Order  # of the best pass
    places: NDArray[np.intp]  # of the result's atoms among those of the order
    codes: Any  # that the best pass left


def learn(
    rows: AllRows, settings: Settings, workers: Workers, random: np.random.Generator, journal: Journal = NOTHING_KEPT
) -> Factorization | Taken:
    """Search all rows, or where there are more than are searched a sample of them, from which all are gone through."""
    deadline = float("inf") if settings.max_time is None else time.perf_counter() + settings.max_time
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
    found: Factorization | None = None
    if state is None:
        drawn = random.choice(rows.n_rows, n_drawn, replace=False)
        n_held_out = max(1, n_drawn // _HELD_OUT)
        seen, unseen = np.sort(drawn[n_held_out:]), np.sort(drawn[:n_held_out])
        held_out = HeldOut(rows.take(unseen), rows.n_rows, workers)
        own = replace(settings, init=_init_of(settings.init, rows.n_rows, seen))
        found = search(rows.take(seen), own, workers, random, deadline, held_out, len(seen) / rows.n_rows)
        state = State(found.algebra, found.ended, (_first_order(found, settings),), found.history)
        journal.save(state)
    passes = _Passes(rows, settings, deadline, journal, state)
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


def _first_order(found: Factorization, settings: Settings) -> Order:
    """The first pass: all rows from nothing, at the prices of the sample."""
    aim = _aim(settings, found.algebra)
    rule = _rule(aim, found.n_samples, found.wrong, found.uses)
    coder = "exact" if _codes_exactly(settings, found.atoms) else "beam" if settings.search == "thorough" else "mend"
    return Order(found.atoms, BitMatrix.from_dense(found.bias[np.newaxis]), coder, rule)


def _aim(settings: Settings, algebra: str) -> Aim:
    return Aim(settings.by_codelength, algebra, settings.max_atoms_per_sample, settings.residual_limit)


def _rule(aim: Aim, n_rows: int, wrong: NDArray[np.int64], uses: NDArray[np.int64]) -> Rule:
    """The prices at these counts, and what a row costs at them."""
    rule = aim.rule_from_counts(n_rows, wrong, uses)
    assert rule.prices is not None
    return rule._replace(typical=typical_cost(rule.prices, n_rows, wrong, uses))


def _codes_exactly(settings: Settings, atoms: BitMatrix) -> bool:
    """Whether rows take the best of all codes."""
    return not settings.by_codelength and atoms.n_rows <= MOST_EXACT_ATOMS


class _Passes:
    """The passes over all rows."""

    def __init__(self, rows: AllRows, settings: Settings, deadline: float, journal: Journal, state: State) -> None:
        self.rows, self.settings, self.journal, self.state = rows, settings, journal, state
        self.aim = _aim(settings, state.algebra)
        self.codes: dict[int, Any] = {}  # of the last passes, by their numbers
        self.watch = Watch(settings.by_codelength, deadline, settings.callbacks, algebra=state.algebra)
        self.watch.history = list(state.history)

    def run(self) -> None:
        """Pass after pass, while that gains and is allowed."""
        self._replay()
        while not self.state.finished and not (self.state.best and self.watch.is_cut()):
            number = len(self.state.orders)
            order = self.state.orders[-1]
            self.codes[number], counts = self.rows.sweep(
                order, self.codes.get(number - 1), number, self.state.partial, self._keep_part
            )
            self._settle(number, order, counts)
            self.journal.save(self.state)
            needed = {self.state.best} if self.state.finished else {self.state.best, number}
            self.codes = {n: codes for n, codes in self.codes.items() if n in needed}
            self.rows.forget(set() if self.state.finished else needed)

    def _replay(self) -> None:
        """Have the codes of the pass before again, or in the end of the best one, where another process began."""
        if self.state.finished and self.rows.whole is None:
            return
        last = self.state.best if self.state.finished else len(self.state.orders) - 1
        if last and (codes := self.rows.codes_of(last)) is not None:
            self.codes = {last: codes}
            return
        for number in range(1, last + 1):
            order, before = self.state.orders[number - 1], self.codes.get(number - 1)
            self.codes[number], _ = self.rows.sweep(order, before, number, None, lambda part: None)
            self.codes = {n: codes for n, codes in self.codes.items() if n in (number, self.state.best)}

    def _keep_part(self, partial: Partial) -> None:
        self.journal.save(replace(self.state, partial=partial))

    def _settle(self, number: int, order: Order, counts: Counts) -> None:
        """Compare a pass with the best so far, and say what comes next."""
        length = counts.codelength(order)
        cost = self._cost(order, counts)
        flips, flipped = self._flips(order, counts)
        change = Change(codes=counts.codes_changed, atoms=flipped)
        self.watch.note(
            counts.n_rows, order.atoms.n_rows, counts.wrong, length, change, 1, f"pass {number} over all rows"
        )
        best, best_counts = number, counts
        gains = True
        if self.state.counts is not None:
            before_order, before = self.state.orders[self.state.best - 1], self.state.counts
            least = self._cost(before_order, before)
            gains = cost < least - self.settings.plan.least_gain * least
            if cost >= least:
                best, best_counts = self.state.best, before
        orders = self.state.orders
        most = min(_MOST_PASSES[self.settings.search], self.settings.max_iter)
        finished = not gains or number >= most
        if not finished:
            orders = (*orders, self._next_order(order, counts, flips))
        self.state = replace(
            self.state,
            orders=orders,
            partial=None,
            history=tuple(self.watch.history),
            best=best,
            counts=best_counts,
            finished=finished,
        )

    def _cost(self, order: Order, counts: Counts) -> int:
        """What is made small."""
        return counts.codelength(order).total if self.aim.by_codelength else int(counts.wrong.sum())

    def _flips(self, order: Order, counts: Counts) -> tuple[NDArray[np.uint64], int]:
        """The bits of the atoms that the rows outvote."""
        words = order.atoms.words.copy()
        return flips_together(counts.free, counts.bad, counts.pairs, words, order.rule.covers)

    def _next_order(self, order: Order, counts: Counts, flips: NDArray[np.uint64]) -> Order:
        """Better atoms, without those that do not pay, and rows coded on from what they have."""
        saved = self._savings(order, counts, self.aim)
        gone = np.argsort(saved, kind="stable")[: max(0, len(saved) - self.settings.plan.fewest)]
        kept = np.setdiff1d(np.arange(len(saved)), gone[saved[gone] <= 0])
        atoms = BitMatrix.trusted((order.atoms.words ^ flips)[kept], order.atoms.n_cols)
        rule = _rule(self.aim, counts.n_rows, counts.wrong, counts.uses[kept])
        coder = "exact" if _codes_exactly(self.settings, atoms) else "mdl"
        return Order(atoms, order.bias, coder, rule, kept)

    @staticmethod
    def _savings(order: Order, counts: Counts, aim: Aim) -> NDArray[np.int64]:
        """How much dearer it would be without each atom."""
        return savings_from_counts(counts.n_rows, order.atoms.words, counts.wrong, counts.uses, counts.votes, aim)

    def taken(self, ended: str | None = None) -> Taken:
        """The best pass as a result, its atoms in order of the bits they save; those of no use are left out."""
        order, counts = self.state.orders[self.state.best - 1], self.state.counts
        assert counts is not None
        saved = self._savings(order, counts, Aim(True, self.state.algebra))
        places = np.argsort(-saved, kind="stable")
        places = places[(counts.uses[places] > 0) & (order.atoms.row_weights()[places] > 0)]
        atoms = order.atoms[places]
        length = replace(counts, uses=counts.uses[places]).codelength(replace(order, atoms=atoms))
        result = Counted(
            atoms=atoms,
            bias=order.bias.to_dense()[0],
            algebra=self.state.algebra,
            codelength=length,
            history=self.state.history,
            wrong=counts.wrong,
            ended=ended or self.watch.cut_by or self.state.ended,
            coder=self.settings.coder_after,
            objective="codelength" if self.settings.by_codelength else "errors",
            codelengths={self.state.algebra: length.total},
            bits_without=int(string_bits(counts.n_rows, counts.ones).sum()),
            saved=saved[places],
            ones=counts.ones,
            missed=counts.missed,
            n_samples=counts.n_rows,
            uses=counts.uses[places],
        )
        return Taken(result, order, places, self.codes.get(self.state.best))
