"""The search for the shortest codelength: from many atoms, rounds of grow, sweep and drop; then polish and shake.

Nothing here stops at the first rise: rounds go on until several in a row gain next to nothing, and the best state met
is what counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..core.atoms import update_together
from ..core.block import Block, Change
from ..core.coding import FEW_FOR_BEAM, code, coding_rule
from ..core.objective import Objective
from ..kernels.structs import covering
from ..parallel import Workers
from .fixed_rank import refill
from .holdout import HoldOut
from .initial import samples, spread
from .learning import SearchMonitor
from .moves.basis import change_basis
from .moves.drop import eliminate, prune, savings, shrink
from .moves.grow import grow
from .moves.sweep import beam_sweep, flat_sweep, fresh_sweep, plain_sweep, sweep
from .params import Plan

_ROWS_AN_ATOM = 16  # atoms to start from are sought among so many rows each
_FLAT_SWEEPS = 3
_SEEN = 128  # atoms of a first look
_FEWEST_NEW = 8  # atoms that a round may add,
_SHARE_NEW = 0.1  # or this share of those there are
_CYCLE = 4  # rounds, in the last of which rows are coded afresh and all atoms are put to the test
_BOILED = 0.7  # share of the atoms that boiling down keeps,
_BOILED_OVER = 1.03  # until the cost is so many times the least
_FEW = 16  # atoms for which a beam takes no time
_CLEARLY_MOST = 0.6  # of the rows: a feature that so many have makes a bias worth a try
_SHAKEN_ROUNDS = 12
_SHAKEN = 0.1  # share of the atoms that a shake drops
_ENOUGH_HELD_OUT = 1000  # rows without which nothing can be said of rare atoms
_SWEEPS = ("look", "first code", "grow", "code", "recode", "beam", "boil down", "shake")  # moves with a sweep in them


class State(NamedTuple):
    """What a block comes to, in less room."""

    cost: int
    atoms: BitMatrix
    codes: BitMatrix
    bias: BitMatrix


@dataclass
class MdlSearch:
    """One search under way: what it may do, what is seen of it, and the rounds it has left."""

    data: BitMatrix
    objective: Objective
    plan: Plan
    monitor: SearchMonitor
    workers: Workers
    random: np.random.Generator
    holdout: HoldOut | None = None  # what states are compared by, where the data is but a sample

    def __post_init__(self) -> None:
        self.rounds_left = self.plan.max_rounds
        self.cost_of_nothing = self.objective.cost_of_nothing(self.data)
        if self.holdout is not None:
            self.cost_of_nothing = self.holdout.cost_of_nothing()

    def cost(self, block: Block) -> int:
        """What states are compared by."""
        if self.holdout is None:
            return self.objective.cost(block)
        cost = self.holdout.cost(block, self.objective)
        self.monitor.judge(block, cost)
        return cost

    def is_over(self) -> bool:
        """Whether it must end now."""
        if self.rounds_left <= 0 and self.monitor.cut_by is None:
            self.monitor.cut_by = "max_iter"
        return self.monitor.is_cut()

    def gains(self, cost: int, best: int) -> bool:
        """Whether a cost is lower than the best so far by more than next to nothing."""
        least = 0.0 if self.holdout is not None else self.plan.least_gain
        return cost < best - least * max(0, min(best, self.cost_of_nothing - best))

    def makes(self, move: str) -> bool:
        """Whether this move is among those made."""
        return move not in self.plan.left_out

    def tell(self, block: Block, change: Change, move: str) -> None:
        """Add a move to the history."""
        self.monitor.record(block, change, 1 if move in _SWEEPS else 0, move)

    # Starts.

    def look(self) -> Block:
        """A first look: rows drawn at random as atoms, and a few sweeps, for there to be something good at once."""
        atoms = samples(self.data, min(_SEEN, self.data.n_rows // 2), self.random)
        block = Block(self.data, atoms, None, covering(self.objective.algebra), self.workers)
        rule = coding_rule("greedy", self.objective.algebra, self.objective.max_atoms, self.objective.residual_limit)
        for _ in range(2):
            if not self.is_over():
                self.tell(block, code(block, rule) + update_together(block), "look")
        for next_sweep in (plain_sweep, sweep, sweep):
            if not self.is_over():
                self.tell(block, next_sweep(block, self.objective), "look")
        return block

    def best_start(self, seen: Block | None = None) -> Block:
        """Go from each start for a cycle, from the best with a bias too where that makes sense, and on to the end from
        those ahead then; the best of those."""
        sizes = list(dict.fromkeys(min(size, self.data.n_rows // 2) for size in self.plan.starts))
        no_bias = BitMatrix.zeros(1, self.data.n_cols)
        is_start = self.plan.from_look or seen is not None
        seen = seen or self.look()
        ahead = [self.first_cycle(seen)] if is_start or self.is_over() else []
        del seen  # a block takes room
        for size in sizes:
            if not ahead or not self.is_over():
                ahead.append(self.first_cycle(self.start(size, no_bias)))
        size = sizes[int(np.argmin([state.cost for state in ahead[-len(sizes) :]]))]
        for bias in self.biases():
            if not self.is_over():
                ahead.append(self.first_cycle(self.start(size, bias)))
        ahead.sort(key=lambda state: state.cost)
        finalists = [self.go_on(state) for state in ahead[: self.plan.finalists]]
        return self.go_back(min(finalists, key=lambda state: state.cost))

    def biases(self) -> list[BitMatrix]:
        """Those worth a try: the features that most rows have, and all of them where most of the table is ones."""
        share = self.data.column_weights() / max(1, self.data.n_rows)
        if not self.makes("bias") or not (share > _CLEARLY_MOST).any():
            return []
        most = BitMatrix.from_dense(share[np.newaxis] > 0.5)
        all_ones = BitMatrix.from_dense(np.ones((1, self.data.n_cols), np.uint8))
        return [most, all_ones] if share.mean() > 0.5 and most != all_ones else [most]

    def first_cycle(self, block: Block) -> State:
        """Where a start leads in one cycle."""
        self.descend(block, _CYCLE)
        return self.state_of(block)

    def go_on(self, state: State) -> State:
        """Where a state leads."""
        block = self.block_of(state)
        self.tell(block, Change(), "go on")
        self.descend(block)
        return self.state_of(block)

    def go_back(self, state: State) -> Block:
        """A state met before."""
        block = self.block_of(state)
        self.tell(block, Change(), "go back")
        return block

    def state_of(self, block: Block) -> State:
        return State(self.cost(block), *block.factors(), block.bias)

    def block_of(self, state: State) -> Block:
        covers = covering(self.objective.algebra)
        return Block(self.data, state.atoms, state.codes, covers, self.workers, state.bias)

    def start(self, n_atoms: int, bias: BitMatrix) -> Block:
        """Atoms spread over the data, and each row coded with those that serve it."""
        shifted = (
            self.data
            if not bias.count()
            else BitMatrix.from_words(self.data.words ^ bias.words, self.data.n_cols, check=False)
        )
        n_rows = min(self.data.n_rows, _ROWS_AN_ATOM * n_atoms)
        if n_rows < self.data.n_rows:
            shifted = shifted[np.sort(self.random.choice(self.data.n_rows, n_rows, replace=False))]
        atoms = spread(shifted, n_atoms, self.random, self.workers)
        block = Block(self.data, atoms, None, covering(self.objective.algebra), self.workers, bias)
        self.warm_up(block)
        return block

    def from_given(self, atoms: BitMatrix, codes: BitMatrix | None) -> Block:
        """Where atoms, or atoms and codes, that the user gave lead."""
        block = Block(self.data, atoms, codes, covering(self.objective.algebra), self.workers)
        if codes is None:
            self.warm_up(block)
        else:
            self.tell(block, Change(), "start")
        self.descend(block)
        return block

    def warm_up(self, block: Block) -> None:
        """The first sweeps."""
        self.tell(block, Change(), "start")
        for _ in range(_FLAT_SWEEPS if block.n_atoms else 0):
            self.tell(block, flat_sweep(block, self.objective), "first code")

    # Rounds.

    def descend(self, block: Block, most_rounds: int | None = None) -> None:
        """Rounds of grow, sweep and drop until they gain next to nothing."""
        best, idle, n_rounds = self.cost(block), 0, 0
        while not self.is_over() and n_rounds != most_rounds:
            if self.plan.patience is not None and idle >= self.plan.patience:
                break
            n_rounds += 1
            self.one_round(block, n_rounds % _CYCLE == 0)
            cost = self.cost(block)
            idle = 0 if self.gains(cost, best) else idle + 1
            best = min(best, cost)

    def one_round(self, block: Block, last_of_cycle: bool) -> None:
        """New atoms, two sweeps, and out with what does not pay."""
        self.rounds_left -= 1
        most = max(_FEWEST_NEW, int(_SHARE_NEW * block.n_atoms))
        if self.makes("grow"):
            grow(block, self.objective, self.random, most, self.plan.n_fits)
        self.tell(block, plain_sweep(block, self.objective), "grow")
        if last_of_cycle and self.makes("recode"):
            self.tell(block, fresh_sweep(block, self.objective), "recode")
        else:
            self.tell(block, sweep(block, self.objective, swaps=self.makes("swap")), "code")
        self.change_basis(block)
        self.drop(block, every=last_of_cycle)

    def change_basis(self, block: Block) -> None:
        # A basis move gives some rows more atoms, which a limit may not allow.
        if self.objective.max_atoms is None and self.makes("basis") and change_basis(block, self.objective):
            self.tell(block, Change(), "basis")

    def drop(self, block: Block, every: bool) -> None:
        """Drop atoms that do not pay, of all or of those that save nothing as they are; and more if there must be."""
        n_gone = (eliminate if every and self.makes("eliminate") else prune)(block, self.objective, self.plan.fewest)
        if every and self.holdout is not None and len(self.holdout.rows) >= _ENOUGH_HELD_OUT:
            n_gone += self.drop_unheld(block, self.holdout)
        if self.plan.most is not None:
            n_gone += shrink(block, self.objective, self.plan.most)
        if n_gone:
            self.tell(block, Change(), "drop")

    def drop_unheld(self, block: Block, holdout: HoldOut) -> int:
        """Drop atoms that fit the sample alone; returns how many."""
        gone = ~holdout.saves(block, self.objective)
        gone &= np.cumsum(gone) <= block.n_atoms - self.plan.fewest
        if gone.any():
            block.discard(gone)
        return int(gone.sum())

    def boil_down(self, block: Block) -> tuple[Block, bool]:
        """Do with the more useful part of the atoms, again and again; the best of all that, and if it is any better.

        Many atoms can hide a few: rows then use whatever mends them a little, and every atom seems to pay.
        """
        best, better = self.state_of(block), False
        while (n_kept := int(_BOILED * block.n_atoms)) >= max(1, self.plan.fewest) and not self.is_over():
            if not self.makes("boil down"):
                break
            order = np.argsort(-savings(block, self.objective), kind="stable")
            block.discard(np.argsort(order, kind="stable") >= n_kept)
            again = beam_sweep if n_kept <= FEW_FOR_BEAM and self.makes("beam") else fresh_sweep
            self.tell(block, again(block, self.objective), "boil down")
            self.tell(block, sweep(block, self.objective, swaps=self.makes("swap")), "code")
            now = self.state_of(block)
            if now.cost < best.cost:
                best, better = now, True
            elif now.cost > _BOILED_OVER * best.cost:
                break
        return self.go_back(best), better

    def polish(self, block: Block, by_beam: bool, most_times: int | None = None) -> None:
        """Sweeps from nothing or by beam, basis and elimination, until they gain next to nothing."""
        n_times = 0
        while not self.is_over() and n_times != most_times:
            n_times += 1
            before = self.cost(block)
            if (by_beam or block.n_atoms <= _FEW) and self.makes("beam"):
                self.tell(block, beam_sweep(block, self.objective), "beam")
            elif self.makes("recode"):
                self.tell(block, fresh_sweep(block, self.objective), "recode")
            self.tell(block, sweep(block, self.objective, swaps=self.makes("swap")), "code")
            self.change_basis(block)
            self.drop(block, every=True)
            if not self.gains(self.cost(block), before):
                break

    def shake(self, block: Block) -> Block:
        """Drop some atoms at random and go again from there; what is better of before and after."""
        before = self.state_of(block)
        gone = self.random.random(block.n_atoms) < _SHAKEN
        if gone.any():
            block.discard(gone)
        self.tell(block, fresh_sweep(block, self.objective), "shake")
        self.descend(block, _SHAKEN_ROUNDS)
        self.polish(block, self.plan.by_beam, 1)
        return block if self.cost(block) < before.cost else self.go_back(before)


def search_mdl(
    data: BitMatrix,
    given: tuple[BitMatrix, BitMatrix | None] | None,
    seen: Block | None,
    objective: Objective,
    plan: Plan,
    monitor: SearchMonitor,
    workers: Workers,
    random: np.random.Generator,
    holdout: HoldOut | None = None,
) -> Block:
    """The whole search: from the atoms given or the best of several starts; rounds, polish, shakes.

    ``seen``, where there is one, takes the place of a first look, and is a start.
    """
    descent = MdlSearch(data, objective, plan, monitor, workers, random, holdout)
    block = Block(data, BitMatrix.zeros(0, data.n_cols), None, covering(objective.algebra), workers)
    descent.tell(block, Change(), "no model")
    if not descent.is_over():
        block = descent.best_start(seen) if given is None else descent.from_given(*given)
        block, better = descent.boil_down(block)
        descent.polish(block, plan.by_beam or better)
    for _ in range(plan.shakes):
        if descent.is_over() or not descent.makes("shake"):
            break
        block = descent.shake(block)
    if plan.fewest and refill(
        block, coding_rule("greedy", objective.algebra, objective.max_atoms), plan.fewest, random
    ):
        descent.tell(block, Change(), "grow")
    if holdout is not None:
        descent.cost(block)
    return block
