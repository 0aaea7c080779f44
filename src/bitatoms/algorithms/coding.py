"""Atoms and rows to codes and errors: the coders by name.

``"bmp"`` is Binary Matching Pursuit (Algorithm 3 of the paper) with the association-accuracy rule: toggle the atom
with the largest gain a bit. ``"greedy"`` toggles the atom with the largest gain. ``"exact"`` takes the best of all
codes. A gain is the number of wrong bits that a toggle takes away; under XOR ordering atoms by gain a bit is
ordering them by association accuracy |d & r| / |d|, and both rules stop at the same rows: where no toggle gains.
"""

from __future__ import annotations

from collections.abc import Callable

from ..kernels.tables import Rule, covering
from .block import Block, Change

NO_LIMIT = 1 << 60
MOST_EXACT_ATOMS = 16

CODERS: dict[str, Callable[[Block, Rule], Change]] = {
    "bmp": Block.code,
    "greedy": Block.code,
    "exact": Block.code_exactly,
}


def chosen_coder(coder: str) -> str:
    """The coder that is meant: "auto" is the paper's."""
    return "bmp" if coder == "auto" else coder


def coding_rule(coder: str, algebra: str, max_atoms: int | None = None, residual_limit: int = 0) -> Rule:
    """What the coder of this name toggles, and the limits of Algorithm 3."""
    return Rule(
        covers=covering(algebra),
        by_ratio=coder == "bmp",
        max_atoms=NO_LIMIT if max_atoms is None else max_atoms,
        residual_limit=residual_limit,
    )
