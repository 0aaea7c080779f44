"""Checks of parameters that users pass. They import NumPy only where they need it, so that the command line is fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from .errors import InputError, Parameter

if TYPE_CHECKING:
    import numpy as np

MAX_WEIGHT = 2.0**62  # of a row, exclusive


def check_threshold(binarize: float | None) -> float | None:
    """Return the threshold as a float, or None."""
    return None if binarize is None else _check_number("binarize", binarize, math.isfinite, "None or a finite number")


def check_choice(name: str, value: Any, choices: Sequence[str], also: str | None = None) -> None:
    """Raise unless the value is one of the choices; ``also`` describes further valid values in the message."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices) + (f" or {also}" if also else "")
        raise InputError(Parameter(name), f"={value!r} is not available; choose from {listed}")


def check_int(name: str, value: Any, least: int) -> int:
    """Return an integer of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < least:
        raise InputError(Parameter(name), f" must be at least {least}, not {value}")
    return int(value)


def _check_number(name: str, value: Any, is_valid: Callable[[float], bool], expected: str) -> float:
    """Return a number as a float after checking it."""
    if not isinstance(value, Real) or isinstance(value, bool) or not is_valid(float(value)):
        raise InputError(Parameter(name), f" must be {expected}, not {value!r}")
    return float(value)


def check_fraction(name: str, value: Any) -> float:
    """Return a number between 0 and 1 as a float."""
    return _check_number(name, value, lambda number: 0 <= number <= 1, "between 0 and 1")


def check_not_negative(name: str, value: Any) -> float:
    """Return a finite number of at least 0."""
    number = _check_number(name, value, lambda number: 0 <= number < math.inf, "a finite number of at least 0")
    return int(value) if isinstance(value, Integral) else number


def check_noise(name: str, value: Any) -> float:
    """Return the probability that a pixel is flipped, at least 0 and below one half, as a float."""
    return _check_number(name, value, lambda number: 0 <= number < 0.5, "at least 0 and below 0.5")


def check_pair(name: str, value: Any, least: int) -> tuple[int, int]:
    """Return a height and a width as integers of at least ``least``."""
    try:
        height, width = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair (height, width), not {value!r}") from None
    return check_int(f"{name} height", height, least), check_int(f"{name} width", width, least)


def check_bool(name: str, value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool) and type(value).__name__ != "bool":  # NumPy's is called bool, too
        raise InputError(Parameter(name), f" must be True or False, not {value!r}")
    return bool(value)


def check_seconds(name: str, value: Any) -> float | None:
    """Return a positive number of seconds, or None."""
    expected = "a positive number of seconds or None"
    return None if value is None else _check_number(name, value, lambda number: number > 0, expected)


def check_callbacks(name: str, value: Any) -> tuple[Callable[[Any], object], ...]:
    """Return no callback, one, or several as a tuple."""
    if value is None:
        return ()
    callbacks = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    for callback in callbacks:
        if not callable(callback):
            raise TypeError(f"{name} must be callable, or a list of callables, not {callback!r}")
    return callbacks


def check_seed(name: str, value: Any) -> Any:
    """Check a seed; generators are used as they are."""
    if isinstance(value, (str, Real)) and not (isinstance(value, Integral) and int(value) >= 0):
        raise _not_a_seed(value)
    return value


def check_feature_sets(name: str, value: Any) -> tuple[tuple[int | str, ...], ...]:
    """Return sets of features by name or index; a single set may be passed as it is."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(Parameter(name), f' must be sets of features, such as [["a", "b"]], not {value!r}')
    sets = list(value)
    if sets and all(isinstance(each, (str, Integral)) for each in sets):
        sets = [sets]
    checked = []
    for each in sets:
        if isinstance(each, str) or not isinstance(each, Iterable):
            raise InputError(Parameter(name), f' must be sets of features, such as [["a", "b"]], not {value!r}')
        features = list(dict.fromkeys(each))
        for feature in features:
            if isinstance(feature, bool) or not isinstance(feature, (str, Integral)):
                raise InputError(Parameter(name), f" has {feature!r}, which is neither a name nor an index")
        if len(features) < 2:
            raise InputError(Parameter(name), f" has the set {features!r}; a set needs at least two features")
        checked.append(tuple(each if isinstance(each, str) else int(each) for each in features))
    return tuple(checked)


def weight_advice(value: float) -> str | None:
    """Return how to replace a number that is no weight of a row; None for a whole number from 0 up."""
    if math.isnan(value) or value < 0:
        return "pass 0 to leave a row out"
    if value >= MAX_WEIGHT:
        return "a weight is how often a row counts, and below 2**62"
    return None if value.is_integer() else "multiply all weights by a number that makes them whole, or round them"


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a Generator from a seed or a RandomState; a Generator is returned unchanged."""
    import numpy as np

    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is np.random:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise _not_a_seed(random_state) from None


def _not_a_seed(value: Any) -> InputError:
    """Return the error for a value that seeds no random numbers."""
    kinds = "None, a non-negative integer, a Generator or a RandomState"
    return InputError(Parameter("random_state"), f" must be {kinds}, not {value!r}")


@contextmanager
def restored_on_error(random_state: Any) -> Iterator[None]:
    """Restore a RandomState, from which `as_generator` draws, if the body raises an error."""
    import numpy as np

    source = np.random.mtrand._rand if random_state is np.random else random_state
    state = source.get_state() if isinstance(source, np.random.RandomState) else None
    try:
        yield
    except BaseException:
        if state is not None:
            source.set_state(state)
        raise
