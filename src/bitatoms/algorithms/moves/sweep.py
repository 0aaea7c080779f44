"""Code all rows at the prices of now, then update all atoms from one pass of counts."""

from __future__ import annotations

from collections.abc import Callable

from ...kernels.tables import Rule
from ..atoms import update_together
from ..block import Block, Change
from ..coding import code, code_afresh, code_by_beam
from ..pricing import Aim


def sweep(block: Block, aim: Aim, coder: Callable[[Block, Rule], Change] = code, swaps: bool = True) -> Change:
    """One sweep; undone where it makes things dearer, which prices that are a sweep old can do."""
    before, kept = aim.cost(block), block.keep()
    change = coder(block, aim.rule(block)._replace(swaps=swaps)) + update_together(block)
    if aim.cost(block) > before:
        block.go_back(kept)
        return Change()
    return change


def plain_sweep(block: Block, aim: Aim) -> Change:
    """Toggles only: the cheapest."""
    return sweep(block, aim, swaps=False)


def fresh_sweep(block: Block, aim: Aim) -> Change:
    """Every row from nothing, where that is better: out of dead ends."""
    return sweep(block, aim, code_afresh)


def beam_sweep(block: Block, aim: Aim) -> Change:
    """Every row by beam, where that is better."""
    return sweep(block, aim, code_by_beam)


def flat_sweep(block: Block, aim: Aim) -> Change:
    """The first sweeps of a start: one price for all features, and no way back."""
    return code(block, aim.rule(block, flat=True)._replace(swaps=False)) + update_together(block)
