"""Rules: of the rows that have some features of a pattern, how many have another one of its features.

A rule is read from the rows that complete a pattern. Its antecedent is the rest of the pattern or, if rows can be
counted, few features of the rest, chosen one after the other, from which the other feature follows about as
often. All counts are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..columns.table import Names
from ..formatting import percent, quote_name
from ..sparse_bits import Bits, packed
from .complete_rows import members_of
from .model import Model
from .options import RuleOptions
from .patterns import feature_shares

_ABOUT = 0.95  # of a confidence that is about the same
_MAX_FEATURES = 128  # of an atom that has rules: of larger ones, there would be thousands of about the same features
_MAX_ITEMSET = 12  # features of a rule all of whose parts are listed
_MAX_CANDIDATES = 32  # features of an atom that are tried as antecedents of another one: the rarest
_ROWS_AT_A_TIME = 1 << 16

Chunks = Callable[[], Iterable[Bits]]  # the rows of a table in chunks, as often as they are counted
Columns = tuple[int, ...]  # of an antecedent, in ascending order


class Rule(NamedTuple):
    """Of the rows that have the antecedent, the share with the consequent is higher than of all rows.

    Only rows in which all these features are known count. "not x" stands for the absence of a feature.

    Attributes
    ----------
    antecedent : tuple of str
        Names of features.
    consequent : str
        Name of a feature.
    rows : int
        Number of rows that have the antecedent and the consequent.
    antecedent_rows : int
        Number of rows that have the antecedent.
    known_rows : int
        Number of rows in which all these features are known.
    total_rows : int
        Number of rows of the table.
    consequent_share : float
        Share of the rows in which the consequent is known that have it.
    atom : int
        Number of the pattern, from 1.
    """

    antecedent: Names
    consequent: str
    rows: int
    antecedent_rows: int
    known_rows: int
    total_rows: int
    consequent_share: float
    atom: int

    @property
    def confidence(self) -> float:
        """The share of the rows with the antecedent that have the consequent."""
        return self.rows / self.antecedent_rows

    @property
    def support(self) -> float:
        """The share of the rows that have the antecedent and the consequent."""
        return self.rows / self.known_rows

    @property
    def lift(self) -> float:
        """The confidence, divided by the share of all rows that have the consequent."""
        return self.confidence / self.consequent_share

    @property
    def leverage(self) -> float:
        """By how much the support exceeds what it would be if antecedent and consequent were independent."""
        return self.support - self.antecedent_rows / self.known_rows * self.consequent_share

    def __str__(self) -> str:
        return (
            f"of the {self.antecedent_rows:,} rows with {' and '.join(map(_quoted, self.antecedent))}, "
            f"{percent(self.rows, self.antecedent_rows)} also have {_quoted(self.consequent)}; "
            f"of all, {percent(self.consequent_share, 1)}"
        )


def _quoted(name: str) -> str:
    """Return a name as a sentence contains it."""
    return quote_name(name, " and ", ";")


@dataclass(frozen=True)
class _Candidate:
    """The consequent of a rule, a feature of an atom, and what it is looked for in."""

    atom: int
    one: int  # its index among the ones of all atoms
    consequent: int  # a column
    rest: Columns


class _Counted(NamedTuple):
    """Counts of rows for one antecedent and consequent."""

    rows: int
    antecedent_rows: int
    known_rows: int

    @property
    def confidence(self) -> float:
        """The share of the rows with the antecedent that have the consequent; 0 if there are none."""
        return self.rows / self.antecedent_rows if self.antecedent_rows else 0.0


def find_rules(model: Model, options: RuleOptions, chunks: Chunks | None = None) -> list[Rule]:
    """Return the rules of a model, those that explain most rows first, without redundant ones.

    Parameters
    ----------
    model : Model
        Its counts are those of the rules if ``chunks`` is None; the antecedents are then the rest of each pattern.
    options : RuleOptions
        Which rules are listed.
    chunks : callable, optional
        Returns the rows to count, in chunks with the columns of the model.

    Raises
    ------
    ValueError
        Rows are not given, and the model does not have the counts.
    """
    if chunks is None:
        n_rows, (shares, found) = model.n_samples, _counts_of_model(model)
    else:
        rows = _Rows(model, chunks)
        n_rows, (shares, found) = rows.n_rows, _counts_of_rows(model, rows)
    rules = []
    for candidate, (antecedent, counts) in found.items():
        share = shares[candidate.consequent]
        if not counts.rows or not share:
            continue
        rule = Rule(
            antecedent=model.names_of_members(antecedent),
            consequent=model.names_of_members((candidate.consequent,))[0],
            **counts._asdict(),
            total_rows=n_rows,
            consequent_share=float(share),
            atom=candidate.atom + 1,
        )
        is_frequent = rule.support >= options.min_support and rule.confidence >= options.min_confidence
        if is_frequent and rule.lift >= options.min_lift:
            rules.append(rule)
    return sorted(_without_redundant(rules), key=lambda rule: (-rule.leverage, rule.atom, rule[:2]))


def find_itemsets(model: Model, rules: Iterable[Rule], chunks: Chunks) -> list[tuple[Names, float]]:
    """Return the features of each rule and all subsets of them, with their shares of the rows; short ones first.

    The share is that of the rows that have all these features, among those in which all of them are known.
    Programs that find rules in frequent itemsets need all of these. Rules with more than 12 features, which have
    thousands of subsets, are left out.
    """
    members = np.flatnonzero(model.atoms.column_weights()).tolist()
    column_of = dict(zip(model.names_of_members(members), members, strict=True))
    found: set[Columns] = set()
    for rule in rules:
        columns = sorted(column_of[name] for name in (*rule.antecedent, rule.consequent))
        if len(columns) > _MAX_ITEMSET:
            continue
        found.update(each for size in range(1, len(columns) + 1) for each in combinations(columns, size))
    ordered = sorted(found, key=lambda columns: (len(columns), columns))
    counted = _Rows(model, chunks).count([(columns[0], columns[1:]) for columns in ordered])
    return [
        (model.names_of_members(columns), counts.rows / max(1, counts.known_rows))
        for columns, counts in zip(ordered, counted, strict=True)
    ]


def _candidates(model: Model) -> Iterator[_Candidate]:
    """Yield each feature of each atom with at least two features and not too many, with the rest of the atom."""
    ones = model.atoms.to_sparse()
    for atom, (start, stop) in enumerate(zip(ones.indptr[:-1], ones.indptr[1:], strict=True)):
        columns = ones.indices[start:stop].tolist()
        for k, column in enumerate(columns if 1 < len(columns) <= _MAX_FEATURES else ()):
            yield _Candidate(atom, int(start) + k, column, tuple(columns[:k] + columns[k + 1 :]))


_Found = dict[_Candidate, tuple[Columns, _Counted]]  # the antecedent for each consequent


def _counts_of_model(model: Model) -> tuple[NDArray[np.float64], _Found]:
    """Return the share of each column, and the counts of the rules whose antecedent is the rest of an atom."""
    counts = members_of(model)
    if counts is None or model.ones is None:
        raise ValueError(
            "the model does not have the counts that rules need: it was learned from a stream; pass the table"
        )
    found: _Found = {}
    for candidate in _candidates(model):
        complete, lacking = int(counts.complete[candidate.atom]), int(counts.lacking[candidate.one])
        counted = _Counted(complete, complete + lacking, int(counts.atom_known[candidate.atom]))
        found[candidate] = candidate.rest, counted
    return feature_shares(model.bias, model.ones, model.n_known), found


def _counts_of_rows(model: Model, rows: _Rows) -> tuple[NDArray[np.float64], _Found]:
    """Return the share of each column, and the counts of the shortest antecedents, each of which is found step by step.

    In each step, a feature is added to the antecedent, the one from which the consequent follows most often, until it
    follows about as often as from the rest of the atom.
    """
    candidates = list(_candidates(model))
    targets = dict(zip(candidates, rows.count([(each.consequent, each.rest) for each in candidates]), strict=True))
    shares = feature_shares(model.bias, rows.ones, rows.n_known)
    found: _Found = {candidate: (candidate.rest, counts) for candidate, counts in targets.items()}
    growing: dict[_Candidate, Columns] = {candidate: () for candidate, counts in targets.items() if counts.rows}
    while growing:
        tried = []
        for candidate, antecedent in growing.items():
            left = sorted(set(candidate.rest) - set(antecedent), key=lambda column: (shares[column], column))
            longer = [tuple(sorted((*antecedent, column))) for column in left[:_MAX_CANDIDATES]]
            tried += [(candidate, each) for each in longer if len(each) < len(candidate.rest)]
        counted = rows.count([(candidate.consequent, antecedent) for candidate, antecedent in tried])
        best: _Found = {}
        for (candidate, antecedent), counts in zip(tried, counted, strict=True):
            _, kept = best.get(candidate, (None, None))
            if kept is None or (counts.confidence, counts.rows) > (kept.confidence, kept.rows):
                best[candidate] = antecedent, counts
        growing = {}
        for candidate, (antecedent, counts) in best.items():
            if counts.confidence >= _ABOUT * targets[candidate].confidence:
                found[candidate] = antecedent, counts
            else:
                growing[candidate] = antecedent
    return shares, found


class _Rows:
    """Counts rows of a table, which may be in chunks, by the columns of atoms."""

    def __init__(self, model: Model, chunks: Chunks) -> None:
        columns = np.flatnonzero(model.atoms.column_weights())
        self._chunks, self._columns, self.n_rows = chunks, columns, 0
        self._bias = BitMatrix.from_dense(model.bias[np.newaxis, columns])
        self._index = {column: k for k, column in enumerate(columns.tolist())}
        self.ones, self.n_known = np.zeros((2, model.atoms.n_cols), np.int64)
        for chunk in chunks():
            self.n_rows += len(chunk)
            self.ones += chunk.column_weights()
            self.n_known += chunk.n_known

    def count(self, pairs: Sequence[tuple[int, Columns]]) -> list[_Counted]:
        """Return the counts of each pair of a consequent and an antecedent."""
        indexed = [(self._index[column], [self._index[other] for other in others]) for column, others in pairs]
        total = np.zeros((len(pairs), 3), np.int64)
        for chunk in self._chunks() if indexed else ():
            for start in range(0, len(chunk), _ROWS_AT_A_TIME):
                rows = packed(chunk[start : start + _ROWS_AT_A_TIME].take_columns(self._columns)) ^ self._bias
                total += _count(rows.T, len(rows), indexed)
        return [_Counted(*counts) for counts in total.tolist()]


def _count(columns: BitMatrix, n_rows: int, pairs: list[tuple[int, list[int]]]) -> NDArray[np.int64]:
    """Return the rows with antecedent and consequent, with the antecedent, and in which all is known: (n_pairs, 3)."""
    has, unknown = columns.words, None if columns.unknown is None else columns.unknown.words
    counts, every = np.empty((len(pairs), 3), np.int64), ~np.uint64(0)
    for k, (consequent, antecedent) in enumerate(pairs):
        rows = np.bitwise_and.reduce(has[antecedent], axis=0, initial=every)
        counts[k, 0] = np.bitwise_count(rows & has[consequent]).sum()
        if unknown is None:
            counts[k, 1:] = np.bitwise_count(rows).sum(), n_rows
        else:
            counts[k, 1] = np.bitwise_count(rows & ~unknown[consequent]).sum()
            not_known = np.bitwise_or.reduce(unknown[[consequent, *antecedent]], axis=0)
            counts[k, 2] = n_rows - np.bitwise_count(not_known).sum()
    return counts


def _without_redundant(rules: list[Rule]) -> list[Rule]:
    """Return rules without repeated ones, and without those that a more general one implies about as often."""
    kept: dict[str, list[Rule]] = {}
    for rule in sorted(rules, key=lambda rule: (len(rule.antecedent), -rule.confidence, rule.atom)):
        others = kept.setdefault(rule.consequent, [])
        if not any(
            set(other.antecedent) <= set(rule.antecedent) and other.confidence >= _ABOUT * rule.confidence
            for other in others
        ):
            others.append(rule)
    return [rule for others in kept.values() for rule in others]
