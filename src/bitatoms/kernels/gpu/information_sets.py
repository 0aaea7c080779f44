"""Codes from information sets on a device: `code_from_columns` of ``kernels/cpu/gf2.py``, for all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..structs import ColumnDraw, RowArrays, Rule
from .device import WARP, Device


def code_from_columns(
    device: Device, rows: RowArrays, targets: Any, rule: Rule, draws: list[ColumnDraw], slack: int
) -> None:
    """Code all rows from the columns of each draw, in order, and keep a code that costs less than the current one.

    ``targets`` are the rows less the bias, on the device; the draws are of the same atoms. Codes with over ``slack``
    more errors than the current one are passed over. ``users`` and ``stale`` are left as they are.
    """
    assert rule.prices is not None
    n, n_words = rows.errors.shape
    n_code_words, rank = rows.codes.shape[1], len(draws[0].pivots)  # the rank is that of the atoms
    tables = (
        [draw.pivots for draw in draws], [draw.reduced.T for draw in draws], [draw.sums.T for draw in draws],
        [draw.products for draw in draws], [draw.codes for draw in draws],
    )  # fmt: skip
    stacked = (device.asarray(np.ascontiguousarray(np.stack(table))) for table in tables)
    device.launch(
        "information_sets.cu", "code_from_columns", n, rows.errors, rows.codes,
        rows.unknown if len(rows.unknown) else None, np.int32(n_words), np.int32(n_code_words), targets,
        device.asarray(rule.prices.bits), device.asarray(rule.prices.uses), np.int64(rule.max_atoms),
        *stacked, np.int32(rank), np.int32(len(draws)), np.int32(slack),
        np.int64(n), shared=8 * (5 * n_words + 2 * n_code_words + 2 * -(-rank // WARP)),
        GAINS=1, COVERS=0, UNKNOWN=int(len(rows.unknown) > 0), PRICED=1, OWN_COSTS=0, BY_RATIO=0, REFUSED=0,
    )  # fmt: skip
