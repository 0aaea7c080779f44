"""Packed rows on a device: products of codes and atoms, transposes, counts of ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..structs import RowArrays, Rule
from .device import WARP, Device


def multiply(device: Device, codes: Any, atoms: Any, unknown: Any, covers: bool, out: Any) -> None:
    """out ^= the products of codes and atoms, except in unknown cells."""
    _multiply(device, codes, atoms, unknown, covers, out, None, None)


def cover(device: Device, rows: RowArrays, atoms: Any) -> None:
    """Set which bits of rows are covered once and twice, from codes and atoms."""
    _multiply(device, rows.codes, atoms, rows.unknown, True, None, rows.covered, rows.twice)


def _multiply(
    device: Device, codes: Any, atoms: Any, unknown: Any, covers: bool, errors: Any, covered: Any, twice: Any
) -> None:
    n, n_words, n_code_words = len(codes), atoms.shape[1], codes.shape[1]
    macros = {"COVERS": int(covers), "UNKNOWN": int(len(unknown) > 0)}
    shape = np.int64(n), np.int32(n_words), np.int32(n_code_words)
    hidden = unknown if len(unknown) else None
    given = *(device.xp.ascontiguousarray(array) for array in (codes, atoms)), hidden
    device.launch("rows.cu", "multiply", -(-n * n_words // WARP), *given, *shape, errors, covered, twice, **macros)


def follow_flips(device: Device, rows: RowArrays, atoms: Any, flips: Any, flipping: Any, covers: bool) -> int:
    """Update rows after bits of atoms were flipped; return the number of changed error bits."""
    n, n_words = rows.errors.shape
    total = device.xp.zeros(1, np.uint64)
    masks = (rows.covered, rows.twice) if covers else (None, None)
    shape = np.int64(n), np.int32(n_words), np.int32(rows.codes.shape[1])
    device.launch(
        "rows.cu", "follow_flips", -(-n * n_words // WARP), rows.codes, atoms, flips, flipping, _or_none(rows.unknown),
        *shape, rows.errors, *masks, rows.stale, total, **_macros(rows, covers),
    )  # fmt: skip
    return int(total[0])


def restore_rows(device: Device, rows: RowArrays, atoms: Any, indices: Any, codes: Any, errors: Any) -> None:
    """Set the codes of the rows with these indices, and the errors that they have; ``users`` is left as it is."""
    rows.codes[indices], rows.errors[indices] = codes, errors
    if len(rows.covered):
        unknown = rows.unknown[indices] if len(rows.unknown) else rows.unknown
        covered, twice = device.xp.empty_like(errors), device.xp.empty_like(errors)
        _multiply(device, codes, atoms, unknown, True, None, covered, twice)
        rows.covered[indices], rows.twice[indices] = covered, twice


def transposed(device: Device, words: Any, n_cols: int) -> Any:
    """Return the transpose of packed rows of ``n_cols`` bits."""
    n_rows = len(words)
    out = device.xp.zeros((n_cols, -(-n_rows // 64)), np.uint64)
    n_warps = words.shape[1] * out.shape[1]
    given = device.xp.ascontiguousarray(words), np.int64(n_rows), np.int64(n_cols), out
    device.launch("rows.cu", "transpose", n_warps, *given, COVERS=0, UNKNOWN=0)
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


def improvable(device: Device, rows: RowArrays, rule: Rule) -> Any:
    """Return 1 for each row that has an error that one more atom could fix, and may use one more atom."""
    n, n_words = rows.errors.shape
    out = device.xp.empty(n, np.uint8)
    covered = rows.covered if rule.covers else None
    shape = np.int64(n), np.int32(n_words), np.int32(rows.codes.shape[1])
    limits = np.int64(rule.max_atoms), np.int64(rule.residual_limit)
    device.launch(
        "rows.cu", "find_improvable", n, rows.errors, rows.codes, covered, *shape, *limits, out,
        **_macros(rows, bool(rule.covers)),
    )  # fmt: skip
    return out


def packed(device: Device, bits: Any) -> Any:
    """Return an array of truth values as packed rows."""
    n, n_cols = bits.shape
    padded = device.xp.zeros((n, -(-n_cols // 64) * 64), np.bool_)
    padded[:, :n_cols] = bits
    packed_bytes = device.xp.packbits(padded.reshape(-1), bitorder="little")
    return packed_bytes.view(np.uint64).reshape(n, -1)


_NO_MACROS = {"COVERS": 0, "UNKNOWN": 0}


def _macros(rows: RowArrays, covers: bool) -> dict[str, int]:
    return {"COVERS": int(covers), "UNKNOWN": int(len(rows.unknown) > 0)}


def _or_none(array: Any) -> Any:
    return array if len(array) else None
