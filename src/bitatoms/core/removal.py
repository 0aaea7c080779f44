"""Code the users of an atom without it, and undo that: how a search tries to drop an atom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..kernels.cpu import coding
from ..kernels.structs import Rule, coding_scratch
from ..parallel import MAX_CHUNK_NS
from .block import Block
from .coding import code_cost, priced

_FORBIDDEN = 1 << 27  # a price at which no row uses an atom
_FIRST_ROWS = 32  # after these rows it may be clear that a removal does not pay


class AtomRemoval:
    """Try to remove atoms from the codes of a block, one at a time.

    Parameters
    ----------
    block : Block
        Call its `mark_stale` after the last removal.
    rule : Rule
        How rows are coded, with prices. The prices of uses are changed here: rows cannot use a removed atom again.

    Attributes
    ----------
    more_wrong, more_uses : ndarray of int64
        By how much the rows coded so far changed the errors per feature and the uses per atom.
    """

    def __init__(self, block: Block, rule: Rule) -> None:
        assert rule.prices is not None
        self.block = block
        self.rule = rule._replace(residual_limit=-1)  # every row must do without the atom
        self.prices = rule.prices
        self.tables = priced(block, block._atoms, rule.prices)
        self.scratch = coding_scratch(block._rows, self.tables)
        self._rows_per_call = 1 + int(MAX_CHUNK_NS / code_cost(block))
        self._codes, self._errors = np.empty_like(block._rows.codes), np.empty_like(block._rows.errors)

    def recode_users(self, k: int) -> Iterator[None]:
        """Code the users of atom k without it, in two chunks; a caller may stop after the first and `undo`."""
        block = self.block
        self._atom, self._price = k, self.prices.uses[k]
        self.prices.uses[k] = _FORBIDDEN
        users = np.unpackbits(block._rows.users[k].view(np.uint8), count=block.n_rows, bitorder="little")
        rows = np.flatnonzero(users)
        self.more_wrong = np.zeros(block.n_features, np.int64)
        self.more_uses = np.zeros(block.n_atoms, np.int64)
        for chunk in (slice(0, _FIRST_ROWS), slice(_FIRST_ROWS, len(rows))):
            self._recoded = rows[: chunk.stop]
            for start in range(chunk.start, min(chunk.stop, len(rows)), self._rows_per_call):
                block.workers.check_deadline()
                few = slice(start, min(start + self._rows_per_call, chunk.stop))
                coding.code_at_prices(
                    block._rows, self.tables, self.rule, rows[few], False, self._codes[few], self._errors[few],
                    self.more_wrong, self.more_uses, self.scratch,
                )  # fmt: skip
            yield
            if len(self._recoded) == len(rows):
                break

    def undo(self) -> None:
        """Restore the rows coded since `recode_users` began, and the price of the atom."""
        self.prices.uses[self._atom] = self._price
        before = self._codes, self._errors
        coding.restore_rows(self.block._rows, self.tables.words, self._recoded, *before, self.block.covers)
