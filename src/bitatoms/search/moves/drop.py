"""Remove atoms from the codes of a block, and count beforehand what that would change.

Drop atoms that cost more than they save: code their users without them, and keep that if the exact cost falls.

During a search the bits of the bias are not counted: the bias may take more columns once an atom is dropped, but those
few bits are no reason to keep the atom. At its end, `drop_useless` counts them. An atom that nearly all rows use, for
one, is as good as a bias: code its users without it, and most columns get worse; leave their other codes as they are,
and the bias takes its columns.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...engine.block import Block
from ...engine.objective import Objective, mostly_wrong
from ...kernels.structs import RemovalCounts
from ...sparse_bits import Bits, SparseBits, sparse
from ..margins import Margins

_CELLS_PER_CHUNK = 1 << 20  # votes counted at a time


def savings(block: Block, objective: Objective, settles_bias: bool = False) -> NDArray[np.int64]:
    """Return how much higher the cost would be without each atom, the other codes left as they are.

    The bias is left as it is too, or it takes the columns that would be wrong in most rows (``settles_bias``).
    """
    atoms, bias, m = block.atoms(), block.bias if settles_bias else None, block.n_features
    ones, n_per_chunk = sparse(atoms), max(1, _CELLS_PER_CHUNK // max(1, m))
    free, bad = np.empty((2, len(ones.indices)), np.int64)
    for first in range(0, block.n_atoms, n_per_chunk):
        last = min(first + n_per_chunk, block.n_atoms)
        own = slice(ones.indptr[first], ones.indptr[last])
        cells = np.repeat(np.arange(last - first) * m, np.diff(ones.indptr[first : last + 1])) + ones.indices[own]
        free[own], bad[own] = (votes.ravel().take(cells) for votes in block.votes(first, last))
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
        left = np.flatnonzero(np.arange(block.n_atoms) != worst)
        kept = block = with_settled_bias(block.with_atoms(left), objective)
    return kept


def with_settled_bias(block: Block, objective: Objective) -> Block:
    """Return the block with a bias that takes the columns that are mostly wrong, if there are any."""
    bias, _ = objective.settled_bias(block)
    return block if bias == block.bias else block.with_factors(*block.factors(), bias)


def are_by_chance(block: Block, objective: Objective, margins: Margins) -> bool:
    """Return whether all atoms save no more bits than it takes to describe them, and chance explains them.

    Chance does not explain an atom that has columns set by the bias.
    """
    weights = block.weights()
    atoms, is_set = block.atoms().to_dense(bool), block.bias.to_dense(bool)[0]
    costs = objective.of_atoms(block.atoms())
    doubtful = savings(block, objective, settles_bias=objective.has_bias) <= costs
    if not (doubtful & (weights > 1) & ~(atoms & is_set).any(axis=1)).all():
        return False
    data = block.data()
    for atom in atoms:
        columns = margins.looked_at(np.flatnonzero(atom))
        # Under XOR, columns may be an atom because they exclude each other.
        if not margins.explain(columns, data.take_columns(columns), not block.covers):
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
    while len(order) and len(dropped) < max_dropped:
        n_kept, changes = (0, None) if criterion == "any cost" else trials.first_useless(order)
        if n_kept < len(order):
            trials.drop(int(order[n_kept]), changes)
            dropped.append(int(order[n_kept]))
        order = order[n_kept + 1 :]
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


def drop_rare(block: Block, objective: Objective, min_users: int) -> int:
    """Drop atoms with fewer users, whatever that costs, until none is left, and return how many."""
    n_before = block.n_atoms
    while len(rare := np.flatnonzero(block.uses() < min_users)):
        drop(block, objective, rare, len(rare), "any cost")
    return n_before - block.n_atoms


class DropTrials:
    """Finds out which atoms of a block cost more than they save, if their users are coded without them.

    Parameters
    ----------
    block : Block
        Call its `mark_stale` in the end. Its rows cannot use a dropped atom again.
    objective : Objective
    """

    def __init__(self, block: Block, objective: Objective) -> None:
        self.block, self.objective = block, objective
        self._removal = block.removal(objective.rule(block))
        self._atom_costs = objective.of_atoms(block.atoms())
        self._costs = objective.removal_costs(block)

    def first_useless(self, order: NDArray[np.intp]) -> tuple[int, RemovalCounts | None]:
        """Return how many of these atoms are useful up to the first that is not, and what changes without that one."""
        worth = self._atom_costs + self.objective.of_uses(self._costs.n_rows, self._costs.uses)
        return self._removal.first_useless(order, worth[order], self._costs)

    def drop(self, k: int, changes: RemovalCounts | None) -> None:
        """Code the users of atom k without it; take over what its trial has counted, if there was one.

        Rows that add forbidden ones lose the atoms that do, whatever their trial.
        """
        self._removal.code_without(k)
        if changes is None or self.objective.costs.forbidden.size:
            self._costs = self.objective.removal_costs(self.block)
        else:
            wrong, uses = self._costs.wrong + changes.wrong, self._costs.uses + changes.uses
            self._costs = self._costs._replace(wrong=wrong, uses=uses)
