"""Remove atoms from the codes of a block, and count beforehand what that would change.

Drop atoms that cost more than they save: code their users without them, and keep that if the exact cost falls.

During a search the bits of the bias are not counted: the bias may take more columns once an atom is dropped, but those
few bits are no reason to keep the atom. At its end, `drop_useless` counts them. An atom that nearly all rows use, for
one, is as good as a bias: code its users without it, and most columns get worse; leave their other codes as they are,
and the bias takes its columns.
"""

from __future__ import annotations

import itertools
import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...engine.block import Block
from ...engine.margins import Margins
from ...engine.objective import Objective, mostly_wrong
from ...kernels.cpu import packing
from ...kernels.structs import CodingRule
from ...sparse_bits import Bits, SparseBits, sparse

_ATOMS_PER_CHUNK, _CELLS_PER_CHUNK = 64, 1 << 20
_MAX_TRIED = 64  # atoms that are tried at once
_FIRST_ROWS, _MORE_ROWS = 16, 4  # users coded first in a trial, and the factor by which there are more each time
_DOUBT = 1.5  # by how much more others may save than those coded so far, times the square root of their number


class RemovalCounts(NamedTuple):
    """By how much counts change if rows do without an atom, one row for each atom."""

    wrong: NDArray[np.int64]  # errors per feature
    added: NDArray[np.int64]  # the added ones of them
    uses: NDArray[np.int64]  # uses per atom

    def plus(self, other: RemovalCounts) -> RemovalCounts:
        """Return the sums of both."""
        return RemovalCounts(self.wrong + other.wrong, self.added + other.added, self.uses + other.uses)

    def of(self, atoms: int | NDArray[np.bool_]) -> RemovalCounts:
        """Return the counts of these atoms."""
        return RemovalCounts(self.wrong[atoms], self.added[atoms], self.uses[atoms])


class Useless(NamedTuple):
    """An atom without which the cost is lower: its users, and what changes if they do without it."""

    users: NDArray[np.intp]
    changes: RemovalCounts


