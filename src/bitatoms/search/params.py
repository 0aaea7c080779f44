"""What a user may ask of a search, checked at the door and filled in."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Real
from typing import Any, Literal

from ..core.coding import CODERS, MOST_EXACT_ATOMS
from ..core.objective import Objective
from ..core.result import Round
from ..validation import check_choice, check_fraction, check_int
from .plan import PLANS, Plan

ALGEBRAS = ("xor", "or", "auto")
SEARCHES = ("paper", "fast", "thorough")
OBJECTIVES = ("auto", "codelength", "errors")
UPDATES = ("mob", "k-prox")
CODERS_OF = {  # "auto" is the first
    "paper": ("bmp", "greedy", "exact"),
    "fast": ("mdl", "beam"),
    "thorough": ("beam", "mdl"),
}
INITS = ("auto", "samples", "bernoulli", "spread", "greedy")
DEVICES = ("cpu",)


_PAPER_START = 16
_GIVEN_START = 64  # atoms of a start that is named, with the other searches


@dataclass(frozen=True)
class SearchParams:
    """The parameters of ``factorize``, with every "auto" decided."""

    n_components: int | Literal["mdl"]
    search: str
    algebras: tuple[str, ...]
    by_codelength: bool
    update: str
    coder: str
    coder_after: str  # for samples that are coded with what was found
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
    sample_rows: int | Literal["auto"] | None  # more rows than these are searched by sample
    callbacks: tuple[Callable[[Round], object], ...]

    def objective(self, algebra: str, share: float = 1.0) -> Objective:
        """Return what to minimise in this algebra, on this share of the rows."""
        return Objective(self.by_codelength, algebra, self.max_atoms_per_sample, self.residual_limit, share)

    def deadline(self) -> float:
        """When a search that begins now must end."""
        return float("inf") if self.max_time is None else time.perf_counter() + self.max_time


def resolve(
    n_components: Any,
    algebra: str,
    search: str,
    objective: str,
    update: str,
    coder: str,
    init: Any,
    init_density: float,
    n_init: Any,
    start_components: Any,
    max_components: Any,
    patience: Any,
    max_atoms_per_sample: Any,
    residual_limit: Any,
    max_iter: Any,
    max_time: Any,
    sample_rows: Any,
    callbacks: Any,
    device: str,
) -> SearchParams:
    """Check the parameters, each alone and together, and decide what is left to "auto"."""
    check_choice("algebra", algebra, ALGEBRAS)
    check_choice("search", search, SEARCHES)
    check_choice("objective", objective, OBJECTIVES)
    check_choice("update", update, UPDATES)
    check_choice("device", device, DEVICES)
    if init is None or isinstance(init, (str, Real)):
        check_choice("init", init, INITS, "atoms, or a pair (atoms, codes)")
    by_mdl = isinstance(n_components, str)
    if by_mdl:
        check_choice("n_components", n_components, ("mdl",), "a whole number")
    else:
        n_components = check_int("n_components", n_components, 0)
    as_published = search == "paper"
    by_codelength = by_mdl if objective == "auto" else objective == "codelength"
    if by_mdl and not by_codelength:
        raise ValueError(
            'objective="errors" needs n_components to be a number: with "mdl" the codelength chooses how many atoms'
        )
    if as_published and by_codelength and not by_mdl:
        raise ValueError(
            'search="paper" with a fixed n_components minimises the wrong bits; use search="fast", n_components="mdl" '
            'or objective="errors"'
        )
    if update == "k-prox" and not as_published:
        raise ValueError(f'update="k-prox" belongs to search="paper"; search="{search}" updates all atoms together')
    coder, asked = chosen_coder(coder, search, by_codelength, n_components), coder
    if max_components is not None:
        max_components = check_int("max_components", max_components, 0)
    patience = "auto" if _is_auto(patience) else None if patience is None else check_int("patience", patience, 1)
    if as_published and by_mdl and patience is None and max_components is None:
        raise ValueError("patience=None goes on to max_components: give max_components a number")
    exact = as_published and coder == "exact"
    if exact and by_mdl:
        max_components = MOST_EXACT_ATOMS if max_components is None else min(MOST_EXACT_ATOMS, max_components)
    start = None if _is_auto(start_components) else check_int("start_components", start_components, 0)
    if start is not None and max_components is not None and start > max_components:
        raise ValueError(f"start_components={start} is above max_components={max_components}")
    max_iter = check_int("max_iter", max_iter, 1)
    return SearchParams(
        n_components=n_components,
        search=search,
        algebras=("xor", "or") if algebra == "auto" else (algebra,),
        by_codelength=by_codelength,
        update="exact" if exact and update == "mob" else update,
        coder=coder,
        # From nothing, one toggle at a time gets stuck under XOR, where a search that goes on from codes does not.
        coder_after="beam" if asked == "auto" and coder in ("mdl", "greedy") else coder,
        init=("greedy" if exact else "samples") if _is_auto(init) and as_published else init,
        init_density=check_fraction("init_density", init_density),
        n_init=1 if _is_auto(n_init) else check_int("n_init", n_init, 1),
        start_components=_first_atoms(start, as_published, exact, max_components),
        max_components=max_components,
        patience=1 if patience == "auto" else patience,
        max_atoms_per_sample=None
        if max_atoms_per_sample is None
        else check_int("max_atoms_per_sample", max_atoms_per_sample, 1),
        residual_limit=check_int("residual_limit", residual_limit, 0),
        max_iter=max_iter,
        plan=_plan(search, coder, n_components, start, max_components, patience, max_iter),
        max_time=None if max_time is None else _positive("max_time", max_time),
        sample_rows=_sample_rows(sample_rows),
        callbacks=_callables(callbacks),
    )


SEARCH_PARAMS = tuple(signature(resolve).parameters)  # the names of these parameters


def chosen_coder(coder: str, search: str, by_codelength: bool, n_components: Any) -> str:
    """The coder that is meant: "auto" is what the search implies."""
    check_choice("coder", coder, ("auto", *CODERS))
    if search == "paper" or by_codelength:
        choices = CODERS_OF[search]
    else:  # a fixed number of atoms with the fewest wrong bits
        choices = ("exact",) if n_components <= MOST_EXACT_ATOMS else ("greedy",)
    if coder == "auto":
        return choices[0]
    if coder not in choices:
        for_what = "the codelength" if by_codelength else f"the fewest errors of {n_components} atoms"
        elsewhere = 'search="paper"' if coder in CODERS_OF["paper"] else 'search="fast" and the codelength as objective'
        raise ValueError(
            f'search="{search}" for {for_what} codes by {" or ".join(map(repr, choices))}; '
            f"coder={coder!r} goes with {elsewhere}"
        )
    return coder


def _first_atoms(start: int | None, as_published: bool, exact: bool, max_components: int | None) -> int:
    """Where "mdl" starts when it starts with atoms of one kind."""
    if start is None:
        start = (1 if exact else _PAPER_START) if as_published else _GIVEN_START
    return start if max_components is None else min(start, max_components)


def _plan(
    search: str,
    coder: str,
    n_components: Any,
    start: int | None,
    max_components: int | None,
    patience: Any,
    max_iter: int,
) -> Plan:
    """How widely to search, in the other searches than the paper's."""
    plan = PLANS.get(search, PLANS["fast"])
    fixed = None if n_components == "mdl" else n_components
    starts = plan.starts if start is None else (start,)
    if fixed is not None and start is None:
        starts = (fixed, *(size for size in starts if size > fixed))
    return replace(
        plan,
        starts=starts,
        patience=plan.patience if patience == "auto" else patience,
        max_rounds=max_iter,
        by_beam=coder == "beam",
        fewest=0 if search == "paper" else fixed or 0,
        most=None if search == "paper" else max_components if fixed is None else fixed,
    )


