"""Recombination: a state with the atoms of two others, thinned out to the number of atoms that is wanted."""

from __future__ import annotations

import numpy as np

from ..bits import BitMatrix
from ..core.block import Block
from ..core.coding import code
from ..core.objective import Objective
from ..kernels.structs import Rule
from .context import SearchContext
from .moves.drop import savings
from .population import CostedState

_DROPPED_SHARE = 0.25  # of the atoms in excess, dropped before the rows are coded again


def united(context: SearchContext, one: CostedState, other: CostedState) -> Block:
    """Return a state with the atoms and the bias of one, and the atoms of the other that are new.

    Each row has its code in the state in which it has fewer errors; the first on a tie. Equal atoms become one.
    """
    blocks = [context.block(state.atoms, state.codes, one.bias) for state in (one, other)]
    better = blocks[1].errors().row_weights() < blocks[0].errors().row_weights()
    index: dict[bytes, int] = {}
    for atom in (*one.atoms.words, *other.atoms.words):
        index.setdefault(atom.tobytes(), len(index))
    atoms = np.frombuffer(b"".join(index), np.uint64).reshape(len(index), -1)
    codes = np.zeros((context.data.n_rows, len(index)), bool)
    combine = np.bitwise_or if context.greedy_rule.covers else np.bitwise_xor
    for state, rows in zip((one, other), (~better, better), strict=True):
        for atom, uses in zip(state.atoms.words, state.codes.to_dense(bool)[rows].T, strict=True):
            column = index[atom.tobytes()]
            codes[rows, column] = combine(codes[rows, column], uses)
    return context.block(
        BitMatrix.from_words(atoms.copy(), one.atoms.n_cols, check=False), BitMatrix.from_dense(codes), one.bias
    )


def thin_to(block: Block, objective: Objective, rule: Rule, n_atoms: int) -> None:
    """Drop the atoms that save least, some at a time, until ``n_atoms`` are left; code the rows after each step."""
    while block.n_atoms > n_atoms:
        n_dropped = max(1, int(_DROPPED_SHARE * (block.n_atoms - n_atoms)))
        dropped = np.zeros(block.n_atoms, bool)
        dropped[np.argsort(savings(block, objective), kind="stable")[:n_dropped]] = True
        block.discard(dropped)
        code(block, rule)
