"""SearchContext: what every function of a search needs to know; HoldOut: the rows by which it compares its states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import Block, Change, CountedRows
from ..engine.codelength import string_bits
from ..engine.coding import code_and_repair, coding_rule
from ..engine.objective import Objective
from ..engine.prices import EQUAL_COSTS
from ..kernels.structs import CodingRule
from ..parallel import Workers
from .margins import Margins
from .monitor import SearchMonitor
from .moves.drop import savings
from .plan import Plan
from .states import State

_ROWS_PER_HELD_OUT = 9  # one of this many rows of a sample is held out


def split_rows(drawn: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split row indices in random order into those to search and those to hold out, each sorted."""
    n_held_out = max(1, len(drawn) // _ROWS_PER_HELD_OUT)
    return np.sort(drawn[n_held_out:]), np.sort(drawn[:n_held_out])


@dataclass(frozen=True)
class HoldOut:
    """Rows that a search does not see, by which it compares its states."""

    rows: BitMatrix
    n_all: int  # rows of the whole table, of which these and the searched ones are a sample

    def cost(self, block: Block, objective: Objective) -> int:
        """Return the codelength of the entire table, estimated as if all its rows were like these.

        The rows are coded with the atoms of the block, at its prices. The cost of an error or a use depends on how rare
        it is in the block; each atom is counted once.
        """
        n, wrong, uses = block.n_rows, block.wrong(), block.uses()
        of_all = replace(objective, by_codelength=True, share=1.0)
        held_out = self._coded(block, objective)
        bits = _bits(held_out.wrong(), held_out.n_known, wrong, block.n_known)
        bits += _bits(held_out.uses(), held_out.n_rows, uses, n)
        n_bias_ones = np.array(objective.settled_bias(block)[0].count())
        once = of_all.of_atoms(block.atoms()).sum() + block.n_atoms * string_bits(self.n_all, 0)
        once += of_all.of_bias_ones(self.n_all, block.n_features, n_bias_ones)
        bits += objective.cost_beyond_codelength(held_out)
        return round(bits * self.n_all / len(self.rows)) + int(once)

    def cost_of_nothing(self, objective: Objective) -> int:
        """Return the same estimate without any atom."""
        plain = replace(objective, costs=EQUAL_COSTS, has_bias=True)
        beyond = objective.cost_of_nothing(self.rows) - plain.cost_of_nothing(self.rows)
        return int(self.costs_of_nothing().sum() + beyond * (self.n_all / len(self.rows)))

    def costs_of_nothing(self) -> NDArray[np.floating]:
        """Return the same estimate for each column."""
        return string_bits(self.rows.n_known, self.rows.column_weights()) * (self.n_all / len(self.rows))

    def saves(self, block: Block, objective: Objective) -> NDArray[np.bool_]:
        """Return which atoms of a block save more bits on these rows than the rows' share of the atom costs."""
        return savings(self._coded(block, objective), replace(objective, share=len(self.rows) / self.n_all)) > 0

    def _coded(self, block: Block, objective: Objective) -> Block:
        """Return these rows, coded with the atoms of a block at its prices."""
        held_out = Block(self.rows, block.atoms(), None, block.covers, block.workers, block.bias)
        code_and_repair(held_out, objective.rule(block))
        return held_out


def _bits(
    ones: NDArray[np.int64],
    lengths: int | NDArray[np.int64],
    block_ones: NDArray[np.int64],
    block_lengths: int | NDArray[np.int64],
) -> float:
    """Return the bits of strings of these lengths with this many ones, at the frequencies of ones in the block."""
    share = (block_ones + 0.5) / (block_lengths + 1)
    return float(-(ones * np.log2(share) + (lengths - ones) * np.log2(1 - share)).sum())


@dataclass(frozen=True, eq=False)
class SearchContext:
    """The data that a search runs on, what it minimizes, how widely it looks, and what observes it."""

    data: BitMatrix
    objective: Objective
    plan: Plan
    monitor: SearchMonitor
    workers: Workers
    random: np.random.Generator
    holdout: HoldOut | None = None  # compares states where the data is a sample of the rows
    counted: CountedRows | None = None  # other rows of the table, which are only counted
    margins: Margins | None = None  # atoms that these explain are dropped in the end
    resumed: Sequence[State] = ()  # from which the search starts, if an earlier one was killed

    def block(self, atoms: BitMatrix, codes: BitMatrix | None = None, bias: BitMatrix | None = None) -> Block:
        """Return the data as a block with these factors, in the algebra of the objective."""
        return Block(self.data, atoms, codes, self.objective.algebra == "or", self.workers, bias, self.counted)

    def block_of(self, state: State) -> Block:
        """Return the block of a state."""
        return self.block(state.atoms, state.codes, state.bias)

    def cost(self, block: Block) -> int:
        """Return the cost by which states are compared, of held-out rows where there are any."""
        if self.holdout is None:
            return self.objective.cost(block)
        block = block.with_users(self.plan.min_users)
        cost = self.holdout.cost(block, self.objective)
        self.monitor.record_holdout_cost(block, cost)
        return cost

    def record(self, block: Block, change: Change, iterations: int, move: str) -> None:
        """Add a move to the history, and keep its state if it is the best, by held-out rows where there are any."""
        self.monitor.record(block, change, iterations, move)
        if self.monitor.by_holdout:
            self.cost(block)

    @property
    def is_mdl_search(self) -> bool:
        """Whether moves lower the codelength: then a bias settles, unless there is none."""
        return self.monitor.settles_bias or not self.objective.has_bias

    @property
    def greedy_rule(self) -> CodingRule:
        """The rule of greedy coding for the fewest errors, within the limits of the objective."""
        objective = self.objective
        return coding_rule("greedy", objective.algebra, objective.max_atoms)
