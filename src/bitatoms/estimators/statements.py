"""What a fitted model states about rows and their features: rules, recommendations, and rows that fit badly."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from ..checks import check_int
from ..libraries import import_library
from ..model.recommendation import Recommended, joined, recommend
from ..model.row_fit import RowFit, score_rows, worst_rows
from ..model.rules import Chunks, Rule, RuleLimits, find_itemsets, find_rules
from ..parallel import Workers
from ..parameters import RuleKwargs, checked, documented, with_defaults
from ..rows import dispatch, store_transform
from ..rows.budget import parse_memory_limit
from ..sparse_bits import Bits
from ..table import feature_names

if TYPE_CHECKING:
    from ..model.model import Model
    from ..rows.store import Store

_COLUMNS = (  # of mlxtend's data frame of rules
    "antecedents",
    "consequents",
    "antecedent support",
    "consequent support",
    "support",
    "confidence",
    "lift",
    "representativity",
    "leverage",
    "conviction",
    "zhangs_metric",
    "jaccard",
    "certainty",
    "kulczynski",
)


class Recommendations(NamedTuple):
    """The most probable items that each sample does not have, the most probable first.

    Attributes
    ----------
    items : ndarray of shape (n_samples, n), str
        Names of features; "" where a sample has fewer other features.
    probabilities : ndarray of shape (n_samples, n), float64
        Their probabilities; NaN where a sample has fewer other features.
    """

    items: NDArray[Any]
    probabilities: NDArray[np.float64]


def named(found: Recommended, model: Model) -> Recommendations:
    """Return recommendations with the names of features."""
    names = np.array([*feature_names(model.columns, range(model.atoms.n_cols)), ""], object)
    return Recommendations(names[found.features], found.probabilities)


class StatementsMixin:
    """Methods of an estimator with atoms, which state what its patterns mean for rows and features."""

    if TYPE_CHECKING:
        absent: str | None
        binarize: float | None
        max_memory: int | str | None

        def as_model(self) -> Model: ...
        def _workers(self, data: Bits | None = None) -> Workers: ...
        def _to_code(self, X: Any) -> tuple[Model, Bits, int | None]: ...

    @documented(RuleKwargs)
    def rules(self, X: Any = None, **limits: Unpack[RuleKwargs]) -> list[Rule]:
        """Return rules: of the samples with some features of a pattern, which share has another one of its features.

        Each feature of a pattern is the consequent of a rule. The antecedent is the rest of the pattern or, if X is
        passed, few of its features, chosen one after the other, from which the consequent follows about as often (95%
        of the confidence).
        All counts are exact: those of the training table, which ``fit`` has counted, or those of X. A rule is left out
        if a more general one, whose antecedent is a part of its own, has about the same confidence. The rules with the
        highest leverage come first: those that account for most samples beyond what chance explains.

        Patterns with more than 128 features have no rules. Only samples in which all features of a rule are known
        count. "not x" is the absence of a feature; patterns contain it if the bias sets the feature.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store or path, optional
            The samples to count, usually the training table. It is needed for antecedents that are shorter than the
            rest of the pattern, and for models of streams and of earlier versions.
        {parameters}

        Returns
        -------
        list of Rule
            Named tuples ``(antecedent, consequent, rows, antecedent_rows, known_rows, total_rows, consequent_share,
            atom)`` with the properties ``confidence``, ``lift``, ``support`` and ``leverage``. ``str(rule)`` is a
            sentence.

        Examples
        --------
        >>> import bitatoms as ba
        >>> table = ba.datasets.baskets(1000)
        >>> model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
        >>> print(model.rules(table)[0])
        of the 91 rows with jam, 91.2% also have coffee; of all, 14.4%
        """
        return find_rules(self.as_model(), _limits(limits), None if X is None else self._chunks(X))

    @documented(RuleKwargs)
    def to_rules(self, X: Any = None, **limits: Unpack[RuleKwargs]) -> Any:
        """Return `rules` as a data frame with the columns of mlxtend's ``association_rules``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store or path, optional
            As in `rules`.
        {parameters}

        Returns
        -------
        pandas.DataFrame
            One row per rule. ``antecedents`` and ``consequents`` are frozensets of names; the other columns are
            shares and measures, as mlxtend defines them.

        Raises
        ------
        MissingLibrary
            pandas is not installed; `rules` works without it.
        """
        return _frame(map(_measures, self.rules(X, **limits)), _COLUMNS)

    @documented(RuleKwargs)
    def to_itemsets(self, X: Any, **limits: Unpack[RuleKwargs]) -> Any:
        """Return the features of each of the `rules`, and all parts of them, as frequent itemsets.

        mlxtend's functions take this data frame, for example ``association_rules(model.to_itemsets(X))``. Rules with
        more than 12 features are left out.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store or path
            The samples to count.
        {parameters}

        Returns
        -------
        pandas.DataFrame
            With the columns ``support``, a share of the samples, and ``itemsets``, frozensets of names.
        """
        chunks, model = self._chunks(X), self.as_model()
        found = find_itemsets(model, find_rules(model, _limits(limits), chunks), chunks)
        return _frame(((share, frozenset(items)) for items, share in found), ("support", "itemsets"))

    def recommend(self, X: Any, n: int = 5) -> Recommendations:
        """Return the features that samples most probably have besides those that they have: the next items of baskets.

        The probability of a feature is that of a sample whose other cells are as given, zeros too, and in which the
        cell of this feature is hidden: it may be a one or "not yet".

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store or path
            The samples, of shape (n_samples, n_features).
        n : int, default=5
            Number of features per sample.

        Returns
        -------
        Recommendations
            A named tuple of two arrays of shape (n_samples, n), ``items`` with names and ``probabilities``; with fewer
            columns if the model has fewer than n features.

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1, 1, 1, 0, 0, 0]] * 20 + [[0, 0, 0, 1, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(2, random_state=0).fit(X)
        >>> model.recommend([[1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1]], 1).items
        array([['x2'],
               ['x4']], dtype=object)
        """
        n, store = check_int("n", n, 1), self._store(X)
        if store is None:
            model, data, _ = self._to_code(X)
            return named(recommend(model, data, n, self._workers(data)), model)
        model, limit = self.as_model(), parse_memory_limit(self.max_memory)
        chunks = store_transform.recommended_chunks(store, model, n, self._workers(), limit, self.absent)
        return named(joined(chunks, min(n, model.atoms.n_cols)), model)

    def worst_rows(self, X: Any, n: int = 10) -> list[RowFit]:
        """Return the samples that fit worst, with the cells that make them so.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store or path
            The samples, of shape (n_samples, n_features).
        n : int, default=10
            Number of samples.

        Returns
        -------
        list of RowFit
            Named tuples ``(row, bits, atoms, cells)``, the sample that takes most bits first. ``bits`` are minus
            `score_samples`. ``cells`` are the cells that the atoms of the sample get wrong, named tuples ``(feature,
            kind, bits)``, where ``kind`` is "unexpected" (the sample has the feature, its atoms do not) or "missing".

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1, 1, 1, 0, 0, 0]] * 20 + [[0, 0, 0, 1, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(2, random_state=0).fit(X)
        >>> worst = model.worst_rows([[1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 0, 1]], 1)[0]
        >>> worst.row, [(cell.feature, cell.kind) for cell in worst.cells]
        (1, [('x1', 'missing'), ('x5', 'unexpected')])
        """
        n, store = check_int("n", n, 0), self._store(X)
        if store is None:
            model, data, max_rows = self._to_code(X)
            workers = self._workers(data)
            return worst_rows([score_rows(model, data, workers, max_rows=max_rows)], n, workers)
        limit, workers = parse_memory_limit(self.max_memory), self._workers()
        chunks = store_transform.scored_chunks(store, self.as_model(), workers, limit, self.absent)
        return worst_rows(chunks, n, workers)

    def _store(self, X: Any) -> Store | None:
        """Return X as a store if it is one; raise for Dask collections."""
        if dispatch.is_dask(X):
            raise TypeError("this is not available for Dask collections; write the rows to a store with bitatoms.pack")
        return dispatch.as_store(X, self.binarize)

    def _chunks(self, X: Any) -> Chunks:
        """Return what returns the samples in chunks, with the columns of the model."""
        store = self._store(X)
        if store is None:
            data = self._to_code(X)[1]
            return lambda: [data]
        limit = parse_memory_limit(self.max_memory)
        return partial(store_transform.matched_chunks, store, self.as_model(), self._workers(), limit, self.absent)


def _limits(given: RuleKwargs) -> RuleLimits:
    """Return the limits of rules, checked."""
    return RuleLimits(**checked(RuleKwargs, with_defaults(RuleKwargs, given)))


def _measures(rule: Rule) -> tuple[Any, ...]:
    """Return a rule as a row of mlxtend's data frame of rules: the values of _COLUMNS."""
    share = rule.consequent_share
    antecedent_share = rule.antecedent_rows / rule.known_rows
    largest = max(rule.support * (1 - antecedent_share), antecedent_share * (share - rule.support))
    return (
        frozenset(rule.antecedent),
        frozenset((rule.consequent,)),
        antecedent_share,
        share,
        rule.support,
        rule.confidence,
        rule.lift,
        rule.known_rows / rule.total_rows,
        rule.leverage,
        (1 - share) / (1 - rule.confidence) if rule.confidence < 1 else np.inf,
        rule.leverage / largest if largest else 0.0,
        rule.support / (antecedent_share + share - rule.support),
        (rule.confidence - share) / (1 - share) if share < 1 else 0.0,
        (rule.confidence + rule.support / share) / 2,
    )


def _frame(rows: Iterable[tuple[Any, ...]], columns: tuple[str, ...]) -> Any:
    """Return rows as a pandas data frame."""
    pd = import_library("pandas", "data frames need")
    return pd.DataFrame(list(rows), columns=list(columns))
