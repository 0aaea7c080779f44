"""What a fitted model states about rows and their features: rules, recommendations, and rows that fit badly."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..columns.table import axis_names
from ..frames import in_memory
from ..model.options import RuleOptions
from ..model.patterns import Pattern
from ..model.recommendation import Recommendations, joined, named, recommend
from ..model.row_fit import RowFit, score_rows, worst_rows
from ..model.rules import Chunks, Rule, find_itemsets, find_rules
from ..parameters import with_options
from ..rows import out_of_core
from ..system.libraries import import_library
from ..validation import check_int
from .model_estimator import ModelEstimator
from .options import CountedRuleOptions


def _antecedent_share(rule: Rule) -> float:
    """Return the share of the rows that have the antecedent."""
    return rule.antecedent_rows / rule.known_rows


def _zhangs_metric(rule: Rule) -> float:
    """Return the leverage, divided by the largest one that these shares allow."""
    share, antecedent_share = rule.consequent_share, _antecedent_share(rule)
    largest = max(rule.support * (1 - antecedent_share), antecedent_share * (share - rule.support))
    return rule.leverage / largest if largest else 0.0


_MEASURES: dict[str, Callable[[Rule], Any]] = {  # the columns of mlxtend's data frame of rules
    "antecedents": lambda rule: frozenset(rule.antecedent),
    "consequents": lambda rule: frozenset((rule.consequent,)),
    "antecedent support": _antecedent_share,
    "consequent support": lambda rule: rule.consequent_share,
    "support": lambda rule: rule.support,
    "confidence": lambda rule: rule.confidence,
    "lift": lambda rule: rule.lift,
    "representativity": lambda rule: rule.known_rows / rule.total_rows,
    "leverage": lambda rule: rule.leverage,
    "conviction": lambda rule: (1 - rule.consequent_share) / (1 - rule.confidence) if rule.confidence < 1 else np.inf,
    "zhangs_metric": _zhangs_metric,
    "jaccard": lambda rule: rule.support / (_antecedent_share(rule) + rule.consequent_share - rule.support),
    "certainty": lambda rule: (
        (rule.confidence - rule.consequent_share) / (1 - rule.consequent_share) if rule.consequent_share < 1 else 0.0
    ),
    "kulczynski": lambda rule: (rule.confidence + rule.support / rule.consequent_share) / 2,
}


class StatementsEstimator(ModelEstimator):
    """An estimator that states what its patterns mean for samples and features."""

    def patterns(self) -> list[Pattern]:
        """Return the atoms in readable form: features by name, how many samples use them, bits saved.

        Returns
        -------
        list of Pattern
            Named tuples ``(atom, features, rows, share, bits_saved, complete, recurs, span, expected, lift,
            member_lifts)``: ``rows`` samples use the atom, and ``complete`` samples have all its features. ``expected``
            samples would have all of them if features were independent of each other, and ``lift`` is ``complete /
            expected``. ``member_lifts`` has one number per feature: its share of the samples that have all other
            features of the atom, divided by its share of all samples. Only samples in which the features concerned are
            known count. ``recurs`` is the share of other searches that found the atom again, if `bitatoms.stability`
            has counted them. The atom that saves most bits comes first.
            `to_frame` returns them as a data frame.
        """
        return self.as_model().patterns()

    def to_frame(self) -> Any:
        """Return the atoms as a pandas data frame, one row per atom, the one that saves most bits first.

        The columns have the names of `patterns`, of files of patterns (``bitatoms show --patterns``) and of ``--json``.

        Returns
        -------
        pandas.DataFrame
            With the columns ``atom`` (1 saves most bits), ``features`` (a tuple of names), ``size`` (their number),
            ``rows`` (samples that use the atom), ``share`` (of all samples), ``bits_saved``, ``complete`` (samples that
            have all features), ``expected`` (those, if features were independent), ``lift``, ``member_lifts`` (one
            number per feature), ``recurs`` (see `bitatoms.stability`) and ``span`` (where the features are on a
            genome). What is unknown is missing (NA, NaN or None), such as ``recurs`` of a model whose stability was
            not counted.

        Raises
        ------
        MissingLibrary
            pandas is not installed; `patterns` works without it.

        See Also
        --------
        to_rules : Rules, as a data frame.

        Examples
        --------
        >>> import bitatoms as ba
        >>> table = ba.datasets.baskets(1000)
        >>> model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
        >>> frame = model.to_frame()
        >>> frame.loc[frame["size"] > 4, ["atom", "size", "rows", "complete"]].head(2)
           atom  size  rows  complete
        0     1     5    82        63
        1     2     6    54        39
        """
        return self.as_model().to_frame()

    @with_options(CountedRuleOptions)
    def rules(self, options: CountedRuleOptions) -> list[Rule]:
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
        return self._rules(options)

    @with_options(CountedRuleOptions)
    def to_rules(self, options: CountedRuleOptions) -> Any:
        """Return `rules` as a data frame with the columns of mlxtend's ``association_rules``.

        Parameters
        ----------
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
        pd, found = import_library("pandas", "data frames need"), self._rules(options)
        return pd.DataFrame({name: [measure(rule) for rule in found] for name, measure in _MEASURES.items()})

    @with_options(RuleOptions)
    def to_itemsets(self, X: Any, options: RuleOptions) -> Any:
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
        pd, chunks, model = import_library("pandas", "data frames need"), self._chunks(X), self.as_model()
        found = find_itemsets(model, find_rules(model, options, chunks), chunks)
        return pd.DataFrame(
            {"support": [support for _, support in found], "itemsets": [frozenset(items) for items, _ in found]}
        )

    def recommend(self, X: Any, n: int = 5) -> Recommendations:
        """Return the features that samples most probably lack: the next items of baskets.

        If one feature of a sample is missing, the probability of a feature is that it is this one; those of all
        features that a sample lacks sum to 1. It is predicted from all other cells by the atoms, by a regression on the
        other columns (of up to 1000), and by its share of all samples. These are weighed by samples from which one
        feature was removed: the first call after ``fit`` learns from four fifths of its rows, as ``fit`` did, and tries
        the others; with less than 5000 rows, it does so five times. Of a larger table, it uses at most 4 million cells
        or 1000 rows. For a model of a file or a stream, `calibrate` does this with a table that you pass; without it,
        only atoms and shares count.

        Of an encoded variable that has a value in a sample, no other value is recommended.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store or path
            The samples, of shape (n_samples, n_features).
        n : int, default=5
            Number of features per sample.

        Returns
        -------
        Recommendations
            A named tuple of two arrays of shape (n_samples, n), ``items`` and ``probabilities``; with fewer columns if
            the model has fewer than n features. Items are names, and indices of features if X has no names.

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1, 1, 1, 0, 0, 0]] * 20 + [[0, 0, 0, 1, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(2, random_state=0).fit(X)
        >>> model.recommend([[1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1]], 1).items
        array([[2],
               [4]])
        """
        n = check_int("n", n, 1)
        self._fit_item_pool()
        if self._is_stored(X):
            rows = self._stored(X)
            model, has_names = rows.model, rows.store.columns is not None
            found = joined(rows.recommended_chunks(n), min(n, model.atoms.n_cols))
        else:
            X = in_memory(X)
            has_names = isinstance(X, (str, os.PathLike)) or axis_names(X)[1] is not None
            model, data, _ = self._to_code(X)
            found = recommend(model, data, n, self._workers(data))
        return named(found, model) if has_names else found

    def worst_rows(self, X: Any, n: int = 10) -> list[RowFit]:
        """Return the samples that fit worst, anomalies first, with the cells that make them so.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store or path
            The samples, of shape (n_samples, n_features).
        n : int, default=10
            Number of samples.

        Returns
        -------
        list of RowFit
            Named tuples ``(row, bits, atoms, cells, n_known)``, the sample that takes most bits first. ``row`` counts
            from 0. ``bits`` are minus `score_samples`. ``atoms`` are the numbers of the atoms that the sample uses,
            from 1: atom k is ``components_[k - 1]``. ``cells`` are the cells whose value is not the most probable one,
            given the other cells: named tuples ``(feature, kind, bits)``, where ``kind`` is "unexpected" (the sample
            has the feature) or "missing". ``n_known`` is the number of known cells.

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1, 1, 1, 1, 0, 0, 0, 0]] * 20 + [[0, 0, 0, 0, 1, 1, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(2, random_state=0).fit(X)
        >>> worst = model.worst_rows([[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 1, 0]], 1)[0]
        >>> worst.row, sorted((cell.feature, cell.kind) for cell in worst.cells)
        (1, [('x3', 'missing'), ('x6', 'unexpected')])
        """
        n = check_int("n", n, 0)
        self._fit_regression()
        if self._is_stored(X):
            rows = self._stored(X)
            return worst_rows(rows.scored_chunks(), n, rows.workers)
        model, data, max_rows = self._to_code(X)
        workers = self._workers(data)
        return worst_rows([score_rows(model, data, workers, max_rows=max_rows)], n, workers)

    def _rules(self, options: CountedRuleOptions) -> list[Rule]:
        """Return the rules, counted in the samples of the options or, if there are none, in the training table."""
        return find_rules(self.as_model(), options, None if options.X is None else self._chunks(options.X))

    def _chunks(self, X: Any) -> Chunks:
        """Return what returns the samples in chunks, with the columns of the model."""
        if self._is_stored(X):
            return self._stored(X).chunks
        data = self._to_code(X)[1]
        return lambda: [data]

    def _is_stored(self, X: Any) -> bool:
        """Return whether X is a store; raise for Dask collections."""
        if out_of_core.is_dask(X):
            raise TypeError("this is not available for Dask collections; write the rows to a store with bitatoms.pack")
        return out_of_core.is_out_of_core(X)
