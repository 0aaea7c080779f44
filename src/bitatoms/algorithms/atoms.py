"""Codes and errors to better atoms.

``"mob"``, the Method of Binary Directions (Section III-B): an atom is the majority vote of the rows that use it, with
the atom put back. ``"k-prox"`` (Section III-C): an atom and its rows together, by Proximus on the errors with the
atom put back, its rows chosen among all. ``"exact"``: every feature takes the best of all columns; for few atoms.
One atom at a time, in index order, errors refreshed; a tie gives 0; an atom that no row uses stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from ..kernels.tables import Rule
from .block import Block, Change

UPDATES: dict[str, Callable[[Block, Rule], Change]] = {
    "mob": lambda block, rule: block.update(),
    "k-prox": lambda block, rule: block.fit(rule),
    "exact": lambda block, rule: block.update_exactly(),
}
