"""The base class of the transformers: validation of X as scikit-learn requires it."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from . import validation
from .bits import BitMatrix
from .io.api import read
from .table import Table, check_columns


class TableTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer whose X is a table of 0 and 1, or becomes one by ``binarize``."""

    binarize: float | None
    n_components_: int

    def _validate_table(self, X: Any, reset: bool) -> Table:
        """Return X as packed bits, after scikit-learn's checks of features, names, missing values and shape."""
        table: Table | None = None
        if isinstance(X, (str, os.PathLike)):
            table = read(X, binarize=self.binarize)
        elif isinstance(X, Table) or validation.is_anndata(X) or validation.package_name(X) == "pyarrow":
            table = Table.from_any(X, binarize=self.binarize)
        packed = table is not None or isinstance(X, BitMatrix)
        check_not_empty(table.shape if table is not None else X.shape if packed else (1, 1))
        if table is not None:
            self._check_columns(table, reset)
            return table
        validation.check_not_masked(X, "X")  # scikit-learn ignores the mask
        if validation.is_sparse(X) and X.ndim == 2:
            X = validation.as_csr(X, "X")  # scikit-learn would convert an invalid matrix without checking it
        checked = validate_data(
            self,
            X,
            reset=reset,
            skip_check_array=packed,
            accept_sparse="csr",
            dtype=None,
            ensure_all_finite=False,  # BitMatrix.from_any reports where such a value is
        )
        return Table(BitMatrix.from_any(checked, self.binarize))

    def _check_columns(self, table: Table, reset: bool) -> None:
        """Set or compare the features and their names for a Table, as validate_data does for data frames."""
        name, learned = type(self).__name__, getattr(self, "feature_names_in_", None)
        if reset:
            self.n_features_in_ = table.shape[1]
            if table.columns is not None:
                self.feature_names_in_ = np.array(table.columns, object)
            elif learned is not None:
                del self.feature_names_in_
        elif table.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {table.shape[1]} features, but {name} is expecting {self.n_features_in_} features")
        elif (table.columns is None) != (learned is None):
            given, fitted = ("names", "without") if learned is None else ("no names", "with")
            warnings.warn(f"the columns of X have {given}, but {name} was fitted {fitted} names", stacklevel=5)
        elif table.columns is not None and learned is not None:
            check_columns(tuple(learned), table.columns)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def check_not_empty(shape: tuple[int, int]) -> None:
    """Raise scikit-learn's error for a table without samples or features."""
    if 0 in shape:
        missing = "sample" if shape[0] == 0 else "feature"
        raise ValueError(f"Found array with 0 {missing}(s) (shape={shape}) while a minimum of 1 is required.")
