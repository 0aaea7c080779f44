"""Packed rows of bits: counts of ones, transposition, selection of columns, conversion from and to column indices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..jit import inline, kernel
from ..views import view
from .words import NONE, add_eight, add_one, clear, list_ones, next_state, random_bits, read, weight


@kernel
def row_weights(words: NDArray[np.uint64], out: NDArray[np.int64]) -> None:
    """out[i] = number of ones in row i."""
    words, out = view((words, out))
    for i in range(words.shape[0]):
        out[i] = weight(words, i)


@kernel
def column_weights(words: NDArray[np.uint64], planes: NDArray[np.uint64], out: NDArray[np.int64]) -> None:
    """out[i] = number of rows in which bit i is one; ``planes`` is a work array for counters."""
    words, planes, out = view((words, planes, out))
    n_rows = words.shape[0]
    n_planes = clear(planes, n_rows)
    in_groups = n_rows - n_rows % 8
    for i in range(0, in_groups, 8):
        add_eight(words, i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7, planes)
    for i in range(in_groups, n_rows):
        add_one(words, i, planes)
    read(planes, n_planes, out)


@inline
def _swap(block: NDArray[np.uint64], distance: int, low: np.uint64) -> None:
    """Exchange the off-diagonal squares of side ``distance`` in a 64 x 64 block of bits."""
    shift = np.uint64(distance)
    for base in range(0, 64, 2 * distance):
        for k in range(base, base + distance):
            moved = ((block[k] >> shift) ^ block[k + distance]) & low
            block[k] ^= moved << shift
            block[k + distance] ^= moved


@kernel
def transpose(
    words: NDArray[np.uint64], n_rows: int, n_cols: int, block: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:
    """Bit j of row i of out = bit i of row j of words, by 64 x 64 blocks; ``block`` is a work array for one."""
    words, block, out = view((words, block, out))
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
    """Flip bits indices[indptr[i]:indptr[i + 1]] of row i of out; indices of a row are unique."""
    indptr, indices, out = view((indptr, indices, out))
    for i in range(out.shape[0]):
        for entry in range(indptr[i], indptr[i + 1]):
            column = np.int64(indices[entry])
            out[i, column >> 6] ^= np.uint64(1) << np.uint64(column & 63)


@kernel
def hash_rows(words, unknown, n_cols, hashes):
    """hashes[i] = a 64-bit hash of row i. A row without unknown cells has the same in a table that has some."""
    words, unknown, hashes = view((words, unknown, hashes))
    for i in range(words.shape[0]):
        state, any_unknown = np.uint64(n_cols), NONE
        for w in range(words.shape[1]):
            state = random_bits(next_state(state ^ words[i, w]))
        if unknown.shape[0] > 0:
            for w in range(unknown.shape[1]):
                any_unknown |= unknown[i, w]
            if any_unknown != NONE:
                for w in range(unknown.shape[1]):
                    state = random_bits(next_state(state ^ unknown[i, w]))
        hashes[i] = random_bits(next_state(state))


@kernel
def list_columns(words: NDArray[np.uint64], indices: NDArray[np.integer]) -> None:
    """indices = the columns of the ones, row by row, in increasing order."""
    words, indices = view((words, indices))
    count = 0
    for i in range(words.shape[0]):
        count += list_ones(words, i, 0, words.shape[1], indices, count)


@inline
def step_apart(count):
    """Return a step, prime to this number, of which few steps lead to all parts of a list: a golden section."""
    step = int(0.618 * count)
    while step > 1:
        one, other = count, step
        while other > 0:
            one, other = other, one % other
        if one == 1:
            break
        step -= 1
    return max(step, 1)


@kernel
def take_columns(words: NDArray[np.uint64], columns: NDArray[np.int64], out: NDArray[np.uint64]) -> None:
    """Bit j of row i of out = bit columns[j] of row i of words, or zero where columns[j] is negative."""
    words, columns, out = view((words, columns, out))
    for i in range(words.shape[0]):
        for w in range(out.shape[1]):
            word = np.uint64(0)
            for j in range(64 * w, min(64 * w + 64, columns.shape[0])):
                column = columns[j]
                if column >= 0:
                    bit = (words[i, column >> 6] >> np.uint64(column & 63)) & np.uint64(1)
                    word |= bit << np.uint64(j & 63)
            out[i, w] = word
