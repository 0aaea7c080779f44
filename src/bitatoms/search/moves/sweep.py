"""Sweeps: code all rows at the current prices, then update all atoms from one pass of counts."""

from __future__ import annotations

from collections.abc import Callable

from ...core.atoms import update_together
from ...core.block import Block, Change
from ...core.coding import code, code_by_beam, code_from_scratch
from ...core.objective import Objective
from ...kernels.structs import Rule


def sweep(
    block: Block, objective: Objective, coder: Callable[[Block, Rule], Change] = code, swaps: bool = True
) -> Change:
    """Make one sweep; undo it if it raises the cost, which can happen because prices are from the previous sweep."""
    before, saved = objective.cost(block), block.save()
    change = coder(block, objective.rule(block)._replace(swaps=swaps)) + update_together(block)
    if objective.cost(block) > before:
        block.restore(saved)
        return Change()
    return change


def plain_sweep(block: Block, objective: Objective) -> Change:
    """Sweep with toggles only, the fastest kind of sweep."""
    return sweep(block, objective, swaps=False)


def fresh_sweep(block: Block, objective: Objective) -> Change:
    """Sweep with rows coded from scratch where that is better, to leave local optima."""
    return sweep(block, objective, code_from_scratch)


def beam_sweep(block: Block, objective: Objective) -> Change:
    """Sweep with rows coded by beam where that is better."""
    return sweep(block, objective, code_by_beam)


def flat_sweep(block: Block, objective: Objective) -> Change:
    """Sweep at one price for all features, without undoing it: for the first sweeps of a start."""
    return code(block, objective.rule(block, flat=True)._replace(swaps=False)) + update_together(block)
