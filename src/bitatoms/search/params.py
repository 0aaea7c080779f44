"""The parameters of a search, checked together, with every "auto" decided.

Costs of errors as users pass them: one cost, one per column, or by name or index of the column.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from ..columns.table import Header
from ..columns.variants import ranks_in
from ..engine.codelength import AtomCode
from ..engine.coding import MOST_EXACT_ATOMS
from ..engine.limits import AtomLimits
from ..engine.objective import Objective
from ..engine.prices import EQUAL_COSTS, ErrorCosts
from ..errors import InputError, Parameter
from ..model.result import Round
from ..parameters import SearchKwargs, check, checked, declaration, with_defaults
from .plan import PLANS, Plan

_CODERS_OF_SEARCH = {  # "auto" selects the first
    "paper": ("bmp", "greedy", "exact"),
    "fast": ("mdl", "beam"),
    "thorough": ("beam", "mdl"),
    "anytime": ("beam", "mdl"),
}
_ANYTIME_SECONDS = 60.0  # of the anytime search, unless the user limits its time or its rounds
_NO_LIMIT = 1 << 60  # rounds
PREFERENCE = 0.05  # by which share XOR must be better than a preferred OR: docs/how-it-works/xor-and-or.md
_ALGEBRAS = {"auto": ("xor", "or"), "prefer-or": ("or", "xor")}
_PAPER_START = 16  # atoms
_GIVEN_START = 64  # atoms to start from with a named init, in the other searches


@dataclass(frozen=True)
class SearchParams:
    """The parameters of ``factorize``, with every "auto" decided."""

    n_components: int | Literal["mdl"]
    search: str
    algebras: tuple[str, ...]  # to try, in this order
    by_codelength: bool
    update: str
    coder: str
    coder_after: str  # for coding rows with the atoms found
    init: Any  # a name, atoms, or a pair (atoms, codes)
    init_density: float
    n_init: int
    start_components: int
    max_components: int | None
    patience: int | None
    max_atoms_per_sample: int | None
    residual_limit: int
    max_iter: int
    plan: Plan  # of the searches other than the paper's
    max_time: float | None
    search_rows: int | Literal["auto"] | None  # larger tables are searched by a subsample of this size
    callbacks: tuple[Callable[[Round], object], ...]
    regions: tuple[NDArray[np.intp], ...] | None = None  # the columns of each chromosome in the order of positions
    bias: bool = True  # whether a bias may be learned
    fixed_atoms: Any = None  # as the user passed them; after `api.with_columns_of` bits with the columns of the table
    limits: AtomLimits = field(default_factory=AtomLimits)
    given_costs: tuple[Any, Any] = (1.0, 1.0)  # of missed and of added ones, as the user passed them
    costs: ErrorCosts = EQUAL_COSTS  # the same for each column, once the columns are known

    def objective(self, algebra: str, share: float = 1.0) -> Objective:
        """Return what to minimize in this algebra, on this share of the rows."""
        limits = self.max_atoms_per_sample, self.residual_limit
        has_bias = self.in_algebra(algebra).bias or not self.is_mdl_search
        costs = self.costs if self.by_codelength else EQUAL_COSTS
        return Objective(self.by_codelength, algebra, *limits, share, self.atom_code, costs, has_bias)

    @property
    def atom_code(self) -> AtomCode:
        """How atoms are described: by stretches, where columns have positions."""
        return AtomCode(ranks_in(self.regions))

    @property
    def settles_bias(self) -> bool:
        """Whether the bias takes the columns that are wrong in more than half of the rows (see `engine.objective`).

        With the fewest wrong cells as the objective, and in the paper, a table is codes times atoms without a bias.
        """
        return self.is_mdl_search and self.bias

    @property
    def is_mdl_search(self) -> bool:
        """Whether moves of the search lower the codelength; the paper's search only compares results by it."""
        return self.by_codelength and self.search != "paper"

    def in_algebra(self, algebra: str) -> SearchParams:
        """Return the parameters for this algebra: under OR, there is no bias beside fixed atoms.

        An atom would take away what the bias sets, and fixed atoms must mean what they say.
        """
        return replace(self, bias=False) if algebra == "or" and self.n_fixed and self.bias else self

    @property
    def n_fixed(self) -> int:
        """The number of atoms that stay as they are; in results and passes, they come first."""
        return 0 if self.fixed_atoms is None else len(self.fixed_atoms)

    @property
    def is_constrained(self) -> bool:
        """Whether the result must fulfil what a search does not know of (see `search.constraints`)."""
        return self.n_fixed > 0 or bool(self.limits)

    def unconstrained(self, n_frozen: int) -> SearchParams | None:
        """Return the parameters of a search without constraints for atoms beside this many others; None for none."""
        wanted, most = self.n_components, self.max_components
        if wanted != "mdl":
            wanted -= n_frozen
        most = None if most is None else most - n_frozen
        if 0 in (wanted, most):
            return None
        plan = self.plan.for_atoms(wanted, most)
        return replace(self, n_components=wanted, max_components=most, plan=plan, fixed_atoms=None, limits=AtomLimits())

    def is_wide(self, n_features: int) -> bool:
        """Return whether to search windows of the columns.

        Limits on the atoms of a row or of the table concern all windows together, and so do atoms to start from.
        """
        is_free = self.n_components == "mdl" and self.max_components is None and self.search in ("fast", "thorough")
        is_free &= self.max_atoms_per_sample is None and self.residual_limit == 0
        return is_free and self.looks_for_starts and n_features >= self.plan.windows.min_features

    @property
    def looks_for_starts(self) -> bool:
        """Whether the search chooses where it starts, and no factors are passed or named."""
        return _is_auto(self.init)

    @property
    def prefers_or(self) -> bool:
        """Whether OR, which is tried first, is kept unless XOR is better by `PREFERENCE`."""
        return self.algebras == _ALGEBRAS["prefer-or"]

    def best_algebra(self, costs: Sequence[int]) -> int:
        """Return the index of the algebra to keep, from what the result in each costs; on a tie the first."""
        best = int(np.argmin(costs))
        margin = PREFERENCE if self.prefers_or else 0.0
        return best if costs[best] < costs[0] - margin * costs[0] else 0

    @property
    def compares_errors(self) -> bool:
        """Whether algebras are compared by wrong cells; "auto" always compares codelengths."""
        return self.prefers_or and not self.by_codelength

    @property
    def ends_at_limit(self) -> bool:
        """Whether a limit on time or rounds is how the search is meant to end, and no reason for a warning."""
        return self.search == "anytime"

    @property
    def scratch_coder(self) -> str:
        """The coder of rows that have no codes yet, in passes and streams."""
        return "beam" if self.search in ("thorough", "anytime") else "mend"

    def deadline(self) -> float:
        """Return the time at which a search that starts now must end."""
        return float("inf") if self.max_time is None else time.perf_counter() + self.max_time


