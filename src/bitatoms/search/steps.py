"""Steps of coding and update for the fewest errors, and the state to which they converge."""

from __future__ import annotations

from ..bits import BitMatrix
from ..core.atoms import update_exactly, update_together
from ..core.block import Block, Change
from ..core.coding import code, code_exactly
from .context import SearchContext

_UNTIL_CONVERGED = 1000  # steps


def converged(context: SearchContext, atoms: BitMatrix, codes: BitMatrix | None = None) -> tuple[Block, Change]:
    """Return the state to which steps from these factors converge, and what changed on the way."""
    block = context.block(atoms, codes)
    return block, take_steps(context, block, block.n_atoms <= context.plan.fixed_rank.max_exact_atoms)


def take_steps(context: SearchContext, block: Block, exactly: bool) -> Change:
    """Take steps of coding and update, exhaustive ones or not, until one changes nothing or the time is up."""
    total, rule = Change(), context.greedy_rule
    for _ in range(_UNTIL_CONVERGED):
        if exactly:
            change = code_exactly(block, rule) + update_exactly(block)
        else:
            change = code(block, rule) + update_together(block)
        total += change
        if not change or context.monitor.is_late():
            break
    return total
