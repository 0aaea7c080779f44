"""Counts and gains as matrix products, which are exact: factors are small integers, and sums are below 2**24."""

from __future__ import annotations

from typing import Any

import numpy as np

from .device import WARP, Device

MAX_FACTOR, MAX_SUM = 1 << 11, 1 << 24  # up to which integers are exact in float16, and in float32
_ONE, _TWO = 0x3C00, 0x4000  # as float16


def joint_counts(device: Device, left: Any, n_left: int, right: Any, n_right: int) -> Any:
    """Return how many rows have both bit i of ``left`` and bit j of ``right``: int64 of shape (n_left, n_right)."""
    total = device.xp.zeros((n_left, n_right), np.int64)
    size = min(MAX_SUM, rows_at_a_time(device, n_left + n_right))
    for start in range(0, len(left), size):
        rows = slice(start, start + size)
        factors = unpacked(device, left[rows], n_left), unpacked(device, right[rows], n_right)
        total += device.matmul(*factors, transposed=True)[:n_left, :n_right].astype(np.int64)
    return total


def unpacked(device: Device, words: Any, n_cols: int, fixed: Any = None, doubled: bool = False) -> Any:
    """Return bits as float16, in a multiple of eight columns: 1, or 2 if ``doubled``; 1 where ``fixed`` has a one."""
    n_rows, n_bytes = len(words), -(-n_cols // 8)
    out = device.xp.empty((n_rows, 8 * n_bytes), np.float16)
    shape = np.int64(n_rows), np.int32(words.shape[1]), np.int32(n_bytes), np.int32(_TWO if doubled else _ONE)
    device.launch("rows.cu", "unpack", -(-n_rows * n_bytes // WARP), words, fixed, *shape, out, COVERS=0, UNKNOWN=0)
    return out


def rows_at_a_time(device: Device, n_cols: int) -> int:
    """Return how many rows of numbers of 16 bits, this many in a row, are processed together."""
    return max(64, device.work_bytes // (2 * max(1, n_cols)))
