"""Beam coding on a device: `beam_rows` of ``kernels/cpu/beam.py``, for the stale rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..structs import RowArrays, Rule
from .coding import AtomTables, macros_of
from .device import WARP, Device, warps_per_block

_MAX_WARPS = 1 << 14  # at work at a time: as many as the largest devices run
_WORK_BYTES = 1 << 30  # for the partial codes of all warps, at most
_ROWS_PER_LAUNCH = 1 << 19
_MAX_NARROW = 1 << 30  # scores up to this are computed with 32 bits
_ENTRIES = (1, 2, 4, 8)  # candidates per thread for which kernels are compiled


def beam_rows(
    device: Device, rows: RowArrays, atoms: AtomTables, rule: Rule, fingerprints: Any, width: int, patience: int
) -> tuple[int, int]:
    """Beam-code the stale rows under XOR, and keep a new code where it costs less than the current one.

    ``fingerprints`` are those of the atoms. A row is done after ``patience`` levels without a better code. Return the
    numbers of changed code and error bits. ``users`` and ``stale`` are left as they are.
    """
    xp, prices = device.xp, atoms.prices
    assert prices is not None
    n_words, n_code_words = rows.errors.shape[1], rows.codes.shape[1]
    indices = xp.flatnonzero(rows.stale)
    changes = xp.zeros(2, np.uint64)
    shared = 8 * (4 * n_words + 2 * n_code_words + 2 * width + (width + 1) // 2)
    n_work = 2 * width * (WARP // 2 * atoms.gains + n_words + n_code_words)
    n_warps = _n_warps(len(indices), 8 * n_work, device.free_bytes(), warps_per_block(shared))
    work = xp.empty(n_warps * n_work, np.uint64)
    for start in range(0, len(indices), _ROWS_PER_LAUNCH):
        some = indices[start : start + _ROWS_PER_LAUNCH]
        device.launch(
            "beam.cu", "beam_rows", n_warps, rows.errors, rows.codes, rows.unknown if len(rows.unknown) else None,
            np.int32(n_words), np.int32(n_code_words), atoms.words, atoms.weights, atoms.overlaps, atoms.columns,
            np.int32(atoms.n_atoms), prices.bits, prices.uses, np.int64(rule.max_atoms),
            np.int64(rule.residual_limit), some, np.int64(len(some)), fingerprints, np.int32(width),
            np.int32(patience), work, changes,
            shared=shared, **macros_of(rows, atoms, rule), ENTRIES=_entries(width),
            WIDE_SCORES=int(_largest_score(rule) > _MAX_NARROW),
        )  # fmt: skip
        device.to_host(changes)  # wait: Ctrl-C takes effect between launches
    codes, errors = device.to_host(changes).tolist()
    return codes, errors


def _n_warps(n_rows: int, bytes_per_warp: int, free_bytes: int, per_block: int) -> int:
    """Return how many warps to start: a multiple of those in a block, each with its work memory."""
    n_fitting = min(_WORK_BYTES, free_bytes // 4) // bytes_per_warp
    n_blocks = -(-min(n_rows, n_fitting, _MAX_WARPS) // per_block)
    return per_block * (max(1, n_blocks) if n_rows else 0)


def _largest_score(rule: Rule) -> int:
    """Return the most that codes of a row can differ in cost."""
    assert rule.prices is not None
    return int(rule.prices.bits.sum(dtype=np.int64)) + int(rule.prices.uses.sum(dtype=np.int64))


def _entries(width: int) -> int:
    """Return the number of candidates per thread: one of few, so that few variants of the kernel are compiled."""
    needed = -(-width // WARP)
    return next((variant for variant in _ENTRIES if variant >= needed), -(-needed // 8) * 8)
