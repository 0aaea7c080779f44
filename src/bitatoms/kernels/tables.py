"""What the kernels read and write: plain named tuples of arrays, the same on every device."""

from __future__ import annotations

from typing import Any, NamedTuple


class Rows(NamedTuple):
    """The samples while they are learned from; rows of bits are packed, 64 to a word.

    Always true: ``errors`` is the data minus the product of codes and atoms in the algebra, and a row that is not
    ``stale`` is one that its coder would leave as it is.
    """

    errors: Any  # (n, words): the wrong bits of each row
    codes: Any  # (n, code words): the atoms each row uses
    users: Any  # (p, row words): the rows that use each atom, ``codes`` transposed
    covered: Any  # (n, words) under OR: bits that some used atom has; no rows under XOR
    twice: Any  # (n, words) under OR: bits that two or more used atoms have; no rows under XOR
    stale: Any  # (n,) uint8: 1 for a row that must be coded again


class Atoms(NamedTuple):
    """The dictionary and what coding derives from it; lanes are atoms, padded to a multiple of 16."""

    words: Any  # (p, words): the atoms
    weights: Any  # (lanes,) int32: number of ones of each atom
    losses: Any  # (lanes,): the same, negative, in the type that gains are computed in
    slices: Any  # (bytes, lanes) uint8: byte b of every atom side by side
    overlaps: Any  # (p, lanes): ones shared by two atoms, in the type that gains are computed in, doubled under XOR
    stale: Any  # (p,) uint8: 1 for an atom whose users must be asked again


class Rule(NamedTuple):
    """How a row is coded."""

    covers: bool  # the algebra is OR
    by_ratio: bool  # BMP's association accuracy instead of the plain gain
    max_atoms: int  # a row that uses so many atoms may only drop atoms
    residual_limit: int  # a row with so few wrong bits is left alone
