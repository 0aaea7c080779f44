"""The one of many patterns that is nearest to a row, by the prices of errors."""

from __future__ import annotations

from ..jit import kernel
from .coding import start_gains
from .words import weight


@kernel
def find_nearest(rows, patterns, rule, start, stop, scratch, nearest):
    """nearest[j] = the lowest pattern that, alone, lowers the cost of row j most, or -1, for j in start..stop.

    The rows use no atom. It is -1 where no pattern lowers the cost, and for rows that are not coded.
    """
    gains = scratch.gains
    for j in range(start, stop):
        nearest[j] = -1
        if weight(rows.errors, j) <= rule.residual_limit:
            continue
        start_gains(rows, j, patterns, rule, scratch)
        best = gains.dtype.type(0)
        for k in range(patterns.words.shape[0]):
            if gains[k] > best:
                best = gains[k]
                nearest[j] = k
