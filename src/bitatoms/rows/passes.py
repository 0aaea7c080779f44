"""Passes over all rows with what was found on a sample of them, wherever they are.

A pass codes the rows and counts. From its counts all atoms are updated together, and atoms that do not pay for
themselves are dropped; the next pass goes on from the codes of the last, as long as that gains. Each is a function of
the rows, the codes before and its order: what was lost is done again, and what was stopped goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.atoms import flips_together
from ..core.block import Change
from ..core.coding import MOST_EXACT_ATOMS
from ..core.counts import Counts
from ..core.objective import Objective
from ..core.pass_spec import PassSpec
from ..core.result import CountsResult, Factorization, Round
from ..mdl import string_bits
from ..search.monitor import SearchMonitor
from ..search.moves.drop import savings_from_counts
from ..search.params import SearchParams
from .source import PartialPass, RowSource

_MOST_PASSES = {"fast": 6, "thorough": 12}


@dataclass(frozen=True, eq=False)
class PassState:
    """How far the passes have come: all that going on takes, but for the codes of the pass before."""

    algebra: str
    ended: str  # what ended the search on the sample
    orders: tuple[PassSpec, ...]  # of the passes so far; the last is still to be done,
    history: tuple[Round, ...]
    partial: PartialPass | None = None  # or so much of it is done
    best: int = 0  # the number of the best pass, from 1 on; 0: none is done
    counts: Counts | None = None  # what the best pass counted
    finished: bool = False


class Journal(Protocol):
    """Where the state is kept while a search runs, for another to go on from there."""

    def load(self) -> PassState | None:
        """The state that was kept last, if any."""
        ...

    def save(self, state: PassState) -> None:
        """Keep a state in place of the one before."""
        ...


class _NoJournal:
    """Nothing is kept."""

    def load(self) -> None:
        """There is nothing."""

    def save(self, state: PassState) -> None:
        """Nothing is done."""


NO_JOURNAL = _NoJournal()


@dataclass(frozen=True, eq=False)
class PassResult:
    """What passes over all rows came to."""

    result: CountsResult
    order: PassSpec  # of the best pass
    places: NDArray[np.intp]  # of the result's atoms among those of the order
    codes: Any  # that the best pass left


def first_pass(found: Factorization, params: SearchParams) -> PassSpec:
    """The first pass: all rows from nothing, at the prices of the sample."""
    objective = params.objective(found.algebra)
    rule = objective.rule_from_counts(found.n_samples, found.wrong, found.uses)
    coder = "exact" if codes_exactly(params, found.atoms) else "beam" if params.search == "thorough" else "mend"
    return PassSpec(found.atoms, BitMatrix.from_dense(found.bias[np.newaxis]), coder, rule)


def codes_exactly(params: SearchParams, atoms: BitMatrix) -> bool:
    """Whether rows take the best of all codes."""
    return not params.by_codelength and atoms.n_rows <= MOST_EXACT_ATOMS


class Passes:
    """The passes over all rows."""

    def __init__(
        self, rows: RowSource, params: SearchParams, deadline: float, journal: Journal, state: PassState
    ) -> None:
        self.rows, self.params, self.journal, self.state = rows, params, journal, state
        self.objective = params.objective(state.algebra)
        self.codes: dict[int, Any] = {}  # of the last passes, by their numbers
        self.monitor = SearchMonitor(
            params.by_codelength, deadline, params.callbacks, algebra=state.algebra, history=list(state.history)
        )

    def run(self) -> None:
        """Pass after pass, while that gains and is allowed."""
        self._replay()
        while not self.state.finished and not (self.state.best and self.monitor.should_stop()):
            number = len(self.state.orders)
            order = self.state.orders[-1]
            self.codes[number], counts = self.rows.run_pass(
                order, self.codes.get(number - 1), number, self.state.partial, self._keep_part
            )
            self._settle(number, order, counts)
            self.journal.save(self.state)
            needed = {self.state.best} if self.state.finished else {self.state.best, number}
            self.codes = {n: codes for n, codes in self.codes.items() if n in needed}
            self.rows.forget(needed)
        if self.state.finished:
            self.rows.forget(set())

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
            self.codes[number], _ = self.rows.run_pass(order, before, number, None, lambda part: None)
            self.codes = {n: codes for n, codes in self.codes.items() if n in (number, self.state.best)}

    def _keep_part(self, partial: PartialPass) -> None:
        self.journal.save(replace(self.state, partial=partial))

    def _settle(self, number: int, order: PassSpec, counts: Counts) -> None:
        """Compare a pass with the best so far, and say what comes next."""
        length, cost = counts.codelength(order.atoms, order.bias), self._cost(order, counts)
        flips, flipped = self._flips(order, counts)
        change = Change(codes=counts.codes_changed, atoms=flipped)
        self.monitor.record_counts(
            counts.n_rows, order.atoms.n_rows, counts.wrong, length, change, 1, f"pass {number} over all rows"
        )
        best, best_counts = number, counts
        gains = True
        if self.state.counts is not None:
            before_order, before = self.state.orders[self.state.best - 1], self.state.counts
            if (before.ones != counts.ones).any():
                raise ValueError("the rows are not those of the pass before: they were changed in between; fit anew")
            least = self._cost(before_order, before)
            gains = cost < least - self.params.plan.least_gain * least
            if cost >= least:
                best, best_counts = self.state.best, before
        orders = self.state.orders
        most = min(_MOST_PASSES[self.params.search], self.params.max_iter)
        finished = not gains or number >= most
        if not finished:
            orders = (*orders, self._next_order(order, counts, flips))
        self.state = replace(
            self.state,
            orders=orders,
            partial=None,
            history=tuple(self.monitor.history),
            best=best,
            counts=best_counts,
            finished=finished,
        )

    def _cost(self, order: PassSpec, counts: Counts) -> int:
        """What is made small."""
        return (
            counts.codelength(order.atoms, order.bias).total
            if self.objective.by_codelength
            else int(counts.wrong.sum())
        )

    def _flips(self, order: PassSpec, counts: Counts) -> tuple[NDArray[np.uint64], int]:
        """The bits of the atoms that the rows outvote."""
        words = order.atoms.words.copy()
        return flips_together(counts.free, counts.bad, counts.pairs, words, order.rule.covers)

    def _next_order(self, order: PassSpec, counts: Counts, flips: NDArray[np.uint64]) -> PassSpec:
        """Better atoms, without those that do not pay, and rows coded on from what they have."""
        saved = savings(order.atoms, counts, self.objective)
        gone = np.argsort(saved, kind="stable")[: max(0, len(saved) - self.params.plan.fewest)]
        kept = np.setdiff1d(np.arange(len(saved)), gone[saved[gone] <= 0])
        atoms = BitMatrix.from_words((order.atoms.words ^ flips)[kept], order.atoms.n_cols, check=False)
        rule = self.objective.rule_from_counts(counts.n_rows, counts.wrong, counts.uses[kept])
        coder = "exact" if codes_exactly(self.params, atoms) else "mdl"
        return PassSpec(atoms, order.bias, coder, rule, kept)

    def taken(self, ended: str | None = None) -> PassResult:
        """The best pass as a result."""
        order, counts = self.state.orders[self.state.best - 1], self.state.counts
        assert counts is not None
        result, places = counted(order.atoms, order.bias, counts, self.state.algebra, self.params)
        ended = ended or self.monitor.stop_reason or self.state.ended
        result = replace(result, history=self.state.history, ended=ended)
        return PassResult(result, order, places, self.codes.get(self.state.best))


def counted(
    atoms: BitMatrix, bias: BitMatrix, counts: Counts, algebra: str, params: SearchParams
) -> tuple[CountsResult, NDArray[np.intp]]:
    """What was learned, from counts of the rows: atoms in order of the bits they save, those of no use left out; and
    the places they had."""
    saved = savings(atoms, counts, Objective(True, algebra))
    places = np.argsort(-saved, kind="stable")
    places = places[(counts.uses[places] > 0) & (atoms.row_weights()[places] > 0)]
    atoms, uses = atoms[places], counts.uses[places]
    length = replace(counts, uses=uses).codelength(atoms, bias)
    result = CountsResult(
        atoms=atoms,
        bias=bias.to_dense()[0],
        algebra=algebra,
        codelength=length,
        history=(),
        wrong=counts.wrong,
        coder=params.coder_after,
        objective="codelength" if params.by_codelength else "errors",
        codelengths={algebra: length.total},
        bits_without=int(string_bits(counts.n_rows, counts.ones).sum()),
        saved=saved[places],
        ones=counts.ones,
        missed=counts.missed,
        n_samples=counts.n_rows,
        uses=uses,
    )
    return result, places


def savings(atoms: BitMatrix, counts: Counts, objective: Objective) -> NDArray[np.int64]:
    """How much dearer it would be without each atom, from counts of rows coded with them."""
    return savings_from_counts(counts.n_rows, atoms.words, counts.wrong, counts.uses, counts.votes, objective)
