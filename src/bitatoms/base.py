"""The base classes of the estimators: validation of X as scikit-learn requires it, and searches for atoms."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from . import frames
from .api import fitting
from .bits import BitMatrix
from .cell_values import package_name
from .columns.encoding import check_not_copies, matched_rows, raw_encoding
from .columns.table import Header, Picture, Table, as_bits
from .device_choice import workers_for
from .errors import InputWarning, Parameter, named_columns, warn
from .formatting import numbered
from .io.api import read, read_matching
from .io.options import Missing, ReadOptions
from .model.model import Model
from .model.result import Factorization
from .parallel import Workers
from .parameters import advice_on, nested_declarations, nested_kinds
from .rows import out_of_core
from .rows.passes import PassResult
from .rows.source import MemoryRows
from .rows.subsample import learn
from .run_options import DeviceChoice
from .search.options import SearchOptions
from .search.params import SearchParams, resolve
from .sparse_bits import Bits, SparseBits


class SearchLimitWarning(InputWarning, ConvergenceWarning):
    """A limit on rounds or seconds ended a search before it converged."""


def warn_of_limit(limit: str, what: str, better: str, *advice: str | Parameter, stacklevel: int = 2) -> None:
    """Warn the caller of a caller, or one further up, that a limit ended something before it converged."""
    text = f" ended {what} before it converged; raise it for {better}"
    warnings.warn(SearchLimitWarning(Parameter(limit), text, *advice), stacklevel=stacklevel + 1)


class TableEstimator(BaseEstimator):
    """An estimator whose X is a table of 0 and 1, or becomes one by ``binarize``."""

    binarize: float | None
    absent: str | None = None  # what columns that X lacks mean; None: an error, and no parameter
    _missing: Missing = "refuse"  # what missing values become: an error, or unknown cells
    _learned: tuple[str, ...] = ()  # private attributes that a fit sets

    def _reset(self) -> None:
        """Remove everything learned, so that a fit that fails leaves no partial model."""
        for name in [name for name in vars(self) if name.endswith("_") or name in ("_column_data", *self._learned)]:
            delattr(self, name)

    def _table_in_memory(self, X: Any, reset: bool) -> Table:
        """Return X as a table; raise for stores and Dask collections."""
        if out_of_core.is_out_of_core(X):
            raise TypeError(
                f"here, {type(self).__name__} takes tables in memory, not {type(X).__name__}; read its rows into "
                "memory first"
            )
        return self._validate_table(X, reset)

    def _validate_table(self, X: Any, reset: bool) -> Table:
        """Return X as a table that is not empty.

        With ``reset``, its columns become those of the model. Otherwise, columns that have names are matched to those
        of the model by name, in any order.
        """
        X = frames.in_memory(X)
        table = self._as_table(X) if reset else self._matched_table(X)
        if table is not None:
            check_not_empty(table.shape)
            if reset:
                self._set_features(table.header)
            return table
        if not reset:
            check_not_copies(X, self._header, type(self).__name__)
        values = X if isinstance(X, (BitMatrix, SparseBits)) else frames.values_of(X)
        check_not_empty(values.shape)
        validate_data(self, X, reset=reset, skip_check_array=True)  # checks the columns' number and names
        with named_columns(frames.column_names(X)):
            return Table(as_bits(values, self.binarize, missing=self._missing))

    def _as_table(self, X: Any) -> Table | None:
        """Return a file, a Table, an AnnData or a pyarrow table as a Table; None for what scikit-learn validates."""
        if isinstance(X, (str, os.PathLike)):
            return read(X, binarize=self.binarize, missing=self._missing)
        return Table.from_any(X, binarize=self.binarize, missing=self._missing) if _is_table(X) else None

    def _matched_table(self, X: Any) -> Table | None:
        """Return X with the columns of the model; None for what scikit-learn validates."""
        learned, names = self._header, frames.column_names(X)
        if isinstance(X, (str, os.PathLike)):
            table = read_matching(X, learned, ReadOptions(binarize=self.binarize, missing=self._missing), self.absent)
        elif (
            _is_table(X)
            or (names is not None and learned.names not in (None, names))
            or raw_encoding(X, learned) is not None
        ):
            table = matched_rows(X, learned, self.absent, binarize=self.binarize, missing=self._missing)
        else:
            return None
        if (table.columns is None) != (learned.names is None) and not table.absent_is_zero:
            given, fitted = ("names", "without") if learned.names is None else ("no names", "with")
            warn(f"the columns of X have {given}, but {type(self).__name__} was fitted {fitted} names")
        return table

    @property
    def _header(self) -> Header:
        """The columns that the model was fitted on."""
        names = getattr(self, "feature_names_in_", None)
        known = None if names is None else tuple(map(str, names))
        return Header(self.n_features_in_, known, data=getattr(self, "_column_data", None))

    def _set_features(self, header: Header) -> None:
        """Set the features and their names, as validate_data does for data frames."""
        self.n_features_in_ = header.n_cols
        self._column_data = header.data
        if header.names is not None:
            self.feature_names_in_ = np.array(header.names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._missing != "refuse"
        return tags


class TableTransformer(TransformerMixin, TableEstimator):
    """A transformer of tables of 0 and 1 to codes."""

    n_components_: int

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the atoms in tables of codes: atom1, atom2 and so on.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self, "n_components_")
        return np.array(numbered("atom", self.n_components_), object)

    def _codes_of(self, X: Any) -> BitMatrix:
        """Return codes as bits, after checking that there is one column per atom."""
        check_is_fitted(self, "n_components_")
        codes = BitMatrix.from_any(X, name="the code matrix")
        if codes.n_cols != self.n_components_:
            raise ValueError(f"the codes have {codes.n_cols} columns, but the model has {self.n_components_} atoms")
        return codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


class SearchEstimator(TableEstimator):
    """An estimator that searches for atoms."""

    n_jobs: int | None
    device: DeviceChoice
    verbose: int
    _missing = "unknown"
    _kind: type[SearchOptions]  # that declares its parameters

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``constraints__max_components=5`` replaces one of a group, which is made if there is none.

        Parameters
        ----------
        **params : any
            Parameters by name, as in ``get_params()``.

        Returns
        -------
        estimator
            This estimator.
        """
        nested = {name: params.pop(name) for name in list(params) if "__" in name}
        if advice := advice_on(self._kind, params):
            raise ValueError(f"{type(self).__name__}.set_params() got an unexpected parameter{advice}")
        super().set_params(**params)
        for name, value in nested.items():
            if name not in nested_declarations(self._kind):
                raise ValueError(f"Invalid parameter {name!r} for {type(self).__name__}; see get_params()")
            outer, _, inner = name.partition("__")
            group, kind = getattr(self, outer), cast(Any, nested_kinds(self._kind)[outer])
            if isinstance(group, str) and group != "paper":
                raise ValueError(f"{outer}={group!r} has no parameter {inner!r}; set {outer}={kind.__name__}() first")
            setattr(self, outer, replace(group if isinstance(group, kind) else kind(), **{inner: value}))
        return self

    def _search_params(self) -> SearchParams:
        """Return the parameters of the search, checked with the others."""
        return resolve(self._kind(**self.get_params(deep=False)))

    def _workers(self, data: Bits | None = None) -> Workers:
        """Return who processes a table, None if its rows are not in memory."""
        n_cells = None if data is None else math.prod(data.shape)
        return workers_for(self.n_jobs, self.device, n_cells, self.verbose)

    def _model_of(
        self, learned: Factorization | Model | PassResult, params: SearchParams, picture: Picture | None = None
    ) -> Model:
        """Return the model that a search with these parameters found, with the names of its features."""
        result = learned.result if isinstance(learned, PassResult) else learned
        limits = params.max_atoms_per_sample, params.paper.residual_limit
        return Model.from_factorization(result, *limits, self._header, picture)

    def _search(
        self, data: Bits, params: SearchParams, workers: Workers, random_state: Any, picture: Picture | None = None
    ) -> Model:
        """Return the model that a search of rows in memory finds."""
        rows = MemoryRows(data, workers)
        with fitting(rows, params, random_state, self.verbose) as (random, checkpoint):
            learned = learn(rows, params, workers, random, checkpoint, must_cover_all_rows=False)
        return self._model_of(learned, params, picture)


def _is_table(X: Any) -> bool:
    """Return whether X has names that scikit-learn does not know of."""
    return isinstance(X, Table) or frames.is_anndata(X) or package_name(X) == "pyarrow"


def tile_of(table: Table) -> Picture | None:
    """Return the picture that each row of a table is, if it is one."""
    return None if table.picture is None else Picture(table.picture.tile)


def check_not_empty(shape: tuple[int, int]) -> None:
    """Raise scikit-learn's error for a table without samples or features."""
    if 0 in shape:
        missing = "sample" if shape[0] == 0 else "feature"
        raise ValueError(f"Found array with 0 {missing}(s) (shape={shape}) while a minimum of 1 is required.")
