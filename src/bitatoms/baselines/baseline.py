"""The base class of the baselines: the scikit-learn interface over a function from a table to factors."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..api import codelength
from ..base import TableTransformer
from ..bits import BitMatrix
from ..columns.table import feature_names
from ..engine.block import reconstruct
from ..engine.coding import coding_rule
from ..engine.passes import PassSpec, row_codes
from ..estimators.outputs import frame_like, transformed
from ..frames import in_memory
from ..parallel import Workers
from ..validation import as_generator, check_int


class Factors(NamedTuple):
    """The atoms and codes that a method finds: tables of 0 and 1, or of bools.

    Attributes
    ----------
    atoms : array-like of shape (n_atoms, n_features)
        The atoms.
    codes : array-like of shape (n_samples, n_atoms)
        Which atoms each sample uses.
    bias : array-like of shape (n_features,) or None
        Features that all samples start from.
    """

    atoms: Any
    codes: Any
    bias: Any = None


class Baseline(TableTransformer):
    """A method to compare with.

    ``fit`` stores the atoms (``components_``) and codes (``codes_``) that the method finds. ``transform`` codes samples
    with those atoms: greedily, unless the method has a rule of its own (`_code`).
    """

    algebra: ClassVar[str] = "or"  # the algebra of the method
    chooses_rank: ClassVar[bool] = True  # n_components may be None
    n_components: int | None
    random_state: Any

    @abstractmethod
    def _factorize(self, data: BitMatrix, random: np.random.Generator) -> Factors:
        """Return at most ``n_components`` atoms and their codes for a table that is not empty."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the atoms of X and the codes of its samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        data = self._validate_table(X, reset=True).bits
        if self.n_components is not None:
            check_int("n_components", self.n_components, 1)
        elif not self.chooses_rank:
            name = type(self).__name__
            raise ValueError(f"n_components is None, but {name} cannot choose the number of atoms; pass a number")
        found = self._factorize(data, as_generator(self.random_state))
        self.components_ = np.asarray(found.atoms, np.uint8)
        self.codes_ = np.asarray(found.codes, np.uint8)
        self.n_components_ = len(self.components_)
        self.codelength_ = codelength(data, self.components_, self.codes_, algebra=self.algebra)
        return self

    def transform(self, X: Any) -> Any:
        """Return the codes of samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_components_), uint8
            For a data frame, one of the same package with its index and the columns atom1, atom2, ...
        """
        check_is_fitted(self, "components_")
        X = in_memory(X)
        data = self._validate_table(X, reset=False).bits
        codes = self._code(data, BitMatrix.from_dense(self.components_)).to_dense()
        return transformed(self, X, codes, self.get_feature_names_out())

    def _code(self, data: BitMatrix, atoms: BitMatrix) -> BitMatrix:
        """Return the codes of samples, each coded greedily to leave few wrong cells."""
        spec = PassSpec(atoms, BitMatrix.zeros(1, data.n_cols), "greedy", coding_rule("greedy", self.algebra))
        return row_codes(data, spec, Workers())

    def inverse_transform(self, X: Any) -> Any:
        """Return the product of codes and atoms.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)
            Codes.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features), uint8
            For a data frame, one of the same package with its index.
        """
        X = in_memory(X)
        codes = self._codes_of(X)
        atoms = BitMatrix.from_dense(self.components_)
        rows = reconstruct(codes, atoms, np.zeros(atoms.n_cols, np.uint8), self.algebra).to_dense()
        return frame_like(X, rows, feature_names(self._header.names, range(atoms.n_cols)))
