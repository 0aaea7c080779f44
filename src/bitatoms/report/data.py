"""The data of a report: a table coded by the atoms of a model, with statistics of its rows and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..columns.annotations import Annotations, Groups
from ..columns.table import Names, Picture, Table, feature_names
from ..device_choice import workers_for
from ..engine.codelength import Codelength, codelength_from_counts
from ..engine.distinct_rows import hash_rows
from ..model.complete_rows import count_members
from ..model.model import Model
from ..model.patterns import Lifts, feature_shares, lifts_of
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, sparse
from .options import ReportDataOptions

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)  # of the bits per row: the rows shown by default
N_WORST = 15  # rows with the worst fit
N_EXAMPLES = 3  # rows of each atom
N_STEPS = 20  # up to this many atoms, the curve has one point per number of atoms
EXPONENT = 1.7  # with more atoms, points are denser where there are few, since these save most
MAX_WORK = 10**11  # rows x features x atoms, summed over all points: about five seconds of one thread


class Point(NamedTuple):
    """Bits with the first ``atoms`` atoms."""

    atoms: int
    bits_errors: int
    bits_codes: int
    bits_atoms: int

    @property
    def bits(self) -> int:
        """The sum of the three parts."""
        return self.bits_errors + self.bits_codes + self.bits_atoms


@dataclass(frozen=True)
class ReportRow:
    """One row before and after coding."""

    index: int
    name: str
    bits: float
    better: float  # fraction of rows that take more bits
    worse: float  # fraction of rows that take fewer bits
    atoms: NDArray[np.intp]  # indices of the atoms that it uses
    data: NDArray[np.bool_]
    unknown: NDArray[np.bool_]
    reconstruction: NDArray[np.bool_]

    @property
    def missed(self) -> NDArray[np.intp]:
        """Indices of features that are 1 in the row and 0 in its reconstruction."""
        return np.flatnonzero(self.data & ~self.reconstruction)

    @property
    def invented(self) -> NDArray[np.intp]:
        """Indices of features that are 0 in the row and 1 in its reconstruction."""
        return np.flatnonzero(self.reconstruction & ~self.data & ~self.unknown)


@dataclass(frozen=True, eq=False)
class ReportData:
    """A table coded by the atoms of a model, with the statistics that a report shows.

    The counts of the training table (``missed``, ``invented``, ``uses``) and its ``codelength`` are those of the fit,
    as in the summary of the model. Those of any other table are of its ``codes``. So is all that is said about single
    rows.

    Attributes
    ----------
    model : Model
    table : Table
    codes : BitMatrix
        The atoms that each row uses: the codes of the fit, if they were passed, else those that ``transform`` gives.
    errors : BitMatrix or SparseBits
        The cells that they get wrong.
    ones, missed, invented : ndarray of shape (n_features,), int64
        For each feature, the number of rows in which it is 1, in which it is 1 and reconstructed as 0, and in which it
        is 0 and reconstructed as 1.
    uses : ndarray of shape (n_atoms,), int64
        The number of rows that use each atom.
    complete : ndarray of shape (n_atoms,), int64
        The number of rows in which each atom is complete: they have all its features.
    lifts : Lifts
        How many complete rows are expected if features are independent, and the lifts of atoms and their features.
    codelength : Codelength
        Bits that describe the table, in three parts.
    bits_without : int
        Bits that describe the table without atoms and bias.
    row_bits : ndarray of shape (n_rows,)
        Bits that describe each row.
    examples : ndarray of shape (n_atoms, 3), int
        For each atom, indices of rows that use it and little else, which a page contains; -1 where there are fewer.
    curve : tuple of Point
        The codelength with only the most useful atoms, from none to all.
    curve_stride : int
        1 if all rows were coded for the curve; k if every k-th row was.
    chosen, worst : tuple of int
        Indices of the rows to show before and after coding, and of those that take most bits.
    groups : Groups or None
        The group of each row, if there are any.
    max_rows : int or None
        The most rows that the page contains for its script; None for as many as keep it small. With 0, it shows no
        single rows.
    """

    model: Model
    table: Table
    codes: BitMatrix
    errors: Bits
    ones: NDArray[np.int64]
    missed: NDArray[np.int64]
    invented: NDArray[np.int64]
    uses: NDArray[np.int64]
    complete: NDArray[np.int64]
    lifts: Lifts
    codelength: Codelength
    bits_without: int
    row_bits: NDArray[np.float64]
    examples: NDArray[np.int64]
    curve: tuple[Point, ...]
    curve_stride: int
    chosen: tuple[int, ...]
    worst: tuple[int, ...]
    groups: Groups | None = None
    max_rows: int | None = None

    @property
    def shows_rows(self) -> bool:
        """Whether a page may show single rows."""
        return self.max_rows != 0

    @property
    def has_codes_of_fit(self) -> bool:
        """Whether the codes are those of the fit, as far as its counts tell."""
        has_uses = self.is_training_table and np.array_equal(self.codes.column_weights(), self.model.uses)
        return has_uses and np.array_equal(self.errors.column_weights(), self.model.wrong)

    @cached_property
    def cells_of_atoms(self) -> dict[str, NDArray[np.int64] | None]:
        """For each feature of each atom, in how many of the rows that use the atom it is missed, invented and unknown.

        Unknown cells are None if all cells are known.
        """
        atoms, data, unknown = self.model.atoms, self.table.data, self.table.data.unknown
        missed = count_cells(atoms, self.codes, _common_ones(data, self.errors))
        invented = count_cells(atoms, self.codes, self.errors) - missed
        return {
            "missed": missed,
            "invented": invented,
            "unknown": None if unknown is None else count_cells(atoms, self.codes, unknown),
        }

    @property
    def n_rows(self) -> int:
        """The number of rows of the table."""
        return self.table.shape[0]

    @property
    def n_features(self) -> int:
        """The number of columns of the table."""
        return self.table.shape[1]

    @property
    def n_known_cells(self) -> int:
        """The number of cells of the table that are known."""
        return self.n_rows * self.n_features - self.table.data.n_unknown

    @cached_property
    def n_known(self) -> NDArray[np.int64]:
        """For each feature, the number of rows in which it is known."""
        return self.table.data.n_known

    @property
    def n_atoms(self) -> int:
        """The number of atoms of the model."""
        return self.model.atoms.n_rows

    @property
    def is_model_empty(self) -> bool:
        """Whether the model has neither atoms nor a bias."""
        return not (self.n_atoms or self.model.bias.any())

    @property
    def columns(self) -> Names | None:
        """The names of the columns, if the table or the model has them."""
        return self.model.columns if self.table.columns is None else self.table.columns

    @property
    def column_data(self) -> Annotations | None:
        """What else is known about the columns, if the table or the model has it."""
        return self.model.column_data if self.table.column_data is None else self.table.column_data

    @property
    def picture(self) -> Picture | None:
        """The shape of the rows, if they are pictures."""
        return self.model.picture if self.table.picture is None else self.table.picture

    @cached_property
    def is_training_table(self) -> bool:
        """Whether this is the table that the model was learned from; without a hash of rows, as far as counts tell."""
        if self.model.rows_hash is not None:
            return _has_rows_of_fit(self.model, self.table.data)
        learned = self.model.ones
        return self.model.n_samples == self.n_rows and (learned is None or np.array_equal(learned, self.ones))

    @cached_property
    def sorted_row_bits(self) -> NDArray[np.float64]:
        """The bits per row in ascending order."""
        return np.sort(self.row_bits)

    def names_of(self, features: Sequence[int] | NDArray[np.intp]) -> Names:
        """Return the names of features, given by their indices."""
        return feature_names(self.columns, features)

    def atom_on_bias(self, atom: int) -> NDArray[np.uint8]:
        """Return the reconstruction of a row that uses this atom only."""
        return self.model.atoms[atom] ^ self.model.bias

    def member_lifts(self, atom: int) -> NDArray[np.float64]:
        """Return the lift of each feature of an atom, given its other features; NaN if no row has these."""
        return self.lifts.of_members(atom)

    def row(self, number: int) -> ReportRow:
        """Return the row of this index before and after coding."""
        row = self.table.data[number : number + 1]
        unknown = BitMatrix.zeros(1, self.n_features) if row.unknown is None else row.unknown
        bits = float(self.row_bits[number])
        return ReportRow(
            index=number,
            name=self.table.row_name(number),
            bits=bits,
            better=1 - np.searchsorted(self.sorted_row_bits, bits, "right") / self.n_rows,
            worse=np.searchsorted(self.sorted_row_bits, bits, "left") / self.n_rows,
            atoms=np.flatnonzero(self.codes[number]),
            data=row.filled().to_dense(np.bool_)[0],
            unknown=unknown.to_dense(np.bool_)[0],
            reconstruction=self.model.reconstruct(self.codes[number : number + 1]).to_dense(np.bool_)[0],
        )


def collect(
    model: Model,
    table: Table,
    options: ReportDataOptions,
    codes: BitMatrix | None,
    fit_codes: BitMatrix | None,
    groups: Groups | None,
) -> ReportData:
    """Return the data of a report on a table.

    Its codes are the given ones, or those of the fit if these are its rows, or else those that ``transform`` gives.
    """
    if 0 in table.shape:
        raise ValueError(f"the table is empty ({table.shape[0]} rows and {table.shape[1]} columns): nothing to report")
    (n_rows, n_features), data = table.shape, table.data
    requested = tuple(_row_index(table, row) for row in options.rows)
    workers = workers_for(options.n_jobs, options.device, n_rows * n_features)
    is_known = _has_rows_of_fit(model, data)
    codes, errors = _coded(model, data, codes, fit_codes if is_known else None, workers)
    ones, wrong, uses = data.column_weights(), errors.column_weights(), codes.column_weights()
    missed = _common_ones(data, errors).column_weights()
    counts = wrong, uses, model.atoms.row_weights(), int(model.bias.sum()), data.n_known
    codelength = codelength_from_counts(n_rows, n_features, *counts, model.atom_spans)
    row_bits, bias = model.row_bits(data, codes, workers), BitMatrix.from_dense(model.bias[np.newaxis])
    members = count_members(data, model.atoms, workers, bias)
    curve, stride = codelength_curve(model, data, codelength, workers)
    if model.missed is not None and is_known:
        wrong, missed, uses, codelength = model.wrong, model.missed, model.uses, model.codelength
    return ReportData(
        model=model,
        table=table,
        codes=codes,
        errors=errors,
        ones=ones,
        missed=missed,
        invented=wrong - missed,
        uses=uses,
        complete=members.complete,
        lifts=lifts_of(model.atoms, feature_shares(model.bias, ones, data.n_known), members),
        codelength=codelength,
        bits_without=codelength_from_counts(n_rows, n_features, ones, (), (), n_known=data.n_known).total,
        row_bits=row_bits,
        examples=_example_rows(codes, errors.row_weights() + codes.row_weights()),
        curve=curve,
        curve_stride=stride,
        chosen=requested or _quantile_rows(row_bits),
        worst=tuple(np.argsort(-row_bits, kind="stable")[:N_WORST].tolist()),
        groups=groups,
        max_rows=options.max_rows,
    )


def _has_rows_of_fit(model: Model, data: Bits) -> bool:
    """Return whether the rows are those that the model was learned from, in any order, if it has their hash."""
    return model.rows_hash is not None and model.n_samples == data.n_rows and model.rows_hash == hash_rows(data)


def _coded(
    model: Model, data: Bits, codes: BitMatrix | None, fit_codes: BitMatrix | None, workers: Workers
) -> tuple[BitMatrix, Bits]:
    """Return the codes of the rows, and the cells that they get wrong."""
    if codes is None and fit_codes is not None and fit_codes.shape == (data.n_rows, model.atoms.n_rows):
        errors = model.errors(data, fit_codes, workers)
        if np.array_equal(errors.column_weights(), model.wrong):  # in another order, other cells are wrong
            return fit_codes, errors
    codes = model.codes(data, workers) if codes is None else codes
    return codes, model.errors(data, codes, workers)


def _common_ones(first: Bits, second: Bits) -> Bits:
    """Return the cells in which two tables both have a one."""
    if isinstance(first, BitMatrix) and isinstance(second, BitMatrix):
        return BitMatrix.from_words(first.words & second.words, first.n_cols, check=False)
    common = csr_array(first.to_sparse().multiply(second.to_sparse()))
    common.sort_indices()
    return SparseBits(common.indptr.astype(np.int64), common.indices, first.n_cols)


def _row_index(table: Table, row: int | str) -> int:
    """Return the index of a row given by name or index."""
    if isinstance(row, str) and table.row_names is not None and row in table.row_names:
        return table.row_names.index(row)
    try:
        number = int(row.removeprefix("row ")) if isinstance(row, str) else index(row)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < len(table):
        name = "a row name, or " if table.row_names is not None else ""
        raise ValueError(f"the table has no row {row!r}; pass {name}a number from 0 to {len(table) - 1}")
    return number


def _quantile_rows(row_bits: NDArray[np.float64]) -> tuple[int, ...]:
    """Return rows of good, typical and bad fit: those at some quantiles of the bits per row."""
    order = np.argsort(row_bits, kind="stable")
    ranks = [round(quantile * (len(order) - 1)) for quantile in QUANTILES]
    return tuple(order[list(dict.fromkeys(ranks))].tolist())


def _example_rows(codes: BitMatrix, cost: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each atom the rows of lowest cost that use it, the first ones on a tie."""
    order = np.argsort(cost, kind="stable")
    users = codes[order].T
    examples = np.full((codes.n_cols, N_EXAMPLES), -1, np.int64)
    for atom in range(codes.n_cols):
        rows = order[np.flatnonzero(users[atom])[:N_EXAMPLES]]
        examples[atom, : len(rows)] = rows
    return examples


