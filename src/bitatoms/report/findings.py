"""What a report says of a table: the rows coded by the model's atoms, and counts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.model import Model
from ..mdl import Codelength, codelength_from_counts
from ..parallel import Workers
from ..table import Names, Picture, Table, feature_names
from .curve import Point, codelength_by_atoms

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)  # of the bits a row: the rows shown before and after by default
WORST = 15  # rows that fit worst
EXAMPLES = 3  # rows shown for each atom


@dataclass(frozen=True)
class Row:
    """One row, before and after."""

    number: int
    name: str
    bits: float
    better: float  # the share of rows that take more bits than this one
    worse: float  # and of those that take fewer
    atoms: NDArray[np.intp]  # those that it uses
    data: NDArray[np.bool_]  # the row itself
    made: NDArray[np.bool_]  # what the atoms make of it

    @property
    def missed(self) -> NDArray[np.intp]:
        """Features that the row has and its atoms do not."""
        return np.flatnonzero(self.data & ~self.made)

    @property
    def invented(self) -> NDArray[np.intp]:
        """Features that its atoms have and the row does not."""
        return np.flatnonzero(self.made & ~self.data)


@dataclass(frozen=True, eq=False)
class Findings:
    """A table coded by the atoms of a model, with the counts that a report is made of.

    Attributes
    ----------
    model : Model
    table : Table
    codes, errors : BitMatrix
        The atoms that each row uses, and the bits that they get wrong.
    ones, missed, invented : ndarray of shape (n_features,), int64
        Rows in which each feature is one, in which it is and the atoms say zero, and the other way round.
    uses : ndarray of shape (n_atoms,), int64
        Rows that use each atom.
    codelength : Codelength
        Bits that describe the table, in three parts.
    bits_without : int
        Bits that describe it without any atom or bias.
    row_bits : ndarray of shape (n_rows,)
        Bits that each row takes.
    examples : ndarray of shape (n_atoms, 3), int
        For each atom, rows that use it and little else; -1 where there are fewer.
    curve : tuple of Point
        The codelength with only the most useful atoms, from none to all.
    curve_stride : int
        1 where all rows were coded for that; k where one row in k stands for all.
    chosen, worst : tuple of int
        Rows to show before and after, and those that take most bits.
    """

    model: Model
    table: Table
    codes: BitMatrix
    errors: BitMatrix
    ones: NDArray[np.int64]
    missed: NDArray[np.int64]
    invented: NDArray[np.int64]
    uses: NDArray[np.int64]
    codelength: Codelength
    bits_without: int
    row_bits: NDArray[np.float64]
    examples: NDArray[np.int64]
    curve: tuple[Point, ...]
    curve_stride: int
    chosen: tuple[int, ...]
    worst: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.table.shape[0]

    @property
    def n_features(self) -> int:
        """Columns of the table."""
        return self.table.shape[1]

    @property
    def n_atoms(self) -> int:
        """Atoms of the model."""
        return self.model.atoms.n_rows

    @property
    def explains(self) -> bool:
        """Whether the model says anything of a row: it has atoms, or a bias."""
        return bool(self.n_atoms or self.model.bias.any())

    @property
    def columns(self) -> Names | None:
        """Names of the columns, where the table or the model has them."""
        return self.model.columns if self.table.columns is None else self.table.columns

    @property
    def picture(self) -> Picture | None:
        """What the rows look like, where they are pictures."""
        return self.model.picture if self.table.picture is None else self.table.picture

    @property
    def is_what_was_learned(self) -> bool:
        """Whether this is, by its counts, the table that the model was learned from."""
        learned = self.model.ones
        return self.model.n_samples == self.n_rows and (learned is None or np.array_equal(learned, self.ones))

    @cached_property
    def drawn_atoms(self) -> NDArray[np.uint8]:
        """What a row looks like that uses one atom only, for each: the atom put on the bias."""
        return self.model.atoms.to_dense() ^ self.model.bias

    @cached_property
    def rows_by_bits(self) -> NDArray[np.float64]:
        """The bits a row, sorted."""
        return np.sort(self.row_bits)

    def names_of(self, features: Sequence[int] | NDArray[np.intp]) -> Names:
        """The names of features."""
        return feature_names(self.columns, features)

    def row(self, number: int) -> Row:
        """A row, before and after."""
        data = self.table.bits[number].astype(np.bool_)
        bits = float(self.row_bits[number])
        return Row(
            number=number,
            name=self.table.row_name(number),
            bits=bits,
            better=1 - np.searchsorted(self.rows_by_bits, bits, "right") / self.n_rows,
            worse=np.searchsorted(self.rows_by_bits, bits, "left") / self.n_rows,
            atoms=np.flatnonzero(self.codes[number]),
            data=data,
            made=data ^ self.errors[number].astype(np.bool_),
        )


def find(model: Model, table: Table, rows: tuple[int | str, ...], workers: Workers) -> Findings:
    """Code the table and count."""
    _check_fit(model, table)
    n, m = table.shape
    asked = tuple(_row_number(table, row) for row in rows)
    block = model.code(table.bits, workers)
    codes = block.factors()[1]
    errors = block.errors()
    ones, wrong, uses = table.bits.column_weights(), block.wrong(), block.uses()
    missed = BitMatrix.from_words(table.bits.words & errors.words, m, check=False).column_weights()
    codelength = codelength_from_counts(n, m, wrong, uses, model.atoms.row_weights(), int(model.bias.sum()))
    row_bits = model.row_bits(errors, codes)
    curve, stride = codelength_by_atoms(model, table.bits, codelength, workers)
    return Findings(
        model=model,
        table=table,
        codes=codes,
        errors=errors,
        ones=ones,
        missed=missed,
        invented=wrong - missed,
        uses=uses,
        codelength=codelength,
        bits_without=codelength_from_counts(n, m, ones, (), ()).total,
        row_bits=row_bits,
        examples=_examples(codes, errors.row_weights() + codes.row_weights()),
        curve=curve,
        curve_stride=stride,
        chosen=asked or _spread(row_bits),
        worst=tuple(np.argsort(-row_bits, kind="stable")[:WORST].tolist()),
    )


def _check_fit(model: Model, table: Table) -> None:
    """Refuse a table that is empty, or does not have the model's columns."""
    if 0 in table.shape:
        raise ValueError(f"the table has {table.shape[0]} rows and {table.shape[1]} columns: nothing to report on")
    model.check(table)


