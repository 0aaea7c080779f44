"""Costs of errors as users pass them: one cost, one per column, or by name or index of the column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.error_costs import ErrorCosts
from ..errors import InputError, Parameter
from ..table import Header

_MISSED, _ADDED = "false_negative_cost", "false_positive_cost"


def is_neutral(cost: Any) -> bool:
    """Return whether the cost of an error is 1 in all columns."""
    return bool((_numbers(cost) == 1).all())


def check_costs(given: dict[str, Any], by_mdl: bool, by_codelength: bool) -> None:
    """Raise an error for parameters that exclude costs of errors, of which there are some."""
    cost = Parameter(next(name for name in (_ADDED, _MISSED) if not is_neutral(given[name])))
    if given["algebra"] == "xor":
        raise InputError(
            cost, " requires ", Parameter("algebra", "or"), ": under XOR, whether an atom adds a one or takes it away "
            "depends on the other atoms of the row",
        )  # fmt: skip
    if given["search"] == "paper" or not by_codelength:
        other = ("search", "paper") if given["search"] == "paper" else ("objective", "errors")
        raise InputError(cost, " requires the codelength as objective; ", Parameter(*other), " does not know costs")
    if np.isinf(_numbers(given[_MISSED])).any():
        is_set = {
            "n_components": not by_mdl,
            "max_components": given["max_components"] is not None,
            "max_atoms_per_sample": given["max_atoms_per_sample"] is not None,
            "residual_limit": given["residual_limit"] > 0,
            "fixed_atoms": given["fixed_atoms"] is not None,
            "max_features_per_atom": given["max_features_per_atom"] is not None,
            "min_samples_per_atom": given["min_samples_per_atom"] is not None,
            "apart": bool(given["apart"]),
            "together": bool(given["together"]),
        }
        if limits := [name for name, value in is_set.items() if value]:
            raise InputError(
                Parameter(_MISSED, math.inf), " takes as many atoms as there are ones to explain, and excludes ",
                Parameter(limits[0]), "; pass a large finite cost instead",
            )  # fmt: skip


def costs_of_columns(missed: Any, added: Any, header: Header) -> ErrorCosts | None:
    """Return the costs of errors in the columns of a table, None if all are 1; raise an error if they do not fit."""
    costs = _of_columns(_MISSED, missed, header), _of_columns(_ADDED, added, header)
    return ErrorCosts.of_columns(*costs, header.n_cols)


def _of_columns(name: str, cost: Any, header: Header) -> NDArray[np.float64]:
    """Return one cost, or one per column."""
    if not isinstance(cost, Mapping):
        costs = _numbers(cost)
        if costs.ndim and len(costs) != header.n_cols:
            raise InputError(Parameter(name), f" has {len(costs)} costs, but the table has {header.n_cols} columns")
        return costs
    index: dict[Any, int] = {i: i for i in range(header.n_cols)}
    index |= {column: i for i, column in enumerate(header.names or ())}
    if unknown := [column for column in cost if column not in index]:
        why = "the table has no such column" if header.names else "columns without names are given by their index"
        raise InputError(Parameter(name), f" has a cost for {unknown[0]!r}, but {why}")
    costs = np.ones(header.n_cols)
    costs[[index[column] for column in cost]] = list(cost.values())
    return costs


def _numbers(cost: Any) -> NDArray[np.float64]:
    """Return one cost, one per column, or those of a mapping of columns to costs."""
    return np.asarray(list(cost.values()) if isinstance(cost, Mapping) else cost, np.float64)
