"""The fewest roles as a graph: its vertices are ones, and two are adjacent if they fit into one role.

Two ones (u, p) and (v, q) fit into one role if (u, q) and (v, p) are ones too. Ones of which every two fit together all
fit into one role, so that roles are cliques, and a cover of the table is a cover of the vertices by cliques. Only ones
that no other one implies are vertices: (u, p) is implied by (v, q) if row v has no column that row u lacks, and column
q no row that column p lacks. Every role with (v, q) can then be extended to (u, p).

A. Ene, W. Horne, N. Milosavljevic, P. Rao, R. Schreiber, R. E. Tarjan, "Fast exact and heuristic methods for role
minimization problems", SACMAT 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .graph import Graph
from .masks import full, indices, mask_of, rows_of_masks, union
from .problem import Problem, Role


class Ones(NamedTuple):
    """Some ones of a problem: their rows and their columns."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    def take(self, which: ArrayLike) -> Ones:
        """Return some of the ones, by index."""
        return Ones(self.rows[np.asarray(which, np.intp)], self.columns[np.asarray(which, np.intp)])


NO_ONES = Ones(np.empty(0, np.intp), np.empty(0, np.intp))


def essential_cells(problem: Problem, should_stop: Callable[[], bool]) -> Ones:
    """Return the ones that no other one implies; only some of them if ``should_stop`` ends this early."""

    def goes_on(_: int) -> bool:
        return not should_stop()

    implying = list(takewhile(goes_on, _subsets(problem.columns, problem.rows)))
    rows, columns = [], []
    for row, within in enumerate(takewhile(goes_on, _subsets(problem.rows, problem.columns))):  # rows within each row
        smaller = [problem.rows[other] for other in indices(within & ~(1 << row))]
        below = union(smaller)  # columns of smaller rows
        for column in indices(problem.rows[row] & ~below):
            # Smaller columns in this row imply the cell too.
            if not implying[column] & (problem.rows[row] & ~(1 << column)) and not implying[column] & below:
                rows.append(row)
                columns.append(column)
    return Ones(np.array(rows, np.intp), np.array(columns, np.intp))


def cells_to_cover(problem: Problem) -> Ones:
    """Return all ones that fixed roles do not cover."""
    rows, columns = np.nonzero(rows_of_masks(problem.to_cover, len(problem.columns)))
    return Ones(rows, columns)


def compatible(problem: Problem, cells: Ones) -> Graph:
    """Return the graph of the cells, in which two are adjacent if they fit into one role."""
    row_cells = [mask_of(row[cells.columns]) for row in rows_of_masks(problem.rows, len(problem.columns))]
    column_cells = [mask_of(column[cells.rows]) for column in rows_of_masks(problem.columns, len(problem.rows))]
    pairs = zip(cells.rows.tolist(), cells.columns.tolist(), strict=True)
    if not problem.apart:
        return Graph(tuple(row_cells[row] & column_cells[column] for row, column in pairs))
    apart = rows_of_masks(problem.apart_from, len(problem.columns))
    apart_cells = [mask_of(columns[cells.columns]) for columns in apart]
    return Graph(tuple(row_cells[row] & column_cells[column] & ~apart_cells[column] for row, column in pairs))


def role_of(problem: Problem, cells: Ones, clique: int) -> Role:
    """Return the role of all rows with the columns of cells that fit together, and of all columns these rows share.

    If roles are limited, it has only the columns of the cells.
    """
    columns = union(1 << int(cells.columns[cell]) for cell in indices(clique))
    users = problem.support(columns)
    return Role(users, columns if problem.restricts else problem.common(users))


def _subsets(sets: Sequence[int], elements: Sequence[int]) -> Iterator[int]:
    """Yield which of the sets each set contains, itself included; ``elements`` are the sets that have each element."""
    every, every_element = full(len(sets)), full(len(elements))
    for mask in sets:
        yield every & ~union(elements[other] for other in indices(every_element & ~mask))