class AtomRemoval:
    """Remove atoms from the codes of a block, one at a time.

    Parameters
    ----------
    block : Block
        Call its `mark_stale` after the last removal.
    rule : CodingRule
        How rows are coded, with prices. The prices of uses are changed here: rows cannot use a removed atom again.
    """

    def __init__(self, block: Block, rule: CodingRule) -> None:
        self.block = block
        # Every row must do without the atom.
        self._kernels = block.removal(rule._replace(residual_limit=-1))

    def users_of(self, atoms: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Return the rows that use each atom, in an order in which the first ones are from all parts of the block."""
        users = self.block.rows.users(atoms)
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

    def remove(self, k: int, users: NDArray[np.intp] | None = None) -> None:
        """Code the users of atom k without it, all of which may be given."""
        self._kernels.code_without(k, self.users_of(np.array([k]))[0] if users is None else users)


def savings(block: Block, objective: Objective, settles_bias: bool = False) -> NDArray[np.int64]:
    """Return how much higher the cost would be without each atom, the other codes left as they are.

    The bias is left as it is too, or it takes the columns that would be wrong in most rows (``settles_bias``).
    """
    atoms, bias, votes = block.atoms(), block.bias if settles_bias else None, []
    n_per_chunk = max(1, min(_ATOMS_PER_CHUNK, _CELLS_PER_CHUNK // max(1, block.n_features)))
    for first in range(0, block.n_atoms, n_per_chunk):
        last = min(first + n_per_chunk, block.n_atoms)
        votes.append(np.array(block.votes(first, last))[:, atoms[first:last].to_dense(bool)])
    free, bad = np.concatenate([np.zeros((2, 0), np.int64), *votes], axis=1)
    sizes = block.n_samples, block.n_known
    return savings_from_votes(*sizes, atoms, block.wrong(), block.uses(), free, bad, objective, bias)


def savings_from_votes(
    n_rows: int,
    n_known: NDArray[np.int64],
    atoms: Bits,
    wrong: NDArray[np.int64],
    uses: NDArray[np.int64],
    free: NDArray[np.integer],
    bad: NDArray[np.integer],
    objective: Objective,
    bias: BitMatrix | None = None,
) -> NDArray[np.int64]:
    """Return the same from counts: rows that know each feature, errors per feature, uses per atom, and votes on the
    ones of the atoms, atom after atom.

    ``bias`` is the current one, if it takes the columns that would be wrong in most rows.
    """
    ones, m = sparse(atoms), len(wrong)
    columns = ones.indices
    without = wrong[columns] + free - 2 * bad
    saved = _sums(ones, objective.of_votes(n_known, wrong, columns, True, free, bad))
    saved -= objective.of_atoms(atoms) + objective.of_uses(n_rows, uses)
    if bias is not None:
        is_set = bias.to_dense(bool)[0]
        settled = is_set ^ mostly_wrong(n_known, wrong)
        taken = is_set[columns] ^ mostly_wrong(n_known[columns], without)
        n_set = np.count_nonzero(settled)
        n_set_without = n_set + _sums(ones, taken.astype(np.int64) - settled[columns])
        saved += objective.of_bias_ones(n_rows, m, n_set_without) - objective.of_bias_ones(n_rows, m, np.array(n_set))
    return saved


def _sums(ones: SparseBits, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum over the ones of each atom."""
    return np.diff(np.append(0, np.cumsum(values))[ones.indptr])


def drop_useless(block: Block, objective: Objective, min_atoms: int = 0, first: int = 0) -> Block | None:
    """Drop atoms without which the cost is not higher, the other codes left as they are and the bias settled.

    Those before the index ``first`` stay.

    Returns
    -------
    Block or None
        A block without them, whose cost is at most that of ``block``; None if all atoms are useful.
    """
    kept = None
    while block.n_atoms > min_atoms:
        saved = savings(block, objective, settles_bias=objective.has_bias)
        worst = first + int(saved[first:].argmin())
        if saved[worst] > 0:
            break
        atoms, codes = block.factors()
        left = np.flatnonzero(np.arange(block.n_atoms) != worst)
        kept = block = with_settled_bias(block.with_factors(atoms[left], codes.T[left].T), objective)
    return kept


def with_settled_bias(block: Block, objective: Objective) -> Block:
    """Return the block with a bias that takes the columns that are mostly wrong, if there are any."""
    bias, _ = objective.settled_bias(block)
    return block if bias == block.bias else block.with_factors(*block.factors(), bias)


def are_by_chance(block: Block, objective: Objective, margins: Margins) -> bool:
    """Return whether all atoms save no more bits than it takes to describe them, and chance explains them.

    Chance does not explain an atom that has columns set by the bias.
    """
    weights, uses = block.weights(), block.uses()
    atoms, is_set = block.atoms().to_dense(bool), block.bias.to_dense(bool)[0]
    costs = objective.of_atoms(block.atoms())
    doubtful = savings(block, objective, settles_bias=objective.has_bias) <= costs
    if not (doubtful & (weights > 1) & ~(atoms & is_set).any(axis=1)).all():
        return False
    data = block.data()
    for k, atom in enumerate(atoms):
        columns = margins.looked_at(np.flatnonzero(atom))
        # Under XOR, columns may be an atom because they exclude each other.
        if not margins.explain(columns, data.take_columns(columns), not block.covers, is_copy=bool(uses[k] == 1)):
            return False
    return True


def drop(
    block: Block,
    objective: Objective,
    order: NDArray[np.intp],
    max_dropped: int,
    criterion: Literal["lower cost", "any cost", "same codes"] = "lower cost",
) -> int:
    """Drop atoms in this order until ``max_dropped`` are dropped, and return how many.

    By default, an atom is dropped if the cost is lower once its users are coded without it; with "any cost", whatever
    it costs. With "same codes", whatever it costs, and its users keep their other atoms.
    """
    if len(order) == 0 or max_dropped <= 0:
        return 0
    if criterion == "same codes":
        block.discard(np.isin(np.arange(block.n_atoms), order[:max_dropped]))
        return min(len(order), max_dropped)
    trials = DropTrials(block, objective)
    dropped: list[int] = []
    left, n_tried = order, 1
    while len(left) and len(dropped) < max_dropped:
        # Trials do not depend on each other until an atom is dropped: their number has no effect on the result.
        tried = left[: min(n_tried, trials.most_at_once(left))]
        n_kept, useless = (0, None) if criterion == "any cost" else trials.count_kept(tried)
        if n_kept < len(tried):
            trials.drop(int(tried[n_kept]), useless)
            dropped.append(int(tried[n_kept]))
        left = left[n_kept + 1 :] if n_kept < len(tried) else left[n_kept:]
        n_tried = 2 * n_tried if n_kept == len(tried) else block.workers.n_threads
    if dropped:
        block.discard(np.isin(np.arange(block.n_atoms), dropped))
    block.mark_stale()
    return len(dropped)


def keep_best(
    block: Block, objective: Objective, n_atoms: int, criterion: Literal["any cost", "same codes"] = "any cost"
) -> int:
    """Drop the atoms that save least until at most ``n_atoms`` are left, and return how many (see `drop`)."""
    order = np.argsort(savings(block, objective), kind="stable")
    return drop(block, objective, order, block.n_atoms - n_atoms, criterion)


class DropTrials(AtomRemoval):
    """Finds out which atoms of a block cost more than they save, if their users are coded without them.

    A trial codes a few of the users first. If it is clear from these that all of them would cost more than they save,
    it ends. Most trials do.
    """

    def __init__(self, block: Block, objective: Objective) -> None:
        super().__init__(block, objective.rule(block))
        self.objective = objective
        self.atom_costs = objective.of_atoms(block.atoms())
        self._count(block.wrong(), block.uses())

    def most_at_once(self, order: NDArray[np.intp]) -> int:
        """Return how many of these atoms may be tried at once: counts and the indices of their users take memory."""
        most = min(_MAX_TRIED, _CELLS_PER_CHUNK // (self.block.n_features + self.block.n_atoms))
        n_users = np.cumsum(self.uses[order[:most]])
        return max(1, int(np.searchsorted(n_users, self.block.n_rows, side="right")))

    def drop(self, k: int, useless: Useless | None) -> None:
        """Code the users of atom k without it; take over what its trial has counted, if there was one.

        Rows that add forbidden ones lose the atoms that do, whatever their trial.
        """
        if useless is None or self.objective.costs.forbidden.size:
            self.remove(k)
            self._count(self.block.wrong(), self.block.uses())
            return
        self.remove(k, useless.users)
        self._count(self.wrong + useless.changes.wrong, self.uses + useless.changes.uses)

    def count_kept(self, tried: NDArray[np.intp]) -> tuple[int, Useless | None]:
        """Return how many of these atoms are useful, up to the first one without which the cost is lower, and this."""
        n_kept, useless = len(tried), None
        left, n_users, users = np.arange(n_kept), self.uses[tried], self.users_of(tried)
        pays = self.uses_costs[tried] + self.atom_costs[tried]
        n_coded, n_rows = 0, _FIRST_ROWS
        changes = None
        while len(left):
            more = self.changes(tried[left], [users[i][n_coded:n_rows] for i in left.tolist()])
            changes = more if changes is None else changes.plus(more)
            increase = self._increase(tried[left], changes)
            is_done = n_users[left] <= n_rows
            limit = np.where(
                is_done, 1, np.minimum(1, n_rows / np.maximum(1, n_users[left]) * (1 + _DOUBT / math.sqrt(n_rows)))
            )
            fails = increase > limit * pays[left]
            is_useless = is_done & ~fails
            if is_useless.any():
                first = int(is_useless.argmax())
                n_kept, useless = int(left[first]), Useless(users[left[first]], changes.of(first))
            goes_on = ~is_done & ~fails & (left < n_kept)
            left, changes = left[goes_on], changes.of(goes_on)
            n_coded, n_rows = n_rows, _MORE_ROWS * n_rows
        return n_kept, useless

    def _count(self, wrong: NDArray[np.int64], uses: NDArray[np.int64]) -> None:
        """Set the errors per feature and the uses per atom, and what they cost."""
        self.wrong, self.uses = wrong, uses
        self.errors_cost = int(self.objective.of_errors(self.block.n_known, self.wrong).sum())
        self.uses_costs = self.objective.of_uses(self.block.n_samples, self.uses)

    def _increase(self, tried: NDArray[np.intp], more: RemovalCounts) -> NDArray[np.int64]:
        """Return by how much the errors, and the uses of other atoms, cost more after each of these changes."""
        errors = self.objective.of_errors(self.block.n_known, self.wrong + more.wrong).sum(axis=1) - self.errors_cost
        uses = self.objective.of_uses(self.block.n_samples, self.uses + more.uses) - self.uses_costs
        uses[np.arange(len(tried)), tried] = 0
        beyond = self.objective.costs.of_counts(more.wrong, more.added)
        increase: NDArray[np.int64] = errors + beyond + uses.sum(axis=1)
        return increase
