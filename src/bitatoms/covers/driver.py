"""`search_cover`: from a table and options to a `Cover`, with a lower bound of what any exact cover costs."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..engine.block import reconstruct
from ..engine.codelength import string_bits
from . import costs
from .cells import Ones
from .coding import code_from_below
from .limits import RoleLimits
from .monitor import CoverMonitor
from .options import CoverOptions
from .problem import Problem, Role
from .result import Cover
from .search import CoverPlan, find_cover
from .verification import verified

PLAN = CoverPlan()


def search_cover(data: BitMatrix, options: CoverOptions, generator: np.random.Generator, limits: RoleLimits) -> Cover:
    """Return an exact cover of a table whose cells are all known.

    After Ctrl-C in the search it is the best one so far.
    """
    objective, n_seconds = options.objective, options.max_time
    deadline = float("inf") if n_seconds is None else time.perf_counter() + n_seconds
    problem, fixed = Problem.from_bits(data, limits), limits.fixed
    fixed_codes = code_from_below(data, fixed)
    cost = _role_cost(options, problem)
    fixed_counts = len(fixed), fixed_codes.count() + fixed.count()
    monitor = CoverMonitor(problem, cost, deadline, options.callbacks, fixed_counts)
    rng = random.Random(int(generator.integers(2**63)))
    ended = find_cover(monitor, rng, options.max_iter, PLAN)
    roles = _without_direct(problem, cost, monitor.roles)
    atoms = stack_rows([fixed, problem.atoms(roles)], data.n_cols)
    codes = stack_rows([fixed_codes.T, problem.codes(roles).T], len(data)).T
    product = reconstruct(codes, atoms, np.zeros(data.n_cols, np.uint8), "or")
    direct = data ^ product  # every role consists of ones
    total, n_independent = sum(cost.of(*problem.size(role)) for role in roles), len(monitor.independent.rows)
    fixed_sizes = list(zip(fixed_codes.column_weights().tolist(), fixed.row_weights().tolist(), strict=True))
    total += sum(cost.of_fixed(*size) for size in fixed_sizes)
    n_needed = n_independent if options.direct_weight is not None else _n_needed(problem, n_independent)
    if isinstance(cost, costs.CodelengthCost):
        errors = int(string_bits(len(data), np.zeros(data.n_cols, np.int64)).sum())  # no cell is wrong
        total, bound = errors + total, errors + cost.cheapest * n_needed
        bound += sum(cost.least_of(n_permissions) for _, n_permissions in fixed_sizes)
    elif objective == "roles":
        total, bound = len(atoms), len(fixed) + n_needed
    else:
        total += (cost.direct or 0) * direct.count()
        bound = _assignment_bound(problem, cost, n_needed) + sum(cost.of_fixed(0, size[1]) for size in fixed_sizes)
    cover = Cover(
        atoms=atoms,
        codes=codes,
        direct=direct,
        objective=objective,
        cost=costs.unscaled(total, cost.scale),
        lower_bound=costs.unscaled(bound, cost.scale),
        independent=_first_of_each(problem, monitor.independent),
        ended=ended,
        is_limited=limits.has_any,
        history=tuple(monitor.history),
    )
    return verified(cover, data, options, limits)


def _role_cost(options: CoverOptions, problem: Problem) -> costs.AssignmentCost | costs.CodelengthCost:
    """Return what a role costs."""
    if options.objective == "codelength":
        return costs.CodelengthCost(*problem.shape)
    if options.objective == "roles":
        n_rows, n_columns = problem.shape
        return costs.fewest_roles(n_rows, n_columns, n_columns if problem.restricts else min(n_rows, n_columns))
    return costs.AssignmentCost(options.weights, options.direct_weight)


def _n_needed(problem: Problem, n_independent: int) -> int:
    """Return the number of roles that every cover without direct grants has at least, besides fixed roles."""
    if problem.max_columns is None:
        return n_independent
    counts = zip(problem.column_counts.each, problem.rows_to_cover, strict=True)
    n_columns = sum(count for count, rows in counts if rows)
    return max(n_independent, -(-n_columns // problem.max_columns))


def _assignment_bound(problem: Problem, cost: costs.AssignmentCost, n_independent: int) -> int:
    """Return a lower bound of weighted structural complexity.

    Each of the independent ones has a role of its own, and each user and each permission at least one assignment. Where
    permissions may be granted directly, a third of what each such cell costs counts for its role, its user and its
    permission, so that each of these costs at least a third of its cells if it does without. Fixed roles and their
    permissions are not counted; permissions and direct grants are those of ones that fixed roles cannot cover.
    """
    if cost.direct is None:
        n_permissions = sum(
            count for count, rows in zip(problem.column_counts.each, problem.rows_to_cover, strict=True) if rows
        )
        return cost.role * n_independent + cost.user * sum(problem.row_counts.each) + cost.permission * n_permissions
    thirds = min(3 * cost.role, cost.direct) * n_independent
    for row, count in enumerate(problem.row_counts.each):
        thirds += count * min(3 * cost.user, cost.direct * problem.column_counts.of(problem.to_cover[row]))
    for column, count in enumerate(problem.column_counts.each):
        thirds += count * min(3 * cost.permission, cost.direct * problem.row_counts.of(problem.rows_to_cover[column]))
    return -(-thirds // 3)


def _without_direct(problem: Problem, cost: costs.RoleCost, roles: Sequence[Role]) -> list[Role]:
    """Return the roles that are not granted directly instead, the one that covers most ones first."""
    sizes = {role: problem.size(role) for role in roles}
    ordered = sorted(sizes, key=lambda role: (-sizes[role][0] * sizes[role][1], role))
    return [role for role in ordered if not cost.is_direct(*sizes[role])]


def _first_of_each(problem: Problem, cells: Ones) -> NDArray[np.int64]:
    """Return cells of distinct rows and columns as those of the first such rows and columns of the table."""
    pairs = zip(cells.rows.tolist(), cells.columns.tolist(), strict=True)
    first = [(np.argmax(problem.row_of == row), np.argmax(problem.column_of == column)) for row, column in pairs]
    return np.array(first, np.int64).reshape(-1, 2)
