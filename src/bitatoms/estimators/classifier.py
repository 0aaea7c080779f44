"""`BinaryDictionaryClassifier`: a row belongs to the class whose atoms describe it in the fewest bits."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..api import with_columns_of
from ..base import SearchEstimator, tile_of, warn_of_limit
from ..bits import BitMatrix
from ..columns.table import Table
from ..errors import InputError, Parameter
from ..frames import in_memory
from ..model.likelihood import Frequencies
from ..model.model import RowCoder
from ..model.patterns import pattern_frame
from ..model.result import Interrupted
from ..parallel import Workers
from ..parameters import with_documentation, with_values
from ..rows.budget import DEFAULT_LIMIT, SEARCH_FACTOR, bytes_of
from ..rows.weights import WeightedRows
from ..search.monitor import at_once
from ..search.params import SearchParams
from ..validation import as_generator
from .options import ClassifierOptions
from .outputs import frame_like

_CALIBRATION_ROWS = 500  # the temperature is fitted to at most this many rows
_MAX_TEMPERATURE = 1000.0
_MIN_SECONDS = 1e-3  # for a class when the time is over


@with_documentation
class BinaryDictionaryClassifier(ClassifierMixin, SearchEstimator):
    """Classification by codelength: a sample belongs to the class whose atoms describe it in the fewest bits.

    ``fit`` learns ``n_models`` models of each class, as `BinaryDictionaryLearning` does. The bits of a sample under a
    model are minus log2 of the frequencies, in the samples of the class, of each atom that the sample uses or does not
    use, and of the value of each of its cells given the value that its code predicts. The bits of a class are the mean
    over its models, and minus log2 of its prior probability.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    class_count_ : ndarray of shape (n_classes,), int64
        The number of training samples of each class.
    priors_ : ndarray of shape (n_classes,), float64
        The probability of each class.
    models_ : list of list of Model
        The models of each class; ``models_[0][0].patterns()`` lists the atoms of the first model of the first class.
    temperature_ : float
        The number by which bits are divided before they become probabilities (see Notes).
    n_iter_ : int
        The largest number of learning iterations of a class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    Notes
    -----
    A difference of b bits between two classes would mean odds of 2^b if the wrong cells of a sample were independent.
    They are not, so that such odds are too high. ``fit`` therefore divides all bits by one number, ``temperature_``,
    which minimizes the log loss of training samples. The bits that a sample takes with its own class are those of the
    models whose bootstrap sample lacks it, and it is taken out of their frequencies. The temperature does not change
    the order of the classes.

    ``max_time`` is divided among the searches by their numbers of samples. ``callbacks`` are called in every search.

    Missing values (NaN, None, NA, masked) are unknown cells, which cost no bits in any class. Columns of new samples
    that have names are matched to those of ``fit`` by name, as in `BinaryDictionaryLearning`.

    Examples
    --------
    >>> import bitatoms as ba
    >>> X, y = ba.datasets.digits()
    >>> X, y = X[y < 3], y[y < 3]
    >>> classifier = ba.BinaryDictionaryClassifier(n_models=1, random_state=0).fit(X[:200], y[:200])
    >>> bool(classifier.score(X[200:300], y[200:300]) > 0.9)
    True
    >>> classifier.codelengths(X[200:202]).shape
    (2, 3)
    """

    _learned = ("_coders",)
    _kind = ClassifierOptions

    @with_values(ClassifierOptions)
    def __init__(self, parameters: dict[str, Any]) -> None:
        self.__dict__.update(parameters)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BinaryDictionaryClassifier:
        """Learn the atoms of each class.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).
        y : array-like of shape (n_samples,)
            The class of each sample.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers from 0 up. A sample with weight w counts as w equal samples that follow each other, to the
            bit; one with weight 0 is left out.

        Returns
        -------
        BinaryDictionaryClassifier
            This estimator, fitted.

        Raises
        ------
        Interrupted
            On Ctrl-C. It is a KeyboardInterrupt; the estimator is then not fitted.
        """
        self._reset()
        params = self._search_params()
        table = self._table_in_memory(X, reset=True)
        given_labels = _checked_labels(y, table.bits, type(self).__name__)
        weighted = WeightedRows.of(table.bits, sample_weight)
        if weighted is not None:
            table = Table(weighted.repeated(None), picture=tile_of(table))
            given_labels = np.repeat(given_labels, weighted.weights)
        classes, labels = np.unique(given_labels, return_inverse=True)
        counts, random = np.bincount(labels), as_generator(self.random_state)
        priors = counts / len(labels) if self.priors is None else _checked_priors(self.priors, len(classes))
        rows, workers = [np.flatnonzero(labels == label) for label in range(len(classes))], self._workers(table.bits)
        samples = [[self._sample(own, random) for _ in range(self.n_models)] for own in rows]
        self._coders = self._learn(table, samples, with_columns_of(params, self._header), random, workers)
        for own, coders in zip(rows, self._coders, strict=True):
            data = table.bits[own]
            coders[:] = [coder.refitted(data, coder.describe(data, workers).codes) for coder in coders]
        self.classes_, self.class_count_, self.priors_ = classes, counts, priors
        self.models_ = [[coder.model for coder in coders] for coders in self._coders]
        self.n_iter_ = max(model.n_iter for models in self.models_ for model in models)
        self.temperature_ = self._fitted_temperature(table.bits, labels, samples, random, workers)
        return self

    def _sample(self, rows: NDArray[np.intp], random: np.random.Generator) -> NDArray[np.intp]:
        """Return the rows that a model learns from, sorted: a bootstrap sample, or all if there is one model."""
        return rows if self.n_models == 1 else np.sort(random.choice(rows, len(rows)))

    def _learn(
        self,
        table: Table,
        samples: list[list[NDArray[np.intp]]],
        params: SearchParams,
        random: np.random.Generator,
        all_workers: Workers,
    ) -> list[list[RowCoder]]:
        """Return the models of each class, learned from these rows, with the frequencies at the end of the searches."""
        begin = time.perf_counter()
        items = [(label, sample, int(random.integers(2**63))) for label, of in enumerate(samples) for sample in of]
        n_left = np.cumsum([len(sample) for _, sample, _ in items][::-1])[::-1]  # rows of an item and of later ones

        def learn(workers: Workers, number: int) -> RowCoder:
            _, sample, seed = items[number]
            own_params = params
            if params.max_time is not None:  # a search takes a share of the time that earlier ones have left
                remaining = params.max_time - (time.perf_counter() - begin)
                own_params = replace(params, max_time=max(_MIN_SECONDS, remaining * len(sample) / n_left[number]))
            model = self._search(table.bits[sample], own_params, workers, seed, tile_of(table))
            model = replace(model, remembered=None)  # a training row must not be coded better than a new one
            return RowCoder(model, Frequencies.of_result(model))

        coders: list[list[RowCoder]] = [[] for _ in samples]
        in_order = params.max_time is not None or bool(params.callbacks)
        largest = max(bytes_of(table.bits) * len(sample) // table.bits.n_rows for _, sample, _ in items)
        most = at_once(table.bits.n_rows * table.bits.n_cols, in_order) or max(
            1, DEFAULT_LIMIT // (SEARCH_FACTOR * max(1, largest))
        )
        try:
            with closing(all_workers.map_tasks(learn, range(len(items)), most)) as learned_coders:
                for (label, _, _), coder in zip(items, learned_coders, strict=True):
                    coders[label].append(coder)
        except KeyboardInterrupt:
            raise Interrupted(None) from None
        ended = {coder.model.ended for each in coders for coder in each}
        for limit in ("max_iter", "max_time"):
            if limit in ended and not params.ends_at_limit:
                warn_of_limit(limit, "the search of a class", "a better model", stacklevel=3)
        return coders

    def _fitted_temperature(
        self,
        data: BitMatrix,
        labels: NDArray[np.intp],
        samples: list[list[NDArray[np.intp]]],
        random: np.random.Generator,
        workers: Workers,
    ) -> float:
        """Return the temperature, at least 1, with the smallest log loss of training rows.

        Bits of the own class are those of the models that have not seen the row, if there are any.
        """
        chosen = np.sort(random.permutation(len(labels))[:_CALIBRATION_ROWS])
        rows, truth = data[chosen], labels[chosen]
        bits = np.empty((len(chosen), len(self._coders)))
        for label, coders in enumerate(self._coders):
            own = truth == label
            of_models, of_own = [], []
            for coder in coders:
                described = coder.describe(rows, workers)
                of_models.append(described.bits)
                of_own.append(coder.row_bits(rows[own], described.codes[own], workers, left_out=1))
            unseen = np.array([~np.isin(chosen[own], sample) for sample in samples[label]])
            weights = np.where(unseen.any(axis=0), unseen, True).astype(float)
            bits[:, label] = np.mean(of_models, axis=0)
            bits[own, label] = np.average(of_own, axis=0, weights=weights)
        bits -= np.log2(np.maximum(self.priors_, np.finfo(float).tiny))

        def log_loss(log_temperature: float) -> float:
            logs = _log_probabilities(bits, np.exp(log_temperature))
            return -float(logs[np.arange(len(truth)), truth].mean())

        best = minimize_scalar(log_loss, bounds=(0.0, np.log(_MAX_TEMPERATURE)), method="bounded")
        return float(np.exp(best.x))

    def codelengths(self, X: Any) -> Any:
        """Return the bits that describe each sample with each class, those of the class included.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_classes), float64
            For a data frame, one of the same package with its index and the classes as columns. Probabilities and
            predictions are arrays, as the scores of scikit-learn need them.
        """
        check_is_fitted(self, "classes_")
        X = in_memory(X)
        return frame_like(X, self._codelengths(X), self.classes_.tolist())

    def _codelengths(self, X: Any) -> NDArray[np.float64]:
        """Return the bits that describe each sample with each class."""
        check_is_fitted(self, "classes_")
        data = self._table_in_memory(X, reset=False).bits
        workers = self._workers(data)
        described = [[coder.describe(data, workers).bits for coder in coders] for coders in self._coders]
        bits = np.mean(described, axis=1).T
        with np.errstate(divide="ignore"):  # a class with prior 0 takes infinitely many bits
            return bits - np.log2(self.priors_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class that describes each sample in the fewest bits.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fewest = self._codelengths(X).argmin(axis=1)
        return self.classes_[fewest]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return minus the codelengths; for two classes, by how many bits the second class is shorter.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        bits = self._codelengths(X)
        return bits[:, 0] - bits[:, 1] if bits.shape[1] == 2 else -bits

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        bits = self._codelengths(X)
        return _log_probabilities(bits, self.temperature_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class: 2^(-bits / temperature), normalized.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def to_frame(self) -> Any:
        """Return the atoms of all models as a pandas data frame, one row per atom.

        Returns
        -------
        pandas.DataFrame
            With the columns ``class``, ``model`` (its number in this class, from 1), and those of
            `BinaryDictionaryLearning.to_frame`. Rows and shares are those of the samples of the class.
        """
        check_is_fitted(self, "models_")
        found = [
            (label, number, pattern)
            for label, models in zip(self.classes_, self.models_, strict=True)
            for number, model in enumerate(models, start=1)
            for pattern in model.patterns()
        ]
        frame = pattern_frame([pattern for _, _, pattern in found])
        frame.insert(0, "class", np.array([label for label, _, _ in found], self.classes_.dtype))
        frame.insert(1, "model", np.array([number for _, number, _ in found], np.int64))
        return frame


def _log_probabilities(bits: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Return the logarithms of 2^(-bits / temperature), normalized in each row."""
    scores = -np.log(2) / temperature * bits
    return scores - logsumexp(scores, axis=1, keepdims=True)


def _checked_labels(y: Any, data: BitMatrix, name: str) -> NDArray[Any]:
    """Return the labels of the rows, after scikit-learn's checks."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    check_consistent_length(data, labels)
    return labels


def _checked_priors(priors: Any, n_classes: int) -> NDArray[np.float64]:
    """Return the probabilities of the classes, checked."""
    checked = np.asarray(priors, float)
    if checked.shape != (n_classes,) or not (checked >= 0).all() or not np.isclose(checked.sum(), 1):
        raise InputError(
            Parameter("priors"), f" must be {n_classes} probabilities that sum to 1, one per class, not {priors!r}"
        )
    return checked
