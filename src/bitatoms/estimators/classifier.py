"""`BinaryDictionaryClassifier`: a row belongs to the class whose atoms describe it in the fewest bits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
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
from ..imputation.pool import HiddenValues, fit_weights
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

_COPIES = 1, 2  # of each row of a bootstrap sample, that the models of a round learn from: with two, more atoms
_FEW_CHANGES = 0.02  # share of the votes that change, with which no further round of models is learned
_CALIBRATION_ROWS = 500  # weights and temperature are fitted to at most this many rows
_MAX_TEMPERATURE = 1000.0
_MIN_SECONDS = 1e-3  # for a class when the time is over


class _Item(NamedTuple):
    """A model to learn: the label and the rows of its class, those that it learns from, and a seed."""

    label: int
    rows: NDArray[np.intp]
    sample: NDArray[np.intp]
    seed: int


class _Learned(NamedTuple):
    """A model, the bits of tested rows with it, and which of them it has learned from."""

    coder: RowCoder
    bits: NDArray[np.float64]
    is_seen: NDArray[np.bool_]


class _TestedRows(NamedTuple):
    """Training rows, of which models of a class that have not seen them show how good predictions are."""

    numbers: NDArray[np.intp]  # of the rows, sorted
    data: BitMatrix
    labels: NDArray[np.intp]

    @classmethod
    def of(cls, data: BitMatrix, labels: NDArray[np.intp], random: np.random.Generator) -> _TestedRows:
        """Return some of the rows."""
        chosen = np.sort(random.permutation(len(labels))[:_CALIBRATION_ROWS])
        return cls(chosen, data[chosen], labels[chosen])

    def learned(self, coder: RowCoder, label: int, sample: NDArray[np.intp], workers: Workers) -> _Learned:
        """Return a model of a class, learned from a sample of rows; each row is taken out of its frequencies."""
        described, own = coder.describe(self.data, workers), self.labels == label
        described.bits[own] = coder.row_bits(self.data[own], described.codes[own], workers, left_out=1)
        return _Learned(coder, described.bits, np.isin(self.numbers, sample))

    def weigh(
        self, learned: list[list[_Learned]], shares: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float, NDArray[np.intp]]:
        """Return the weights of models and the temperature, at least 1, with the least log loss, and the predictions.

        Models that learned from the same number of copies weigh the same. ``shares`` are those of the classes.
        """
        copies = np.array([0, *islice(cycle(_COPIES), len(learned[0]) - 1)])
        groups = [np.flatnonzero(copies == each) for each in np.unique(copies)]
        bits = np.array([[_mean_unseen([models[i] for i in own]) for models in learned] for own in groups])
        bits = bits.swapaxes(1, 2) - np.log2(shares)
        fitted = np.maximum(fit_weights([HiddenValues(-np.log(2) * bits, self.labels)]), 1 / _MAX_TEMPERATURE)
        weights = fitted / fitted.sum()
        votes = np.average(bits, axis=0, weights=weights).argmin(axis=1)
        sizes = np.array([len(own) for own in groups])
        return (weights / sizes)[copies], max(1.0, 1 / float(fitted.sum())), votes


@with_documentation
class BinaryDictionaryClassifier(ClassifierMixin, SearchEstimator):
    """Classification by codelength: a sample belongs to the class whose atoms describe it in the fewest bits.

    ``fit`` learns several models of each class, as `BinaryDictionaryLearning` does. The bits of a sample under a model
    are minus log2 of the frequencies, in the samples of the class, of each atom that the sample uses or does not use,
    and of the value of each of its cells given the value that its code predicts. The bits of a class are a weighted
    mean over its models and what has no atoms, and minus log2 of its prior probability.

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
    weights_ : ndarray of shape (1 + number of models per class,), float64
        The weights of the bits without atoms, as those of naive Bayes, and of the bits with each model; they sum to 1.
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
    Every second model learns from a bootstrap sample whose rows count twice, and so finds more atoms. The weights of
    both kinds of models, and of the bits without atoms, minimize the log loss of training samples, whose bits with
    their own class are those of the models whose bootstrap sample lacks them; each is taken out of the frequencies.

    A difference of b bits between two classes would mean odds of 2^b if the wrong cells of a sample were independent.
    They are not, so that such odds are too high. All bits are therefore divided by ``temperature_``, at least 1, which
    minimizes the same log loss. It does not change the order of the classes.

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
        if self.n_models > 1 and params.search == "fast":  # models differ enough by the rows that they start from
            params = replace(params, plan=params.plan.for_ensembles())
        rows = [np.flatnonzero(labels == label) for label in range(len(classes))]
        rounds = [
            [
                _Item(label, own, self._sample(own, copies, random), int(random.integers(2**63)))
                for label, own in enumerate(rows)
                for copies in _COPIES[: self.n_models - first]
            ]
            for first in range(0, self.n_models, len(_COPIES))
        ]
        tested, earlier = _TestedRows.of(table.bits, labels, random), None
        learned: list[list[_Learned]] = [[] for _ in classes]  # what has no atoms, and the models
        workers = self._workers(table.bits)
        for found in self._learn(table, rounds, tested, with_columns_of(params, self._header), workers):
            for item, each in found:
                if not learned[item.label]:
                    plain = _without_atoms(each.coder, table.bits[item.rows])
                    learned[item.label].append(tested.learned(plain, item.label, item.rows[:0], workers))
                learned[item.label].append(each)
            weights, temperature, votes = tested.weigh(learned, counts / len(labels))
            if earlier is not None and (votes != earlier).mean() <= _FEW_CHANGES:
                break
            earlier = votes
        self.classes_, self.class_count_, self.priors_ = classes, counts, priors
        self.weights_, self.temperature_ = weights, temperature
        self._coders = [[each.coder for each in of_class] for of_class in learned]
        self.models_ = [[coder.model for coder in coders] for _, *coders in self._coders]
        every_model = [model for models in self.models_ for model in models]
        self.n_iter_ = max(model.n_iter for model in every_model)
        for limit in ("max_iter", "max_time"):
            if any(model.ended == limit for model in every_model) and not params.ends_at_limit:
                warn_of_limit(limit, "the search of a class", "a better model")
        return self

    def _sample(self, rows: NDArray[np.intp], copies: int, random: np.random.Generator) -> NDArray[np.intp]:
        """Return the rows that a model learns from, sorted: copies of a bootstrap sample, or all for a single model."""
        return rows if self.n_models == 1 else np.sort(random.choice(rows, len(rows)).repeat(copies))

    def _learn(
        self, table: Table, rounds: list[list[_Item]], tested: _TestedRows, params: SearchParams, all_workers: Workers
    ) -> Iterator[list[tuple[_Item, _Learned]]]:
        """Yield the models of each round."""
        begin, items = time.perf_counter(), [item for items in rounds for item in items]
        n_left = np.cumsum([len(item.sample) for item in items][::-1])[::-1]  # rows of an item and of later ones

        def learn(workers: Workers, number: int) -> _Learned:
            item, own_params = items[number], params
            if params.max_time is not None:  # a search takes a share of the time that earlier ones have left
                remaining = params.max_time - (time.perf_counter() - begin)
                own_params = replace(params, max_time=max(_MIN_SECONDS, remaining * len(item.sample) / n_left[number]))
            model = self._search(table.bits[item.sample], own_params, workers, item.seed, tile_of(table))
            model = replace(model, remembered=None)  # a training row must not be coded better than a new one
            coder, data = RowCoder(model, Frequencies.of_result(model)), table.bits[item.rows]
            coder = coder.refitted(data, coder.describe(data, workers).codes)
            return tested.learned(coder, item.label, item.sample, workers)

        in_order = params.max_time is not None or bool(params.callbacks)
        largest = max(bytes_of(table.bits) * len(item.sample) // table.bits.n_rows for item in items)
        most = at_once(table.bits.n_rows * table.bits.n_cols, in_order) or max(
            1, DEFAULT_LIMIT // (SEARCH_FACTOR * max(1, largest))
        )
        numbers = iter(range(len(items)))
        for own in rounds:
            try:
                with closing(all_workers.map_tasks(learn, list(islice(numbers, len(own))), most)) as found:
                    models = list(found)
            except KeyboardInterrupt:
                raise Interrupted(None) from None
            yield list(zip(own, models, strict=True))

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
        bits = np.average(described, axis=1, weights=self.weights_).T
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
            `BinaryDictionaryLearning.to_frame`. Rows and shares are those of the sample that the model learned from,
            which has each row twice in every second model.
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


def _without_atoms(coder: RowCoder, data: BitMatrix) -> RowCoder:
    """Return what describes rows by the shares of ones in the columns of these rows alone."""
    model = coder.model
    model = replace(model, atoms=BitMatrix.zeros(0, data.n_cols), uses=model.uses[:0])
    return RowCoder(model, coder.frequencies).refitted(data, BitMatrix.zeros(len(data), 0))


def _mean_unseen(models: Sequence[_Learned]) -> NDArray[np.float64]:
    """Return the mean bits of each row over the models that have not seen it; over all if there are none."""
    unseen = ~np.array([each.is_seen for each in models])
    weights = np.where(unseen.any(axis=0), unseen, True).astype(float)
    return np.asarray(np.average([each.bits for each in models], axis=0, weights=weights))


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
    try:
        checked = np.asarray(priors, float)
    except (TypeError, ValueError):
        checked = np.empty(0)
    if checked.shape != (n_classes,) or not (checked >= 0).all() or not np.isclose(checked.sum(), 1):
        raise InputError(
            Parameter("priors"), f" must be {n_classes} probabilities that sum to 1, one per class, not {priors!r}"
        )
    return checked
