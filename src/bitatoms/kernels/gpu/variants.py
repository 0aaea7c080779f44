"""The kernels that common calls launch on a device, and the macros that they are compiled with.

The list only saves time: a kernel that it lacks is compiled when it is first launched.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from .coding import macros

# By the number of atoms per thread, for up to 256 atoms: the candidates per thread of the beams that may be used.
_ENTRIES = {1: (1, 8), 2: (1, 4, 8), 4: (1, 2, 4), 8: (1,)}
_WITH_PRICES = ("code_rows", "code_without", "offer_atoms", "price_rows")
_WITHOUT_PRICES = ("code_rows", "rate_atoms")
_BY_ALGEBRA = ("multiply", "follow_flips", "find_improvable")
_PLAIN = ("transpose", "row_weights", "count_differences", "unpack")
_FLAGS = (0, 1)


class KernelVariant(NamedTuple):
    """A kernel of a source file, and the macros that it is compiled with, sorted by name."""

    file: str
    kernel: str
    macros: tuple[tuple[str, int], ...]


def common_variants() -> list[KernelVariant]:
    """Return the kernels of fits by codelength and with a given number of atoms, and of new rows.

    In both algebras, with and without unknown cells, for up to 256 atoms.
    """
    found = [_variant("rows.cu", kernel, COVERS=0, UNKNOWN=0) for kernel in _PLAIN]
    for unknown in _FLAGS:
        found.append(_coding("code_from_columns", 0, unknown, True, file="information_sets.cu"))
        for gains, widths in _ENTRIES.items():
            found.append(_coding("find_nearest", 0, unknown, True, gains))
            found += [
                _coding("beam_rows", 0, unknown, True, gains, file="beam.cu", ENTRIES=entries, WIDE_SCORES=0)
                for entries in widths
            ]
    for covers, unknown in product(_FLAGS, _FLAGS):
        found += [_variant("rows.cu", kernel, COVERS=covers, UNKNOWN=unknown) for kernel in _BY_ALGEBRA]
        found.append(_coding("code_rows_exactly", covers, unknown, False, file="exact.cu"))
        for gains in _ENTRIES:
            found += [_coding(kernel, covers, unknown, True, gains) for kernel in _WITH_PRICES]
            found += [_coding(kernel, covers, unknown, False, gains) for kernel in _WITHOUT_PRICES]
    return found


def _coding(
    kernel: str, covers: int, unknown: int, priced: bool, gains: int = 1, file: str = "coding.cu", **more: int
) -> KernelVariant:
    """Return a kernel that codes rows, with ``gains`` atoms per thread."""
    return _variant(file, kernel, **macros(bool(covers), bool(unknown), priced, gains), **more)


def _variant(file: str, kernel: str, **macros: int) -> KernelVariant:
    return KernelVariant(file, kernel, tuple(sorted(macros.items())))
