"""Model: what was learned, as plain data, with all that coding new samples takes; and its patterns in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.structs import Rule
from ..parallel import Workers
from ..table import Names, Picture, Table, check_columns, feature_names
from .block import Block
from .coding import coding_rule, typical_cost
from .objective import codelength_prices, unit_prices
from .pass_spec import PassSpec, coded_block
from .result import CountsResult, Factorization, ResultBase, reconstruct


class Pattern(NamedTuple):
    """An atom as people read it."""

    atom: int  # its place by bits saved, from 1 on
    features: Names  # those that it sets; "not x" where it takes the one away that x has otherwise (the bias)
    rows: int  # that use it
    share: float  # of all rows
    bits_saved: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Model(CountsResult):
    """Atoms, and how samples are coded with them: all of a Factorization but its codes, of which the counts are kept.

    Attributes
    ----------
    max_atoms_per_sample : int or None
    residual_limit : int
        Limits of coding, as given to the search.
    columns : tuple of str or None
        Names of the features.
    picture : Picture or None
        Height and width of the picture that each sample is.
    """

    max_atoms_per_sample: int | None = None
    residual_limit: int = 0
    columns: Names | None = field(default=None, repr=False)
    picture: Picture | None = None

    @classmethod
    def from_factorization(
        cls,
        result: Factorization | CountsResult,
        max_atoms_per_sample: int | None = None,
        residual_limit: int = 0,
        columns: Names | None = None,
        picture: Picture | None = None,
    ) -> Model:
        """The model of a search's result."""
        kept = {name: getattr(result, name) for name in ResultBase.__dataclass_fields__}
        return cls(
            **kept,
            n_samples=result.n_samples,
            uses=result.uses,
            max_atoms_per_sample=max_atoms_per_sample,
            residual_limit=residual_limit,
            columns=columns,
            picture=picture,
        )

    @property
    def atom_names(self) -> Names:
        """What the atoms are called in tables: atom1, the one that saves most bits, atom2 and so on."""
        return tuple(f"atom{place + 1}" for place in range(self.atoms.n_rows))

    def check(self, table: Table) -> None:
        """Refuse a table whose columns are not those that were learned from."""
        if table.shape[1] != self.atoms.n_cols:
            raise ValueError(
                f"the table has {table.shape[1]} columns, but the model was learned from {self.atoms.n_cols}; "
                "give the table that it was learned from, or one with the same columns"
            )
        if self.columns is not None and table.columns is not None:
            check_columns(self.columns, table.columns)

    @property
    def rule(self) -> Rule:
        """How samples are coded: at the prices that hold at the end of the search, within its limits."""
        prices, typical = None, 0.0
        if self.coder in ("mdl", "beam"):
            prices = unit_prices(self.atoms.n_cols, self.atoms.n_rows)
            if self.objective == "codelength":
                prices = codelength_prices(self.n_samples, self.wrong, self.uses)
            typical = typical_cost(prices, self.n_samples, self.wrong, self.uses)
        rule = coding_rule(self.coder, self.algebra, self.max_atoms_per_sample, self.residual_limit, prices)
        return rule._replace(typical=typical)

    def code(self, data: BitMatrix, workers: Workers) -> Block:
        """The samples coded afresh."""
        return coded_block(data, None, self.pass_spec, workers)

    @property
    def pass_spec(self) -> PassSpec:
        """A pass that codes samples afresh."""
        return PassSpec(self.atoms, BitMatrix.from_dense(self.bias[np.newaxis]), self.coder, self.rule)

    def row_bits(self, errors: BitMatrix, codes: BitMatrix) -> NDArray[np.float64]:
        """The bits that each sample takes, by how rare its wrong bits and its atoms were among those learned from."""
        return _bits(errors, self._share(self.wrong)) + _bits(codes, self._share(self.uses))

    def _share(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Counts as a share of the samples, never quite 0 or 1."""
        return (counts + 0.5) / (self.n_samples + 1)

    def reconstruct(self, codes: BitMatrix) -> BitMatrix:
        """The samples that these codes stand for."""
        return reconstruct(codes, self.atoms, self.bias, self.algebra)

    def patterns(self) -> list[Pattern]:
        """The atoms as people read them, the one that saves most bits first."""
        saved = np.zeros(self.atoms.n_rows, np.int64) if self.saved is None else self.saved
        return [
            Pattern(
                atom=place + 1,
                features=self._features(place),
                rows=int(self.uses[place]),
                share=float(self.uses[place] / max(1, self.n_samples)),
                bits_saved=int(saved[place]),
            )
            for place in range(self.atoms.n_rows)
        ]

    def _features(self, place: int) -> Names:
        """The features that an atom sets, by name."""
        held = np.flatnonzero(self.atoms[place])
        names = feature_names(self.columns, held)
        return tuple(f"not {name}" if self.bias[feature] else name for feature, name in zip(held, names, strict=True))


def _bits(table: BitMatrix, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row, the bits that its ones and zeros cost where ones have these shares."""
    one, zero = -np.log2(share), -np.log2(1 - share)
    return np.asarray(table.to_sparse() @ (one - zero)) + zero.sum()
