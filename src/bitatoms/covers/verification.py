"""The check of every cover against the table and the parameters before it is returned, whatever found it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..errors import InternalError
from .costs import AssignmentCost, unscaled
from .limits import RoleLimits
from .options import CoverOptions
from .result import Cover


def verified(cover: Cover, data: BitMatrix, options: CoverOptions, limits: RoleLimits) -> Cover:
    """Return a cover of a table; raise `InternalError` unless it is exact, within its limits, and states its cost."""
    for what, holds in _claims(cover, data, options, limits):
        if not holds:
            raise InternalError(f"the cover that was found is invalid: {what}")
    return cover


def _claims(
    cover: Cover, data: BitMatrix, options: CoverOptions, limits: RoleLimits
) -> Iterator[tuple[str, bool | np.bool_]]:
    """Yield what could be wrong, and whether it is right."""
    roles, n_fixed = cover.atoms, len(limits.fixed)
    yield "roles and direct grants are not the table", cover.reconstruct() == data
    yield "it has direct grants", options.direct_weight is not None or cover.n_direct == 0
    yield "fixed roles were changed", roles[:n_fixed] == limits.fixed
    yield "a role has no users", (cover.codes.column_weights()[n_fixed:] > 0).all()
    yield "a role has no permissions", (roles.row_weights()[n_fixed:] > 0).all()
    n_features = roles.row_weights()
    yield "a role has too many features", limits.max_features is None or (n_features <= limits.max_features).all()
    for columns in limits.apart:
        yield "a role has features that are apart", (_n_of(roles, columns) <= 1).all()
    for columns in limits.together:
        yield (
            "a role has some of the features that are together",
            np.isin(_n_of(roles, columns), (0, len(columns))).all(),
        )
    yield f"its cost is {_cost(cover, options)}, not {cover.cost}", _cost(cover, options) == cover.cost
    yield f"it costs {cover.cost}, less than its bound {cover.lower_bound}", cover.lower_bound <= cover.cost
    yield "the lower bound is not proved", _are_independent(cover.independent, data, limits)


def _n_of(roles: BitMatrix, columns: tuple[int, ...]) -> NDArray[np.int64]:
    """Return how many of the columns each role has."""
    return roles.take_columns(np.array(columns, np.int64)).row_weights()


def _cost(cover: Cover, options: CoverOptions) -> float:
    """Return what a cover costs, by definition."""
    if cover.objective == "roles":
        return cover.n_roles
    if cover.objective == "codelength":
        return cover.codelength.total
    weights = AssignmentCost(options.weights, options.direct_weight)
    total = weights.role * cover.n_roles + weights.user * cover.n_user_assignments
    total += weights.permission * cover.n_permission_assignments + (weights.direct or 0) * cover.n_direct
    return unscaled(total, weights.scale)


def _are_independent(cells: NDArray[np.int64], data: BitMatrix, limits: RoleLimits) -> bool:
    """Return whether the cells are ones that no fixed role covers, and no two of them fit into one role."""
    rows, columns = cells.T
    of_rows = data[rows]
    shared = of_rows.take_columns(columns).to_dense(bool)  # row i has the column of cell j
    fits = shared & shared.T
    group = limits.groups()[columns]
    for apart in limits.apart:
        members = np.isin(group, limits.groups()[list(apart)])
        fits &= ~(members[:, np.newaxis] & members & (group[:, np.newaxis] != group))
    for role, bits in zip(limits.fixed.words, limits.fixed.to_dense(bool), strict=True):
        if (bits[columns] & ~(role & ~of_rows.words).any(axis=1)).any():
            return False  # a fixed role covers a cell
    return bool(shared.diagonal().all() and fits.sum() == len(cells))
