"""What the kernels read and write: plain named tuples of arrays, the same on every device.

The caller allocates; a scratch is room that a kernel needs for itself, one for each call.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

Covers = Literal[True] | None  # whether the algebra is OR; not False, for numba leaves out what is meant for None
PLANES = 48  # bits of a bit-sliced counter: enough to count any number of rows
MOST_PRICE = 255  # of a wrong bit
CHUNK = 64  # words of rows whose users are listed together
_GROUP = 8  # rows that are counted together


def covering(algebra: str) -> Covers:
    """The algebra as kernels take it."""
    return True if algebra == "or" else None


class RowArrays(NamedTuple):
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


class AtomArrays(NamedTuple):
    """The dictionary and what coding derives from it; lanes are atoms, padded to a multiple of 16."""

    words: Any  # (p, words): the atoms
    weights: Any  # (lanes,) int32: number of ones of each atom
    slices: Any  # (bytes, lanes) uint8: byte b of every atom side by side
    overlaps: Any  # (p, lanes): ones shared by two atoms, doubled under XOR; gains are of the same type
    stale: Any  # (p,) uint8: 1 for an atom whose users must be asked again
    changed: Any  # (p,) uint8: 1 for an atom that changed since the rows were last coded


class Prices(NamedTuple):
    """What a wrong bit and the use of an atom cost, in small whole numbers."""

    bits: Any  # (m,) int32, 1 to MOST_PRICE: a wrong bit in each column
    uses: Any  # (lanes,) int32: one use of each atom


class Rule(NamedTuple):
    """How a row is coded."""

    covers: Covers  # the algebra is OR
    by_ratio: bool  # BMP's association accuracy instead of the plain gain
    max_atoms: int  # a row that uses so many atoms may only drop atoms
    residual_limit: int  # a row with so few wrong bits is left alone
    prices: Prices | None = None  # a wrong bit costs 1 and an atom nothing, unless they are given
    swaps: bool = False  # try one atom in place of another where no toggle gains
    typical: float = 0.0  # what a row costs on average; 0: not known


class CodingScratch(NamedTuple):
    """Room for the coding of one row."""

    gains: Any  # (lanes,): what toggling each atom would gain
    trial: Any  # (lanes,): the same with another atom toggled
    bits: Any  # (2, words): the bits that a toggle changed, and some of them
    listed: Any  # (bits,): the bytes of a row that are not zero, or its ones
    code: Any  # (code words,): the code a row had
    errors: Any  # (words,): the errors it had
    touched: Any  # (code words,): the atoms of the rows that changed


class Ways(NamedTuple):
    """Room for the beam of one row: the ways of one level on one side, those of the next on the other; and the chosen,
    of which each leads from a way by one more toggle."""

    gains: Any  # (2, width, lanes): what toggling each atom would gain
    errors: Any  # (2, width, words): the wrong bits
    codes: Any  # (2, width, code words): the atoms used so far
    value: Any  # (2, width): what the toggles gained
    prints: Any  # (2, width): fingerprints of the errors
    score: Any  # (width + 1,): of the chosen, the value
    parent: Any  # (width + 1,): the way it comes from
    atom: Any  # (width + 1,): the atom toggled
    mark: Any  # (width + 1,): the fingerprint


class VoteScratch(NamedTuple):
    """Room for the vote on one atom."""

    wrong: Any  # (planes, words): counters of the users that have each bit wrong
    free: Any  # (planes, words): counters of those that have it free; used under OR
    flips: Any  # (words,): the bits that the vote flips
    who: Any  # (a chunk of rows,): some of the users
    group: Any  # (8, words): the errors of eight users
    open_group: Any  # (8, words): and the bits that they have free
    eight: Any  # (8,): the rows of a group, 0 to 7
    before: Any  # (words,): what a row had
    touched: Any  # (code words,): the atoms of the rows that changed


def coding_scratch(rows: RowArrays, atoms: AtomArrays) -> CodingScratch:
    """Room for coding these rows with these atoms."""
    words, code_words = rows.errors.shape[1], rows.codes.shape[1]
    return CodingScratch(
        gains=np.empty(len(atoms.weights), atoms.overlaps.dtype),
        trial=np.empty(len(atoms.weights), atoms.overlaps.dtype),
        bits=np.empty((2, words), np.uint64),
        listed=np.empty(64 * words + 1, np.int64),
        code=np.empty(code_words, np.uint64),
        errors=np.empty(words, np.uint64),
        touched=np.zeros(code_words, np.uint64),
    )


def beam_room(rows: RowArrays, atoms: AtomArrays, width: int) -> Ways:
    """Room for beam coding of these rows with these atoms."""
    words, code_words, lanes = rows.errors.shape[1], rows.codes.shape[1], len(atoms.weights)
    return Ways(
        gains=np.empty((2, width, lanes), np.int32),
        errors=np.empty((2, width, words), np.uint64),
        codes=np.empty((2, width, code_words), np.uint64),
        value=np.empty((2, width), np.int64),
        prints=np.empty((2, width), np.uint64),
        score=np.empty(width + 1, np.int64),
        parent=np.empty(width + 1, np.int64),
        atom=np.empty(width + 1, np.int64),
        mark=np.empty(width + 1, np.uint64),
    )


def vote_scratch(rows: RowArrays) -> VoteScratch:
    """Room for votes of these rows."""
    words, code_words = rows.errors.shape[1], rows.codes.shape[1]
    return VoteScratch(
        wrong=np.zeros((PLANES, words), np.uint64),
        free=np.zeros((PLANES, words), np.uint64),
        flips=np.empty(words, np.uint64),
        who=np.empty(64 * CHUNK, np.int64),
        group=np.empty((_GROUP, words), np.uint64),
        open_group=np.empty((_GROUP, words), np.uint64),
        eight=np.arange(_GROUP),
        before=np.empty(words, np.uint64),
        touched=np.empty(code_words, np.uint64),
    )
