"""Codelength of a factorization by the enumerative code of the paper (Sec. IV), from counts of ones.

Where columns have an order, as along chromosomes, atoms are described by stretches: their first and their last column,
and which of the columns between them they have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..sparse_bits import Bits

_MAX_TABLE_ONES = 1 << 16  # the codelengths of up to this many ones are cached
_MAX_CACHED = 1 << 19  # codelengths in the cache; beyond, it is emptied
_MAX_EXACT_LENGTH = 10**6  # up to this length, results are exact
_MAX_EXACT_ONES = 1000  # up to this number of ones, the exact binomial is cheap at any length
_TOLERANCE = 1e-8  # floats closer than this to an integer are recomputed exactly (their error is below 1e-10)

_log2_factorials = [np.zeros(1)]  # the longest list asked for
_tables: dict[int, NDArray[np.int64]] = {}  # for each length, the codelengths of 0, 1, 2, ... ones


@dataclass(frozen=True, slots=True)
class Codelength:
    """Codelength of a factorization in bits, in three parts.

    Attributes
    ----------
    errors : int
        Bits for the errors, one string per column of X.
    codes : int
        Bits for the codes, one string per atom.
    atoms : int
        Bits for the atoms, one string per atom.
    total : int
        The sum, L in the paper. The best model is the one with the smallest total.

    Examples
    --------
    >>> from bitatoms import Codelength
    >>> bits = Codelength(errors=1200, codes=300, atoms=34)
    >>> bits.total
    1534
    >>> print(bits)
    1534 bits (errors 1200 + codes 300 + atoms 34)
    """

    errors: int
    codes: int
    atoms: int

    @property
    def total(self) -> int:
        """The total number of bits."""
        return self.errors + self.codes + self.atoms

    def __str__(self) -> str:
        return f"{self.total} bits (errors {self.errors} + codes {self.codes} + atoms {self.atoms})"


def string_bits(length: int | NDArray[np.int64], ones: ArrayLike) -> NDArray[np.int64]:
    """Return the codelength of binary strings, ⌈log2 n⌉ + ⌈log2 C(n, r)⌉ bits each.

    The first term encodes the number of ones, the second one their positions. This is Eq. 8 of the paper. A string
    of length 0 takes 0 bits. There are n + 1 possible numbers of ones, so ⌈log2(n + 1)⌉ would be exact; the published
    form is kept so that results are comparable with the paper's.

    Parameters
    ----------
    length : int or ndarray of int
        Length n of the strings, or of each of them.
    ones : array-like of int
        Number r of ones in each string, 0 to ``length``.

    Returns
    -------
    ndarray of int64, of the shape of ``ones``

    Notes
    -----
    Exact for lengths up to 10⁶, and within one bit for lengths up to about 10¹⁴. With s = min(r, n − r), Stirling's
    series gives

        ln C(n, r) = s·ln(n/s) − (n − s)·log1p(−s/n) − ½·ln(2π·s·(n − s)/n) + δ(n) − δ(s) − δ(n − s),

    whose terms are no larger than the result, so that the error is a few units in the last place. The usual difference
    of log-gammas subtracts numbers that are log2 n times as large. δ(k), the error of Stirling's formula for ln k!, is
    computed from its series, or from k! for k < 16. Where the float is closer than 10⁻⁸ to an integer, the binomial
    coefficient is computed exactly.

    Examples
    --------
    >>> from bitatoms.engine.codelength import string_bits
    >>> string_bits(8, [0, 1, 4])
    array([ 3,  6, 10])
    """
    counts = np.asarray(ones, np.int64)
    if isinstance(length, np.ndarray):
        first, is_view_of_one = length.item(0) if length.size else -1, not any(length.strides)
        if not is_view_of_one and (first not in _tables or (length != first).any()):
            return _bits(length, counts)  # no table is made for a length that may not occur again
        length = first
    if length > _MAX_TABLE_ONES and counts.max(initial=0) > _MAX_TABLE_ONES:
        return _bits(length, counts)
    return _table(length).take(counts)


def log2_factorials(longest: int) -> NDArray[np.float64]:
    """Return log2 k! for k = 0 to ``longest``.

    With it, log2 C(n, r) = log2 n! - log2 r! - log2 (n - r)! takes three look-ups. For lengths up to 10⁶ it is right
    to about 10⁻⁸ bits.
    """
    if len(_log2_factorials[0]) <= longest:
        k = np.arange(1, longest + 1)
        logs = (k + 0.5) * np.log(k) - k + 0.5 * math.log(2 * math.pi) + _stirling_error(k)
        _log2_factorials[0] = np.append(0.0, logs / math.log(2))
    return _log2_factorials[0][: longest + 1]


def stretch_bits(n_features: int, spans: ArrayLike, ones: ArrayLike) -> NDArray[np.int64]:
    """Return the codelength of atoms by stretches of columns that have an order.

    The first and the last column of an atom take ⌈log2 m⌉ bits each, of m columns. The string between them has two ones
    less than the atom. In an atom without ones, the last column comes before the first.

    Parameters
    ----------
    n_features : int
        Number m of columns.
    spans : array-like of int
        Number of columns from the first to the last one of each atom, as `AtomCode.spans` returns.
    ones : array-like of int
        Number of ones in each atom.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> from bitatoms.engine.codelength import stretch_bits
    >>> stretch_bits(4096, spans=[0, 1, 2, 10], ones=[0, 1, 2, 4])
    array([24, 24, 24, 32])
    """
    between = np.maximum(np.asarray(spans, np.int64) - 2, 0)
    return 2 * _ceil_log2(n_features) + string_bits(between, np.maximum(np.asarray(ones, np.int64) - 2, 0))


@dataclass(frozen=True, eq=False)
class AtomCode:
    """How atoms are described: by strings or, where columns have an order, by stretches.

    Parameters
    ----------
    ranks : ndarray of shape (m,), optional
        The ranks of the columns in their order. Without them, atoms are described by strings.
    n_features : int, optional
        Number of columns of the table, if atoms have a window of them: an atom takes as many bits as in the table.
    """

    ranks: NDArray[np.int64] | None = None
    n_features: int | None = None

    @property
    def by_stretches(self) -> bool:
        """Whether atoms are described by stretches."""
        return self.ranks is not None

    def take_columns(self, columns: NDArray[np.intp]) -> AtomCode:
        """Return the code of atoms with some of the columns."""
        return self if self.ranks is None else replace(self, ranks=self.ranks[columns])

    def ends(self, atoms: Bits) -> NDArray[np.int64]:
        """Return the ranks of the first and of the last column of each atom, of shape (2, p).

        Those of an empty atom are the largest integer and -1. For strings, which need no ends, they are zeros.
        """
        if self.ranks is None:
            return np.zeros((2, atoms.n_rows), np.int64)
        sparse = atoms.to_sparse()
        ordered, has_ones = self.ranks[sparse.indices], np.diff(sparse.indptr) > 0
        ends = np.stack([np.full(atoms.n_rows, np.iinfo(np.int64).max), np.full(atoms.n_rows, -1)])
        if len(ordered):
            starts = sparse.indptr[:-1][has_ones]
            ends[:, has_ones] = np.minimum.reduceat(ordered, starts), np.maximum.reduceat(ordered, starts)
        return ends

    def ends_of_sums(self, ends: NDArray[np.int64], k: int | None = None) -> NDArray[np.int64]:
        """Return the widest ends of sums of two atoms: of atom k with each, or of each with each.

        Where the ends of two atoms cancel, their sum may have others.
        """
        if self.ranks is None:
            return ends
        (first, last), (one_first, one_last) = ends, ends[:, :, np.newaxis] if k is None else ends[:, k]
        return np.stack([np.minimum(one_first, first), np.maximum(one_last, last)])

    def bits(self, n_features: int, ones: ArrayLike, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bits of atoms with this many ones, of this many features, between these ends."""
        m = self.n_features or n_features
        return string_bits(m, ones) if self.ranks is None else stretch_bits(m, _spans(ends), ones)

    def bits_of(self, atoms: Bits) -> NDArray[np.int64]:
        """Return the bits of these atoms."""
        return self.bits(atoms.n_cols, atoms.row_weights(), self.ends(atoms))

    def spans(self, atoms: Bits) -> NDArray[np.int64] | None:
        """Return the number of columns from the first to the last one of each atom, 0 of an empty one; by stretches."""
        return None if self.ranks is None else _spans(self.ends(atoms))

    def codelength(
        self,
        n_rows: int,
        wrong: NDArray[np.int64],
        uses: NDArray[np.int64],
        atoms: Bits,
        bias_weight: int,
        n_known: NDArray[np.int64] | None,
    ) -> Codelength:
        """Return the codelength of a factorization from its counts and its atoms: see `codelength_from_counts`."""
        counts = wrong, uses, atoms.row_weights(), bias_weight, n_known
        return codelength_from_counts(n_rows, self.n_features or len(wrong), *counts, self.spans(atoms))


