"""The parameters of a search: its options, checked together, with every "auto" decided.

Costs of errors as users pass them: one cost, one per column, or by name or index of the column.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

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
from .options import Constraints, PaperSearch, SearchOptions
from .plan import PLANS, Plan

_ANYTIME_SECONDS = 60.0  # of the anytime search, unless the user limits its time or its rounds
_NO_LIMIT = 1 << 60  # rounds
PREFERENCE = 0.05  # by which share XOR must be better than OR: docs/how-it-works/xor-and-or.md
_PAPER_START = 16  # atoms
_GIVEN_START = 64  # atoms to start from with a named init, in the other searches
_COSTS = "false_negative_cost", "false_positive_cost"


@dataclass(frozen=True)
class SearchParams:
    """The options of ``factorize``, and what follows from them; some change with the table, and in parts of a search.

    After `api.with_columns_of`, atoms, limits and costs are those of the columns of the table.
    """

    options: SearchOptions  # as the user passed them
    paper: PaperSearch  # with a number to start with; of other searches, the defaults
    n_components: int | Literal["mdl"]
    max_components: int | None
    search: str
    algebras: tuple[str, ...]  # to try, in this order
    by_codelength: bool
    coder: str
    coder_after: str  # for coding rows with the atoms found
    init: Any  # a name, atoms, or a pair (atoms, codes)
    plan: Plan  # of the searches other than the paper's
    max_time: float | None
    callbacks: tuple[Any, ...]
    bias: bool  # whether a bias may be learned
    fixed_atoms: Any
    limits: AtomLimits
    max_atoms_per_sample: int | None
    costs: ErrorCosts = EQUAL_COSTS  # the same for each column, once the columns are known
    regions: tuple[NDArray[np.intp], ...] | None = None  # the columns of each chromosome in the order of positions

    def objective(self, algebra: str, share: float = 1.0) -> Objective:
        """Return what to minimize in this algebra, on this share of the rows."""
        has_bias = self.in_algebra(algebra).bias or not self.is_mdl_search
        costs = self.costs if self.by_codelength else EQUAL_COSTS
        return Objective(self.by_codelength, algebra, self.max_atoms_per_sample, share, self.atom_code, costs, has_bias)

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

    def has_enough_users(self, uses: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which learned atoms have the users that limits, and the search, require."""
        return self.limits.has_enough_users(uses) & (uses >= self.plan.min_users)

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
        is_free = self.n_components == "mdl" and self.max_components is None and self.max_atoms_per_sample is None
        is_free &= self.search in ("fast", "thorough") and self.looks_for_starts
        return is_free and n_features >= self.plan.windows.min_features

    @property
    def looks_for_starts(self) -> bool:
        """Whether the search chooses where it starts, and no factors are passed or named."""
        return isinstance(self.init, str) and self.init == "auto"

    def best_algebra(self, costs: Sequence[int]) -> int:
        """Return the index of the algebra to keep, from what the result in each costs: OR comes first, if it is tried.

        It is kept unless XOR is better by more than `PREFERENCE`.
        """
        best = int(np.argmin(costs))
        return best if costs[best] < costs[0] - PREFERENCE * costs[0] else 0

    @property
    def compares_errors(self) -> bool:
        """Whether algebras are compared by wrong cells, and not by codelengths."""
        return len(self.algebras) > 1 and not self.by_codelength

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


def resolve(options: SearchOptions) -> SearchParams:
    """Return the parameters of a search, after checking them together, with every "auto" decided."""
    constraints, paper, by_mdl = options.constraints or Constraints(), options.paper, options.n_components == "mdl"
    search, max_components = "paper" if paper else str(options.search), constraints.max_components
    has_costs = not (is_neutral(options.false_negative_cost) and is_neutral(options.false_positive_cost))
    by_codelength = by_mdl or has_costs if options.objective == "auto" else options.objective == "codelength"
    _check_together(options, constraints, by_codelength)
    if has_costs:
        _check_costs(options, by_codelength)
    coder = paper.coder if paper else _coder(options, by_codelength)
    is_exact_paper = paper is not None and coder == "exact"
    if is_exact_paper and by_mdl:
        max_components = MOST_EXACT_ATOMS if max_components is None else min(MOST_EXACT_ATOMS, max_components)
    # The anytime search has no limit of rounds, unless the user sets one.
    is_anytime = search == "anytime" and options.max_iter == SearchOptions.max_iter
    max_rounds = _NO_LIMIT if is_anytime else options.max_iter
    plan = replace(PLANS.get(search, PLANS["fast"]), max_rounds=max_rounds, by_beam=coder == "beam")
    init = options.init
    if paper and isinstance(init, str) and init == "auto":
        init = "greedy" if is_exact_paper else "samples"
    algebras = {"auto": ("or",) if has_costs else ("xor",) if paper else ("or", "xor")}
    return SearchParams(
        options=options,
        paper=replace(paper or PaperSearch(), start_components=_start_components(paper, max_components)),
        n_components=options.n_components,
        max_components=max_components,
        search=search,
        algebras=algebras.get(options.algebra, (options.algebra,)),
        by_codelength=by_codelength,
        coder=coder,
        # Without codes to start from, toggling one atom at a time gets stuck under XOR; the beam does not.
        coder_after="beam" if not paper and options.coder == "auto" and coder in ("mdl", "greedy") else coder,
        init=init,
        plan=plan if paper else plan.for_atoms(options.n_components, max_components),
        max_time=_ANYTIME_SECONDS if is_anytime and options.max_time is None else options.max_time,
        callbacks=options.callbacks,
        bias=constraints.bias and not has_costs,
        fixed_atoms=constraints.fixed_atoms,
        limits=AtomLimits(
            constraints.max_features_per_atom,
            constraints.min_samples_per_atom,
            constraints.apart,
            constraints.together,
        ),
        max_atoms_per_sample=constraints.max_atoms_per_sample,
    )


