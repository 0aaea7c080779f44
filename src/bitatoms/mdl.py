"""How many bits a model takes: the paper's enumerative code (Sec. IV), from counts of ones alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

_TABLE = 1 << 16  # strings up to this length get a table of all their codelengths
_EXACT = 10**6  # up to this length every answer is exact
_SHORT = 1000  # with so few ones the exact binomial is cheap at any length
_NEAR = 1e-8  # the floats err by less than 1e-10 up to _EXACT: closer than this to an integer, integers decide


@dataclass(frozen=True, slots=True)
class Codelength:
    """The bits that a factorisation takes, in its three parts.

    Attributes
    ----------
    errors : int
        Bits for the errors, one string for each column of X.
    codes : int
        Bits for the codes, one string for each atom.
    atoms : int
        Bits for the atoms, one string each.
    total : int
        Their sum, L in the paper: the model with the smallest is the best.

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
        """The bits in all."""
        return self.errors + self.codes + self.atoms

    def __str__(self) -> str:
        return f"{self.total} bits (errors {self.errors} + codes {self.codes} + atoms {self.atoms})"


def string_bits(length: int, ones: ArrayLike) -> NDArray[np.int64]:
    """Bits that a string of 0 and 1 takes: ⌈log2 n⌉ for how many ones, and ⌈log2 C(n, r)⌉ for which they are.

    This is Eq. 8 of the paper as printed. A string of length 0 takes 0 bits. (There are n + 1 possible numbers of ones,
    so ⌈log2(n + 1)⌉ would be exact; the printed form is kept so that figures compare with the paper's.)

    Parameters
    ----------
    length : int
        Length n of the strings.
    ones : array-like of int
        Number r of ones in each, 0 to ``length``.

    Returns
    -------
    ndarray of int64, in the shape of ``ones``

    Notes
    -----
    Exact for lengths up to 10⁶; beyond that right to within one bit, up to lengths of about 10¹⁴. With
    s = min(r, n − r), Stirling's series gives

        ln C(n, r) = s·ln(n/s) − (n − s)·log1p(−s/n) − ½·ln(2π·s·(n − s)/n) + δ(n) − δ(s) − δ(n − s),

    whose terms are no larger than the result, so that it errs by a few units in its last place; the usual difference of
    log-gammas subtracts numbers log2 n times as large. δ(k), what Stirling's formula lacks of ln k!, comes from its
    series, or from k! itself for k < 16. Where the float is nearer than 10⁻⁸ to an integer, the binomial is computed.

    Examples
    --------
    >>> from bitatoms.mdl import string_bits
    >>> string_bits(8, [0, 1, 4])
    array([ 3,  6, 10])
    """
    counts = np.asarray(ones, np.int64)
    return _table(length).take(counts) if length <= _TABLE else _bits(length, counts)


def codelength_from_counts(
    n_rows: int,
    n_features: int,
    wrong: ArrayLike,
    uses: ArrayLike,
    atom_weights: ArrayLike,
    bias_weight: int = 0,
) -> Codelength:
    """The codelength of a factorisation (Eq. 9), of which nothing need be known but these counts.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of X.
    wrong : array-like of shape (n_features,)
        Rows in which each bit is wrong.
    uses : array-like of shape (n_atoms,)
        Rows that use each atom.
    atom_weights : array-like of shape (n_atoms,)
        Ones in each atom.
    bias_weight : int, default=0
        Ones in the bias. One that is not zero is an atom that all rows use: it takes its own string with the atoms, and
        ⌈log2 n_rows⌉ with the codes.

    Returns
    -------
    Codelength

    Examples
    --------
    >>> from bitatoms.mdl import codelength_from_counts
    >>> codelength_from_counts(8, 4, wrong=[0, 0, 1, 0], uses=[4], atom_weights=[2])
    Codelength(errors=15, codes=10, atoms=5)
    """
    errors = int(string_bits(n_rows, wrong).sum())
    codes = int(string_bits(n_rows, uses).sum())
    atoms = int(string_bits(n_features, atom_weights).sum())
    if bias_weight:
        codes += _ceil_log2(n_rows)
        atoms += int(string_bits(n_features, bias_weight))
    return Codelength(errors, codes, atoms)


def _ceil_log2(number: int) -> int:
    """⌈log2 number⌉, and 0 for 0."""
    return (number - 1).bit_length() if number else 0


@lru_cache(maxsize=8)
def _table(length: int) -> NDArray[np.int64]:
    """The codelength of a string with 0, 1, ..., length ones."""
    table = _bits(length, np.arange(length + 1))
    table.flags.writeable = False
    return table


def _bits(length: int, ones: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codelength for each number of ones, computed."""
    few = np.minimum(ones, length - ones)  # C(n, r) = C(n, n - r)
    logs = np.where(few == 0, 0.0, _log2_binomial(max(length, 2), np.maximum(few, 1)))
    bits = np.array(np.ceil(logs), np.int64)
    unsure = (few > 0) & (np.abs(logs - np.rint(logs)) < _NEAR) & ((length <= _EXACT) | (few <= _SHORT))
    bits[unsure] = [_ceil_log2(math.comb(length, r)) for r in few[unsure].tolist()]
    return bits + _ceil_log2(length)


def _log2_binomial(n: int, few: NDArray[np.int64]) -> NDArray[np.float64]:
    """log2 C(n, few) for 1 <= few <= n / 2, by Stirling's series."""
    s = few.astype(np.float64)
    logs = s * np.log(n / s) - (n - s) * np.log1p(-s / n) - 0.5 * np.log(2 * math.pi * s * ((n - s) / n))
    logs += _beyond_stirling(np.array([n]))[0] - _beyond_stirling(few) - _beyond_stirling(n - few)
    return logs / math.log(2)


def _beyond_stirling(k: NDArray[np.int64]) -> NDArray[np.float64]:
    """ln k! − ((k + ½)·ln k − k + ½·ln 2π) for k >= 1."""
    inverse = 1 / k.astype(np.float64)
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return np.where(k < 16, _SMALL[np.minimum(k, 15)], series)


_SMALL = np.array(
    [0.0] + [math.lgamma(k + 1) - ((k + 0.5) * math.log(k) - k + 0.5 * math.log(2 * math.pi)) for k in range(1, 16)]
)
