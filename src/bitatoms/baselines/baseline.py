"""What the methods of others have in common: scikit-learn's face over a function from a table to atoms and codes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..api import codelength
from ..base import TableTransformer
from ..bits import BitMatrix
from ..core.coding import coding_rule
from ..core.pass_spec import PassSpec, coded_block
from ..core.result import reconstruct
from ..parallel import Workers
from ..validation import as_generator, check_int


class Factors(NamedTuple):
    """The atoms and codes that a method finds: tables of 0 and 1, or of bools."""

    atoms: Any  # (n_atoms, n_features)
    codes: Any  # (n_samples, n_atoms)
    bias: Any = None  # (n_features,), or None


class Baseline(TableTransformer):
    """A method to compare with.

    ``fit`` keeps the atoms that the method finds (``components_``) and the codes that it gives to the samples
    (``codes_``); ``transform`` codes samples afresh with those atoms, greedily, whichever the method.
    """

    algebra: ClassVar[str] = "or"  # that the method is defined for
    stops_itself: ClassVar[bool] = True  # without a number of atoms, it ends where one more is of no use
    n_components: int | None
    random_state: Any

    @abstractmethod
    def _factorize(self, data: BitMatrix, random: np.random.Generator) -> Factors:
        """The atoms and codes of a table with at least one row and one column, at most ``n_components`` of them."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the atoms of X, of shape (n_samples, n_features), and the codes of its samples. y is not looked at."""
        data = self._validate_table(X, reset=True).bits
        if self.n_components is not None:
            check_int("n_components", self.n_components, 1)
        elif not self.stops_itself:
            raise ValueError(f"n_components is None, and {type(self).__name__} cannot choose; give a number of atoms")
        found = self._factorize(data, as_generator(self.random_state))
        self.components_ = np.asarray(found.atoms, np.uint8)
        self.codes_ = np.asarray(found.codes, np.uint8)
        self.n_components_ = len(self.components_)
        self.codelength_ = codelength(data, self.components_, self.codes_, algebra=self.algebra)
        return self

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """The atoms that each sample uses, coded afresh: shape (n_samples, n_components_), uint8."""
        check_is_fitted(self, "components_")
        data = self._validate_table(X, reset=False).bits
        atoms, zeros = BitMatrix.from_dense(self.components_), BitMatrix.zeros(1, data.n_cols)
        order = PassSpec(atoms, zeros, "greedy", coding_rule("greedy", self.algebra))
        return coded_block(data, None, order, Workers()).factors()[1].to_dense()

    def inverse_transform(self, X: Any) -> NDArray[np.uint8]:
        """The samples that these codes, of shape (n_samples, n_components_), stand for."""
        check_is_fitted(self, "components_")
        codes = BitMatrix.from_any(X, name="the code matrix")
        if codes.n_cols != self.n_components_:
            raise ValueError(f"the codes have {codes.n_cols} columns, but the model has {self.n_components_} atoms")
        atoms = BitMatrix.from_dense(self.components_)
        return reconstruct(codes, atoms, np.zeros(atoms.n_cols, np.uint8), self.algebra).to_dense()