def _row_number(table: Table, row: int | str) -> int:
    """The number of a row that is asked for by name or number."""
    if isinstance(row, str) and table.row_names is not None and row in table.row_names:
        return table.row_names.index(row)
    try:
        number = int(row.removeprefix("row ")) if isinstance(row, str) else index(row)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < len(table):
        named = "names and numbers" if table.row_names is not None else "numbers"
        raise ValueError(f"there is no row {row!r} in the table; its {named} go up to {table.row_name(len(table) - 1)}")
    return number


def _spread(row_bits: NDArray[np.float64]) -> tuple[int, ...]:
    """Rows that fit well, usually and badly: at some quantiles of the bits a row."""
    order = np.argsort(row_bits, kind="stable")
    places = [round(share * (len(order) - 1)) for share in QUANTILES]
    return tuple(order[list(dict.fromkeys(places))].tolist())


def _examples(codes: BitMatrix, burden: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each atom the rows that use it with the fewest wrong bits and other atoms; the first ones on a tie."""
    order = np.argsort(burden, kind="stable")
    users = codes[order].T
    found = np.full((codes.n_cols, EXAMPLES), -1, np.int64)
    for atom in range(codes.n_cols):
        rows = order[np.flatnonzero(users[atom])[:EXAMPLES]]
        found[atom, : len(rows)] = rows
    return found