def resolve(n_components: Any = "mdl", **parameters: Unpack[SearchKwargs]) -> SearchParams:
    """Check the parameters, each alone and together, and decide those that are "auto"."""
    given = checked(SearchKwargs, with_defaults(SearchKwargs, parameters))
    n_components = check("n_components", n_components, declaration("n_components"))
    search, max_components = given["search"], given["max_components"]
    by_mdl, as_published = n_components == "mdl", search == "paper"
    costs = given["false_negative_cost"], given["false_positive_cost"]
    has_costs = not all(is_neutral(cost) for cost in costs)
    by_codelength = by_mdl or has_costs if given["objective"] == "auto" else given["objective"] == "codelength"
    _check_together(given, by_mdl, by_codelength)
    if has_costs:
        check_costs(given, by_codelength)
    # The anytime search has no limit of rounds, unless the user sets one.
    is_anytime = search == "anytime" and given["max_iter"] == declaration("max_iter")[1].default
    max_rounds = _NO_LIMIT if is_anytime else given["max_iter"]
    coder = _resolve_coder(given["coder"], search, by_codelength, n_components)
    exact = as_published and coder == "exact"
    if exact and by_mdl:
        max_components = MOST_EXACT_ATOMS if max_components is None else min(MOST_EXACT_ATOMS, max_components)
    start = None if given["start_components"] == "auto" else given["start_components"]
    if start is not None and max_components is not None and start > max_components:
        raise InputError(
            Parameter("start_components", start), " is greater than ", Parameter("max_components", max_components)
        )
    plan = _plan(given, coder, start, max_rounds)
    return SearchParams(
        n_components=n_components,
        search=search,
        algebras=("or",) if has_costs else _ALGEBRAS.get(given["algebra"], (given["algebra"],)),
        by_codelength=by_codelength,
        update="exact" if exact and given["update"] == "mob" else given["update"],
        coder=coder,
        # Without codes to start from, toggling one atom at a time gets stuck under XOR; the beam does not.
        coder_after="beam" if given["coder"] == "auto" and coder in ("mdl", "greedy") else coder,
        init=("greedy" if exact else "samples") if _is_auto(given["init"]) and as_published else given["init"],
        init_density=given["init_density"],
        n_init=1 if given["n_init"] == "auto" else given["n_init"],
        start_components=_start_components(start, as_published, exact, max_components),
        max_components=max_components,
        patience=1 if given["patience"] == "auto" else given["patience"],
        max_atoms_per_sample=given["max_atoms_per_sample"],
        residual_limit=given["residual_limit"],
        max_iter=given["max_iter"],
        plan=plan if as_published else plan.for_atoms(n_components, max_components),
        max_time=_ANYTIME_SECONDS if is_anytime and given["max_time"] is None else given["max_time"],
        search_rows=given["search_rows"],
        callbacks=given["callbacks"],
        bias=given["bias"] and not has_costs,
        fixed_atoms=given["fixed_atoms"],
        limits=AtomLimits(
            given["max_features_per_atom"], given["min_samples_per_atom"], given["apart"], given["together"]
        ),
        given_costs=costs,
    )


