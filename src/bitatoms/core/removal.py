"""Remove atoms from the codes of a block, and count beforehand what that would change."""

from __future__ import annotations

import itertools
import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.cpu import coding, packing
from ..kernels.structs import CodingScratch, Prices, RowArrays, Rule, coding_scratch
from ..parallel import MAX_CHUNK_NS
from .block import Block
from .coding import code_cost, priced

_REFUSED = 1 << 27  # a price at which no row uses an atom


class RemovalCounts(NamedTuple):
    """By how much counts change if rows do without an atom, one row for each atom."""

    wrong: NDArray[np.int64]  # errors per feature
    added: NDArray[np.int64]  # the added ones of them
    uses: NDArray[np.int64]  # uses per atom


class AtomRemoval:
    """Remove atoms from the codes of a block, one at a time.

    Parameters
    ----------
    block : Block
        Call its `mark_stale` after the last removal.
    rule : Rule
        How rows are coded, with prices. The prices of uses are changed here: rows cannot use a removed atom again.
    """

    def __init__(self, block: Block, rule: Rule) -> None:
        assert rule.prices is not None
        self.block = block
        self.rule = rule._replace(residual_limit=-1)  # every row must do without the atom
        self.prices = rule.prices
        self.tables = priced(block, block._atoms, rule.prices)
        self._row_cost = code_cost(block)
        self._scratches: dict[int, tuple[Prices, RowArrays, CodingScratch]] = {}  # by thread

    def users_of(self, atoms: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Return the rows that use each atom, in an order in which the first ones are from all parts of the block."""
        users = self.block._read_rows.users[atoms]
        ends = np.append(0, np.cumsum(self.block.uses()[atoms]))
        rows = np.empty(ends[-1], np.intp)
        packing.list_columns_apart(users, ends, np.empty(self.block.n_rows, np.intp), rows)
        return [rows[start:stop] for start, stop in itertools.pairwise(ends.tolist())]

    def changes(self, tested: NDArray[np.intp], rows: list[NDArray[np.intp]]) -> RemovalCounts:
        """Return by how much errors and added ones per feature, and uses per atom, change if rows do without an atom.

        The block is left as it is. ``rows[i]`` are users of atom ``tested[i]``, coded without this atom only. Added
        ones are not counted where they cost what missed ones do.
        """
        block, (n_tests, n_features, n_atoms) = self.block, (len(tested), self.block.n_features, self.block.n_atoms)
        indices, tests = np.concatenate(rows), np.repeat(np.arange(n_tests), [len(each) for each in rows])

        adding = threading.Lock()
        totals: list[NDArray[np.int64]] = []
        n_added = n_tests if self.prices.own_costs() else 0

        def count(start: int, stop: int) -> None:
            shapes = (n_tests, n_features), (n_added, n_features), (n_tests, n_atoms)
            wrong, added, uses = counts = tuple(np.zeros(shape, np.int64) for shape in shapes)
            prices, one_row, scratch = self._scratch()
            rule = self.rule._replace(prices=prices)
            coding.code_without(
                block._read_rows, self.tables, rule, _REFUSED, tested, tests, indices, start, stop, one_row, wrong,
                added, uses, scratch,
            )  # fmt: skip
            with adding:
                totals[:] = [own + more for own, more in zip(counts, totals, strict=True)] if totals else counts

        block.workers.map_rows(count, len(indices), self._row_cost)
        wrong, added, uses = totals
        return RemovalCounts(wrong, added if n_added else np.zeros_like(wrong), uses)

    def _scratch(self) -> tuple[Prices, RowArrays, CodingScratch]:
        """Return what a thread needs for itself: prices, which it changes, and work arrays; allocated once."""
        thread = threading.get_ident()
        if thread not in self._scratches:
            prices = self.prices._replace(uses=self.prices.uses.copy())
            scratch = coding_scratch(self.block._read_rows, self.tables)
            self._scratches[thread] = prices, _one_row(self.block), scratch
        return self._scratches[thread]

    def remove(self, k: int) -> None:
        """Code the users of atom k without it."""
        block, (rows,) = self.block, self.users_of(np.array([k]))
        for prices in (self.prices, *(prices for prices, *_ in self._scratches.values())):
            prices.uses[k] = _REFUSED
        _, _, scratch = self._scratch()
        rows_per_call = 1 + int(MAX_CHUNK_NS / self._row_cost)
        for start in range(0, len(rows), rows_per_call):
            block.workers.check_deadline()
            few = rows[start : start + rows_per_call]
            before = np.empty(block._read_rows.codes.shape[1], np.uint64), np.empty(block.n_words, np.uint64)
            coding.code_at_prices(block._rows, self.tables, self.rule, few, False, *before, scratch)


def _one_row(block: Block) -> RowArrays:
    """Return the state of one row, to copy rows of a block to."""
    rows = block._read_rows
    users = np.zeros((block.n_atoms, 1), np.uint64)
    own = RowArrays(*(np.zeros((min(1, len(array)), *array.shape[1:]), array.dtype) for array in rows))
    return own._replace(users=users)
