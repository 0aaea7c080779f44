"""Remembered codes: codes of the rows learned from that are hard to find, which new rows start from.

Under XOR, toggling one atom at a time from scratch often gets stuck, and so does a beam. Learning leads rows to better
codes step by step. A new row is likely to need a code that is, or is close to, that of a similar row.
"""

from __future__ import annotations

import numpy as np

from ..bits import BitMatrix
from ..kernels.structs import Rule
from .block import Block, Change, lanes_of, reconstruct
from .coding import code, keep_cheaper

_MAX_REMEMBERED, _MIN_REMEMBERED = 4096, 16
_MAX_BITS = 1 << 21  # fewer are remembered where their products would have more bits
_MIN_ATOMS = 2  # one toggle leads to a code of one atom
_MAX_COST = 1 << 30  # of the atoms of a code, if the prices are absurd


def max_remembered(n_features: int) -> int:
    """Return the largest number of codes to remember."""
    return max(_MIN_REMEMBERED, min(_MAX_REMEMBERED, _MAX_BITS // max(1, n_features)))


def hard_codes(block: Block, rule: Rule) -> BitMatrix | None:
    """Return `frequent_codes` of the rows of a block in which coding from scratch ends at a higher cost.

    None if there is no such row. Where missed and added ones have prices of their own, under OR, none are needed.
    """
    assert rule.prices is not None
    if rule.prices.own_costs():
        return None
    fresh = Block(block.data(), block.atoms(), None, block.covers, block.workers, block.bias)
    code(fresh, rule)
    hard = np.flatnonzero(fresh.row_costs(rule.prices) > block.row_costs(rule.prices))
    codes = frequent_codes(block.codes()[hard], block.n_features)
    return codes if len(codes) else None


def frequent_codes(codes: BitMatrix, n_features: int) -> BitMatrix:
    """Return different codes of at least two atoms, the most frequent first, at most `max_remembered`.

    Of codes that are as frequent as each other, the lowest as binary numbers come first. Where there are too many,
    those returned lie evenly spaced in this order. The result does not depend on the order of the rows.
    """
    limit = max_remembered(n_features)
    several = codes.words[codes.row_weights() >= _MIN_ATOMS]
    distinct, counts = np.unique(several, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    if len(order) > limit:
        least = counts[order[limit - 1]]
        certain, tied = order[counts[order] > least], order[counts[order] == least]
        n_left = limit - len(certain)
        order = np.concatenate([certain, tied[np.arange(n_left) * len(tied) // n_left]])
    return BitMatrix.from_words(distinct[order], codes.n_cols, check=False)


def code_from_nearest(block: Block, rule: Rule, remembered: BitMatrix) -> Change:
    """Code each row from the nearest of the remembered codes, and keep the new code where it costs less."""

    def code_again(other: Block) -> None:
        start_from_nearest(other, rule, remembered)
        code(other, rule)

    assert rule.prices is not None
    if not len(remembered) or rule.prices.own_costs():
        return Change()
    return keep_cheaper(block, rule, code_again)


def start_from_nearest(block: Block, rule: Rule, remembered: BitMatrix) -> None:
    """Give each row, none of which uses an atom, the remembered code that costs least, where that costs less than none.

    A code costs its atoms and the errors that it leaves in known cells, at the prices of the rule. Of codes that cost
    the same, the first is taken. Codes with more atoms than the rule allows are ignored.
    """
    remembered = remembered[np.flatnonzero(remembered.row_weights() <= rule.max_atoms)]
    if not len(remembered) or not block.n_rows:
        return
    assert rule.prices is not None
    no_bias, algebra = np.zeros(block.n_features, np.uint8), "or" if block.covers else "xor"
    products = reconstruct(remembered, block.atoms(), no_bias, algebra)
    uses, use_prices = np.zeros(lanes_of(len(remembered)), np.int32), rule.prices.uses[: block.n_atoms]
    uses[: len(remembered)] = np.minimum(remembered.to_dense() @ use_prices.astype(np.int64), _MAX_COST)
    kernels, rows = block.kernels, block._read_rows
    found = kernels.nearest(products, rule, uses)
    some = kernels.xp.flatnonzero(found >= 0)
    errors = rows.errors[some] ^ kernels.asarray(products.words)[found[some]]
    if len(rows.unknown):
        errors &= ~rows.unknown[some]
    kernels.restore_rows(some, kernels.asarray(remembered.words)[found[some]], errors)
    block.mark_stale()
