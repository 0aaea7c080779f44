"""Code all rows at the prices of now, then update all atoms from one pass of counts."""

from __future__ import annotations

from collections.abc import Callable

from ...core.atoms import update_together
from ...core.block import Block, Change
from ...core.coding import code, code_afresh, code_by_beam
from ...core.objective import Objective
from ...kernels.structs import Rule


def sweep(
    block: Block, objective: Objective, coder: Callable[[Block, Rule], Change] = code, swaps: bool = True
) -> Change:
    """One sweep; undone where it makes things dearer, which prices that are a sweep old can do."""
    before, kept = objective.cost(block), block.keep()
    change = coder(block, objective.rule(block)._replace(swaps=swaps)) + update_together(block)
    if objective.cost(block) > before:
        block.go_back(kept)
        return Change()
    return change


def plain_sweep(block: Block, objective: Objective) -> Change:
    """Toggles only: the cheapest."""
    return sweep(block, objective, swaps=False)


def fresh_sweep(block: Block, objective: Objective) -> Change:
    """Every row from nothing, where that is better: out of dead ends."""
    return sweep(block, objective, code_afresh)


def beam_sweep(block: Block, objective: Objective) -> Change:
    """Every row by beam, where that is better."""
    return sweep(block, objective, code_by_beam)


def flat_sweep(block: Block, objective: Objective) -> Change:
    """The first sweeps of a start: one price for all features, and no way back."""
    return code(block, objective.rule(block, flat=True)._replace(swaps=False)) + update_together(block)
