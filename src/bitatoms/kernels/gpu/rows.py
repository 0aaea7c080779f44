"""Packed rows on a device: products of codes and atoms, transposes, counts of ones.

Counts and gains are matrix products, which are exact: factors are small integers, and sums are below 2**24.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..structs import CodingRule, RowArrays
from .device import WARP, Device

MAX_FACTOR, MAX_SUM = 1 << 11, 1 << 24  # up to which integers are exact in float16, and in float32
_ONE, _TWO = 0x3C00, 0x4000  # as float16
_NO_MACROS = {"COVERS": 0, "UNKNOWN": 0}


def multiply(
    device: Device,
    codes: Any,
    atoms: Any,
    unknown: Any,
    covers: bool,
    out: Any = None,
    covered: Any = None,
    twice: Any = None,
) -> None:
    """out ^= the products of codes and atoms, except in unknown cells; set which bits are covered once and twice."""
    n, n_words, n_code_words = len(codes), atoms.shape[1], codes.shape[1]
    shape = np.int64(n), np.int32(n_words), np.int32(n_code_words)
    given = *(device.xp.ascontiguousarray(array) for array in (codes, atoms)), or_none(unknown)
    results, macros = (out, covered, twice), _macros(unknown, covers)
    device.launch("rows.cu", "multiply", -(-n * n_words // WARP), *given, *shape, *results, **macros)


def follow_flips(device: Device, rows: RowArrays, atoms: Any, flips: Any, flipping: Any, covers: bool) -> int:
    """Update rows after bits of atoms were flipped; return the number of changed error bits."""
    n, n_words = rows.errors.shape
    total = device.xp.zeros(1, np.uint64)
    shape = np.int64(n), np.int32(n_words), np.int32(rows.codes.shape[1])
    device.launch(
        "rows.cu", "follow_flips", -(-n * n_words // WARP), rows.codes, atoms, flips, flipping, or_none(rows.unknown),
        *shape, rows.errors, *masks(rows), rows.stale, total, **_macros(rows.unknown, covers),
    )  # fmt: skip
    return int(total[0])


def restore_rows(device: Device, rows: RowArrays, atoms: Any, indices: Any, codes: Any, errors: Any) -> None:
    """Set the codes of the rows with these indices, and the errors that they have; ``users`` is left as it is."""
    rows.codes[indices], rows.errors[indices] = codes, errors
    if len(rows.covered):
        unknown = rows.unknown[indices] if len(rows.unknown) else rows.unknown
        covered, twice = device.xp.empty_like(errors), device.xp.empty_like(errors)
        multiply(device, codes, atoms, unknown, True, None, covered, twice)
        rows.covered[indices], rows.twice[indices] = covered, twice


def transposed(device: Device, words: Any, n_cols: int) -> Any:
    """Return the transpose of packed rows of ``n_cols`` bits."""
    n_rows = len(words)
    out = device.xp.zeros((n_cols, -(-n_rows // 64)), np.uint64)
    n_warps = words.shape[1] * out.shape[1]
    given = device.xp.ascontiguousarray(words), np.int64(n_rows), np.int64(n_cols), out
    device.launch("rows.cu", "transpose", n_warps, *given, **_NO_MACROS)
    return out


def row_weights(device: Device, words: Any) -> Any:
    """Return the number of ones of each row."""
    out = device.xp.empty(len(words), np.int64)
    shape = np.int64(len(words)), np.int64(words.shape[1])
    device.launch("rows.cu", "row_weights", len(words), device.xp.ascontiguousarray(words), *shape, out, **_NO_MACROS)
    return out


def column_weights(device: Device, words: Any, n_cols: int) -> Any:
    """Return how many rows have each bit."""
    return row_weights(device, transposed(device, words, n_cols))


def count_differences(device: Device, words: Any, others: Any) -> int:
    """Return in how many bits two arrays of words differ."""
    total = device.xp.zeros(1, np.uint64)
    n_warps = -(-words.size // WARP)
    device.launch("rows.cu", "count_differences", n_warps, words, others, np.int64(words.size), total, **_NO_MACROS)
    return int(total[0])


def improvable(device: Device, rows: RowArrays, rule: CodingRule) -> Any:
    """Return 1 for each row that has an error that one more atom could fix, and may use one more atom."""
    n, n_words = rows.errors.shape
    out = device.xp.empty(n, np.uint8)
    covered, _ = masks(rows)
    shape = np.int64(n), np.int32(n_words), np.int32(rows.codes.shape[1])
    limits = np.int64(rule.max_atoms), np.int64(rule.residual_limit)
    device.launch(
        "rows.cu", "find_improvable", n, rows.errors, rows.codes, covered, *shape, *limits, out,
        **_macros(rows.unknown, bool(rule.covers)),
    )  # fmt: skip
    return out


def packed(device: Device, bits: Any) -> Any:
    """Return an array of truth values as packed rows."""
    n, n_cols = bits.shape
    padded = device.xp.zeros((n, -(-n_cols // 64) * 64), np.bool_)
    padded[:, :n_cols] = bits
    packed_bytes = device.xp.packbits(padded.reshape(-1), bitorder="little")
    return packed_bytes.view(np.uint64).reshape(n, -1)


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
    device.launch("rows.cu", "unpack", -(-n_rows * n_bytes // WARP), words, fixed, *shape, out, **_NO_MACROS)
    return out


def rows_at_a_time(device: Device, n_cols: int) -> int:
    """Return how many rows of numbers of 16 bits, this many in a row, are processed together."""
    return max(64, device.work_bytes // (2 * max(1, n_cols)))


def _macros(unknown: Any, covers: bool) -> dict[str, int]:
    return {"COVERS": int(covers), "UNKNOWN": int(len(unknown) > 0)}


def masks(rows: RowArrays) -> tuple[Any, Any]:
    """Return which bits are covered once and twice, as kernels expect it: None under XOR."""
    return or_none(rows.covered), or_none(rows.twice)


def or_none(array: Any) -> Any:
    """Return an array, or None if it has no rows, as kernels expect it."""
    return array if len(array) else None
