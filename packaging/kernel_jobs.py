"""Small fits of all common kinds, which call the kernels that larger ones of their kind call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bitatoms import BinaryDictionaryClassifier, BinaryDictionaryLearning, BinaryImputer, PaperSearch, factorize
from bitatoms.datasets import planted
from bitatoms.search.options import Algebra, PaperCoder, Update


def _table(algebra: Algebra, n_features: int = 70) -> NDArray[np.uint8]:
    """Return a small table of known atoms."""
    return planted(200, n_features, 4, algebra=algebra, noise=0.05, random_state=0).X


def _many_atoms_per_row() -> NDArray[np.uint8]:
    """Return a small table whose rows are coded by linear algebra."""
    return planted(200, 70, 8, atom_density=0.5, code_density=0.5, noise=0.01, random_state=0).X


def _search(algebra: Algebra) -> None:
    """Fit as the default call does."""
    factorize(_table(algebra), algebra=algebra, random_state=0)


def _new_rows(algebra: Algebra) -> None:
    """Code and score rows with a model, and search where rows are coded by linear algebra."""
    X = _table(algebra)
    model = BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(X)
    model.transform(X)
    model.score(X)
    if algebra == "xor":
        factorize(_many_atoms_per_row(), algebra=algebra, random_state=0)


def _thorough_search(algebra: Algebra) -> None:
    factorize(_table(algebra), algebra=algebra, search="thorough", random_state=0)


def _number_of_atoms(algebra: Algebra) -> None:
    for n_components in (3, 20):
        factorize(_table(algebra), n_components, algebra=algebra, random_state=0)


def _many_rows(algebra: Algebra) -> None:
    """Search a sample of the rows, in chunks that threads share, and go on with a stream."""
    X = np.tile(_table(algebra), (10, 1))
    factorize(X, algebra=algebra, search_rows=500, random_state=0, n_jobs=2)
    BinaryDictionaryLearning(algebra=algebra, random_state=0).partial_fit(X[:500]).partial_fit(X[500:])


def _unknown_cells(algebra: Algebra) -> None:
    for X in (_table(algebra), _many_atoms_per_row()):
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
        model = BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(X)
        model.transform(X)
        model.predict_cell_proba(X)
    BinaryImputer(algebra=algebra, random_state=0).fit_transform(X[:100])


def _classes(algebra: Algebra) -> None:
    X = _table(algebra)
    BinaryDictionaryClassifier(n_models=2, algebra=algebra, random_state=0).fit(X, X[:, 0]).predict(X)


def _wide_table(algebra: Algebra) -> None:
    X = _table(algebra, 2100)
    BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(X).transform(X)


def _sparse_table(algebra: Algebra) -> None:
    X = np.random.default_rng(0).random((300, 2100)) < 0.003
    X[:40, :4] = X[30:90, 8:11] = True
    sparse = csr_array(X.astype(np.uint8))
    BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(sparse).transform(sparse)


def _paper(coder: PaperCoder, update: Update = "mob", init: str = "samples") -> Callable[[Algebra], None]:
    """Return a job with algorithms of the paper."""

    def run(algebra: Algebra) -> None:
        search = PaperSearch(coder=coder, update=update)
        how = {"search": search, "algebra": algebra, "init": init, "random_state": 0}
        factorize(_table(algebra), 4, **how)
        if coder == "greedy":
            factorize(_table(algebra), **how)

    return run


JOBS: dict[str, Callable[[Algebra], None]] = {
    "search": _search,
    "new rows": _new_rows,
    "unknown cells": _unknown_cells,
    "classes": _classes,
    "many rows": _many_rows,
    "a given number of atoms": _number_of_atoms,
    "thorough search": _thorough_search,
    "wide table": _wide_table,
    "sparse table": _sparse_table,
    "paper, greedy": _paper("greedy"),
    "paper, bmp": _paper("bmp"),
    "paper, exact": _paper("exact", init="greedy"),
    "k-prox": _paper("greedy", "k-prox"),
}
