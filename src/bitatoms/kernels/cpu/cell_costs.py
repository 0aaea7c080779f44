"""Code rows where the cost of a cell depends on its column, its value and the value that the code predicts."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..jit import inline, kernel


class CellCosts(NamedTuple):
    """Costs of cells and of uses of atoms, as integers."""

    cells: Any  # (3, 2, m) int64: of a cell with value 0, 1 or 2 (unknown) where 0 or 1 is predicted, in each column
    uses: Any  # (2, p) int64: of an atom that a row does not use, and of one that it uses


class AtomOnes(NamedTuple):
    """The columns in which each atom has a one: ``columns[starts[k] : starts[k + 1]]``."""

    starts: Any  # (p + 1,) int64
    columns: Any  # (ones,) int64


class CellScratch(NamedTuple):
    """Work arrays for a row."""

    depth: Any  # (m,) int64: how many used atoms have a one in each column
    flips: Any  # (m,) int64: by how much the cost rises if the prediction of each cell flips


@inline
def start_row(cells, codes, j, atoms, bias, covers, costs, scratch):
    """Fill the work arrays for row j; return its cost and the number of atoms that it uses."""
    depth, flips = scratch
    for i in range(depth.shape[0]):
        depth[i] = 0
    cost, n_used = 0, 0
    for k in range(codes.shape[1]):
        cost += costs.uses[codes[j, k], k]
        if codes[j, k]:
            n_used += 1
            for at in range(atoms.starts[k], atoms.starts[k + 1]):
                depth[atoms.columns[at]] += 1
    for i in range(depth.shape[0]):
        product = depth[i] & 1 if covers is None else min(depth[i], 1)
        predicted, value = bias[i] ^ product, cells[j, i]
        cost += costs.cells[value, predicted, i]
        flips[i] = costs.cells[value, 1 - predicted, i] - costs.cells[value, predicted, i]
    return cost, n_used


@inline
def toggle_cost(used, k, atoms, covers, costs, scratch):
    """Return by how much the cost rises if atom k is toggled."""
    rise = costs.uses[1 - used, k] - costs.uses[used, k]
    for at in range(atoms.starts[k], atoms.starts[k + 1]):
        i = atoms.columns[at]
        if covers is None or scratch.depth[i] == used:  # under OR, no other used atom has the column
            rise += scratch.flips[i]
    return rise


@inline
def toggle(used, k, atoms, covers, scratch):
    """Toggle atom k in the work arrays."""
    for at in range(atoms.starts[k], atoms.starts[k + 1]):
        i = atoms.columns[at]
        if covers is None or scratch.depth[i] == used:
            scratch.flips[i] = -scratch.flips[i]
        scratch.depth[i] += 1 - 2 * used


@kernel
def shorten_codes(cells, codes, atoms, bias, covers, max_atoms, costs, scratch, out):
    """Toggle the atom that lowers the cost of a row most, until none does; out[j] = cost of row j.

    ``cells`` (n, m) are 0, 1 or 2 (unknown), ``codes`` (n, p) are changed in place. A row that uses ``max_atoms`` atoms
    can only drop atoms. With ``max_atoms`` = -1 no code changes.
    """
    for j in range(cells.shape[0]):
        cost, n_used = start_row(cells, codes, j, atoms, bias, covers, costs, scratch)
        while max_atoms >= 0:
            lowest, best = 0, -1
            for k in range(codes.shape[1]):
                used = codes[j, k]
                if used or n_used < max_atoms:
                    rise = toggle_cost(used, k, atoms, covers, costs, scratch)
                    if rise < lowest:
                        lowest, best = rise, k
            if best < 0:
                break
            used = codes[j, best]
            toggle(used, best, atoms, covers, scratch)
            codes[j, best] = 1 - used
            n_used += 1 - 2 * used
            cost += lowest
        out[j] = cost
