"""What a user may ask of a search, checked at the door and filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from .coding import MOST_EXACT_ATOMS, chosen_coder
from .model import Round

ALGEBRAS = ("xor", "or", "auto")
SEARCHES = ("paper",)
OBJECTIVES = ("auto", "codelength", "errors")
UPDATES = ("mob", "k-prox")
PAPER_CODERS = ("bmp", "greedy", "exact")
INITS = ("auto", "samples", "bernoulli", "spread", "greedy")
DEVICES = ("cpu",)

_START = 16


@dataclass(frozen=True)
class Settings:
    """The parameters of ``factorize``, with every "auto" decided."""

    n_components: int | Literal["mdl"]
    algebras: tuple[str, ...]
    by_codelength: bool
    update: str
    coder: str
    init: Any  # a name, atoms, or a pair (atoms, codes)
    init_density: float
    n_init: int
    start_components: int
    max_components: int | None
    patience: int | None
    max_atoms_per_sample: int | None
    residual_limit: int
    max_iter: int
    max_time: float | None
    callbacks: tuple[Callable[[Round], object], ...]


def settle(
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
    callbacks: Any,
    device: str,
) -> Settings:
    """Check the parameters, each alone and together, and decide what is left to "auto"."""
    one_of("algebra", algebra, ALGEBRAS)
    one_of("search", search, SEARCHES)
    one_of("objective", objective, OBJECTIVES)
    one_of("update", update, UPDATES)
    one_of("coder", coder, ("auto", *PAPER_CODERS))
    one_of("device", device, DEVICES)
    if init is None or isinstance(init, (str, Real)):
        one_of("init", init, INITS, "atoms, or a pair (atoms, codes)")
    coder = chosen_coder(coder)
    by_mdl = isinstance(n_components, str)
    if by_mdl:
        one_of("n_components", n_components, ("mdl",), "a whole number")
    else:
        n_components = _whole("n_components", n_components, 0)
    if by_mdl and objective == "errors":
        raise ValueError(
            'objective="errors" needs n_components to be a number: with "mdl" the codelength chooses how many atoms'
        )
    if not by_mdl and objective == "codelength":
        raise ValueError(
            'search="paper" with a fixed n_components minimises the wrong bits; use n_components="mdl" for the '
            'shortest codelength, or objective="errors"'
        )
    if max_components is not None:
        max_components = _whole("max_components", max_components, 0)
    patience = 1 if _is_auto(patience) else None if patience is None else _whole("patience", patience, 1)
    if by_mdl and patience is None and max_components is None:
        raise ValueError("patience=None goes on to max_components: give max_components a number")
    exact = coder == "exact"
    if exact and by_mdl:
        max_components = MOST_EXACT_ATOMS if max_components is None else min(MOST_EXACT_ATOMS, max_components)
    start = (1 if exact else _START) if _is_auto(start_components) else _whole("start_components", start_components, 0)
    if max_components is not None and start > max_components:
        if not _is_auto(start_components):
            raise ValueError(f"start_components={start} is above max_components={max_components}")
        start = max_components
    return Settings(
        n_components=n_components,
        algebras=("xor", "or") if algebra == "auto" else (algebra,),
        by_codelength=by_mdl,
        update="exact" if exact and update == "mob" else update,
        coder=coder,
        init=("greedy" if exact else "samples") if _is_auto(init) else init,
        init_density=share("init_density", init_density),
        n_init=1 if _is_auto(n_init) else _whole("n_init", n_init, 1),
        start_components=start,
        max_components=max_components,
        patience=patience,
        max_atoms_per_sample=None
        if max_atoms_per_sample is None
        else _whole("max_atoms_per_sample", max_atoms_per_sample, 1),
        residual_limit=_whole("residual_limit", residual_limit, 0),
        max_iter=_whole("max_iter", max_iter, 1),
        max_time=None if max_time is None else _positive("max_time", max_time),
        callbacks=_callables(callbacks),
    )


def check_exact(coder: str, n_atoms: int) -> None:
    """Refuse to try all codes of too many atoms."""
    if coder == "exact" and n_atoms > MOST_EXACT_ATOMS:
        raise ValueError(
            f'coder="exact" tries all 2**p codes and takes at most {MOST_EXACT_ATOMS} atoms, not {n_atoms}; '
            'use coder="greedy" or fewer atoms'
        )


def generator(random_state: Any) -> np.random.Generator:
    """The driver's source of randomness: from a seed, from a RandomState, or one as it is."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is np.random:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be None, a whole number that is not negative, a Generator or a RandomState, "
            f"not {random_state!r}"
        ) from None


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def one_of(name: str, value: Any, choices: Sequence[str], also: str | None = None) -> None:
    """Refuse a name that is not there (yet), and tell those that are."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices) + (f" or {also}" if also else "")
        raise ValueError(f"{name}={value!r} is not available; choose from {listed}")


def _whole(name: str, value: Any, least: int) -> int:
    """A whole number that is not too small."""
    if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    return int(value)


def share(name: str, value: Any) -> float:
    """A number between 0 and 1."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, not {value!r}")
    return float(value)


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