def _sample_rows(sample_rows: Any) -> int | Literal["auto"] | None:
    """How many rows are searched at most."""
    if _is_auto(sample_rows):
        return "auto"
    return None if sample_rows is None else check_int("sample_rows", sample_rows, 2)


def check_exact(coder: str, n_atoms: int) -> None:
    """Refuse to try all codes of too many atoms."""
    if coder == "exact" and n_atoms > MOST_EXACT_ATOMS:
        raise ValueError(
            f'coder="exact" tries all 2**p codes and takes at most {MOST_EXACT_ATOMS} atoms, not {n_atoms}; '
            'use coder="greedy" or fewer atoms'
        )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _positive(name: str, value: Any) -> float:
    """A number above zero."""
    if not isinstance(value, Real) or not float(value) > 0:
        raise ValueError(f"{name} must be a positive number of seconds or None, not {value!r}")
    return float(value)


def _callables(callbacks: Any) -> tuple[Callable[[Round], object], ...]:
    """No callback, one, or several."""
    if callbacks is None:
        return ()
    listed = tuple(callbacks) if isinstance(callbacks, (list, tuple)) else (callbacks,)
    for callback in listed:
        if not callable(callback):
            raise TypeError(f"callbacks must be callable, or a list of callables, not {callback!r}")
    return listed
