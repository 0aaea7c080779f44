"""What is given to the functions here: whole numbers and pairs of them, checked in the user's words."""

from __future__ import annotations

from operator import index
from typing import Any


def count(name: str, value: Any, least: int = 0) -> int:
    """A whole number that is not too small."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; pass a whole number") from None
    if number < least:
        raise ValueError(f"{name} is {number}; pass a number ≥ {least}")
    return number


def pair(name: str, value: Any, least: int = 0) -> tuple[int, int]:
    """A height and a width."""
    try:
        height, width = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; pass a pair (height, width)") from None
    return count(f"{name} height", height, least), count(f"{name} width", width, least)
