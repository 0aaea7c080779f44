"""`EncodeOptions`: how categories and numbers become columns of 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..parameters import Options, option


def check_names(name: str, value: Any) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    return (value,) if isinstance(value, str) else tuple(map(str, value))


@dataclass(frozen=True, kw_only=True)
class EncodeOptions(Options):
    """Parameters of `bitatoms.encode`."""

    without: Sequence[str] = option(
        (),
        "Names of columns to leave out.",
        "In a text file without column names, their numbers, counting from 1. Control characters may be written as "
        "escapes, such as \\x1b, as in messages.",
        check=check_names,
        type="str or sequence of str, default=()",
        option="without",
    )
    as_category: Sequence[str] = option(
        (),
        "Columns of categories that would be taken for numbers, such as postcodes.",
        "Each of their values becomes a column. It also allows text of which almost all values differ.",
        check=check_names,
        type="str or sequence of str, default=()",
        option="as-category",
        formats=("csv", "tsv", "xlsx"),
    )
    as_number: Sequence[str] = option(
        (),
        "Columns of numbers to divide into bins that would be taken for categories, such as marks from 1 to 6.",
        check=check_names,
        type="str or sequence of str, default=()",
        option="as-number",
        formats=("csv", "tsv", "xlsx"),
    )
    bins: int = option(
        4,
        "Number of bins of a number; they contain equally many rows, as nearly as equal values allow.",
        minimum=2,
        option="bins",
        formats=("csv", "tsv", "xlsx"),
    )
