"""Arguments of kernels: named tuples of arrays.

The caller allocates them. A scratch tuple holds the work arrays of a kernel; concurrent calls need separate ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PLANES = 48  # bits of a bit-sliced counter: enough for any number of rows
MAX_PRICE = 255  # of an error
USER_WORDS = 64  # words of ``users`` whose rows are listed at a time
_GROUP = 8  # rows that are counted at a time
REFUSED = 1 << 27  # a price at which no row uses an atom


class RowArrays(NamedTuple):
    """The state of the samples during learning, as packed bits.

    Invariants: ``errors`` is data ⊕ product of codes and atoms in the algebra, and zero in unknown cells; coding would
    not change a row that is not ``stale``.
    """

    errors: Any  # (n, words): the errors of each row
    codes: Any  # (n, code words): the atoms that each row uses
    users: Any  # (p, row words): the rows that use each atom, ``codes`` transposed
    covered: Any  # (n, words) under OR: bits that at least one used atom covers, or unknown; no rows under XOR
    twice: Any  # (n, words) under OR: bits that at least two used atoms cover, or unknown; no rows under XOR
    unknown: Any  # (n, words): the unknown cells; no rows if all cells are known
    stale: Any  # (n,) uint8: 1 for a row that must be coded again


class AtomArrays(NamedTuple):
    """The atoms and tables derived from them; lanes are atoms, padded to a multiple of 16."""

    words: Any  # (p, words): the atoms
    weights: Any  # (lanes,) int32: number of ones in each atom
    slices: Any  # (bytes, lanes) uint8: byte b of all atoms, contiguous
    overlaps: Any  # (p, lanes): ones shared by two atoms, doubled under XOR; gains have the same dtype
    stale: Any  # (p,) uint8: 1 for an atom that must be updated again
    changed: Any  # (p,) uint8: 1 for an atom that changed since the rows were last coded
    # For coding at prices, if atoms have few of the columns: the atoms that have column i are
    # column_atoms[column_starts[i] : column_starts[i + 1]], and slices has no rows. Otherwise both are empty.
    column_starts: Any = np.empty(0, np.int64)  # (m + 1,)
    column_atoms: Any = np.empty(0, np.int32)


class Prices(NamedTuple):
    """Cost of an error and of the use of an atom, as small integers.

    Where missed and added ones have costs of their own, under OR, ``bits`` are the prices of missed ones, and may be
    larger than MAX_PRICE: kernels then need the atoms listed by column.
    """

    bits: Any  # (m,) int32, 1 to MAX_PRICE: an error in each column
    uses: Any  # (lanes,) int32: one use of each atom
    added: Any = np.empty(0, np.int32)  # (m,): an added one in each column; empty if it costs what a missed one does
    mean: Any = np.empty(0, np.int32)  # (m,): the mean of ``bits`` and ``added``
    forbidden: Any = np.empty(0, np.uint64)  # (words,): the columns in which no one may be added; empty if none

    def own_costs(self) -> bool:
        """Return whether missed and added ones have prices of their own."""
        return len(self.added) > 0


class CodingRule(NamedTuple):
    """How a row is coded."""

    covers: bool  # the algebra is OR
    by_ratio: bool  # BMP's association accuracy instead of the plain gain
    max_atoms: int  # a row that uses this many atoms can only drop atoms
    residual_limit: int  # a row with at most this many errors is not coded
    prices: Prices | None = None  # None: an error costs 1, the use of an atom 0
    swaps: bool = False  # swap one atom for another where no toggle gains
    typical: float = 0.0  # average cost of a row; 0 if unknown
    pursues: bool = False  # matching pursuit: atoms are added by the gains at first, and not dropped; without prices


class CodingScratch(NamedTuple):
    """Work arrays for coding a row."""

    gains: Any  # (lanes,): gain of toggling each atom
    trial: Any  # (lanes,): the same after toggling another atom
    drops: Any  # (lanes,): gain of dropping each atom in use, under OR
    bits: Any  # (2, words): the bits that a toggle changed, and a subset of them
    listed: Any  # (bits,): the non-zero bytes of a row, or its ones
    codes: Any  # (3, code words): codes of the row, such as the previous one; see each kernel
    errors: Any  # (3, words): the errors of the row with these codes
    touched: Any  # (code words,): the atoms used by rows that changed


class BeamScratch(NamedTuple):
    """Work arrays for beam coding a row: the partial codes of two successive levels, and the candidates for the next.

    A candidate adds one atom to a partial code. The levels alternate between index 0 and 1 of the first axis.
    """

    gains: Any  # (2, width, lanes): gain of toggling each atom
    errors: Any  # (2, width, words): the errors
    codes: Any  # (2, width, code words): the atoms used so far
    value: Any  # (2, width): the total gain
    prints: Any  # (2, width): fingerprints of the errors
    score: Any  # (width + 1,): total gain of the candidate
    parent: Any  # (width + 1,): the partial code it extends
    atom: Any  # (width + 1,): the atom it adds
    mark: Any  # (width + 1,): the fingerprint of its errors


class ColumnDraw(NamedTuple):
    """An information set: columns that determine the code of a row, and the atoms reduced to them.

    Reduced atom i is the sum of the atoms in ``sums[i]``, and the only one with a one in column ``pivots[i]``.
    """

    pivots: Any  # (rank,): the columns
    reduced: Any  # (rank, words): the reduced atoms
    sums: Any  # (rank, code words): the atoms that each is the sum of
    products: Any  # (bytes, 256, words): sums of eight reduced atoms at a time, by the byte that selects them
    codes: Any  # (bytes, 256, code words): the same sums of ``sums``


class VoteScratch(NamedTuple):
    """Work arrays for the vote on an atom."""

    wrong: Any  # (planes, words): counters of the users in which each bit is wrong
    free: Any  # (planes, words): counters of the users in which each bit is free; used where not all bits are
    flips: Any  # (1, words): the bits that the vote flips
    users: Any  # (64 * USER_WORDS,): indices of some users
    group: Any  # (8, words): the errors of eight users
    free_group: Any  # (8, words): the free bits of eight users
    before: Any  # (words,): the previous bits of a row
    touched: Any  # (code words,): the atoms used by rows that changed


class RemovalCosts(NamedTuple):
    """What errors and uses of the rows of a block cost: the cost without an atom follows from what changes then."""

    logs: Any  # (n_rows + 1,) float64: log2 of factorials; empty if an error costs 1 and a use nothing
    n_rows: int
    known: Any  # (m,): rows that know each column
    wrong: Any  # (m,): errors in each column
    uses: Any  # (p,): uses of each atom
    missed: Any  # (m,): what a missed one costs beyond its code; empty if nothing
    added: Any  # (m,): what an added one costs beyond its code; empty if nothing
    has_bias: bool  # a column that is mostly wrong costs what one does that is mostly right


class RemovalCounts(NamedTuple):
    """By how much counts change if rows do without an atom."""

    wrong: Any  # (m,): errors of each column
    added: Any  # (m,): the added ones of them; empty where these cost what missed ones do
    uses: Any  # (p,): uses of each atom


class TrialPlan(NamedTuple):
    """How trials of a fixed number of atoms are made."""

    n_trials: int  # in all; the slack falls to zero with the last of them
    max_dropped: int  # atoms that a trial replaces at most
    n_steps: int  # of coding and update, at most
    slack: float  # a trial may be worse by this share of the errors, at first


class ExactScratch(NamedTuple):
    """Data and work arrays for the exhaustive steps of trials."""

    data: Any  # (n, words): the rows, XOR the bias
    columns: Any  # (m, row words): the same transposed
    unknown: Any  # (m, row words): the unknown cells, transposed; no rows if all cells are known
    low: Any  # (words, codes): products of the low atoms
    low_rows: Any  # (codes, words): the same transposed
    high: Any  # (codes, words): products of the high atoms
    distances: Any  # (low codes,): errors of a row with each of them
    scores: Any  # (codes,): of a column; none if no exhaustive steps are taken


def coding_scratch(rows: RowArrays, atoms: AtomArrays) -> CodingScratch:
    """Allocate the work arrays for coding these rows with these atoms."""
    words, code_words = rows.errors.shape[1], rows.codes.shape[1]
    return CodingScratch(
        gains=np.empty(len(atoms.weights), atoms.overlaps.dtype),
        trial=np.empty(len(atoms.weights), atoms.overlaps.dtype),
        drops=np.empty(len(atoms.weights), atoms.overlaps.dtype),
        bits=np.empty((2, words), np.uint64),
        listed=np.empty(64 * words + 1, np.int64),
        codes=np.empty((3, code_words), np.uint64),
        errors=np.empty((3, words), np.uint64),
        touched=np.zeros(code_words, np.uint64),
    )


def beam_scratch(rows: RowArrays, atoms: AtomArrays, width: int) -> BeamScratch:
    """Allocate the work arrays for beam coding these rows with these atoms."""
    words, code_words, lanes = rows.errors.shape[1], rows.codes.shape[1], len(atoms.weights)
    return BeamScratch(
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
    """Allocate the work arrays for votes of these rows."""
    words, code_words = rows.errors.shape[1], rows.codes.shape[1]
    return VoteScratch(
        wrong=np.zeros((PLANES, words), np.uint64),
        free=np.zeros((PLANES, words), np.uint64),
        flips=np.empty((1, words), np.uint64),
        users=np.empty(64 * USER_WORDS, np.int64),
        group=np.empty((_GROUP, words), np.uint64),
        free_group=np.empty((_GROUP, words), np.uint64),
        before=np.empty(words, np.uint64),
        touched=np.empty(code_words, np.uint64),
    )
