"""A pass over rows: what it does (`PassSpec`), and the function that does it to one chunk (`run_pass`).

`run_pass` is what a thread, a reader of a store and a Dask worker all run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.structs import Prices, Rule
from ..parallel import Workers
from .block import Block
from .coding import CODERS, code_and_mend
from .counts import Counts


@dataclass(frozen=True, eq=False)
class PassSpec:
    """What a pass does: code the rows with these atoms, and count.

    ``kept`` are the places that the atoms had among those of the pass before, from whose codes the rows are coded on;
    None where they are coded from nothing. ``coder`` is a name of CODERS, or "mend" (`code_and_mend`).
    """

    atoms: BitMatrix
    bias: BitMatrix
    coder: str
    rule: Rule
    kept: NDArray[np.intp] | None = None


def run_pass(data: BitMatrix, codes: BitMatrix | None, order: PassSpec, workers: Workers) -> tuple[BitMatrix, Counts]:
    """Do what is ordered with some rows and the codes they had; their codes now, and the counts."""
    if order.kept is None or codes is None:
        codes = None
    elif len(order.kept) != codes.n_cols or (np.diff(order.kept) != 1).any():
        codes = codes.T[order.kept].T
    block = coded_block(data, codes, order, workers)
    _, after = block.factors()
    p, m = block.n_atoms, block.n_features
    free, bad = block.votes(0, p) if p else (np.zeros((0, m), np.int64),) * 2
    ones = data.column_weights()
    missed = BitMatrix.from_words(data.words & block.rows.errors, m, check=False).column_weights()
    before = np.zeros_like(after.words) if codes is None else codes.words
    counts = Counts(
        n_rows=len(data),
        uses=block.uses(),
        wrong=block.wrong(),
        free=free.astype(np.int64),
        bad=bad.astype(np.int64),
        pairs=block.pairs().astype(np.int64),
        ones=ones,
        missed=missed,
        codes_changed=int(np.bitwise_count(before ^ after.words).sum()),
    )
    return after, counts


def coded_block(data: BitMatrix, codes: BitMatrix | None, order: PassSpec, workers: Workers) -> Block:
    """Rows coded as ordered, on from the codes they have or from nothing."""
    block = Block(data, order.atoms, codes, order.rule.covers, workers, order.bias)
    prices = order.rule.prices
    if prices is not None:  # own copies: numba compiles a kernel anew for arrays that are read-only
        prices = Prices(prices.bits.copy(), prices.uses.copy())
    coder = code_and_mend if order.coder == "mend" else CODERS[order.coder]
    coder(block, order.rule._replace(prices=prices))
    return block
