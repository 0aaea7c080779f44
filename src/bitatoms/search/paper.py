"""The learning loop of the paper: code the rows, update the atoms, until nothing changes.

Forward selection of the number of atoms, with warm restarts (Algorithm 5 of the paper).

Proximus: the rank-one step (Algorithm 4 of the paper), and the recursive method built on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..bits import BitMatrix
from ..engine.block import Block, Change
from ..engine.coding import CODERS, coding_rule, pursue
from ..engine.update import UPDATES, grow
from ..kernels.structs import CodingRule
from ..parallel import Workers
from .monitor import CONVERGED, MAX_ITER, SearchMonitor


@dataclass(frozen=True)
class LearningMethod:
    """How to learn: a coder, an update of the atoms, and the largest number of steps."""

    coder: str
    update: str
    rule: CodingRule
    max_iter: int


def step(block: Block, method: LearningMethod, pursues: bool = False) -> Change:
    """Code the rows, by the coder or by pursuit, then update the atoms. Neither raises the number of errors."""
    coder = pursue if pursues else CODERS[method.coder]
    return coder(block, method.rule) + UPDATES[method.update](block, method.rule)


def learn(block: Block, method: LearningMethod, monitor: SearchMonitor, each_step: bool = True) -> str:
    """Take steps until one changes nothing, and return the reason that learning ended.

    Convergence is exact. Each change lowers the number of wrong bits, or keeps it and removes ones from atoms and
    codes (a tie gives 0), so that no state occurs twice. A round is recorded after each step, or once at the end.

    With BMP under XOR, rows without codes are first coded by pursuit, in effect as the paper's program codes them: they
    take few atoms in a step, and the atoms are updated before rows take more. Once that changes nothing, BMP continues.
    Under OR, which the paper does not have, neither order is better on all tables.
    """
    total = Change()
    iterations, pursues = 0, method.coder == "bmp" and not block.covers and not block.uses().any()
    converged = False
    while not converged and iterations < method.max_iter and not (iterations and monitor.should_stop()):
        change = step(block, method, pursues)
        if pursues and not change:
            pursues = False
            block.mark_stale()
            change = step(block, method)
        iterations += 1
        converged = not change
        if each_step:
            monitor.record(block, change, 1)
        total += change
    if not each_step:
        monitor.record(block, total, iterations)
    return monitor.stop_reason or (CONVERGED if converged else MAX_ITER)


def forward_selection(
    block: Block,
    method: LearningMethod,
    patience: int | None,
    max_components: int | None,
    monitor: SearchMonitor,
    random: np.random.Generator,
) -> str:
    """Learn, add the atom that a rank-one fit finds in the errors, learn again, until the codelength no longer falls.

    It ends after ``patience`` rounds in a row without a shorter codelength; None: only at ``max_components``. The best
    state is ``monitor.best``. Returns the reason that the selection ended; "max_iter" if any round did not converge.
    """
    ends, failures = [learn(block, method, monitor, each_step=False)], 0
    while max_components is None or block.n_atoms < max_components:
        if patience is not None and failures >= patience:
            break
        if monitor.should_stop() or not append_rank_one(block, method.rule, random):
            break
        shortest = min(row.bits for row in monitor.history)
        ends.append(learn(block, method, monitor, each_step=False))
        failures = 0 if monitor.history[-1].bits < shortest else failures + 1
    return monitor.stop_reason or (MAX_ITER if MAX_ITER in ends else CONVERGED)


def append_rank_one(block: Block, rule: CodingRule, random: np.random.Generator, n_seeds: int = 1) -> bool:
    """Append an atom and its users, fitted to the errors by Proximus from a random row, or the best of several.

    Users and bits of the atom are chosen in turn, each by majority given the other, until neither changes: then no
    single flip in either lowers the error (Proposition 1). Under OR, bits that atoms cover already do not count.
    Returns False, and appends nothing, where no row has an error that a new atom could fix.
    """
    fixable = np.flatnonzero(block.rows.improvable(rule))
    if len(fixable) == 0:
        return False
    seeds = block.rows.fixable_errors(fixable[[random.integers(len(fixable)) for _ in range(n_seeds)]])
    best = 0 if n_seeds == 1 else int(np.argmax(block.rows.errors_fixed_by(seeds)))
    grow(block, seeds[best], rule)
    return True


def rank_one(data: BitMatrix, workers: Workers, random: np.random.Generator) -> tuple[BitMatrix, np.ndarray]:
    """Return a pattern and the rows that have it: a local optimum of |data - rows * pattern|.

    The pattern is a BitMatrix of one row, or of none where the data is all zeros; the rows are a mask.
    """
    block = Block(data, BitMatrix.zeros(0, data.n_cols), None, False, workers)
    append_rank_one(block, coding_rule("greedy", "xor"), random)
    atoms, codes = block.factors()
    rows = codes.words[:, 0].astype(bool) if atoms.n_rows else np.zeros(data.n_rows, bool)
    return atoms, rows


def partition(
    data: BitMatrix, radius: int, workers: Workers, random: np.random.Generator
) -> tuple[BitMatrix, np.ndarray]:
    """Return the patterns of the recursive Proximus method, and the pattern of each row (-1 for a row of zeros).

    A rank-one fit splits the rows into those that have its pattern and those that have not. The former are done when
    each of them differs from the pattern in at most ``radius`` bits; otherwise both sets are split again. Where all
    rows have the pattern but some lie outside the radius, the rows that are nearer to the farthest row than to the
    pattern are split off.
    """
    patterns: list[np.ndarray] = []
    owner = np.full(data.n_rows, -1, np.int64)
    pending = [np.flatnonzero(data.words.any(axis=1))]
    while pending:
        group = pending.pop()
        if len(group) == 0:
            continue
        rows = data[group]
        atoms, has = rank_one(rows, workers, random)
        distance = (rows ^ atoms).row_weights()
        near = distance <= radius
        if near[has].all():
            owner[group[has]] = len(patterns)
            patterns.append(atoms.words[0])
            pending.append(group[~has])
        elif not has.all():
            pending += [group[~has], group[has]]
        else:
            farthest = distance.argmax()
            # The pattern is the majority of these rows: not all of them can be nearer to the farthest one.
            inside = distance <= (rows ^ rows[farthest : farthest + 1]).row_weights()
            pending += [group[~inside], group[inside]]
    words = np.array(patterns, np.uint64).reshape(len(patterns), data.words.shape[1])
    return BitMatrix.from_words(words, data.n_cols, check=False), owner
