"""Remove atoms from the codes of a block, and count beforehand what that would change."""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.cpu import coding, packing
from ..kernels.structs import CodingScratch, Prices, RowArrays, Rule, coding_scratch
from ..parallel import MAX_CHUNK_NS
from .block import Block, read_only
from .coding import code_cost, priced

_FORBIDDEN = 1 << 27  # a price at which no row uses an atom
_GOLDEN = 0.618  # steps of this share of a list visit all its parts


class AtomUsers(NamedTuple):
    """The rows that use each of some atoms, in an order in which the first ones are from all parts of the block."""

    rows: NDArray[np.intp]  # those of one atom after those of another, in increasing order
    starts: NDArray[np.intp]  # (atoms,): where the rows of each atom begin
    counts: NDArray[np.intp]  # (atoms,)
    steps: NDArray[np.intp]  # (atoms,): from one row of an atom to the next one

    def taken(self, atoms: NDArray[np.intp], first: int, last: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the users first..last of each of these atoms, and the index among them of the atom of each user."""
        starts, counts, steps = self.starts[atoms], self.counts[atoms], self.steps[atoms]
        n_taken = np.minimum(counts, last) - np.minimum(counts, first)
        index = np.repeat(np.arange(len(atoms)), n_taken)
        nth = np.arange(len(index)) - (np.cumsum(n_taken) - n_taken - first)[index]
        return self.rows[starts[index] + nth * steps[index] % counts[index]], index


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

    def users_of(self, atoms: NDArray[np.intp]) -> AtomUsers:
        """Return the rows that use each of these atoms."""
        users = self.block._read_rows.users[atoms]
        counts = np.bitwise_count(users).sum(axis=1, dtype=np.intp)
        ends = np.cumsum(counts)
        rows = np.empty(counts.sum(), np.intp)
        packing.list_columns(read_only(users), rows)
        steps = np.array([_golden_step(count) for count in counts.tolist()], np.intp)
        return AtomUsers(rows, ends - counts, counts, steps)

    def changes(
        self, tested: NDArray[np.intp], rows: NDArray[np.intp], tests: NDArray[np.intp]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return by how much the errors per feature and the uses per atom change if rows do without an atom.

        The block is left as it is. ``rows[i]`` is a user of atom ``tested[tests[i]]``, coded without this atom only.
        """
        block, (n_tests, n_features, n_atoms) = self.block, (len(tested), self.block.n_features, self.block.n_atoms)
        more_wrong, more_uses = np.zeros((n_tests, n_features), np.int64), np.zeros((n_tests, n_atoms), np.int64)
        adding = threading.Lock()

        def count(start: int, stop: int) -> None:
            wrong, uses = np.zeros_like(more_wrong), np.zeros_like(more_uses)
            prices, one_row, scratch = self._scratch()
            rule = self.rule._replace(prices=prices)
            coding.code_without(
                block._read_rows, self.tables, rule, _FORBIDDEN, tested, tests, rows, start, stop, one_row, wrong, uses,
                scratch,
            )  # fmt: skip
            with adding:
                np.add(more_wrong, wrong, out=more_wrong)
                np.add(more_uses, uses, out=more_uses)

        block.workers.map_rows(count, len(rows), self._row_cost)
        return more_wrong, more_uses

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
        block, rows = self.block, self.users_of(np.array([k])).rows
        for prices in (self.prices, *(prices for prices, *_ in self._scratches.values())):
            prices.uses[k] = _FORBIDDEN
        _, _, scratch = self._scratch()
        rows_per_call = 1 + int(MAX_CHUNK_NS / self._row_cost)
        for start in range(0, len(rows), rows_per_call):
            block.workers.check_deadline()
            few = rows[start : start + rows_per_call]
            before = np.empty(block._read_rows.codes.shape[1], np.uint64), np.empty(block.n_words, np.uint64)
            coding.code_at_prices(block._rows, self.tables, self.rule, few, False, *before, scratch)


def _golden_step(n: int) -> int:
    """Return a step that visits all of n items in turn, the first ones in all parts of their list."""
    step = int(_GOLDEN * n)
    while math.gcd(step, n) > 1:
        step -= 1
    return max(1, step)


def _one_row(block: Block) -> RowArrays:
    """Return the state of one row, to copy rows of a block to."""
    rows = block._read_rows
    users = np.zeros((block.n_atoms, 1), np.uint64)
    own = RowArrays(*(np.zeros((min(1, len(array)), *array.shape[1:]), array.dtype) for array in rows))
    return own._replace(users=users)