STRINGS = AtomCode()


def _spans(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of columns from the first to the last one, 0 of an empty atom."""
    first, last = ends
    return np.maximum(0, last - first + 1)


def codelength_from_counts(
    n_rows: int,
    n_features: int,
    wrong: ArrayLike,
    uses: ArrayLike,
    atom_weights: ArrayLike,
    bias_weight: int = 0,
    n_known: NDArray[np.int64] | None = None,
    atom_spans: ArrayLike | None = None,
) -> Codelength:
    """Return the codelength of a factorization (Eq. 9) from its counts.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of X.
    wrong : array-like of shape (n_features,)
        Number of errors in each column.
    uses : array-like of shape (n_atoms,)
        Number of rows that use each atom.
    atom_weights : array-like of shape (n_atoms,)
        Number of ones in each atom.
    bias_weight : int, default=0
        Number of ones in the bias. A non-zero bias is encoded as an atom that all rows use: one string with the atoms,
        and ⌈log2 n_rows⌉ bits with the codes.
    n_known : int or ndarray of shape (n_features,), optional
        Number of rows in which each column is known, ``n_rows`` by default. Unknown cells cost nothing.
    atom_spans : array-like of shape (n_atoms,), optional
        What `AtomCode.spans` returns, where atoms are described by stretches. The bias is a string in any case.

    Returns
    -------
    Codelength

    Examples
    --------
    >>> from bitatoms.engine.codelength import codelength_from_counts
    >>> codelength_from_counts(8, 4, wrong=[0, 0, 1, 0], uses=[4], atom_weights=[2])
    Codelength(errors=15, codes=10, atoms=5)
    """
    errors = int(string_bits(n_rows if n_known is None else n_known, wrong).sum())
    codes = int(string_bits(n_rows, uses).sum())
    if atom_spans is None:
        atoms = int(string_bits(n_features, atom_weights).sum())
    else:
        atoms = int(stretch_bits(n_features, atom_spans, atom_weights).sum())
    if bias_weight:
        codes += _ceil_log2(n_rows)
        atoms += int(string_bits(n_features, bias_weight))
    return Codelength(errors, codes, atoms)


def _ceil_log2(number: int) -> int:
    """Return ⌈log2 number⌉, and 0 for 0."""
    return (number - 1).bit_length() if number else 0


def _table(length: int) -> NDArray[np.int64]:
    """Return the codelengths of strings of this length with 0, 1, 2, ... ones."""
    table = _tables.get(length)
    if table is None:
        table = _bits(length, np.arange(min(length, _MAX_TABLE_ONES) + 1))
        table.flags.writeable = False
        if sum(map(len, list(_tables.values()))) > _MAX_CACHED:
            _tables.clear()
        _tables[length] = table
    return table


def _bits(length: int | NDArray[np.int64], ones: NDArray[np.int64]) -> NDArray[np.int64]:
    """Compute the codelength for each number of ones."""
    few = np.minimum(ones, length - ones)  # C(n, r) = C(n, n - r)
    logs = np.where(few == 0, 0.0, _log2_binomial(np.maximum(length, 2), np.maximum(few, 1)))
    bits = np.array(np.ceil(logs), np.int64)
    near_integer = (
        (few > 0)
        & (np.abs(logs - np.rint(logs)) < _TOLERANCE)
        & ((length <= _MAX_EXACT_LENGTH) | (few <= _MAX_EXACT_ONES))
    )
    lengths = np.broadcast_to(length, few.shape)[near_integer].tolist()
    bits[near_integer] = [_ceil_log2(math.comb(n, r)) for n, r in zip(lengths, few[near_integer].tolist(), strict=True)]
    return bits + np.frexp(np.maximum(length - 1, 0))[1]  # the number of bits of length - 1 is ⌈log2 length⌉


def _log2_binomial(n: int | NDArray[np.int64], few: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log2 C(n, few) for 1 <= few <= n / 2, by Stirling's series."""
    s = few.astype(np.float64)
    logs = s * np.log(n / s) - (n - s) * np.log1p(-s / n) - 0.5 * np.log(2 * math.pi * s * ((n - s) / n))
    logs += _stirling_error(np.asarray(n)) - _stirling_error(few) - _stirling_error(n - few)
    return logs / math.log(2)


def _stirling_error(k: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ln k! − ((k + ½)·ln k − k + ½·ln 2π) for k >= 1."""
    inverse = 1 / k.astype(np.float64)
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return np.where(k < 16, _SMALL_STIRLING_ERRORS[np.minimum(k, 15)], series)


_SMALL_STIRLING_ERRORS = np.array(
    [0.0] + [math.lgamma(k + 1) - ((k + 0.5) * math.log(k) - k + 0.5 * math.log(2 * math.pi)) for k in range(1, 16)]
)
