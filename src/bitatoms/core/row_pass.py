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
from .coding import CODERS, code, code_and_repair
from .complete import complete_atoms, hash_rows
from .counts import Counts
from .remembered import code_from_nearest


@dataclass(frozen=True, eq=False)
class PassSpec:
    """What a pass does: code the rows with these atoms, and count.

    ``kept`` are the indices of the atoms among those of the pass before, whose codes the rows start from; None where
    rows are coded from scratch. ``coder`` is a name of CODERS, or "mend" for `code_and_repair`. Rows that are coded
    from scratch also start from the nearest of the ``remembered`` codes, if the rule has prices.
    """

    atoms: BitMatrix
    bias: BitMatrix
    coder: str
    rule: Rule
    kept: NDArray[np.intp] | None = None
    remembered: BitMatrix | None = None


def run_pass(data: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers) -> tuple[BitMatrix, Counts]:
    """Run a pass on rows with the codes of the pass before, and return their new codes and the counts."""
    if spec.kept is None or codes is None:
        codes = None
    elif len(spec.kept) != codes.n_cols or (np.diff(spec.kept) != 1).any():
        codes = codes.T[spec.kept].T
    block = coded_block(data, codes, spec, workers)
    after = block.codes()
    before = np.zeros_like(after.words) if codes is None else codes.words
    return after, count(block, data, int(np.bitwise_count(before ^ after.words).sum()))


def count(block: Block, data: BitMatrix, codes_changed: int = 0) -> Counts:
    """Return the counts of coded rows; ``data`` is that of the block."""
    p, m = block.n_atoms, block.n_features
    free, bad = block.votes(0, p) if p else (np.zeros((0, m), np.int64),) * 2
    return Counts(
        n_rows=len(data),
        known=np.broadcast_to(data.n_known, m).astype(np.int64),
        uses=block.uses(),
        wrong=block.wrong(),
        free=free.astype(np.int64),
        bad=bad.astype(np.int64),
        pairs=block.pairs().astype(np.int64),
        ones=data.column_weights(),
        missed=block.missed(data),
        codes_changed=codes_changed,
        complete=complete_atoms(data, block.atoms(), block.workers, block.bias).column_weights(),
        rows_hash=hash_rows(data),
    )


def coded_block(data: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers) -> Block:
    """Return rows coded by a pass, starting from their codes or from scratch."""
    block = Block(data, spec.atoms, codes, spec.rule.covers, workers, spec.bias)
    prices = spec.rule.prices
    if prices is not None:  # numba would compile the kernels again for read-only arrays
        prices = Prices(prices.bits.copy(), prices.uses.copy())
    rule = spec.rule._replace(prices=prices)
    if codes is None and spec.remembered is not None and prices is not None:
        code(block, rule)
        code_from_nearest(block, rule, spec.remembered)
    coder = code_and_repair if spec.coder == "mend" else CODERS[spec.coder]
    coder(block, rule)
    return block
