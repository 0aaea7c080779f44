"""The learning loop of the paper: code the rows, update the atoms, until nothing changes."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.atoms import UPDATES
from ..core.block import Block, Change
from ..core.coding import CODERS, pursue
from ..kernels.structs import Rule
from .journal import NO_LOOP, Loop, Progress, state_of_block
from .monitor import SearchMonitor
from .stopping import CONVERGED, MAX_ITER


@dataclass(frozen=True)
class LearningMethod:
    """How to learn: a coder, an update of the atoms, and the largest number of steps."""

    coder: str
    update: str
    rule: Rule
    max_iter: int


def step(block: Block, method: LearningMethod, pursues: bool = False) -> Change:
    """Code the rows, by the coder or by pursuit, then update the atoms. Neither raises the number of errors."""
    coder = pursue if pursues else CODERS[method.coder]
    return coder(block, method.rule) + UPDATES[method.update](block, method.rule)


def learn(
    block: Block, method: LearningMethod, monitor: SearchMonitor, each_step: bool = True, loop: Loop = NO_LOOP
) -> str:
    """Take steps until one changes nothing, and return the reason that learning ended.

    Convergence is exact. Each change lowers the number of wrong bits, or keeps it and removes ones from atoms and
    codes (a tie gives 0), so that no state occurs twice. A round is recorded after each step, or once at the end.

    With BMP under XOR, rows without codes are first coded by pursuit, in effect as the paper's program codes them: they
    take few atoms in a step, and the atoms are updated before rows take more. Once that changes nothing, BMP continues.
    Under OR, which the paper does not have, neither order is better on all tables.

    The ``loop`` keeps the progress after each step; if it is resumed, the block is in the state that was kept.
    """
    total = Change()
    iterations, pursues = 0, method.coder == "bmp" and not block.covers and not block.uses().any()
    if loop.resumed is not None:
        iterations, pursues = loop.resumed.numbers[0], bool(loop.resumed.numbers[1])
    converged = False
    while not converged and iterations < method.max_iter and not (iterations and monitor.should_stop()):
        change = step(block, method, pursues)
        if pursues and not change:
            pursues = False
            block.mark_stale()
            change = step(block, method)
        iterations += 1
        converged = not change
        if each_step:
            monitor.record(block, change, 1)
        total += change
        if not converged:
            loop.save(lambda: Progress([state_of_block(block)], (iterations, pursues)))  # noqa: B023
    if not each_step:
        monitor.record(block, total, iterations)
    return monitor.stop_reason or (CONVERGED if converged else MAX_ITER)
