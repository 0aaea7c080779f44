"""Lower bounds of what any exact cover costs, from ones no two of which fit into one role."""

from __future__ import annotations

from .costs import AssignmentCost, CodelengthCost
from .problem import Problem


def n_needed(problem: Problem, n_independent: int) -> int:
    """Return the number of roles that every cover without direct grants has at least, besides fixed roles."""
    if problem.max_columns is None:
        return n_independent
    counts = zip(problem.column_counts.each, problem.rows_to_cover, strict=True)
    n_columns = sum(count for count, rows in counts if rows)
    return max(n_independent, -(-n_columns // problem.max_columns))


def assignment_bound(problem: Problem, cost: AssignmentCost, n_independent: int) -> int:
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


def codelength_bound(cost: CodelengthCost, n_independent: int) -> int:
    """Return a lower bound of the bits of the roles: as many as there are independent ones, each of the cheapest."""
    return cost.cheapest * n_independent
