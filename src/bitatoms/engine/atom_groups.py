"""Groups of atoms that have no column in common with those of other groups.

Whether a row uses the atoms of one group has no influence on the others: each group is coded on its own, with its
columns only. Wide tables have many such groups, because their atoms come from windows of the columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ..sparse_bits import Bits

Indices = NDArray[np.intp]


def atom_groups(atoms: Bits, width: int) -> list[tuple[Indices, Indices]]:
    """Return atoms and columns of each group; small groups are put together until they have about ``width`` columns.

    Columns that no atom has are in no group. An atom without ones is in the first group, if there is one.
    """
    n_atoms, ones = atoms.n_rows, atoms.to_sparse()
    n_nodes = n_atoms + atoms.n_cols  # of a graph with an edge from each atom to each of its columns
    starts = np.concatenate((ones.indptr, np.full(atoms.n_cols, ones.indptr[-1])))
    graph = csr_array((ones.data, ones.indices + n_atoms, starts), shape=(n_nodes, n_nodes))
    _, component = connected_components(graph, directed=False)
    columns = np.flatnonzero(atoms.column_weights())
    found, first, sizes = np.unique(component[n_atoms + columns], return_index=True, return_counts=True)
    by_place = np.argsort(first)
    group = np.zeros(component.max(initial=-1) + 1, np.intp)
    group[found[by_place]] = np.unique((np.cumsum(sizes[by_place]) - 1) // width, return_inverse=True)[1]
    members = [_by_group(group[component[:n_atoms]]), _by_group(group[component[n_atoms + columns]])]
    return [(own, columns[at]) for own, at in zip(*members, strict=True)] if len(columns) else []


def _by_group(groups: Indices) -> list[Indices]:
    """Return the indices of the members of each group, in ascending order."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
