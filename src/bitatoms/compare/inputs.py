"""What is compared: tables by name, bundled data sets, and the numbers of atoms to try."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any, NamedTuple

from .. import datasets
from ..bits import BitMatrix
from ..errors import InputError
from ..validation import check_int

UNNAMED = "table"  # the name of a single table


class Bundled(NamedTuple):
    """A data set that needs no file."""

    about: str
    make: Callable[[], BitMatrix]


def _planted(algebra: str, density: float) -> BitMatrix:
    """Return a table of 500 × 200 from eight atoms, with 5 % of its cells flipped."""
    data = datasets.planted(500, 200, 8, algebra=algebra, atom_density=density, code_density=density, random_state=0)
    return BitMatrix.from_dense(data.X)


#: The tables that come with bitatoms, by name: what each is, and a function that returns it.
BUNDLED = {
    "digits": Bundled(
        "handwritten digits of 8 × 8 pixels, from scikit-learn", lambda: BitMatrix.from_dense(datasets.digits()[0])
    ),
    "halftone": Bundled(
        "a halftone picture in blocks of 16 × 16 pixels",
        lambda: BitMatrix.from_dense(datasets.cut_blocks(datasets.halftone())),
    ),
    "baskets": Bundled("synthetic market baskets", lambda: datasets.baskets().bits),
    "genotypes": Bundled("synthetic genotypes of three populations", lambda: datasets.genotypes().bits),
    "planted-or": Bundled("eight atoms combined by OR, 5 % of the cells flipped", lambda: _planted("or", 0.15)),
    "planted-xor": Bundled("eight atoms combined by XOR, 5 % of the cells flipped", lambda: _planted("xor", 0.15)),
    "planted-dense": Bundled(
        "eight atoms combined by XOR, atoms and codes half ones, 5 % of the cells flipped",
        lambda: _planted("xor", 0.5),
    ),
}


def load_tables(data: Any) -> dict[str, BitMatrix]:
    """Return the packed tables by name."""
    if _is_table(data):
        data = {UNNAMED: data}
    if isinstance(data, Mapping):
        tables = {str(name): BitMatrix.from_any(table) for name, table in data.items()}
    else:
        tables = {name: BUNDLED[name].make() for name in _check_bundled_names(data)}
    if not tables:
        raise InputError("data is empty; pass a table, or the name of a bundled data set")
    for name, table in tables.items():
        if 0 in table.shape:
            raise InputError(f"{name}: the table has no {'rows' if table.n_rows == 0 else 'columns'}")
    return tables


def check_ranks(ranks: Any) -> list[int]:
    """Return the numbers of atoms in ascending order; a single number is accepted."""
    if isinstance(ranks, Integral):
        ranks = [ranks]
    if isinstance(ranks, str) or not isinstance(ranks, Iterable):
        raise InputError(f"ranks is {ranks!r}; pass a number of atoms, or several, such as [2, 4, 8]")
    wanted = sorted({check_int("ranks", rank, 1) for rank in ranks})
    if not wanted:
        raise InputError("ranks is empty; pass the numbers of atoms, such as [2, 4, 8]")
    return wanted


def default_ranks(shape: tuple[int, int]) -> list[int]:
    """Return the numbers of atoms to try on a table: at most half its rows and columns."""
    return [rank for rank in (2, 4, 8, 16) if rank <= min(shape) // 2] or [1]


def _is_table(data: Any) -> bool:
    """Return whether this is one table: an array, a frame, packed bits, a sparse matrix, or a list of lists."""
    if hasattr(data, "shape") or hasattr(data, "bits"):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(row, (list, tuple)) for row in data)


def _check_bundled_names(data: Any) -> list[str]:
    """Return the names of bundled data sets as a list; a single name is accepted."""
    names = list(data) if isinstance(data, Iterable) and not isinstance(data, str) else [data]
    for name in names:
        if not isinstance(name, str):
            raise InputError(
                f"data is or contains an object of type {type(name).__name__}; pass one table, a mapping of names to "
                f"tables, or names from {', '.join(BUNDLED)}"
            )
        if name not in BUNDLED:
            raise InputError(f"there is no data set {name!r}; choose from {', '.join(BUNDLED)}")
    return names
