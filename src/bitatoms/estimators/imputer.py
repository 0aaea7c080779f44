"""`BinaryImputer`: fills in the missing values of a table of 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..api import with_columns_of
from ..base import SearchEstimator
from ..bits import BitMatrix
from ..cell_values import is_sparse
from ..columns.table import Names, feature_names
from ..errors import InputError, Parameter, warn
from ..formatting import listed_names
from ..frames import in_memory
from ..imputation.hidden_cells import shares_of
from ..imputation.pool import PooledPredictors, Predictor, predict_hidden
from ..imputation.profiles import Profiles, fit_profiles
from ..imputation.regression import MOST_COLUMNS, fit_regression
from ..imputation.similar_rows import fit_similar_rows
from ..imputation.tied_columns import TiedColumns, found_ties, known_ties
from ..model.model import RowCoder
from ..parallel import Workers
from ..parameters import with_documentation, with_values
from ..rows.weights import WeightedRows
from ..search.params import SearchParams
from ..sparse_bits import packed
from ..validation import as_generator
from .options import ImputerOptions
from .outputs import dense_dtype, frame_like, transformed

OTHER_METHODS = ("neighbours", "profiles", "regression")  # than atoms
_METHODS = ("atoms", *OTHER_METHODS)
_MOST_KNOWN = 300_000  # known cells of tables for which atoms are tried; of larger ones they are first tried on a part:
_PART_ROWS = 1000
_LEAST_VARIED = 0.05  # share of the rarer value in a column of the part, if there are enough such columns
_LEAST_GAIN = 0.05  # of the log loss there, with which atoms are used,
_GOOD_ENOUGH = 0.07  # unless the other methods have at most this log loss (0.1 bits)


@with_documentation
class BinaryImputer(OneToOneFeatureMixin, TransformerMixin, SearchEstimator):
    """Fill in the missing values (NaN, None, NA, masked) of a table of 0 and 1.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    weights_ : dict of str to float
        The methods that predict unknown cells, with their weights, and the weight of "columns", their shares of ones.
        A probability is proportional to the product of what these state, each to the power of its weight; a curve then
        corrects what is still too sure, or not sure enough.
    method_ : {"atoms", "neighbours", "profiles", "regression"}
        The method with the largest weight.
    scores_ : dict
        The `CellScores` of each method that was tried, alone, on the cells that were hidden: ``n_cells``,
        ``accuracy``, ``log_loss`` and ``calibration_error``.
    model_ : Model or None
        The atoms, if these are used; ``model_.patterns()`` lists them.
    profiles_ : ndarray of shape (n_profiles, n_features), float64, or None
        The shares of ones in the columns of each profile of the first of the mixtures, if profiles are used.
    n_iter_ : int
        The largest number of learning iterations of these methods.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    BinaryDictionaryLearning.complete : Fill in missing values with a model that is already fitted.
    cross_validate_cells : Judge models by cells that they did not see.

    Notes
    -----
    A column without any known value is kept. It is filled with 0, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0, random_state=0).X
    >>> incomplete = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    >>> imputer = ba.BinaryImputer(random_state=0)
    >>> bool((imputer.fit_transform(incomplete) != X).mean() < 0.01)
    True
    >>> imputer.method_
    'atoms'
    """

    _learned = ("_predictors", "_never_known", "_tied")
    _kind = ImputerOptions

    @with_values(ImputerOptions)
    def __init__(self, parameters: dict[str, Any]) -> None:
        self.__dict__.update(parameters)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BinaryImputer:
        """Learn from the known cells of a table.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers from 0 up. A sample with weight w counts as w equal samples that follow each other, to the
            bit; one with weight 0 is left out.

        Returns
        -------
        BinaryImputer
            This estimator, fitted.
        """
        self._reset()
        params = self._search_params()
        data = self._table_in_memory(X, reset=True).bits
        weighted = WeightedRows.of(data, sample_weight)
        data = data if weighted is None else packed(weighted.repeated(None))
        params, random = with_columns_of(params, self._header), as_generator(self.random_state)
        self._never_known = data.n_known == 0
        if self._never_known.any():
            names = feature_names(self._header.names, np.flatnonzero(self._never_known))
            warn(f"columns without any known value are filled with 0: {listed_names(names, 10)}")
        self._tied = found_ties(data, known_ties(self._header))
        seeds = dict(zip(_METHODS, random.integers(2**63, size=len(_METHODS)).tolist(), strict=True))
        names = self._names(data, seeds, params, random)
        learn = partial(self._learn, tied=self._tied, seeds=seeds, params=params)
        hidden = predict_hidden(data, self._tied, lambda rows: learn(names, data=rows), random, self._workers(data))
        names, pool = hidden.best() if self.method == "auto" else (names, hidden.pool_of(names))
        learned = learn(names, data=data)
        self._predictors = PooledPredictors(shares_of(data), tuple(learned.values()), pool, self._tied)
        self.scores_, self.weights_ = hidden.scores, dict(zip(("columns", *names), pool.weights, strict=True))
        self.method_ = max(names, key=lambda name: self.weights_[name])
        atoms, profiles = learned.get("atoms"), learned.get("profiles")
        self.n_iter_ = max(each.n_iter for each in learned.values())
        self.model_ = atoms.model if isinstance(atoms, RowCoder) else None
        self.profiles_ = profiles.mixtures[0].cell_shares(self._tied) if isinstance(profiles, Profiles) else None
        return self

    def _names(
        self, data: BitMatrix, seeds: dict[str, int], params: SearchParams, random: np.random.Generator
    ) -> Names:
        """Return the methods to weigh: the one that was named, or those that are worth trying on this table."""
        if self.method == "regression" and data.n_cols > MOST_COLUMNS:
            other = Parameter("method", "neighbours")
            raise InputError(f"regression is for up to {MOST_COLUMNS} columns, and X has {data.n_cols}; pass ", other)
        if self.method != "auto":
            return (self.method,)
        names = _METHODS if data.n_cols <= MOST_COLUMNS else _METHODS[:2]  # profiles take too long, too
        if data.n_known.sum() <= _MOST_KNOWN or not isinstance(params.init, str) or params.is_constrained:
            return names
        part, tied = _part(data, self._tied, random)
        hidden = predict_hidden(part, tied, partial(self._learn, names, tied, seeds, params), random, Workers())
        losses = [hidden.loss(each, hidden.pool_of(each)) for each in (names, names[1:])]
        with_atoms, without = losses
        return names if without > _GOOD_ENOUGH and with_atoms < (1 - _LEAST_GAIN) * without else names[1:]

    def _learn(
        self, names: Names, tied: TiedColumns, seeds: dict[str, int], params: SearchParams, data: BitMatrix
    ) -> dict[str, Predictor]:
        """Return what predicts cells by each of these methods; it does not depend on the other ones."""
        workers = self._workers(data)
        n_profiles = None if self.n_profiles == "auto" else self.n_profiles
        learn: dict[str, Callable[[np.random.Generator], Predictor]] = {
            "atoms": lambda random: self._search(data, params, workers, random).row_coder,
            "neighbours": lambda random: fit_similar_rows(data, random, workers),
            "profiles": lambda random: fit_profiles(data, tied, n_profiles, random),
            "regression": lambda random: fit_regression(data, tied, random),
        }
        return {name: learn[name](np.random.default_rng(seeds[name])) for name in names}

    def predict_cell_proba(self, X: Any) -> Any:
        """Return the probability of a one in every cell, given the known cells of its row; of a known cell, its value.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features), float64
            For a data frame, one of the same package with its index and the features of the model as columns. 0.5 in
            columns without any known value in ``fit``. The columns of an encoded variable, one per value, sum to 1.
        """
        check_is_fitted(self, "method_")
        X = in_memory(X)
        table = self._table_in_memory(X, reset=False)
        return frame_like(X, self._probabilities(table.bits), table.columns)

    def _probabilities(self, data: BitMatrix) -> NDArray[np.float64]:
        """Return the probability of a one in every cell of rows with the columns of the model."""
        probabilities = self._predictors.cell_probabilities(data, self._workers(data))
        probabilities[:, self._never_known] = 0.5
        known = np.ones(data.shape, bool) if data.unknown is None else ~data.unknown.to_dense(bool)
        return np.where(known, data.filled().to_dense(np.float64), probabilities)

    def transform(self, X: Any) -> Any:
        """Return samples with their missing values filled in, known values as they are.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray, sparse array or data frame of shape (n_samples, n_features)
            Of the dtype of X, or uint8. For a data frame, one of the same package with its index and dtypes;
            ``set_output`` chooses other ones, as in other transformers. The columns are those of ``fit``: of numbers of
            copies, two of 0 and 1 per variant.
        """
        check_is_fitted(self, "method_")
        X = in_memory(X)
        table = self._table_in_memory(X, reset=False)
        completed = self._predictors.completed(table.bits, self._workers(table.bits))
        if table.bits.unknown is not None and self._never_known.any():
            filled = BitMatrix.from_dense(self._never_known[np.newaxis]).words & table.bits.unknown.words
            completed = BitMatrix.from_words(completed.words & ~filled, completed.n_cols, check=False)
        if is_sparse(X):
            return completed.to_sparse().astype(X.dtype)
        return transformed(self, X, completed.to_dense(dense_dtype(X)), table.columns, keeps_types=True)


def _part(data: BitMatrix, tied: TiedColumns, random: np.random.Generator) -> tuple[BitMatrix, TiedColumns]:
    """Return a sample of the rows of a large table, a run of the variables that vary in them, and their ties."""
    rows = data[np.sort(random.choice(data.n_rows, min(data.n_rows, _PART_ROWS), replace=False))]
    n_cols = max(1, _MOST_KNOWN // len(rows))
    ones = rows.column_weights()
    rarer = np.minimum(ones, rows.n_known - ones)
    varied = np.flatnonzero(rarer >= min(_LEAST_VARIED * len(rows), np.sort(rarer)[-n_cols:][0]))
    first = np.unique(tied.first[varied])
    start = int(random.integers(1 + max(0, len(first) - n_cols)))
    columns = np.flatnonzero(np.isin(tied.first, first[start : start + n_cols]))
    return rows.take_columns(columns), tied.take(columns)
