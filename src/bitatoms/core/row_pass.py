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
from ..sparse_bits import SparseBits
from .block import Block
from .coding import CODERS, code, code_and_repair
from .complete import complete_atoms, hash_rows
from .counts import Counts
from .members import count_members
from .remembered import code_from_nearest
from .voted_bits import cells_of

_VOTES_AT_A_TIME = 1 << 18


@dataclass(frozen=True, eq=False)
class PassSpec:
    """What a pass does: code the rows with these atoms, and count.

    ``kept`` are the indices of the atoms among those of the pass before, whose codes the rows start from; None where
    rows are coded from scratch. ``coder`` is a name of CODERS, or "mend" for `code_and_repair`. Rows that are coded
    from scratch also start from the nearest of the ``remembered`` codes, if the rule has prices. ``voted`` are the bits
    of the atoms on which votes are counted, None for all.
    """

    atoms: BitMatrix
    bias: BitMatrix
    coder: str
    rule: Rule
    kept: NDArray[np.intp] | None = None
    remembered: BitMatrix | None = None
    voted: SparseBits | None = None

    @property
    def n_listed(self) -> int | None:
        """The number of bits of the atoms that have votes, None if all have."""
        return None if self.voted is None else self.voted.count()


def run_pass(data: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers) -> tuple[BitMatrix, Counts]:
    """Run a pass on rows with the codes of the pass before, and return their new codes and the counts."""
    if spec.kept is None or codes is None:
        codes = None
    elif len(spec.kept) != codes.n_cols or (np.diff(spec.kept) != 1).any():
        codes = codes.T[spec.kept].T
    block = coded_block(data, codes, spec, workers)
    after = block.codes()
    before = np.zeros_like(after.words) if codes is None else codes.words
    return after, count(block, data, int(np.bitwise_count(before ^ after.words).sum()), spec.voted)


def count(block: Block, data: BitMatrix, codes_changed: int = 0, voted: SparseBits | None = None) -> Counts:
    """Return the counts of coded rows; ``data`` is that of the block."""
    m = block.n_features
    free, bad, pairs = _all_votes(block) if voted is None else _listed_votes(block, voted)
    return Counts(
        n_rows=len(data),
        known=np.broadcast_to(data.n_known, m).astype(np.int64),
        uses=block.uses(),
        wrong=block.wrong(),
        free=free,
        bad=bad,
        pairs=pairs,
        ones=data.column_weights(),
        missed=block.missed(data),
        codes_changed=codes_changed,
        complete=complete_atoms(data, block.atoms(), block.workers, block.bias).column_weights(),
        rows_hash=hash_rows(data),
        **count_members(data, block.atoms(), block.workers, block.bias)._asdict(),
        voted=voted,
    )


def _all_votes(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the votes on all bits of the atoms, free and bad, and how many rows use both of two atoms."""
    p, m = block.n_atoms, block.n_features
    free, bad = block.votes(0, p) if p else (np.zeros((0, m), np.int64),) * 2
    return free.astype(np.int64), bad.astype(np.int64), block.pairs().astype(np.int64)


def _listed_votes(block: Block, voted: SparseBits) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return the votes on some bits, counted on all bits of a few atoms at a time, and no pairs."""
    free, bad = np.empty((2, voted.count()), np.int32)
    step = max(1, _VOTES_AT_A_TIME // block.n_features)
    for first in range(0, block.n_atoms, step):
        last = min(first + step, block.n_atoms)
        listed, cells = cells_of(voted, first, last)
        some_free, some_bad = block.votes(first, last)
        free[listed], bad[listed] = some_free[cells], some_bad[cells]
    return free, bad, np.zeros((0, 0), np.int64)


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
