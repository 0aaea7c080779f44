"""Exhaustive coding on a device: `code_rows_exactly` of ``kernels/cpu/exact.py``, for the stale rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..structs import RowArrays, Rule
from .device import Device

MAX_ATOMS = 16


def code_rows_exactly(device: Device, rows: RowArrays, atom_words: Any, rule: Rule) -> tuple[int, int]:
    """Set each stale row to the best of all codes; return the numbers of changed code and error bits.

    There are at most `MAX_ATOMS` atoms. Rows are not stale afterwards; ``users`` is left as it is.
    """
    xp, covers, atom_words = device.xp, bool(rule.covers), device.asarray(atom_words)
    (n, n_words), n_atoms = rows.errors.shape, len(atom_words)
    assert n_atoms <= MAX_ATOMS
    half = (n_atoms + 1) // 2
    low, high = _products(xp, atom_words[:half], covers), _products(xp, atom_words[half:], covers)
    within = _products(xp, atom_words[:half], True)[:, -1].copy()
    changes = xp.zeros(2, np.uint64)
    masks = (rows.covered, rows.twice) if covers else (None, None)
    device.launch(
        "exact.cu", "code_rows_exactly", n, rows.errors, rows.codes, *masks,
        rows.unknown if len(rows.unknown) else None, np.int32(n_words), atom_words, np.int32(n_atoms), low, high,
        within, np.int32(low.shape[1]), np.int32(high.shape[1]), np.int64(rule.max_atoms),
        np.int64(rule.residual_limit), rows.stale, np.int64(n), changes, shared=8 * (6 * n_words + 1),
        GAINS=1, COVERS=int(covers), UNKNOWN=int(len(rows.unknown) > 0), PRICED=0, OWN_COSTS=0, BY_RATIO=0, REFUSED=0,
    )  # fmt: skip
    codes, errors = device.to_host(changes).tolist()
    return codes, errors


def _products(xp: Any, atom_words: Any, covers: bool) -> Any:
    """Return the products of all codes and these atoms: (words, codes)."""
    products = xp.zeros((atom_words.shape[1], 1), np.uint64)
    for atom in atom_words:
        rest = products | atom[:, None] if covers else products ^ atom[:, None]
        products = xp.concatenate([products, rest], axis=1)
    return xp.ascontiguousarray(products)
