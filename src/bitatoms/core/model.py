"""Model: the atoms of a factorization as plain data, with all that coding new samples needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..kernels.structs import Prices, Rule, covering
from ..parallel import Workers
from ..sparse_bits import Bits, packed
from ..table import Header, Names, Picture, feature_names
from .block import Block
from .coding import PRICED_CODERS, coding_rule, typical_cost
from .hidden_cells import fill_unknown
from .likelihood import Frequencies, RowCoder
from .objective import codelength_prices, unit_prices
from .recurrence import Recurrence
from .result import CountsResult, Factorization, ResultBase, reconstruct
from .row_pass import PassSpec, coded_block

_CHUNK_BITS, _MIN_CHUNK_ROWS = 1 << 28, 1 << 10  # of samples that are coded together


class Pattern(NamedTuple):
    """An atom in readable form."""

    atom: int  # rank by bits saved, from 1
    features: Names  # that it sets; "not x" where it clears a feature that the bias sets
    rows: int  # that use it
    share: float  # of all rows that use it
    bits_saved: int
    complete: int | None = None  # rows that have all its features, whether they use it or not; None if unknown
    recurs: float | None = None  # share of the searches of `bitatoms.stability` that found it again; None if unknown


@dataclass(frozen=True, eq=False, kw_only=True)
class Model(CountsResult):
    """Atoms, and how samples are coded with them: a Factorization without its codes, only with counts of them.

    Attributes
    ----------
    max_atoms_per_sample : int or None
    residual_limit : int
        Limits of coding, as passed to the search.
    columns : tuple of str or None
        Names of the features.
    picture : Picture or None
        Height and width, if each sample is a picture.
    recurrence : Recurrence or None
        How often each atom was found again, if `bitatoms.stability` has counted it.
    """

    max_atoms_per_sample: int | None = None
    residual_limit: int = 0
    columns: Names | None = field(default=None, repr=False)
    picture: Picture | None = None
    recurrence: Recurrence | None = field(default=None, repr=False)

    @classmethod
    def from_factorization(
        cls,
        result: Factorization | CountsResult,
        max_atoms_per_sample: int | None = None,
        residual_limit: int = 0,
        columns: Names | None = None,
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
            columns=columns,
            picture=picture,
        )

    @property
    def atom_names(self) -> Names:
        """Names of the atoms in tables: atom1, which saves most bits, atom2 and so on."""
        return tuple(f"atom{k + 1}" for k in range(self.atoms.n_rows))

    @property
    def header(self) -> Header:
        """The columns that it was learned from; `bitatoms.table.match_columns` finds them in other tables."""
        return Header(self.atoms.n_cols, self.columns)

    @property
    def rule(self) -> Rule:
        """The rule of coding: the prices at the end of the search, and its limits."""
        prices, typical = None, 0.0
        if self.coder in PRICED_CODERS:
            prices = unit_prices(self.atoms.n_cols, self.atoms.n_rows)
            if self.objective == "codelength":
                prices = codelength_prices(self.n_samples, self.n_known, self.wrong, self.uses)
            typical = typical_cost(prices, self.n_samples, self.wrong, self.uses)
        rule = coding_rule(self.coder, self.algebra, self.max_atoms_per_sample, self.residual_limit, prices)
        return rule._replace(typical=typical)

    def codes(self, data: Bits, workers: Workers, max_rows: int | None = None) -> BitMatrix:
        """Return the codes of samples, found from scratch and from the remembered codes, at most so many at a time."""
        _, spec = self._coding
        chunks = (coded_block(chunk, None, spec, workers).codes() for chunk in self._chunks(data, max_rows))
        return stack_rows(chunks, self.atoms.n_rows)

    def code(self, data: BitMatrix, workers: Workers) -> Block:
        """Return the samples as a block with their codes."""
        bias = BitMatrix.from_dense(self.bias[np.newaxis])
        return Block(data, self.atoms, self.codes(data, workers), covering(self.algebra), workers, bias)

    def _chunks(self, data: Bits, max_rows: int | None) -> Iterator[BitMatrix]:
        """Yield samples in chunks, with the columns of atoms."""
        columns, spec = self._coding
        size = max_rows or max(_MIN_CHUNK_ROWS, _CHUNK_BITS // max(1, spec.atoms.n_cols))
        for start in range(0, len(data), size):
            chunk = data if size >= len(data) else data[start : start + size]
            yield packed(chunk if columns is None else chunk.take_columns(columns))

    @cached_property
    def _coding(self) -> tuple[NDArray[np.intp] | None, PassSpec]:
        """The columns that some atom has, None for all, and the pass that codes samples by these columns.

        Other columns are wrong or not whatever the code of a sample is. They matter only to ``residual_limit``.
        """
        spec, has_atom = self.pass_spec, self.atoms.column_weights() > 0
        if has_atom.all() or self.residual_limit:
            return None, spec
        columns, rule = np.flatnonzero(has_atom), spec.rule
        if rule.prices is not None:
            prices = Prices(rule.prices.bits[columns], rule.prices.uses)
            rule = rule._replace(prices=prices)
            rule = rule._replace(typical=typical_cost(prices, self.n_samples, self.wrong[columns], self.uses))
        taken = spec.atoms.take_columns(columns), spec.bias.take_columns(columns)
        return columns, replace(spec, atoms=taken[0], bias=taken[1], rule=rule)

    @property
    def pass_spec(self) -> PassSpec:
        """The pass that codes samples from scratch and from the remembered codes."""
        bias = BitMatrix.from_dense(self.bias[np.newaxis])
        return PassSpec(self.atoms, bias, self.coder, self.rule, remembered=self.remembered)

    def row_bits(
        self, data: Bits, codes: BitMatrix, workers: Workers, max_rows: int | None = None
    ) -> NDArray[np.float64]:
        """Return the bits of each sample, by how rare its errors and its atoms were in the data learned from.

        Unknown cells cost nothing.
        """
        columns, spec = self._coding
        right, wrong = _bits_of_values(self.wrong, self.n_known)
        unused, used = _bits_of_values(self.uses, self.n_samples)
        zero, one = np.where(self.bias, wrong, right), np.where(self.bias, right, wrong)
        bits, start = [np.empty(0)], 0
        for chunk in self._chunks(data, max_rows):
            code = codes[start : start + len(chunk)]
            start += len(chunk)
            errors = Block(chunk, spec.atoms, code, spec.rule.covers, workers, spec.bias).errors()
            kept = slice(None) if columns is None else columns
            bits.append(_sums(errors, right[kept], wrong[kept]) + _sums(code, unused, used))
        if columns is None:
            return np.concatenate(bits)
        zero[columns] = one[columns] = 0
        return np.concatenate(bits) + _sums(data, zero, one)

    def signed_atoms(self) -> NDArray[np.int8]:
        """Return what each atom says about each feature: 1 present, -1 absent, 0 nothing.

        An atom makes a feature absent where the bias sets it.
        """
        return np.where(self.bias, np.int8(-1), np.int8(1)) * self.atoms.to_dense(np.int8)

    def reconstruct(self, codes: BitMatrix) -> BitMatrix:
        """Return the samples that these codes describe."""
        return reconstruct(codes, self.atoms, self.bias, self.algebra)

    def cell_probabilities(self, data: BitMatrix, workers: Workers) -> NDArray[np.float64]:
        """Return the probability of a one in every cell of samples, known or not, given the known cells of its row."""
        return self._row_coder.cell_probabilities(data, workers)

    def completed(self, data: BitMatrix, workers: Workers) -> BitMatrix:
        """Return samples with unknown cells filled in: by ones where these are more probable than zeros."""

        def predict(rows: BitMatrix) -> BitMatrix:
            values = self._row_coder.map_probabilities(rows, workers, lambda each: BitMatrix.from_dense(each > 0.5))
            return stack_rows(values, data.n_cols)

        return fill_unknown(data, predict)

    @property
    def _row_coder(self) -> RowCoder:
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
        return [
            Pattern(
                atom=k + 1,
                features=self._features(k),
                rows=int(self.uses[k]),
                share=float(self.uses[k] / max(1, self.n_samples)),
                bits_saved=int(saved[k]),
                complete=None if self.complete is None else int(self.complete[k]),
                recurs=None if recurs is None else float(recurs[k]),
            )
            for k in range(self.atoms.n_rows)[:most]
        ]

    def _features(self, k: int) -> Names:
        """Return the names of the features of an atom."""
        features = np.flatnonzero(self.atoms[k])
        names = zip(features, feature_names(self.columns, features), strict=True)
        return tuple(f"not {name}" if self.bias[feature] else name for feature, name in names)


def _bits_of_values(
    counts: NDArray[np.int64], n: int | NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bits of a zero and of a one in each column, if there are this many ones among ``n`` cells."""
    share = (counts + 0.5) / (n + 1)  # strictly between 0 and 1
    return -np.log2(1 - share), -np.log2(share)


def _sums(table: Bits, zero: NDArray[np.float64], one: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum over the known cells of each row, by what a zero and a one cost in each column."""
    sums = np.asarray(table.filled().to_sparse() @ (one - zero)) + zero.sum()
    return sums if table.unknown is None else sums - np.asarray(table.unknown.to_sparse() @ zero)
