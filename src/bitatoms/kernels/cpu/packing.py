"""Packed rows of bits: counting their ones, turning them over, to and from lists of the columns of ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..jit import kernel, lowest_bit, popcount

_PLANES = 20  # bit-sliced counters hold up to 2**20 - 1 rows before they are emptied into integers
_ROWS_A_FLUSH = (1 << _PLANES) - 16


@kernel
def row_weights(words: NDArray[np.uint64], out: NDArray[np.int64]) -> None:
    """out[i] = number of ones in row i."""
    for i in range(words.shape[0]):
        ones = np.uint64(0)
        for w in range(words.shape[1]):
            ones += popcount(words[i, w])
        out[i] = np.int64(ones)


@kernel
def _carry(left: np.uint64, right: np.uint64, third: np.uint64) -> np.uint64:
    """The carry of the sum of three bits, in every lane; their XOR is the rest of it."""
    return (left & right) | ((left ^ right) & third)


@kernel
def _add_sixteen(words: NDArray[np.uint64], start: int, planes: NDArray[np.uint64]) -> None:
    """Add rows start..start+15 to the bit-sliced counters, by a tree of carry-save adders."""
    one, two, four, eight = planes[0], planes[1], planes[2], planes[3]
    for w in range(words.shape[1]):
        s = one[w]
        x, y = words[start, w], words[start + 1, w]
        two_a = _carry(x, y, s)
        s ^= x ^ y
        x, y = words[start + 2, w], words[start + 3, w]
        two_b = _carry(x, y, s)
        s ^= x ^ y
        t = two[w]
        four_a = _carry(two_a, two_b, t)
        t ^= two_a ^ two_b
        x, y = words[start + 4, w], words[start + 5, w]
        two_a = _carry(x, y, s)
        s ^= x ^ y
        x, y = words[start + 6, w], words[start + 7, w]
        two_b = _carry(x, y, s)
        s ^= x ^ y
        four_b = _carry(two_a, two_b, t)
        t ^= two_a ^ two_b
        f = four[w]
        eight_a = _carry(four_a, four_b, f)
        f ^= four_a ^ four_b
        x, y = words[start + 8, w], words[start + 9, w]
        two_a = _carry(x, y, s)
        s ^= x ^ y
        x, y = words[start + 10, w], words[start + 11, w]
        two_b = _carry(x, y, s)
        s ^= x ^ y
        four_a = _carry(two_a, two_b, t)
        t ^= two_a ^ two_b
        x, y = words[start + 12, w], words[start + 13, w]
        two_a = _carry(x, y, s)
        s ^= x ^ y
        x, y = words[start + 14, w], words[start + 15, w]
        two_b = _carry(x, y, s)
        one[w] = s ^ x ^ y
        four_b = _carry(two_a, two_b, t)
        two[w] = t ^ two_a ^ two_b
        eight_b = _carry(four_a, four_b, f)
        four[w] = f ^ four_a ^ four_b
        e = eight[w]
        carry = _carry(eight_a, eight_b, e)
        eight[w] = e ^ eight_a ^ eight_b
        _ripple(planes, 4, w, carry)


@kernel
def _ripple(planes: NDArray[np.uint64], plane: int, w: int, carry: np.uint64) -> None:
    """Add one bit in every lane of word w, from the given plane upwards."""
    while carry != np.uint64(0):
        held = planes[plane, w]
        planes[plane, w] = held ^ carry
        carry &= held
        plane += 1


@kernel
def _empty_counters(planes: NDArray[np.uint64], n_cols: int, out: NDArray[np.int64]) -> None:
    """out[i] += the counter of column i; the counters start again at zero."""
    for i in range(n_cols):
        count = np.int64(0)
        for plane in range(planes.shape[0]):
            bit = (planes[plane, i >> 6] >> np.uint64(i & 63)) & np.uint64(1)
            count += np.int64(bit) << np.int64(plane)
        out[i] += count
    planes[:] = np.uint64(0)


@kernel
def column_weights(words: NDArray[np.uint64], n_cols: int, out: NDArray[np.int64]) -> None:
    """out[i] = number of rows in which bit i is one."""
    n_rows, n_words = words.shape
    planes = np.zeros((_PLANES, n_words), np.uint64)
    out[:] = 0
    start = 0
    while start < n_rows:
        stop = min(n_rows, start + _ROWS_A_FLUSH)
        while start + 16 <= stop:
            _add_sixteen(words, start, planes)
            start += 16
        while start < stop:
            for w in range(n_words):
                _ripple(planes, 0, w, words[start, w])
            start += 1
        _empty_counters(planes, n_cols, out)


@kernel
def _swap(block: NDArray[np.uint64], distance: int, low: np.uint64) -> None:
    """Exchange the off-diagonal squares of side ``distance`` in a 64 x 64 block of bits."""
    shift = np.uint64(distance)
    for base in range(0, 64, 2 * distance):
        for k in range(base, base + distance):
            moved = ((block[k] >> shift) ^ block[k + distance]) & low
            block[k] ^= moved << shift
            block[k + distance] ^= moved


@kernel
def transpose(words: NDArray[np.uint64], n_rows: int, n_cols: int, out: NDArray[np.uint64]) -> None:
    """Bit j of row i of out = bit i of row j of words, by 64 x 64 blocks."""
    block = np.empty(64, np.uint64)
    n_row_blocks = (n_rows + 63) >> 6
    for first in range(0, n_row_blocks, 8):  # eight blocks fill one cache line of every row of out
        for w in range(words.shape[1]):
            height = min(64, n_cols - 64 * w)
            for b in range(first, min(first + 8, n_row_blocks)):
                width = min(64, n_rows - 64 * b)
                for k in range(width):
                    block[k] = words[64 * b + k, w]
                for k in range(width, 64):
                    block[k] = np.uint64(0)
                _swap(block, 32, np.uint64(0x00000000FFFFFFFF))
                _swap(block, 16, np.uint64(0x0000FFFF0000FFFF))
                _swap(block, 8, np.uint64(0x00FF00FF00FF00FF))
                _swap(block, 4, np.uint64(0x0F0F0F0F0F0F0F0F))
                _swap(block, 2, np.uint64(0x3333333333333333))
                _swap(block, 1, np.uint64(0x5555555555555555))
                for k in range(height):
                    out[64 * w + k, b] = block[k]


@kernel
def flip_sparse(indptr: NDArray[np.integer], indices: NDArray[np.integer], out: NDArray[np.uint64]) -> None:
    """Flip bits indices[indptr[i]:indptr[i + 1]] of row i of out, each named once."""
    for i in range(out.shape[0]):
        for place in range(indptr[i], indptr[i + 1]):
            column = np.int64(indices[place])
            out[i, column >> 6] ^= np.uint64(1) << np.uint64(column & 63)


@kernel
def list_columns(words: NDArray[np.uint64], indices: NDArray[np.integer]) -> None:
    """indices = the columns of the ones, row after row, in rising order."""
    place = 0
    for i in range(words.shape[0]):
        for w in range(words.shape[1]):
            word = words[i, w]
            while word != np.uint64(0):
                indices[place] = 64 * w + lowest_bit(word)
                place += 1
                word &= word - np.uint64(1)
