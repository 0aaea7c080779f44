"""`find_cover`: an exact cover that costs little, and ones that show how many roles every cover has at least.

The fewest roles are searched as cliques (`cells.py`, `graph.py`). The search for the lowest cost starts from the roles
that are found, or from those that `repair` finds for all ones, and exchanges roles that are near each other.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from .cells import Ones, cells_to_cover, compatible, essential_cells, role_of
from .graph import cover_by_cliques
from .masks import indices, union
from .monitor import CoverMonitor
from .problem import Problem, Role
from .repair import Uncovered, repair
from .state import CoverState


@dataclass(frozen=True)
class CoverPlan:
    """How widely a search looks."""

    max_cells: int = 4000  # ones of a graph; if there are more, they are covered in batches
    clique_steps: int = 1000  # of the search for few cliques
    round_work: int = 20_000  # of `CoverState.work` in a round: about a quarter of a second
    max_removed: int = 5  # roles that are exchanged at once
    noise: float = 0.5  # see `repair`
    patience: int = 30  # exchanges per role without a gain after which the search has converged,
    min_patience: int = 300  # at least


def find_cover(monitor: CoverMonitor, rng: random.Random, max_rounds: int, plan: CoverPlan) -> str:
    """Search for a cover and for independent ones, which the monitor keeps; return why the search ended."""
    problem, cost = monitor.problem, monitor.cost
    try:
        for trivial in (problem.row_roles, problem.column_roles):
            monitor.keep(trivial, sum(cost.of(*problem.size(role)) for role in trivial))
        monitor.record("rows or columns")
        if not monitor.roles:
            return "converged"
        roles = fewest_roles(monitor, rng, plan)
        if roles is not None:
            _keep_trimmed(monitor, CoverState(problem, cost, roles), "cliques")
        if monitor.should_stop():
            return str(monitor.stop_reason)
        state = CoverState(problem, cost, ())
        if repair(state, Uncovered(dict(enumerate(problem.to_cover))), rng, 0.0, monitor.should_stop):
            _keep_trimmed(monitor, state, "greedy")
        return _exchange_rounds(monitor, rng, max_rounds, plan)
    except KeyboardInterrupt:
        return "interrupted"


def fewest_roles(monitor: CoverMonitor, rng: random.Random, plan: CoverPlan) -> list[Role] | None:
    """Return few roles that cover all ones, or None if the search should stop before they do.

    The monitor keeps ones no two of which fit into one role.
    """
    problem, should_stop = monitor.problem, monitor.should_stop
    # With limits, roles that cover a one cannot always be extended to the ones that it implies.
    is_limited = problem.restricts or problem.fixed
    cells = cells_to_cover(problem) if is_limited else essential_cells(problem, should_stop)
    if should_stop():
        return None
    roles: list[Role] = []
    left = np.arange(len(cells.rows))
    while len(left):
        if should_stop():
            return None
        batch = left if len(left) <= plan.max_cells else np.sort(rng.sample(left.tolist(), plan.max_cells))
        chosen = cells.take(batch)
        found = cover_by_cliques(compatible(problem, chosen), rng, plan.clique_steps, should_stop)
        monitor.keep_independent(chosen.take(list(indices(found.independent))))
        if should_stop() and len(found.cliques) >= min(len(problem.rows), len(problem.columns)):
            return None  # most of the cells were not reached, and one role per row or column costs less
        added = [
            Role(role.users, part)
            for role in (role_of(problem, chosen, clique) for clique in found.cliques)
            for part in problem.allowed_parts(role.permissions)
        ]
        roles += added
        left = left[~_covered(problem, cells.take(left), added)]
    return roles


def exchange_roles(state: CoverState, rng: random.Random, plan: CoverPlan, should_stop: Callable[[], bool]) -> bool:
    """Remove a role and some near it, cover again, and trim; take that back if it costs more. Return if it costs less.

    Near a role are those that its users have too, or those with some of its permissions. An exchange that
    ``should_stop`` ends is taken back too.
    """
    before = state.cost
    removed = _drawn_roles(state, rng, plan.max_removed)
    affected = union(state.roles[number].users for number in removed)
    for number in removed:
        state.remove(number)
    rows = state.problem.rows
    uncovered = Uncovered({row: rows[row] & ~state.covered(row) for row in indices(affected)})
    if not repair(state, uncovered, rng, plan.noise, should_stop):
        state.undo()
        return False
    order = list(indices(union(state.row_roles[row] for row in indices(affected))))
    rng.shuffle(order)
    state.trim(order, affected)
    if state.cost > before:
        state.undo()
        return False
    state.commit()
    return state.cost < before


def _exchange_rounds(monitor: CoverMonitor, rng: random.Random, max_rounds: int, plan: CoverPlan) -> str:
    """Exchange roles of the best cover until that gains nothing any more; return why it ended."""
    state = CoverState(monitor.problem, monitor.cost, monitor.roles)
    n_idle, has_converged = 0, False  # exchanges since the last gain
    for _ in range(max_rounds):
        if monitor.should_stop():
            break
        state.work = 0
        while state.work < plan.round_work and not has_converged and not monitor.should_stop():
            if exchange_roles(state, rng, plan, monitor.should_stop):
                monitor.keep(state.roles.values(), state.cost)
                n_idle = 0
            else:
                n_idle += 1
            has_converged = n_idle > max(plan.min_patience, plan.patience * len(state.roles))
        monitor.record("exchange")
        if has_converged:
            return "converged"
    return monitor.stop_reason or "max_iter"


def _keep_trimmed(monitor: CoverMonitor, state: CoverState, move: str) -> None:
    """Trim all roles of a cover, those that cover little first, and keep it if it is the best."""
    order = sorted(state.roles, key=lambda number: _area(state.problem, state.roles[number]))
    state.trim(takewhile(lambda _: not monitor.should_stop(), order), -1)
    monitor.keep(state.roles.values(), state.cost)
    monitor.record(move)


def _area(problem: Problem, role: Role) -> int:
    """Return the number of ones of the table in a role."""
    n_users, n_permissions = problem.size(role)
    return n_users * n_permissions


def _covered(problem: Problem, cells: Ones, roles: list[Role]) -> NDArray[np.bool_]:
    """Return which cells the roles cover."""
    covered = [0] * len(problem.rows)  # columns of each row
    for role in roles:
        for row in indices(role.users):
            covered[row] |= role.permissions
    pairs = zip(cells.rows.tolist(), cells.columns.tolist(), strict=True)
    return np.array([covered[row] >> column & 1 for row, column in pairs], bool)


def _drawn_roles(state: CoverState, rng: random.Random, n_most: int) -> list[int]:
    """Return a random role and some near it, ``n_most`` in all at most."""
    first = rng.choice(list(state.roles))
    role = state.roles[first]
    if rng.random() < 0.5:
        near = union(state.row_roles[row] for row in indices(role.users))
    else:
        near = union(state.column_roles[column] for column in indices(role.permissions))
    others = list(indices(near & ~(1 << first)))
    rng.shuffle(others)
    return [first, *others[: rng.randrange(n_most)]]
