"""Atoms that do not pay: dropped, their rows coded without them, and kept out if the cost falls, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...core.block import Block, Words
from ...core.coding import priced
from ...core.objective import Objective
from ...kernels.cpu import coding
from ...kernels.structs import AtomArrays, Rule, coding_scratch

_FORBIDDEN = 1 << 27  # a price at which no row uses an atom
_FIRST_ROWS = 32  # rows after which a drop may be seen not to pay
_ATOMS_AT_A_TIME = 64


def savings(block: Block, objective: Objective) -> NDArray[np.int64]:
    """How much dearer it would be without each atom, its rows left as they are."""
    words, wrong, uses = block.atoms.words, block.wrong(), block.uses()
    return savings_from_counts(block.n_rows, words, wrong, uses, block.votes, objective)


def savings_from_counts(
    n_rows: int,
    atoms: Words,
    wrong: NDArray[np.int64],
    uses: NDArray[np.int64],
    votes: Callable[[int, int], tuple[NDArray[np.integer], NDArray[np.integer]]],
    objective: Objective,
) -> NDArray[np.int64]:
    """The same from counts: wrong bits a feature, uses an atom, and the votes on the atoms from one to another."""
    m = len(wrong)
    now = objective.of_errors(n_rows, wrong)
    saved = np.empty(len(atoms), np.int64)
    for first in range(0, len(atoms), _ATOMS_AT_A_TIME):
        some = slice(first, min(first + _ATOMS_AT_A_TIME, len(atoms)))
        free, bad = votes(some.start, some.stop)
        ones = BitMatrix.from_words(atoms[some].copy(), m, check=False).to_dense(bool)
        without = wrong + np.where(ones, free - 2 * bad, 0)
        saved[some] = (objective.of_errors(n_rows, without) - now).sum(axis=1) - objective.of_atoms(m, ones.sum(axis=1))
    return saved - objective.of_uses(n_rows, uses)


def prune(block: Block, objective: Objective, least: int = 0) -> int:
    """Drop atoms that save nothing, down to so many; returns how many are gone."""
    saved = savings(block, objective)
    return _drop(block, objective, np.flatnonzero(saved <= 0), block.n_atoms - least, always=False)


def eliminate(block: Block, objective: Objective, least: int = 0) -> int:
    """Drop every atom without which the cost is lower, from the one that saves least on; returns how many are gone."""
    return _drop(
        block, objective, np.argsort(savings(block, objective), kind="stable"), block.n_atoms - least, always=False
    )


def shrink(block: Block, objective: Objective, most: int) -> int:
    """Drop the atoms that save least, whatever it costs, until there are no more than so many."""
    excess = max(0, block.n_atoms - most)
    return _drop(block, objective, np.argsort(savings(block, objective), kind="stable"), excess, always=True)


def _drop(block: Block, objective: Objective, order: NDArray[np.intp], most: int, always: bool) -> int:
    """Try to do without these atoms, one after the other, until so many are gone."""
    if len(order) == 0 or most <= 0:
        return 0
    n, m = block.n_rows, block.n_features
    rule = objective.rule(block)._replace(residual_limit=-1)  # every row must do without the atom
    assert rule.prices is not None
    trial = _Trial(block, priced(block, block.atoms, rule.prices), rule)
    wrong, uses, weights = block.wrong(), block.uses(), block.weights()
    errors_cost, uses_cost = (int(cost.sum()) for cost in (objective.of_errors(n, wrong), objective.of_uses(n, uses)))
    gone = np.zeros(block.n_atoms, bool)
    for k in order:
        if gone.sum() == most:
            break
        price, rule.prices.uses[k] = rule.prices.uses[k], _FORBIDDEN
        own = int(objective.of_uses(n, uses[k])), int(objective.of_atoms(m, weights[k]))
        for _ in trial.parts(k):
            new_wrong, new_uses = wrong + trial.more_wrong, uses + trial.more_uses
            new_errors_cost = int(objective.of_errors(n, new_wrong).sum())
            new_uses_cost = int(objective.of_uses(n, new_uses).sum() - objective.of_uses(n, new_uses[k]))
            dearer = new_errors_cost - errors_cost + new_uses_cost - (uses_cost - own[0])
            if dearer > sum(own) and not always:
                trial.undo()
                rule.prices.uses[k] = price
                break
        else:
            gone[k] = True
            wrong, uses, errors_cost = new_wrong, new_uses, new_errors_cost
            uses_cost = new_uses_cost + int(objective.of_uses(n, new_uses[k]))
    if gone.any():
        block.discard(gone)
    block.forget_clean()
    return int(gone.sum())


class _Trial:
    """The rows that use an atom, coded without it, with a way back."""

    def __init__(self, block: Block, tables: AtomArrays, rule: Rule) -> None:
        self.block, self.tables, self.rule = block, tables, rule
        self.scratch = coding_scratch(block.rows, tables)
        self.codes, self.errors = np.empty_like(block.rows.codes), np.empty_like(block.rows.errors)

    def parts(self, k: int) -> Iterator[None]:
        """Code the rows of atom k in two parts: after the first it may be seen that it does not pay."""
        users = np.unpackbits(self.block.rows.users[k].view(np.uint8), count=self.block.n_rows, bitorder="little")
        rows = np.flatnonzero(users)
        self.more_wrong = np.zeros(self.block.n_features, np.int64)
        self.more_uses = np.zeros(self.block.n_atoms, np.int64)
        for part in (slice(0, _FIRST_ROWS), slice(_FIRST_ROWS, len(rows))):
            self.done = rows[: part.stop]
            coding.code_at_prices(
                self.block.rows, self.tables, self.rule, rows[part], False, self.codes[part], self.errors[part],
                self.more_wrong, self.more_uses, self.scratch,
            )  # fmt: skip
            yield
            if len(self.done) == len(rows):
                break

    def undo(self) -> None:
        """Give the rows coded so far back what they had."""
        coding.restore_rows(self.block.rows, self.tables, self.done, self.codes, self.errors, self.block.covers)
