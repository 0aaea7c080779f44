"""The codes of a fit, which the counts of its model refer to. Coding the same rows again may give slightly others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..bits import BitMatrix
from ..model.result import Factorization
from ..rows.passes import PassResult, with_codes
from ..rows.store import StoreRows
from .dictionary_learning import BinaryDictionaryLearning


@contextmanager
def fit_with_codes(
    estimator: BinaryDictionaryLearning, X: Any, sample_weight: Any = None
) -> Iterator[Iterable[BitMatrix] | None]:
    """Fit an estimator to a table in memory or to a packed store, and yield the codes of the fit in chunks of rows.

    The codes are available until the exit. They are None if the model is that of a sample, because a limit was reached
    before all rows were coded. With weights, they are those of `WeightedRows.own_codes`.
    """
    with estimator._opened(X, sample_weight) as opened:
        rows, weighted = opened.rows, opened.weighted
        learned = estimator._learn(opened, keeps_codes=True)
        try:
            if isinstance(rows, StoreRows) and not isinstance(learned, Factorization):
                yield _code_chunks(rows, learned)
                return
            codes = (learned if isinstance(learned, Factorization) else with_codes(learned)).codes
            if len(codes) != rows.n_rows:
                yield None
            else:
                yield [codes if weighted is None else weighted.own_codes(codes, estimator._model, opened.workers)]
        finally:
            rows.discard_codes(set())


def _code_chunks(rows: StoreRows, learned: PassResult) -> Iterator[BitMatrix]:
    """Yield the codes of a store in the order of the atoms of the result."""
    for chunk in rows.code_chunks(learned.codes, learned.spec.atoms.n_rows):
        yield chunk.T[learned.indices].T