def codelength_curve(
    model: Model, data: Bits, full: Codelength, workers: Workers, max_work: int = MAX_WORK
) -> tuple[tuple[Point, ...], int]:
    """Return the codelength with the first k atoms for several k, and the stride of the rows coded for it.

    The rows are coded again for each k; ``full`` is the codelength with all atoms. Where coding all rows would exceed
    ``max_work``, only every stride-th row is coded.
    """
    sizes = curve_sizes(model.atoms.n_rows)[:-1]
    work = data.n_rows * data.n_cols * sum(sizes)
    stride = max(1, -(-work // max_work))
    rows = data if stride == 1 else data[::stride]
    lengths = [*(_length_with(model, k, rows, data, workers) for k in sizes), full]
    return tuple(
        Point(k, each.errors, each.codes, each.atoms)
        for k, each in zip([*sizes, model.atoms.n_rows], lengths, strict=True)
    ), stride


def curve_sizes(n_atoms: int) -> list[int]:
    """Return the numbers of atoms on the curve, from 0 to all."""
    if n_atoms <= N_STEPS:
        return list(range(n_atoms + 1))
    return sorted({round(n_atoms * (step / N_STEPS) ** EXPONENT) for step in range(N_STEPS + 1)} | {1})


def _length_with(model: Model, k: int, rows: Bits, data: Bits, workers: Workers) -> Codelength:
    """Return the codelength of all data with the first k atoms, estimated from some rows."""
    first = replace(model, atoms=model.atoms[:k], uses=model.uses[:k], remembered=None)
    codes = first.codes(rows, workers)
    wrong, uses = first.errors(rows, codes, workers).column_weights(), codes.column_weights()
    if rows.n_rows != data.n_rows:
        wrong, uses = (np.rint(counts * (data.n_rows / rows.n_rows)).astype(np.int64) for counts in (wrong, uses))
        wrong = np.minimum(wrong, data.n_known)
    weights, bias = first.atoms.row_weights(), int(model.bias.sum())
    return codelength_from_counts(*data.shape, wrong, uses, weights, bias, data.n_known, first.atom_spans)


def count_cells(atoms: Bits, codes: BitMatrix, cells: Bits) -> NDArray[np.int64]:
    """Return, for each feature of each atom, in how many of the rows that use the atom this cell is set."""
    if isinstance(cells, SparseBits):  # most rows have few of them
        product = csr_array(codes.to_sparse().astype(np.int64).T @ cells.to_sparse().astype(np.int64))
        rows, columns = sparse(atoms).cells()
        return np.asarray(product[rows, columns], np.int64).ravel() if len(rows) else np.zeros(0, np.int64)
    users, columns = codes.T.words, cells.T.words
    counts = [np.empty(0, np.int64)]
    for atom in range(atoms.n_rows):
        own = columns[np.flatnonzero(atoms[atom])]
        counts.append(np.bitwise_count(own & users[atom]).sum(axis=1).astype(np.int64))
    return np.concatenate(counts)
