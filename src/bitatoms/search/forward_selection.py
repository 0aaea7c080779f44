"""Forward selection of the number of atoms, with warm restarts (Algorithm 5 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.block import Block
from .journal import NO_LOOP, Loop, Progress, state_of_block
from .learning import LearningMethod, learn
from .monitor import SearchMonitor
from .proximus import append_rank_one
from .stopping import CONVERGED, MAX_ITER


@dataclass(frozen=True)
class SelectionLimits:
    """When forward selection stops."""

    patience: int | None  # rounds in a row without a shorter codelength; None: only at max_components
    max_components: int | None


def forward_selection(
    block: Block,
    method: LearningMethod,
    limits: SelectionLimits,
    monitor: SearchMonitor,
    random: np.random.Generator,
    loop: Loop = NO_LOOP,
) -> str:
    """Learn, add the atom that a rank-one fit finds in the errors, learn again, until the codelength no longer falls.

    The best state is ``monitor.best``. Returns the reason that the selection ended; "max_iter" if any round did not
    converge. The ``loop`` keeps its progress; if that is resumed, the block is in the state that was kept.
    """
    if loop.resumed is None:
        ends, failures = [learn(block, method, monitor, each_step=False)], 0
    else:
        failures, is_cut = loop.resumed.numbers
        ends = [MAX_ITER] if is_cut else []
    while limits.max_components is None or block.n_atoms < limits.max_components:
        if limits.patience is not None and failures >= limits.patience:
            break
        if monitor.should_stop() or not append_rank_one(block, method.rule, random):
            break
        shortest = min(row.bits for row in monitor.history)
        ends.append(learn(block, method, monitor, each_step=False))
        failures = 0 if monitor.history[-1].bits < shortest else failures + 1
        loop.save(lambda: Progress([state_of_block(block)], (failures, MAX_ITER in ends)))  # noqa: B023
    return monitor.stop_reason or (MAX_ITER if MAX_ITER in ends else CONVERGED)
