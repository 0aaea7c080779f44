"""Checks of parameters that users pass. They need no NumPy, so that the command line starts without it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from .errors import InputError, Parameter


def check_threshold(binarize: float | None) -> float | None:
    """Return the threshold as a float, or None."""
    if binarize is None:
        return None
    if not isinstance(binarize, Real) or isinstance(binarize, bool) or not math.isfinite(binarize):
        raise InputError(Parameter("binarize"), f" must be None or a finite number, got {binarize!r}")
    return float(binarize)


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


def check_fraction(name: str, value: Any) -> float:
    """Return a number between 0 and 1 as a float."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) <= 1:
        raise InputError(Parameter(name), f" must be between 0 and 1, not {value!r}")
    return float(value)


def check_not_negative(name: str, value: Any) -> float:
    """Return a finite number of at least 0."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < float("inf"):
        raise InputError(Parameter(name), f" must be a finite number of at least 0, not {value!r}")
    return int(value) if isinstance(value, Integral) else float(value)


def check_noise(name: str, value: Any) -> float:
    """Return the probability that a pixel is flipped, at least 0 and below one half, as a float."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < 0.5:
        raise InputError(Parameter(name), f" must be at least 0 and below 0.5, not {value!r}")
    return float(value)


def check_pair(name: str, value: Any, least: int) -> tuple[int, int]:
    """Return a height and a width as integers of at least ``least``."""
    try:
        height, width = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair (height, width), not {value!r}") from None
    return check_int(f"{name} height", height, least), check_int(f"{name} width", width, least)
