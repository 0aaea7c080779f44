"""Plots: functions that take and return matplotlib Axes."""

from .axes import literal_text as literal_text
from .factorization import before_after, codelength_curve, mosaic, row_bits, wrong_bits
from .genome import genome_atoms
from .groups import atom_dots, atom_shares, group_heat_map

__all__ = [
    "atom_dots",
    "atom_shares",
    "before_after",
    "codelength_curve",
    "genome_atoms",
    "group_heat_map",
    "mosaic",
    "row_bits",
    "wrong_bits",
]
