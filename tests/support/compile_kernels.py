"""Compile the kernels that most tests need, before the tests: otherwise each process of a test run compiles its own."""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor

import pytest
from plans import use_small_budget

import bitatoms as ba


def compile_for(algebra: str) -> None:
    """Run each kind of search on a small table."""
    warnings.simplefilter("ignore")
    X = ba.datasets.planted(200, 70, 4, algebra=algebra, noise=0.05, random_state=0).X
    with pytest.MonkeyPatch.context() as patch:
        use_small_budget(patch)
        for how in ({}, {"search": "thorough"}, {"n_components": 3}, {"n_components": 20}, {"search_rows": 100}):
            ba.factorize(X, algebra=algebra, random_state=0, **how)
        for how in ({"coder": "bmp"}, {"update": "k-prox", "init": "greedy"}, {"coder": "exact"}):
            ba.factorize(X, 4, search="paper", algebra=algebra, random_state=0, **how)
        model = ba.BinaryDictionaryLearning(random_state=0, algebra=algebra).fit(X)
        model.partial_fit(X).transform(X)
        model.predict_cell_proba(X)


def main() -> None:
    """Compile for each algebra in a process of its own: hardly any time is spent on kernels that both need."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(compile_for, ("or", "xor")))


if __name__ == "__main__":
    main()
