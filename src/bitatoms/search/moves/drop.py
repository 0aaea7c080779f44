"""Drop atoms that cost more than they save: code their users without them, and keep that if the exact cost falls.

During a search the bits of the bias are not counted: the bias may take more columns once an atom is dropped, but those
few bits are no reason to keep the atom. At its end, `drop_useless` counts them. An atom that nearly all rows use, for
one, is as good as a bias: code its users without it, and most columns get worse; leave their other codes as they are,
and the bias takes its columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...core.bias import settle_bias
from ...core.block import Block, Words
from ...core.margins import Margins
from ...core.objective import Objective
from ...core.removal import AtomRemoval

_ATOMS_PER_CHUNK, _CELLS_PER_CHUNK = 64, 1 << 20


def savings(block: Block, objective: Objective, settles_bias: bool = False) -> NDArray[np.int64]:
    """Return how much higher the cost would be without each atom, the other codes left as they are.

    The bias is left as it is too, or it takes the columns that would be wrong in most rows (``settles_bias``).
    """
    atoms, wrong, uses = block.atoms().words, block.wrong(), block.uses()
    bias = block.bias if settles_bias else None
    return savings_from_counts(block.n_samples, block.n_known, atoms, wrong, uses, block.votes, objective, bias)


def savings_from_counts(
    n_rows: int,
    n_known: int | NDArray[np.int64],
    atoms: Words,
    wrong: NDArray[np.int64],
    uses: NDArray[np.int64],
    votes: Callable[[int, int], tuple[NDArray[np.integer], NDArray[np.integer]]],
    objective: Objective,
    bias: BitMatrix | None = None,
) -> NDArray[np.int64]:
    """Return the same from counts: rows that know each feature, errors per feature, uses per atom, and votes on the
    atoms first..last.

    ``bias`` is the current one, if it takes the columns that would be wrong in most rows.
    """
    m = len(wrong)
    now = objective.of_errors(n_known, wrong)
    saved = np.empty(len(atoms), np.int64)
    n_per_chunk = max(1, min(_ATOMS_PER_CHUNK, _CELLS_PER_CHUNK // max(1, m)))
    for first in range(0, len(atoms), n_per_chunk):
        chunk = slice(first, min(first + n_per_chunk, len(atoms)))
        free, bad = votes(chunk.start, chunk.stop)
        ones = BitMatrix.from_words(atoms[chunk].copy(), m, check=False).to_dense(bool)
        without = wrong + np.where(ones, free - 2 * bad, 0)
        more_errors = (objective.of_errors(n_known, without) - now).sum(axis=1)
        saved[chunk] = more_errors - objective.of_atoms(m, ones.sum(axis=1))
        if bias is not None:
            saved[chunk] += objective.of_bias(n_rows, n_known, without, bias)
            saved[chunk] -= objective.of_bias(n_rows, n_known, wrong, bias)
    return saved - objective.of_uses(n_rows, uses)


def prune(block: Block, objective: Objective, min_atoms: int = 0) -> int:
    """Drop atoms that save nothing, and return how many."""
    saved = savings(block, objective)
    return _drop(block, objective, np.flatnonzero(saved <= 0), block.n_atoms - min_atoms, always=False)


def drop_useless(block: Block, objective: Objective, min_atoms: int = 0) -> Block | None:
    """Drop atoms without which the cost is not higher, the other codes left as they are and the bias settled.

    Returns
    -------
    Block or None
        A block without them, whose cost is at most that of ``block``; None if all atoms are useful.
    """
    kept = None
    while block.n_atoms > min_atoms:
        saved = savings(block, objective, settles_bias=True)
        worst = int(saved.argmin())
        if saved[worst] > 0:
            break
        atoms, codes = block.factors()
        left = np.flatnonzero(np.arange(block.n_atoms) != worst)
        block = block.with_factors(atoms[left], codes.T[left].T)
        bias, _ = settle_bias(block.n_known, block.wrong(), block.bias)
        if bias != block.bias:
            block = block.with_factors(*block.factors(), bias)
        kept = block
    return kept


def are_by_chance(block: Block, objective: Objective, margins: Margins) -> bool:
    """Return whether all atoms save no more bits than it takes to describe them, and chance explains them.

    Chance does not explain an atom that has columns set by the bias.
    """
    weights, uses = block.weights(), block.uses()
    atoms, is_set = block.atoms().to_dense(bool), block.bias.to_dense(bool)[0]
    doubtful = savings(block, objective, settles_bias=True) <= objective.of_atoms(block.n_features, weights)
    if not (doubtful & (weights > 1) & ~(atoms & is_set).any(axis=1)).all():
        return False
    data = block.data()
    for k, atom in enumerate(atoms):
        columns = margins.looked_at(np.flatnonzero(atom))
        # Under XOR, columns may be an atom because they exclude each other.
        if not margins.explain(columns, data.take_columns(columns), not block.covers, is_copy=bool(uses[k] == 1)):
            return False
    return True


def eliminate(block: Block, objective: Objective, min_atoms: int = 0) -> int:
    """Drop every atom without which the cost is lower, trying the one that saves least first; return how many."""
    order = np.argsort(savings(block, objective), kind="stable")
    return _drop(block, objective, order, block.n_atoms - min_atoms, always=False)


def shrink(block: Block, objective: Objective, max_atoms: int) -> int:
    """Drop the atoms that save least, whatever it costs, until at most ``max_atoms`` are left; return how many."""
    excess = max(0, block.n_atoms - max_atoms)
    return _drop(block, objective, np.argsort(savings(block, objective), kind="stable"), excess, always=True)


def _drop(block: Block, objective: Objective, order: NDArray[np.intp], max_dropped: int, always: bool) -> int:
    """Try to drop these atoms one at a time, until ``max_dropped`` are dropped."""
    if len(order) == 0 or max_dropped <= 0:
        return 0
    n, m = block.n_samples, block.n_features
    removal = AtomRemoval(block, objective.rule(block))
    wrong, uses, weights = block.wrong(), block.uses(), block.weights()
    errors_cost = int(objective.of_errors(block.n_known, wrong).sum())
    uses_cost = int(objective.of_uses(n, uses).sum())
    dropped = np.zeros(block.n_atoms, bool)
    for k in order:
        if dropped.sum() == max_dropped:
            break
        own_uses, own_ones = int(objective.of_uses(n, uses[k])), int(objective.of_atoms(m, weights[k]))
        for _ in removal.recode_users(k):
            new_wrong, new_uses = wrong + removal.more_wrong, uses + removal.more_uses
            new_errors_cost = int(objective.of_errors(block.n_known, new_wrong).sum())
            new_uses_cost = int(objective.of_uses(n, new_uses).sum() - objective.of_uses(n, new_uses[k]))
            increase = new_errors_cost - errors_cost + new_uses_cost - (uses_cost - own_uses)
            if increase > own_uses + own_ones and not always:
                removal.undo()
                break
        else:
            dropped[k] = True
            wrong, uses, errors_cost = new_wrong, new_uses, new_errors_cost
            uses_cost = new_uses_cost + int(objective.of_uses(n, new_uses[k]))
    if dropped.any():
        block.discard(dropped)
    block.mark_stale()
    return int(dropped.sum())
