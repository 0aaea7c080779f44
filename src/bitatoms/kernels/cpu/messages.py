"""One round of messages between codes and atoms (max-sum, Boolean), all of them from those of the round before.

Each cell of the table has a message to the code and one to the atom for each atom. Loops run along the cells of a row
and touch few arrays each, for LLVM makes vectors of a loop only while there are few pairs of arrays to keep apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..jit import kernel, piece

_ZERO, _ONE = np.float32(0), np.float32(1)
_INFINITE = np.float32(np.inf)


class Graph(NamedTuple):
    """The table and the messages: log odds, above 0 where a one is likelier, in units of what a cell says of itself."""

    cells: NDArray[np.uint8]  # (n_samples, n_features)
    to_codes: NDArray[np.float32]  # (n_samples, n_atoms, n_features)
    to_atoms: NDArray[np.float32]  # as many


class Scratch(NamedTuple):
    """What a row takes meanwhile."""

    each: NDArray[np.float32]  # (n_atoms, n_features): what an atom says of a cell, then what the others leave to it
    total: NDArray[np.float32]  # (n_features,): the evidence and all that speak for a one
    largest: NDArray[np.float32]  # (n_features,)
    second: NDArray[np.float32]  # (n_features,)


@piece
def _say(to_code, to_atom, code, atoms, out):
    """What one atom says of the cells: there is a one of it where its code and its bit are ones, both."""
    for j in range(out.shape[0]):
        by_code, by_atom = code - to_code[j], atoms[j] - to_atom[j]
        out[j] = min(by_code + by_atom, min(by_code, by_atom))


@piece
def _gather(said, largest, second):
    """The largest and the second largest of what is said of each cell."""
    for j in range(said.shape[0]):
        now, top = said[j], largest[j]
        second[j] = max(second[j], min(top, now))
        largest[j] = max(top, now)


@piece
def _add_positive(said, total):
    """Add what speaks for a one."""
    for j in range(said.shape[0]):
        total[j] += max(said[j], _ZERO)


@piece
def _leave(said, total, largest, second):
    """In place: what a cell says to an atom, given what the other atoms say of the cell."""
    for j in range(said.shape[0]):
        now, top, next_to_it = said[j], largest[j], second[j]
        other = next_to_it if now == top else top
        said[j] = min(max(-other, _ZERO), total[j] - max(now, _ZERO))


@piece
def _answer(to_code, to_atom, code, atoms, left, step):
    """Move the messages to the code and to the atom by a share of the way to what they should be."""
    for j in range(left.shape[0]):
        cell, was_code, was_atom = left[j], to_code[j], to_atom[j]
        by_code, by_atom = code - was_code, atoms[j] - was_atom
        to_code[j] = was_code + step * (max(cell + by_atom, _ZERO) - max(by_atom, _ZERO) - was_code)
        to_atom[j] = was_atom + step * (max(cell + by_code, _ZERO) - max(by_code, _ZERO) - was_atom)


@piece
def _add(numbers, out):
    """Add numbers to others."""
    for j in range(out.shape[0]):
        out[j] += numbers[j]


@kernel
def exchange(graph, start, stop, codes, atoms, step, atoms_after, scratch):
    """Renew the messages of rows start..stop, given the beliefs in all codes (n, p) and atoms (p, m).

    Adds the new messages to the atoms to ``atoms_after``, of shape (p, m).
    """
    each, total, largest, second = scratch.each, scratch.total, scratch.largest, scratch.second
    n_atoms, n_features = each.shape
    for i in range(start, stop):
        for j in range(n_features):
            total[j] = _ONE if graph.cells[i, j] else -_ONE
            largest[j] = -_INFINITE
            second[j] = -_INFINITE
        for k in range(n_atoms):
            _say(graph.to_codes[i, k], graph.to_atoms[i, k], codes[i, k], atoms[k], each[k])
            _gather(each[k], largest, second)
            _add_positive(each[k], total)
        for k in range(n_atoms):
            _leave(each[k], total, largest, second)
            _answer(graph.to_codes[i, k], graph.to_atoms[i, k], codes[i, k], atoms[k], each[k], step)
            _add(graph.to_atoms[i, k], atoms_after[k])