def _check_together(given: dict[str, Any], by_mdl: bool, by_codelength: bool) -> None:
    """Raise an error for parameters that exclude each other."""
    search, as_published = Parameter("search", given["search"]), given["search"] == "paper"
    if by_mdl and not by_codelength:
        raise InputError(
            Parameter("objective", "errors"), " requires a number as ", Parameter("n_components"),
            ': "mdl" chooses the number of atoms by the codelength',
        )  # fmt: skip
    if as_published and by_codelength and not by_mdl:
        raise InputError(
            search, " with a fixed ", Parameter("n_components"), " minimizes the number of wrong cells; use ",
            Parameter("search", "fast"), ", ", Parameter("n_components", "mdl"), " or ",
            Parameter("objective", "errors"),
        )  # fmt: skip
    for name in ("fixed_atoms", "max_features_per_atom", "min_samples_per_atom", "apart", "together"):
        is_given = given[name] is not None and not (isinstance(given[name], tuple) and not given[name])
        if as_published and is_given:
            raise InputError(
                search, " learns all atoms, without limits, as published; use ", Parameter("search", "fast"),
                " with ", Parameter(name),
            )  # fmt: skip
    if given["update"] == "k-prox" and not as_published:
        raise InputError(
            Parameter("update", "k-prox"), " requires ", Parameter("search", "paper"), "; ", search,
            " updates all atoms together",
        )  # fmt: skip
    if as_published and by_mdl and given["patience"] is None and given["max_components"] is None:
        raise InputError("patience=None continues to max_components; set ", Parameter("max_components"))


def _resolve_coder(coder: str, search: str, by_codelength: bool, n_components: Any) -> str:
    """Return the coder; "auto" is the first that the search can use."""
    if search == "paper" or by_codelength:
        choices = _CODERS_OF_SEARCH[search]
    else:  # a fixed number of atoms with the fewest wrong bits
        choices = ("exact",) if n_components <= MOST_EXACT_ATOMS else ("greedy",)
    if coder == "auto":
        return choices[0]
    if coder not in choices:
        objective = "the codelength" if by_codelength else f"the fewest errors of {n_components} atoms"
        needed = (
            (Parameter("search", "paper"),)
            if coder in _CODERS_OF_SEARCH["paper"]
            else (Parameter("search", "fast"), " and the codelength as objective")
        )
        raise InputError(
            Parameter("search", search), f" for {objective} uses the coder {' or '.join(map(repr, choices))}; ",
            Parameter("coder", coder), " requires ", *needed,
        )  # fmt: skip
    return coder


def _start_components(start: int | None, as_published: bool, exact: bool, max_components: int | None) -> int:
    """Return the number of atoms that "mdl" starts with, where it has one start."""
    if start is None:
        start = (1 if exact else _PAPER_START) if as_published else _GIVEN_START
    return start if max_components is None else min(start, max_components)


def _plan(given: dict[str, Any], coder: str, start: int | None, max_rounds: int) -> Plan:
    """Return the plan of the searches other than the paper's, for any number of atoms."""
    plan = PLANS.get(given["search"], PLANS["fast"])
    return replace(
        plan,
        starts=plan.starts if start is None else (start,),
        only_starts=start is not None,
        patience=plan.patience if given["patience"] == "auto" else given["patience"],
        max_rounds=max_rounds,
        by_beam=coder == "beam",
    )


def check_exact(coder: str, n_atoms: int) -> None:
    """Raise an error if there are too many atoms to try all codes."""
    if coder == "exact" and n_atoms > MOST_EXACT_ATOMS:
        raise InputError(
            Parameter("coder", "exact"),
            f" tries all 2**p codes and supports at most {MOST_EXACT_ATOMS} atoms, not {n_atoms}; use ",
            Parameter("coder", "greedy"), " or fewer atoms",
        )  # fmt: skip


def _is_auto(value: Any) -> bool:
    """Return whether a parameter is to be decided."""
    return isinstance(value, str) and value == "auto"


_MISSED, _ADDED = "false_negative_cost", "false_positive_cost"


def is_neutral(cost: Any) -> bool:
    """Return whether the cost of an error is 1 in all columns."""
    return bool((_numbers(cost) == 1).all())


def check_costs(given: dict[str, Any], by_codelength: bool) -> None:
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


def costs_of_columns(missed: Any, added: Any, header: Header) -> ErrorCosts:
    """Return the costs of errors in the columns of a table; raise an error if they do not fit."""
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
