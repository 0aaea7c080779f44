"""What an estimator with a model does with samples: code them, score them, and fill in their missing values."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..base import SearchEstimator, TableTransformer, check_not_empty
from ..bits import BitMatrix
from ..columns.encoding import raw_encoding
from ..columns.table import feature_names
from ..errors import InputError, Parameter
from ..frames import in_memory
from ..imputation.pool import Pool, PooledPredictors, Predictor, predict_hidden
from ..imputation.regression import regression_for
from ..imputation.tied_columns import known_ties
from ..io import model_file
from ..model.model import Model
from ..model.recommendation import fit_item_pool
from ..rows import out_of_core
from ..rows.budget import coding_rows, given_memory_limit, parse_memory_limit
from ..rows.store_transform import StoreTransform, collect_codes, scores_of, soft_codes_of, write_code_store
from ..rows.weights import check_total, checked_weights
from ..search.options import Resources
from ..search.params import SearchParams
from ..sparse_bits import Bits, packed
from ..validation import as_generator
from .options import stored_parameters
from .outputs import completed_as_given, frame_like, series_like, transformed


@dataclass(frozen=True, eq=False)
class FitSample:
    """Rows of the table of a fit, by which its predictions are fitted."""

    rows: Bits
    params: SearchParams  # of searches of these rows


class ModelEstimator(TableTransformer, SearchEstimator):
    """An estimator that learns a `Model`, and applies it to samples."""

    resources: Resources | None
    random_state: Any
    _model: Model
    _fit_sample: FitSample | None = None

    @property
    def _resources(self) -> Resources:
        """The memory limit and the checkpoint, as passed or by default."""
        return self.resources or Resources()

    def as_model(self) -> Model:
        """Return what was learned as plain data, for `bitatoms.write_report` and other tools.

        Returns
        -------
        Model
            With the current ``components_`` and ``bias_``.
        """
        check_is_fitted(self, "n_components_")
        model = self._model
        atoms = BitMatrix.from_dense(self._components) if "_components" in vars(self) else model.atoms
        if atoms == model.atoms and (self.bias_ == model.bias).all():
            return model
        # The counts and codes are those of other atoms.
        model = replace(model, atoms=atoms, bias=self.bias_)
        model = replace(model, complete=None, lacking=None, atom_known=None)
        return replace(
            model, rows_hash=None, recurrence=None, remembered=None, pool=None, regression=None, item_pool=None
        )

    def _set_model(self, model: Model) -> None:
        """Store a model and its fitted attributes."""
        self._model = model
        for name in ("_components", "_fit_codes", "_fit_sample"):
            self.__dict__.pop(name, None)
        self.bias_ = model.bias
        self.codelength_ = model.codelength
        self.history_ = list(model.history)
        self.algebra_ = model.algebra
        self.codelengths_ = dict(model.codelengths)
        self.summary_ = model.summary()
        self.n_components_ = model.atoms.n_rows
        self.n_iter_ = model.n_iter

    @property
    def components_(self) -> NDArray[np.uint8]:
        """The atoms, of shape ``(n_components_, n_features)``; an array of all cells is made when it is first used."""
        if "_components" not in vars(self):
            self._components = self._model.atoms.to_dense()
        return self._components

    @components_.setter
    def components_(self, atoms: NDArray[np.uint8]) -> None:
        self._components = atoms

    def transform(self, X: Any, output: str | os.PathLike[str] | None = None) -> Any:
        """Return the codes of samples: the atoms that each sample uses.

        Each sample is coded as a new one is: from scratch, and from the nearest of the codes of ``fit`` that the model
        remembers because they are hard to find. The codes of the training data can therefore differ slightly from
        those of the fit, which `patterns`, ``summary_`` and ``codelength_`` refer to. With the same parameters,
        ``bitatoms.factorize(X, ...).codes`` are those of the fit. ``fit_transform(X)`` is ``fit(X).transform(X)``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
            The samples, of shape (n_samples, n_features).
        output : str or path-like, optional
            For a packed store: write the codes to this path as a packed store.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_components_), uint8
            For a data frame, one of the same package with its index and the columns atom1, atom2, ...; ``set_output``
            chooses other ones. For a Dask collection, a lazy Dask array; with ``output``, a Store.
        """
        if not out_of_core.is_out_of_core(X):
            if output is not None:
                raise ValueError("output= is for packed stores; use bitatoms.write to write the codes of a table")
            X = in_memory(X)
            model, data, max_rows = self._to_code(X)
            codes = model.codes(data, self._workers(data), max_rows).to_dense()
            return transformed(self, X, codes, self.get_feature_names_out())
        if out_of_core.is_dask(X):
            if output is not None:
                raise ValueError("output= is for packed stores; use to_zarr to write the codes of a Dask array")
            return self._lazily("transform", X)
        rows = self._stored(X)
        store, model, limit, chunks = rows.store, rows.model, rows.max_memory, rows.code_chunks()
        if output is not None:
            return write_code_store(store, chunks, model, output)
        if (needed := len(store) * model.atoms.n_rows) > limit:
            raise InputError(
                f"the codes of {len(store)} samples take {needed} bytes as an array, more than ",
                Parameter("max_memory", limit),
                "; pass ",
                Parameter("output", "codes.zarr"),
                " to write them to a store",
            )
        return collect_codes(store, chunks, model).to_dense()

    def inverse_transform(self, X: Any) -> Any:
        """Return the samples that these codes describe.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, BitMatrix or Dask array of shape (n_samples, n_components_)
            The codes.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features), uint8
            For a data frame, one of the same package with its index. For a Dask array, a lazy Dask array.
        """
        model = self.as_model()
        if out_of_core.is_dask(X):
            from ..rows import dask_transform

            return dask_transform.inverse_transform(model, X)
        X = in_memory(X)
        rows = model.possible(model.reconstruct(self._codes_of(X)))[0].to_dense()
        return frame_like(X, rows, feature_names(self._header.names, range(self.n_features_in_)))

    def decision_function(self, X: Any) -> Any:
        """Return the soft codes of samples: the bits that each atom saves, or would save, in each sample.

        The value of an atom is the bits of the sample without the atom, less its bits with it. The rest of its code is
        the one that ``transform`` returns. The bits are minus log2 of how frequent each cell, right or wrong, was in
        its column in ``fit``, and of how frequent each use and non-use of an atom was. If the sample uses the atom, it
        is what the sample loses without it; if not, what it would gain with it. Where an atom is clearly present, the
        value is far above 0, where it is clearly absent, far below, and where it makes little difference, near 0.
        Unknown cells count for nothing. Under OR, only the cells that no other atom of the sample covers count.

        ``transform(X)`` is mostly ``decision_function(X) > 0``, but not always. Coders search codes at prices that
        differ slightly from these bits, or minimize the wrong cells without regard to the cost of a use. Under
        ``max_atoms_per_sample`` and ``residual_limit``, atoms that would save bits may remain unused. The values of a
        sample are each for one change of its code: they do not add up if two atoms are changed.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_components_), float64
            For a data frame, one of the same package with its index. For a Dask collection, a lazy Dask array.

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1, 1, 1, 0, 0, 0]] * 20 + [[0, 0, 0, 1, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(2, random_state=0).fit(X)
        >>> new = [[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]]
        >>> model.decision_function(new).round(1)
        array([[ 19. , -19. ],
               [  6.3, -19. ],
               [ 19. ,   6.3]])
        """
        X = in_memory(X)
        soft = self._by_rows("decision_function", X, soft_codes_of, StoreTransform.soft_codes)
        return frame_like(X, soft, self.get_feature_names_out())

    def score_samples(self, X: Any) -> Any:
        """Return minus the number of bits that the cells of each sample take, given each other; higher is better.

        Each cell is hidden in turn and predicted from the other cells of the sample. The bits of the sample are the sum
        of minus log2 of the probabilities of the values that it has: its pseudo-log-likelihood to base 2. A cell is
        predicted by the atoms that at least two samples of ``fit`` use and by a ridge regression on all other columns;
        its probability is the mean of both. The columns of an encoded variable are hidden together, so that an answer
        counts once. Unknown cells cost nothing.

        Outliers (anomalies) have low scores: samples that other samples do not explain. A sample with unknown cells has
        a higher score than it would have if they were known: compare samples with about as many known cells. `score` is
        the mean.

        The first call after ``fit``, or `save`, fits the regression to a random sample of the table: as many samples as
        have 4 million cells, but at least 1000. Without it, the atoms alone predict: with more than 1000 columns or
        fewer than 50 samples, and for a stream, until `calibrate` has fitted it to a table that you pass.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray or series of shape (n_samples,), float64
            For a data frame, a series of the same package with its index. For a Dask collection, a lazy Dask array.

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1, 1, 1, 0, 0, 0]] * 20 + [[0, 0, 0, 1, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(2, random_state=0).fit(X)
        >>> model.score_samples([[1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 1, 0]]).round(1)
        array([ -0.3, -14.2])
        """
        self._fit_regression()
        X = in_memory(X)
        scores = self._by_rows("score_samples", X, scores_of, StoreTransform.score_samples)
        return series_like(X, scores, "score")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the mean number of bits per sample; higher is better.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
            The samples, of shape (n_samples, n_features).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers from 0 up: how many equal samples each sample counts as.

        Returns
        -------
        float
            The mean of ``score_samples(X)``, with weights that of the repeated samples.
        """
        scores = np.asarray(self.score_samples(X))
        if sample_weight is None:
            return float(scores.mean())
        weights = checked_weights(sample_weight, len(scores))
        check_total(weights, scores.itemsize, given_memory_limit(self._resources.max_memory))
        return float(np.repeat(scores, weights).mean())

    def predict_cell_proba(self, X: Any) -> Any:
        """Return the probability of a one in every cell, known or not, given the known cells of its row.

        A code predicts a value for each cell. The probability of a one where 0 and where 1 is predicted is its
        frequency among such cells of the column in ``fit``. It is averaged over the codes of the row, weighted by
        2^-bits: over all codes with up to 10 atoms, otherwise over codes sampled in a way that depends only on the row.
        The probabilities of the columns of an encoded variable, one per value, sum to 1.

        So that the probabilities come true, they are weighed against the shares of ones in the columns by what predicts
        cells that were hidden. The first call after ``fit`` hides a twentieth of the known cells of its table, learns
        from the others as ``fit`` did, and predicts the hidden cells; with less than 5000 values hidden, it repeats
        this with other cells, up to five times. It takes as long as these fits, of at most 4 million cells or 1000
        samples. For a model of a file or a stream, `calibrate` does this with a table that you pass; without it, the
        weights are those that suit most tables.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features), with missing values.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features), float64
            For a data frame, one of the same package with its index and the features of the model as columns.

        Examples
        --------
        >>> import bitatoms as ba
        >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X.astype(float)
        >>> X[0, :5] = float("nan")
        >>> ba.BinaryDictionaryLearning(random_state=0).fit(X).predict_cell_proba(X).shape
        (300, 40)
        """
        check_is_fitted(self, "n_components_")
        X = in_memory(X)
        table = self._table_in_memory(X, reset=False)
        workers = self._workers(table.bits)
        return frame_like(X, self._fitted_predictors().cell_probabilities(table.bits, workers), table.columns)

    def complete(self, X: Any) -> Any:
        """Return samples with their missing values filled in, known values as they are.

        A missing value becomes 1 where ``predict_cell_proba`` is above 0.5; the columns of an encoded variable get its
        most probable value.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features), with missing values.

        Returns
        -------
        array, sparse array, data frame, Table or BitMatrix
            As X is, with its index and dtypes; with ``binarize``, 0 and 1. Columns are those of the model. For files
            and AnnData, a Table. An array, sparse array or data frame of numbers of copies (see `Table.from_any`) stays
            one, with one column per variant; `Table.to_dosages` converts a Table.

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1.0, 1, 0, 0]] * 20 + [[0, 0, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
        >>> model.complete([[np.nan, 1, 0, np.nan]])
        array([[1, 1, 0, 0]], dtype=uint8)
        """
        check_is_fitted(self, "n_components_")
        X = in_memory(X)
        table = self._table_in_memory(X, reset=False)
        completed = self._fitted_predictors().completed(table.bits, self._workers(table.bits))
        return completed_as_given(X, completed, table, raw_encoding(X, self._header))

    def calibrate(self, X: Any) -> ModelEstimator:
        """Fit what `predict_cell_proba`, `complete`, `recommend` and `score_samples` state to cells of a table.

        Known cells of X are hidden, and predicted by the model as it is. It is for models of files and streams; after
        ``fit``, the first prediction does more, as it also learns without the hidden cells.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            Samples, of shape (n_samples, n_features), preferably others than those of ``fit``.

        Returns
        -------
        estimator
            This estimator.

        Examples
        --------
        >>> import bitatoms as ba
        >>> X = ba.datasets.planted(400, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
        >>> model = ba.BinaryDictionaryLearning(random_state=0).partial_fit(X[:300])
        >>> model.calibrate(X[300:]).predict_cell_proba(X[:1]).shape
        (1, 40)
        """
        model, data = self.as_model(), self._table_in_memory(X, reset=False).bits
        random = as_generator(self.random_state)
        model = model.calibrated(data, self._workers(data), random)
        model = replace(model, regression=regression_for(data, model.tied_columns) or model.regression)
        self._model = replace(model, item_pool=fit_item_pool(data, model, lambda _: model, random))
        return self

    def _fitted_predictors(self) -> PooledPredictors:
        """Return what predicts cells; it is fitted to hidden cells of the table of ``fit`` when first asked for."""
        model = self.as_model()
        if model is self._model and model.pool is None and self._fit_sample is not None and model.atoms.n_rows:
            self._model = model = replace(model, pool=self._cross_fitted(self._fit_sample))
        return model.predictors

    def _fit_regression(self) -> None:
        """Fit what predicts cells beside the atoms to the table of ``fit``, once."""
        model, sample = self.as_model(), self._fit_sample
        if model is self._model and model.regression is None and sample is not None:
            regression = regression_for(sample.rows, model.tied_columns)
            if regression is not None:
                self._model = replace(model, regression=regression)

    def _fit_item_pool(self) -> None:
        """Fit recommendations to rows of the table of ``fit`` without one of their features, once."""
        self._fit_regression()
        model, sample = self.as_model(), self._fit_sample
        if model is self._model and model.item_pool is None and sample is not None:
            random, workers = as_generator(self.random_state), self._workers(sample.rows)
            seed = int(random.integers(2**31))
            learn = partial(self._search, params=sample.params, workers=workers, random_state=seed)
            self._model = replace(model, item_pool=fit_item_pool(packed(sample.rows), model, learn, random))

    def _cross_fitted(self, sample: FitSample) -> Pool:
        """Return how predictions are weighed, by cells of the table of ``fit`` that are hidden from other fits."""
        random, workers = as_generator(self.random_state), self._workers(sample.rows)
        seed = int(random.integers(2**31))

        def learn(visible: BitMatrix) -> dict[str, Predictor]:
            return {"atoms": self._search(visible, sample.params, workers, seed).row_coder}

        hidden = predict_hidden(packed(sample.rows), known_ties(self._header), learn, random, workers)
        return hidden.pool_of(hidden.names)

    def _to_code(self, X: Any) -> tuple[Model, Bits, int | None]:
        """Return the model, samples in memory, and how many of them to code at a time."""
        model, data = self.as_model(), self._validate_table(X, reset=False).data
        return model, data, coding_rows(data, model, given_memory_limit(self._resources.max_memory))

    def _by_rows(self, name: str, X: Any, function: Callable[..., Any], of_store: Callable[..., Any]) -> Any:
        """Return a function of samples; for a Dask collection, the one of this name of `rows.dask_transform`."""
        if out_of_core.is_dask(X):
            return self._lazily(name, X)
        if out_of_core.is_out_of_core(X):
            return of_store(self._stored(X))
        model, data, max_rows = self._to_code(X)
        return function(model, data, self._workers(data), max_rows)

    def _stored(self, X: Any) -> StoreTransform:
        """Return the rows of a packed store, to be processed with the model."""
        self.as_model()  # raises if there is none, before the store is opened
        store = out_of_core.as_store(X, self.binarize)
        assert store is not None
        check_not_empty(store.shape)
        limit = parse_memory_limit(self._resources.max_memory)
        return StoreTransform(store, self.as_model(), self._workers(), limit, self.absent)

    def _lazily(self, method: str, X: Any) -> Any:
        """Return a function of `rows.dask_transform` of the rows of a Dask collection."""
        from ..rows import dask_transform

        return getattr(dask_transform, method)(self.as_model(), X, self.binarize, self.absent, self.device)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which `bitatoms.load` reads.

        A model from the file scores samples as this one does: the regression of `score_samples` is fitted first, if
        that was not done. Other predictions are those of this model if they were asked for before.

        Parameters
        ----------
        path : str or path-like
            The file, by convention with the ending .npz. It holds arrays and JSON, no pickles. The write is atomic.
        """
        model_file.save(self.scoring_model(), path, stored_parameters(self.get_params()))

    def scoring_model(self) -> Model:
        """Return what was learned as plain data, with all that `score_samples` needs.

        Returns
        -------
        Model
            That of `as_model`, with the regression of `score_samples`.
        """
        self._fit_regression()
        return self.as_model()
