"""`BinaryImputer`: fills in the missing values of a table of 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
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
from ..columns.encoding import ColumnTies
from ..columns.table import feature_names
from ..errors import warn
from ..formatting import listed_names
from ..frames import in_memory
from ..model.model import Model
from ..model.profiles import Profiles, fit_profiles
from ..model.similar_rows import SimilarRows, fit_similar_rows
from ..model.unknown_cells import (
    CellScores,
    fill_unknown,
    hidden_folds,
    known_ties,
    tied_columns,
)
from ..parameters import with_documentation, with_values
from ..rows.weights import WeightedRows
from ..search.params import SearchParams
from ..sparse_bits import packed
from ..validation import as_generator
from .options import ImputerOptions
from .outputs import dense_dtype, frame_like, transformed

_HIDDEN_SHARE = 0.1  # of the known cells, by which method="auto" chooses
_MOST_KNOWN = 300_000  # known cells of tables on which all methods are tried; of larger ones it is a part:
_PART_ROWS, _PART_COLUMNS = 128, 64
_LEAST_VARIED = 0.05  # share of the rarer value in a column of the part, if there are enough such columns
_MARGIN = 0.95  # log loss of atoms there, relative to that of neighbours, up to which atoms are used
_GOOD_ENOUGH = 0.1  # log loss of neighbours with which nothing else is tried on large tables

Predictor = Model | Profiles | SimilarRows


@with_documentation
class BinaryImputer(OneToOneFeatureMixin, TransformerMixin, SearchEstimator):
    """Fill in the missing values (NaN, None, NA, masked) of a table of 0 and 1.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    method_ : {"atoms", "neighbours", "profiles"}
        What predicts unknown cells.
    scores_ : dict
        With ``method="auto"``, the `CellScores` of each method on the cells that were hidden: ``n_cells``,
        ``accuracy``, ``log_loss`` and ``calibration_error``.
    model_ : Model or None
        The atoms, if these are used; ``model_.patterns()`` lists them.
    profiles_ : ndarray of shape (n_profiles, n_features), float64, or None
        The shares of ones in the columns of each profile of the first of the mixtures, if profiles are used.
    n_iter_ : int
        Number of learning iterations, of expectation maximization for profiles; 1 for neighbours.
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

    _learned = ("_predictor", "_never_known", "_tied")
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
        self._tied = tied_columns(data, *known_ties(self._header))
        if self.method == "auto":
            self.method_, self._predictor, self.scores_ = self._chosen(data, params, random)
        else:
            self.method_, self.scores_ = self.method, {}
            self._predictor = self._learn(data, self.method, params, random)
        self.n_iter_ = self._predictor.n_iter
        self.model_ = self._predictor if isinstance(self._predictor, Model) else None
        self.profiles_ = self._predictor.mixtures[0].shares if isinstance(self._predictor, Profiles) else None
        return self

    def _chosen(
        self, data: BitMatrix, params: SearchParams, random: np.random.Generator
    ) -> tuple[str, Predictor, dict[str, CellScores]]:
        """Return the method that predicts hidden cells best, what it learned, and the scores of all methods."""
        first = ColumnTies.of(self._header).first
        n_known = int(data.n_known.sum())
        if n_known <= _MOST_KNOWN or not isinstance(params.init, str):
            scores = self._judged(data, first, ("atoms", "neighbours", "profiles"), params, random)
            # Without hidden cells to judge by, all log losses are NaN, and the first method stays.
            method = min(scores, key=lambda method: (scores[method].log_loss, method))
            return method, self._learn(data, method, params, random), scores
        neighbours = fit_similar_rows(data, random, self._workers(data))
        if neighbours.scores.log_loss <= _GOOD_ENOUGH:
            return "neighbours", neighbours, {"neighbours": neighbours.scores}
        scores = self._judged(*_part(data, first, random), ("atoms", "neighbours"), params, random)
        if scores["atoms"].log_loss < _MARGIN * scores["neighbours"].log_loss:
            return "atoms", self._learn(data, "atoms", params, random), scores
        return "neighbours", neighbours, scores

    def _judged(
        self,
        data: BitMatrix,
        first: NDArray[np.intp],
        methods: Sequence[str],
        params: SearchParams,
        random: np.random.Generator,
    ) -> dict[str, CellScores]:
        """Return how well each method predicts cells that it did not see; ``first`` is that of `hidden_folds`."""
        (hidden,) = hidden_folds(data, 1, _HIDDEN_SHARE, random, first)
        seed = int(random.integers(2**63))

        def predict(method: str, visible: BitMatrix) -> NDArray[np.float64]:
            predictor = self._learn(visible, method, params, seed)
            return predictor.cell_probabilities(visible, self._workers(visible))

        return {method: CellScores.of_hidden(data, hidden, partial(predict, method)) for method in methods}

    def _learn(self, data: BitMatrix, method: str, params: SearchParams, random: Any) -> Predictor:
        """Learn what predicts cells."""
        if method == "profiles":
            n_profiles = None if self.n_profiles == "auto" else self.n_profiles
            return fit_profiles(data, n_profiles, as_generator(random))
        workers = self._workers(data)
        if method == "neighbours":
            return fit_similar_rows(data, as_generator(random), workers)
        return self._search(data, params, workers, random)

    def predict_cell_proba(self, X: Any) -> Any:
        """Return the probability of a one in every cell, known or not, given the known cells of its row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features), float64
            For a data frame, one of the same package with its index and the features of the model as columns. 0.5 in
            columns without any known value in ``fit``. With neighbours, 0 or 1 in known cells.
        """
        check_is_fitted(self, "method_")
        X = in_memory(X)
        table = self._table_in_memory(X, reset=False)
        return frame_like(X, self._probabilities(table.bits), table.columns)

    def _probabilities(self, data: BitMatrix) -> NDArray[np.float64]:
        """Return the probability of a one in every cell of rows with the columns of the model."""
        probabilities = self._predictor.cell_probabilities(data, self._workers(data))
        probabilities[:, self._never_known] = 0.5
        return probabilities

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
        completed = fill_unknown(
            table.bits, self._tied, lambda rows, convert: [convert(self._probabilities(rows), rows)]
        )
        if is_sparse(X):
            return completed.to_sparse().astype(X.dtype)
        return transformed(self, X, completed.to_dense(dense_dtype(X)), table.columns, keeps_types=True)


def _part(data: BitMatrix, first: NDArray[np.intp], random: np.random.Generator) -> tuple[BitMatrix, NDArray[np.intp]]:
    """Return a sample of the rows of a large table, a run of those columns that vary in them, and their ``first``."""
    rows = data[np.sort(random.choice(data.n_rows, min(data.n_rows, _PART_ROWS), replace=False))]
    ones = rows.column_weights()
    rarer = np.minimum(ones, rows.n_known - ones)
    columns = np.flatnonzero(rarer >= min(_LEAST_VARIED * len(rows), np.sort(rarer)[-_PART_COLUMNS:][0]))
    start = int(random.integers(max(1, len(columns) - _PART_COLUMNS)))
    columns = columns[start : start + _PART_COLUMNS]
    _, index, inverse = np.unique(first[columns], return_index=True, return_inverse=True)
    return rows.take_columns(columns), index[inverse]
