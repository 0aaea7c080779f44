"""How many atoms: forward selection with warm restarts (Algorithm 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.block import Block
from .learning import Method, SearchMonitor, learn
from .proximus import append_rank_one


@dataclass(frozen=True)
class Growth:
    """When forward selection stops."""

    patience: int | None  # rounds in a row without a shorter codelength; None: only at max_components
    max_components: int | None


def forward_selection(
    block: Block, method: Method, growth: Growth, monitor: SearchMonitor, random: np.random.Generator
) -> bool:
    """Learn, add the atom that a rank-one fit finds in the errors, learn on from there, while that pays.

    The best state is in ``monitor``; returns whether every round converged.
    """
    converged = learn(block, method, monitor, each_step=False)
    failures = 0
    while growth.max_components is None or block.n_atoms < growth.max_components:
        if growth.patience is not None and failures >= growth.patience:
            break
        if monitor.is_cut() or not append_rank_one(block, method.rule, random):
            break
        shortest = min(row.bits for row in monitor.history)
        converged &= learn(block, method, monitor, each_step=False)
        failures = 0 if monitor.history[-1].bits < shortest else failures + 1
    return converged
