"""One round of max-sum message passing between codes and atoms, computed from the messages of the previous round.

For each atom, each cell of the table has a message to the code and one to the atom. Loops run along the cells of a row
and use few arrays each, because LLVM vectorizes a loop only if it has few pairs of arrays to check for aliasing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..jit import inline, kernel
from ..views import view

_ZERO, _ONE = np.float32(0), np.float32(1)
_INFINITE = np.float32(np.inf)


class MessageGraph(NamedTuple):
    """The table and the messages: log odds of a one, in units of the log odds of a cell."""

    cells: NDArray[np.uint8]  # (n_samples, n_features)
    to_codes: NDArray[np.float32]  # (n_samples, n_atoms, n_features)
    to_atoms: NDArray[np.float32]  # the same shape


class MessageScratch(NamedTuple):
    """Work arrays for a row."""

    each: NDArray[np.float32]  # (n_atoms, n_features): messages to the cells, then from the cells
    total: NDArray[np.float32]  # (n_features,): the evidence plus all positive messages
    largest: NDArray[np.float32]  # (n_features,)
    second: NDArray[np.float32]  # (n_features,)


@inline
def _messages_to_cells(to_code, to_atom, code, atoms, out):
    """Compute the messages of one atom to the cells: a product is one if the code and the bit are ones."""
    for j in range(out.shape[0]):
        by_code, by_atom = code - to_code[j], atoms[j] - to_atom[j]
        out[j] = min(by_code + by_atom, min(by_code, by_atom))


@inline
def _update_two_largest(messages, largest, second):
    """Update the largest and the second largest message to each cell."""
    for j in range(messages.shape[0]):
        now, top = messages[j], largest[j]
        second[j] = max(second[j], min(top, now))
        largest[j] = max(top, now)


@inline
def _add_positive(messages, total):
    """Add the positive messages."""
    for j in range(messages.shape[0]):
        total[j] += max(messages[j], _ZERO)


@inline
def _messages_from_cells(messages, total, largest, second):
    """In place: compute the messages of the cells to an atom from the messages of the other atoms."""
    for j in range(messages.shape[0]):
        now, top, next_to_it = messages[j], largest[j], second[j]
        other = next_to_it if now == top else top
        messages[j] = min(max(-other, _ZERO), total[j] - max(now, _ZERO))


@inline
def _update_messages(to_code, to_atom, code, atoms, from_cells, step):
    """Move the messages to the code and to the atom by a fraction ``step`` towards their new values."""
    for j in range(from_cells.shape[0]):
        cell, was_code, was_atom = from_cells[j], to_code[j], to_atom[j]
        by_code, by_atom = code - was_code, atoms[j] - was_atom
        to_code[j] = was_code + step * (max(cell + by_atom, _ZERO) - max(by_atom, _ZERO) - was_code)
        to_atom[j] = was_atom + step * (max(cell + by_code, _ZERO) - max(by_code, _ZERO) - was_atom)


@inline
def _add(numbers, out):
    """Add numbers to ``out``."""
    for j in range(out.shape[0]):
        out[j] += numbers[j]


@kernel
def exchange(graph, start, stop, codes, atoms, step, atoms_after, scratch):
    """Update the messages of rows start..stop, given the beliefs of all codes (n, p) and atoms (p, m).

    The new messages to the atoms are added to ``atoms_after``, of shape (p, m).
    """
    graph, codes, atoms, step, atoms_after, scratch = view((graph, codes, atoms, step, atoms_after, scratch))
    each, total, largest, second = scratch.each, scratch.total, scratch.largest, scratch.second
    n_atoms, n_features = each.shape
    for i in range(start, stop):
        for j in range(n_features):
            total[j] = _ONE if graph.cells[i, j] else -_ONE
            largest[j] = -_INFINITE
            second[j] = -_INFINITE
        for k in range(n_atoms):
            _messages_to_cells(graph.to_codes[i, k], graph.to_atoms[i, k], codes[i, k], atoms[k], each[k])
            _update_two_largest(each[k], largest, second)
            _add_positive(each[k], total)
        for k in range(n_atoms):
            _messages_from_cells(each[k], total, largest, second)
            _update_messages(graph.to_codes[i, k], graph.to_atoms[i, k], codes[i, k], atoms[k], each[k], step)
            _add(graph.to_atoms[i, k], atoms_after[k])