def _check_together(options: SearchOptions, constraints: Constraints, by_codelength: bool) -> None:
    """Raise an error for parameters that exclude each other."""
    by_mdl, paper = options.n_components == "mdl", Parameter("search", "paper")
    if by_mdl and not by_codelength:
        raise InputError(
            Parameter("objective", "errors"), " requires a number as ", Parameter("n_components"),
            ': "mdl" chooses the number of atoms by the codelength',
        )  # fmt: skip
    if options.paper is None:
        return
    if by_codelength and not by_mdl:
        raise InputError(
            paper, " with a fixed ", Parameter("n_components"), " minimizes the number of wrong cells; use ",
            Parameter("search", "fast"), ", ", Parameter("n_components", "mdl"), " or ",
            Parameter("objective", "errors"),
        )  # fmt: skip
    for name in ("fixed_atoms", "max_features_per_atom", "min_samples_per_atom", "apart", "together"):
        value = getattr(constraints, name)
        if value is not None and not (isinstance(value, tuple) and not value):
            raise InputError(
                paper, " learns all atoms, without limits, as published; use ", Parameter("search", "fast"), " with ",
                Parameter(name),
            )  # fmt: skip
    if options.coder != "auto":
        raise InputError(paper, " has its own coders; pass search=PaperSearch(coder=...) and omit ", Parameter("coder"))
    if by_mdl and options.paper.patience is None and constraints.max_components is None:
        raise InputError("patience=None continues to max_components; set ", Parameter("max_components"))


def _coder(options: SearchOptions, by_codelength: bool) -> str:
    """Return the coder of a search other than the paper's; "auto" is the first that it can use."""
    if by_codelength:
        choices, objective = ["mdl", "beam"] if options.search == "fast" else ["beam", "mdl"], "the codelength"
    else:  # a fixed number of atoms with the fewest wrong bits
        choices = ["exact" if int(options.n_components) <= MOST_EXACT_ATOMS else "greedy"]
        objective = f"the fewest errors of {options.n_components} atoms"
    if options.coder == "auto" or options.coder in choices:
        return choices[0] if options.coder == "auto" else options.coder
    needed = (
        (f'search=PaperSearch(coder="{options.coder}")',)
        if options.coder in ("greedy", "exact")
        else (Parameter("search", "fast"), " and the codelength as objective")
    )
    raise InputError(
        Parameter("search", options.search), f" for {objective} uses the coder ", " or ".join(map(repr, choices)), "; ",
        Parameter("coder", options.coder), " requires ", *needed,
    )  # fmt: skip


def _start_components(paper: PaperSearch | None, max_components: int | None) -> int:
    """Return the number of atoms that "mdl" starts with, where it has one start."""
    if paper is None:
        start = _GIVEN_START
    elif paper.start_components == "auto":
        start = 1 if paper.coder == "exact" else _PAPER_START
    else:
        start = paper.start_components
        if max_components is not None and start > max_components:
            raise InputError(
                Parameter("start_components", start), " is greater than ", Parameter("max_components", max_components)
            )
    return start if max_components is None else min(start, max_components)


def is_neutral(cost: Any) -> bool:
    """Return whether the cost of an error is 1 in all columns."""
    return bool((_numbers(cost) == 1).all())


def _check_costs(options: SearchOptions, by_codelength: bool) -> None:
    """Raise an error for parameters that exclude costs of errors, of which there are some."""
    cost = Parameter(next(name for name in reversed(_COSTS) if not is_neutral(getattr(options, name))))
    if options.algebra == "xor":
        raise InputError(
            cost, " requires ", Parameter("algebra", "or"), ": under XOR, whether an atom adds a one or takes it away "
            "depends on the other atoms of the row",
        )  # fmt: skip
    if options.paper or not by_codelength:
        other = Parameter("search", "paper") if options.paper else Parameter("objective", "errors")
        raise InputError(cost, " requires the codelength as objective; ", other, " does not know costs")


def costs_of_columns(options: SearchOptions, header: Header) -> ErrorCosts:
    """Return the costs of errors in the columns of a table; raise an error if they do not fit."""
    missed, added = (_of_columns(name, getattr(options, name), header) for name in _COSTS)
    return ErrorCosts.of_columns(missed, added, header.n_cols)


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
