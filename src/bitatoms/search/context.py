"""SearchContext: what every function of a search needs to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..bits import BitMatrix
from ..core.block import Block, Rest
from ..core.coding import coding_rule
from ..core.margins import Margins
from ..core.objective import Objective
from ..kernels.structs import Rule, covering
from ..parallel import Workers
from .holdout import HoldOut
from .journal import NO_JOURNAL, StartJournal
from .monitor import SearchMonitor
from .plan import Plan


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
    rest: Rest | None = None  # other rows of the table, which are only counted
    margins: Margins | None = None  # atoms that these explain are dropped in the end
    journal: StartJournal = NO_JOURNAL  # keeps finished steps, to resume the search

    def block(self, atoms: BitMatrix, codes: BitMatrix | None = None, bias: BitMatrix | None = None) -> Block:
        """Return the data as a block with these factors, in the algebra of the objective."""
        return Block(self.data, atoms, codes, covering(self.objective.algebra), self.workers, bias, self.rest)

    @property
    def is_mdl_search(self) -> bool:
        """Whether moves lower the codelength: then a bias settles, unless there is none."""
        return self.monitor.settles_bias or not self.objective.has_bias

    @property
    def greedy_rule(self) -> Rule:
        """The rule of greedy coding for the fewest errors, within the limits of the objective."""
        objective = self.objective
        return coding_rule("greedy", objective.algebra, objective.max_atoms, objective.residual_limit)
