"""Model: the atoms of a factorization as plain data, with all that coding new samples needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..columns.annotations import Annotations
from ..columns.encoding import ColumnTies
from ..columns.table import Header, Names, Picture, feature_names
from ..columns.variants import chromosomes_of, ranks_in, regions
from ..engine.block import Block, reconstruct
from ..engine.codelength import AtomCode
from ..engine.coding import NO_LIMIT, PRICED_CODERS, code, coding_rule, typical_cost
from ..engine.device_rows import run_in_chunks
from ..engine.passes import AtomGroup, PassSpec, RowCounts, joined_codes
from ..engine.prices import EQUAL_COSTS, codelength_prices, unit_prices
from ..formatting import numbered
from ..imputation.pool import UNFITTED, Pool, PooledPredictors, predict_hidden
from ..imputation.regression import Regression
from ..imputation.tied_columns import TiedColumns, known_ties, nearest_genotypes
from ..kernels.cpu.cell_costs import (
    AtomOnes,
    CellCosts,
    CellScratch,
    Sampling,
    average_all_codes,
    average_sampled_codes,
    shorten_codes,
)
from ..kernels.structs import CodingRule, Prices
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed
from .complete_rows import members_of
from .likelihood import UNIT, Frequencies, bits_of_cells_saved, bits_of_values, cells_of_rows, sum_bits
from .patterns import Lifts, Pattern, Recurrence, feature_shares, lifts_of, pattern_frame
from .result import Factorization, ResultBase

_CHUNK_BITS, _MIN_CHUNK_ROWS = 1 << 28, 1 << 10  # of samples that are coded together
_CHUNK_CELLS = 1 << 22  # of samples whose soft codes are computed together: a number or an index for each cell
_CELL_COST = 30.0  # nanoseconds per cell; it also limits a chunk to a few million cells
_BIT_COST = 3.0  # nanoseconds per one of an atom, when its cost in a row is computed


@dataclass(frozen=True, eq=False, kw_only=True)
class Model(ResultBase):
    """Atoms, and how samples are coded with them: a Factorization without its codes, only with counts of them.

    Its other attributes are those of `Factorization`, apart from ``codes``.

    Attributes
    ----------
    n_samples : int
        Number of samples learned from.
    uses : ndarray of shape (n_atoms,), int64
        Number of samples that use each atom.
    max_atoms_per_sample, residual_limit : int or None, int
        Limits of coding, as passed to the search.
    columns : tuple of str or None
        Names of the features.
    picture : Picture or None
        Height and width, if each sample is a picture.
    column_data : Annotations or None
        What else is known about the features, such as the positions of variants.
    recurrence : Recurrence or None
        How often each atom was found again, if `bitatoms.stability` has counted it.
    pool : Pool or None
        How predictions of cells are fitted to cells that were hidden, once this was done.
    regression : Regression or None
        What predicts cells from all other columns, beside the atoms, once it was fitted.
    item_pool : Pool or None
        How recommendations are fitted to rows without one of their features, once this was done.
    """

    n_samples: int
    uses: NDArray[np.int64] = field(repr=False)
    max_atoms_per_sample: int | None = None
    residual_limit: int = 0
    columns: Names | None = field(default=None, repr=False)
    picture: Picture | None = None
    column_data: Annotations | None = field(default=None, repr=False)
    recurrence: Recurrence | None = field(default=None, repr=False)
    pool: Pool | None = field(default=None, repr=False)
    regression: Regression | None = field(default=None, repr=False)
    item_pool: Pool | None = field(default=None, repr=False)

    @classmethod
    def from_factorization(
        cls,
        result: Factorization | Model,
        max_atoms_per_sample: int | None = None,
        residual_limit: int = 0,
        header: Header | None = None,
        picture: Picture | None = None,
    ) -> Model:
        """Return the model of a search's result."""
        shared = {name: getattr(result, name) for name in ResultBase.__dataclass_fields__}
        return cls(
            **shared,
            n_samples=result.n_samples,
            uses=result.uses,
            max_atoms_per_sample=max_atoms_per_sample,
            residual_limit=residual_limit,
            columns=header and header.names,
            column_data=header and header.data,
            picture=picture,
        )

    @property
    def atom_names(self) -> Names:
        """Names of the atoms in tables: atom1, which saves most bits, atom2 and so on."""
        return numbered("atom", self.atoms.n_rows)

    @property
    def header(self) -> Header:
        """The columns that it was learned from; `match_columns` finds them in other tables."""
        return Header(self.atoms.n_cols, self.columns, data=self.column_data)

    @property
    def atom_spans(self) -> NDArray[np.int64] | None:
        """The number of columns that each atom spans, where the codelength describes atoms by stretches; else None."""
        return AtomCode(ranks_in(regions(self.column_data))).spans(self.atoms)

    @property
    def prices(self) -> Prices:
        """The prices of errors and uses at the end of the search: by codelength, or 1 for each error."""
        if self.objective != "codelength":
            return unit_prices(self.atoms.n_cols, self.atoms.n_rows)
        counts = self.n_samples, self.n_known, self.wrong, self.uses
        return codelength_prices(*counts, costs=self.costs or EQUAL_COSTS, has_bias=self.has_bias)

    @property
    def rule(self) -> CodingRule:
        """The rule of coding: the prices at the end of the search, and its limits."""
        prices, typical = None, 0.0
        if self.coder in PRICED_CODERS:
            prices = self.prices
            typical = typical_cost(prices, self.n_samples, self.wrong, self.uses)
        return self._rule_of(self.coder, prices)._replace(typical=typical)

    @property
    def greedy_rule(self) -> CodingRule:
        """The rule of `greedy_codes`."""
        return self._rule_of("mdl", self.prices)

    def _rule_of(self, coder: str, prices: Prices | None) -> CodingRule:
        """Return the rule of a coder within the limits of the model."""
        return coding_rule(coder, self.algebra, self.max_atoms_per_sample, self.residual_limit, prices)

    def greedy_codes(self, data: Bits, workers: Workers) -> BitMatrix:
        """Return the codes that the coder "mdl" finds from empty codes: greedily, at the prices of the model.

        The script of a report codes rows in the same way. `codes`, the codes of ``transform``, may cost less.
        """
        block = self._block(data, None, workers)
        code(block, self.greedy_rule)
        return block.codes()

    def codes(self, data: Bits, workers: Workers, max_rows: int | None = None) -> BitMatrix:
        """Return the codes of samples, found from scratch and from the remembered codes, at most so many at a time."""

        def codes_of(chunk: Bits) -> list[BitMatrix]:
            """Code a chunk; in smaller ones, if the memory of a device is too small for it."""
            return run_in_chunks(lambda rows: self._codes_at_once(chunk[rows], workers), len(chunk), workers)

        chunks = (codes_of(chunk) for _, chunk in _chunks(data, self.n_coded_columns, max_rows))
        return stack_rows(chain.from_iterable(chunks), self.atoms.n_rows)

    def _codes_at_once(self, chunk: Bits, workers: Workers) -> BitMatrix:
        """Return the codes of samples, found with each group of atoms."""
        parts = [group.codes_of(chunk, workers) for group in self._groups]
        if not parts:
            return BitMatrix.zeros(len(chunk), self.atoms.n_rows)
        if len(parts) == 1 and parts[0][0] is None:
            return parts[0][1]
        order = np.argsort(np.concatenate([group.atoms for group in self._groups]))
        return joined_codes(parts, len(chunk), order)

    def code(self, data: BitMatrix, workers: Workers) -> Block:
        """Return the samples as a block with their codes."""
        return self._block(data, self.codes(data, workers), workers)

    def _block(self, data: Bits, codes: BitMatrix | None, workers: Workers) -> Block:
        """Return samples as a block with these codes; None for codes without atoms."""
        bias = BitMatrix.from_dense(self.bias[np.newaxis])
        return Block(packed(data), packed(self.atoms), codes, self.algebra == "or", workers, bias)

    def errors(self, data: Bits, codes: BitMatrix, workers: Workers) -> Bits:
        """Return the known cells in which samples differ from what their codes describe."""
        if isinstance(data, SparseBits) and not self.bias.any():
            product = codes.to_sparse() @ self.atoms.to_sparse()
            product.data = np.minimum(product.data, 1) if self.algebra == "or" else product.data & 1
            wrong = product + data.to_sparse()
            wrong.data &= 1
            wrong.eliminate_zeros()
            wrong.sort_indices()
            return SparseBits(wrong.indptr.astype(np.int64), wrong.indices.astype(data.indices.dtype), data.n_cols)
        return self._block(data, codes, workers.without_device).errors()

    @property
    def _groups(self) -> list[AtomGroup]:
        """The groups of atoms that samples are coded with."""
        return self.pass_spec.groups

    @property
    def n_coded_columns(self) -> int:
        """The number of columns that are packed together to code samples."""
        return max((group.spec.atoms.n_cols for group in self._groups), default=0)

    @cached_property
    def pass_spec(self) -> PassSpec:
        """The pass that codes samples from scratch and from the remembered codes."""
        bias = BitMatrix.from_dense(self.bias[np.newaxis])
        priced_by = RowCounts(self.n_samples, self.n_known, self.wrong, self.uses)
        return PassSpec(self.atoms, bias, self.coder, self.rule, remembered=self.remembered, priced_by=priced_by)

    def row_bits(
        self, data: Bits, codes: BitMatrix, workers: Workers, max_rows: int | None = None
    ) -> NDArray[np.float64]:
        """Return the bits of each sample, by how rare its errors and its atoms were in the data learned from.

        Unknown cells cost nothing.
        """
        right, wrong = bits_of_values(self.wrong, self.n_known)
        unused, used = bits_of_values(self.uses, self.n_samples)
        zero, one = np.where(self.bias, wrong, right), np.where(self.bias, right, wrong)
        is_coded = np.zeros(self.atoms.n_cols, bool)
        for group in self._groups:
            is_coded[group.features] = True
        others = np.flatnonzero(~is_coded)
        bits = np.empty(len(data))
        for rows, chunk in _chunks(data, max(self.n_coded_columns, len(others)), max_rows):
            bits[rows] = sum_bits(chunk.take_columns(others), zero[others], one[others])
            own_codes = codes[rows]
            bits[rows] += sum_bits(own_codes, unused, used)
            for group in self._groups:
                errors = group.block(chunk, own_codes, workers).errors()
                bits[rows] += sum_bits(errors, right[group.features], wrong[group.features])
        return bits

    @property
    def bits_if_right(self) -> NDArray[np.float64]:
        """The bits of a right cell in each column."""
        return bits_of_values(self.wrong, self.n_known)[0]

    @property
    def bits_if_wrong(self) -> NDArray[np.float64]:
        """The bits of a wrong cell in each column."""
        return bits_of_values(self.wrong, self.n_known)[1]

    def soft_codes(
        self, data: Bits, codes: BitMatrix, workers: Workers, max_rows: int | None = None
    ) -> NDArray[np.float64]:
        """Return the bits that each atom saves in each sample, given the other atoms of its code: (n, n_atoms).

        They are the `row_bits` of the sample if the atom is not in its code, less those if it is.
        """
        right, wrong = bits_of_values(self.wrong, self.n_known)
        unused, used = bits_of_values(self.uses, self.n_samples)
        soft = np.tile(unused - used, (len(data), 1))
        size = max(1, _CHUNK_CELLS // max(1, self.n_coded_columns, self.atoms.n_rows))
        for rows, chunk in _chunks(data, 0, min(size, max_rows or size)):
            for group in self._groups:
                block = group.block(chunk, codes[rows], workers)
                soft[rows, group.atoms] += bits_of_cells_saved(block, (wrong - right)[group.features])
        return soft

    def signed_atoms(self) -> NDArray[np.int8]:
        """Return what each atom says about each feature: 1 present, -1 absent, 0 nothing.

        An atom makes a feature absent where the bias sets it.
        """
        return np.where(self.bias, np.int8(-1), np.int8(1)) * self.atoms.to_dense(np.int8)

    def reconstruct(self, codes: BitMatrix) -> BitMatrix:
        """Return the samples that these codes describe."""
        return reconstruct(codes, self.atoms, self.bias, self.algebra)

    def possible(self, samples: BitMatrix) -> tuple[BitMatrix, int]:
        """Return samples in which every genotype is possible, and the number of those that were not."""
        return nearest_genotypes(samples, ColumnTies.of(self.header).nested, self.wrong)

    @property
    def predictors(self) -> PooledPredictors:
        """What predicts cells: the codes of a row, pooled with the shares of ones in the columns."""
        frequencies = Frequencies.of_result(self)
        ones, n_known = frequencies.cells[:, 1].sum(axis=0), frequencies.cells.sum(axis=(0, 1))
        return PooledPredictors(
            (ones + 0.5) / (n_known + 1), (self.row_coder,), self.pool or UNFITTED, self.tied_columns
        )

    def calibrated(self, data: BitMatrix, workers: Workers, random: np.random.Generator) -> Model:
        """Return the model with its predictions fitted to known cells of a table that are hidden from its rows."""
        hidden = predict_hidden(data, self.tied_columns, lambda _: {"atoms": self.row_coder}, random, workers)
        return replace(self, pool=hidden.pool_of(hidden.names))

    @cached_property
    def tied_columns(self) -> TiedColumns:
        """The columns that are known to be tied: those of variants, and the values of encoded variables."""
        return known_ties(self.header)

    @property
    def row_coder(self) -> RowCoder:
        """The frequencies of the data learned from, and how rows are coded by them."""
        return RowCoder(self, Frequencies.of_result(self))

    @property
    def reading(self) -> str:
        """How to read the patterns, in a few sentences; this depends on the algebra and the bias."""
        if self.algebra == "or":
            text = "The features of a pattern come together: a row that uses it has them all, apart from wrong cells."
            negated = '"not" marks a feature that such a row does not have.'
        else:
            text = (
                "A row is the exclusive-or (XOR) of its patterns: it has the features that an odd number of them have. "
                'So a pattern may mean "A and B instead of C": where another pattern of the row has C too, the two '
                "together take C away. Its features need not come together."
            )
            negated = '"not" marks a feature that a row has unless an odd number of its patterns have it.'
        return f"{text} {negated}" if self.bias.any() and self.picture is None else text

    def patterns(self, most: int | None = None) -> list[Pattern]:
        """Return the atoms in readable form, or at most so many of them, the one that saves most bits first."""
        saved = np.zeros(self.atoms.n_rows, np.int64) if self.saved is None else self.saved
        recurs = None if self.recurrence is None else self.recurrence.shares
        has_positions = regions(self.column_data) is not None
        lifts = self.lifts
        return [
            Pattern(
                atom=k + 1,
                features=self.names_of_members(np.flatnonzero(self.atoms[k]).tolist()),
                rows=int(self.uses[k]),
                share=float(self.uses[k] / max(1, self.n_samples)),
                bits_saved=int(saved[k]),
                complete=None if self.complete is None else int(self.complete[k]),
                recurs=None if recurs is None else float(recurs[k]),
                span=self._span(k) if has_positions else None,
                **({} if lifts is None else lifts.of_pattern(k)),
            )
            for k in range(self.atoms.n_rows)[:most]
        ]

    def to_frame(self) -> Any:
        """Return the atoms as a pandas data frame, one row per atom, as `BinaryDictionaryLearning.to_frame` does."""
        return pattern_frame(self.patterns())

    @cached_property
    def lifts(self) -> Lifts | None:
        """The lifts of the atoms in the data learned from; None if complete rows were not counted."""
        counts = members_of(self)
        if counts is None or self.ones is None:
            return None
        return lifts_of(self.atoms, feature_shares(self.bias, self.ones, self.n_known), counts)

    def _span(self, k: int) -> str:
        """Return where the features of an atom are: on each chromosome, from the first to the last position."""
        assert self.column_data is not None
        features, chromosomes = np.flatnonzero(self.atoms[k]), chromosomes_of(self.column_data)
        codes, positions = chromosomes.codes[features], np.asarray(self.column_data["position"])[features]
        stretches = []
        for number in dict.fromkeys(codes.tolist()):
            own = positions[codes == number]
            end = f"-{own.max()}" if own.max() > own.min() else ""
            stretches.append(f"{chromosomes.categories[number]}:{own.min()}{end}")
        return ",".join(stretches)

    def names_of_members(self, features: Sequence[int]) -> Names:
        """Return the names of features of atoms, with "not" where the bias sets a feature, so that atoms clear it."""
        names = zip(features, feature_names(self.columns, features), strict=True)
        return tuple(f"not {name}" if self.bias[feature] else name for feature, name in names)


def _chunks(data: Bits, width: int, max_rows: int | None) -> Iterator[tuple[slice, Bits]]:
    """Yield samples in chunks, of which this many columns are packed together, each with its rows."""
    size = max_rows or max(_MIN_CHUNK_ROWS, _CHUNK_BITS // max(1, width))
    for start in range(0, len(data), size):
        rows = slice(start, start + size)
        yield rows, data if size >= len(data) and isinstance(data, BitMatrix) else data[rows]


class Averaging(NamedTuple):
    """How the codes of a row are averaged: all of them, or sampled ones if there are more atoms."""

    most_atoms: int = 10
    sampling: Sampling = Sampling(skipped=10, kept=50)


AVERAGING = Averaging()


class DescribedRows(NamedTuple):
    """Rows with the codes that describe them in the fewest bits."""

    codes: BitMatrix
    bits: NDArray[np.float64]  # (n,)


@dataclass(frozen=True, eq=False)
class RowCoder:
    """Codes rows with the atoms of a model in the fewest bits at frozen frequencies."""

    model: Model
    frequencies: Frequencies
    averaging: Averaging = AVERAGING

    @property
    def n_iter(self) -> int:
        """The number of learning iterations of the model."""
        return self.model.n_iter

    def describe(self, data: BitMatrix, workers: Workers) -> DescribedRows:
        """Return the rows with the codes that take the fewest bits; the search starts from the codes of the model."""
        codes = self.model.codes(data, workers)
        return self._run(data, codes, workers, self._max_atoms, self.frequencies.costs())

    def row_bits(self, data: BitMatrix, codes: BitMatrix, workers: Workers, left_out: int = 0) -> NDArray[np.float64]:
        """Return the bits of rows with these codes.

        With ``left_out=1`` the rows are among those whose frequencies these are, and each is taken out of them.
        """
        return self._run(data, codes, workers, -1, self.frequencies.costs(left_out)).bits

    def refitted(self, data: BitMatrix, codes: BitMatrix) -> RowCoder:
        """Return the same atoms with the frequencies in rows with these codes."""
        return RowCoder(self.model, Frequencies.count(data, self.model.reconstruct(codes), codes))

    def cell_probabilities(self, data: BitMatrix, workers: Workers) -> NDArray[np.float64]:
        """Return the probability of a one in every cell, given the known cells of its row.

        It is the mean over the codes of the row, weighted by 2^-bits: over all codes with few atoms, otherwise over
        sampled ones. The samples depend on nothing but the row.
        """
        model, is_sampled = self.model, self.model.atoms.n_rows > self.averaging.most_atoms
        all_codes = model.codes(data, workers) if is_sampled else None
        atoms, bias, covers = self._factors()
        costs, where_0, where_1 = self.frequencies.costs(), *self.frequencies.probabilities_of_ones()

        def run(start: int, stop: int) -> NDArray[np.float64]:
            chunk, shares = data[start:stop], np.empty((stop - start, data.n_cols))
            codes = np.zeros((stop - start, model.atoms.n_rows), np.uint8)
            if all_codes is not None:
                codes = all_codes[start:stop].to_dense()
            given = cells_of_rows(chunk), codes, atoms, bias, covers, self._max_atoms, costs, UNIT
            if is_sampled:
                average_sampled_codes(*given, self.averaging.sampling, _scratch(data.n_cols), shares)
            else:
                average_all_codes(*given, _scratch(data.n_cols), shares)
            return where_0 + shares * (where_1 - where_0)

        n_codes = sum(self.averaging.sampling) if is_sampled else 2**model.atoms.n_rows
        row_cost = _CELL_COST * data.n_cols + _BIT_COST * n_codes * len(atoms.columns)
        return np.concatenate(workers.map_rows(run, data.n_rows, row_cost))

    def _run(
        self, data: BitMatrix, codes: BitMatrix, workers: Workers, max_atoms: int, costs: CellCosts
    ) -> DescribedRows:
        """Run the kernel on chunks of rows."""
        atoms, bias, covers = self._factors()

        def run(start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
            chunk, total = codes[start:stop].to_dense(), np.empty(stop - start, np.int64)
            cells, scratch = cells_of_rows(data[start:stop]), _scratch(data.n_cols)
            shorten_codes(cells, chunk, atoms, bias, covers, max_atoms, costs, scratch, total)
            return chunk, total

        chunks, totals = zip(*workers.map_rows(run, data.n_rows, _CELL_COST * data.n_cols), strict=True)
        return DescribedRows(BitMatrix.from_dense(np.concatenate(chunks)), np.concatenate(totals) / UNIT)

    @property
    def _max_atoms(self) -> int:
        """The largest number of atoms that a row may use."""
        return NO_LIMIT if self.model.max_atoms_per_sample is None else self.model.max_atoms_per_sample

    def _factors(self) -> tuple[AtomOnes, NDArray[np.int64], Any]:
        """Return the atoms, the bias and the algebra as the kernels take them."""
        return ones_of(self.model.atoms), self.model.bias.astype(np.int64), self.model.algebra == "or"


def ones_of(atoms: Bits) -> AtomOnes:
    """Return the columns of the ones of atoms, as kernels take them."""
    ones = atoms.to_sparse()
    return AtomOnes(ones.indptr.astype(np.int64), ones.indices.astype(np.int64))


def _scratch(n_cols: int) -> CellScratch:
    """Return the work arrays of the kernels."""
    return CellScratch(np.empty(n_cols, np.int64), np.empty(n_cols, np.int64))
