"""Remove atoms from the codes of a block, and count beforehand what that would change."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.cpu import packing
from ..kernels.structs import Rule
from .block import Block


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
        self.block = block
        # Every row must do without the atom.
        self._kernels = block.kernels.removal(rule._replace(residual_limit=-1))

    def users_of(self, atoms: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Return the rows that use each atom, in an order in which the first ones are from all parts of the block."""
        users = self.block.users(atoms)
        ends = np.append(0, np.cumsum(self.block.uses()[atoms]))
        rows = np.empty(ends[-1], np.intp)
        packing.list_columns_apart(users, ends, np.empty(self.block.n_rows, np.intp), rows)
        return [rows[start:stop] for start, stop in itertools.pairwise(ends.tolist())]

    def changes(self, tested: NDArray[np.intp], rows: list[NDArray[np.intp]]) -> RemovalCounts:
        """Return by how much errors and added ones per feature, and uses per atom, change if rows do without an atom.

        The block is left as it is. ``rows[i]`` are users of atom ``tested[i]``, coded without this atom only. Added
        ones are not counted where they cost what missed ones do.
        """
        indices, tests = np.concatenate(rows), np.repeat(np.arange(len(tested)), [len(each) for each in rows])
        wrong, added, uses = self._kernels.changes(tested, tests, indices)
        return RemovalCounts(wrong, added if len(added) else np.zeros_like(wrong), uses)

    def remove(self, k: int) -> None:
        """Code the users of atom k without it."""
        (rows,) = self.users_of(np.array([k]))
        self._kernels.code_without(k, rows)
