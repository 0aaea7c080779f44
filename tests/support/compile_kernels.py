"""Compile the kernels that most tests need, in one process: otherwise each process of a test run compiles its own."""

from __future__ import annotations

import warnings

import bitatoms as ba


def main() -> None:
    """Run each kind of search on a small table."""
    warnings.simplefilter("ignore")
    for algebra in ("xor", "or"):
        X = ba.datasets.planted(200, 70, 4, algebra=algebra, noise=0.05, random_state=0).X
        for how in ({}, {"search": "thorough"}, {"n_components": 3}, {"n_components": 20}, {"search_rows": 100}):
            ba.factorize(X, algebra=algebra, random_state=0, **how)
        for how in ({"coder": "bmp"}, {"update": "k-prox", "init": "greedy"}, {"coder": "exact"}):
            ba.factorize(X, 4, search="paper", algebra=algebra, random_state=0, **how)
        model = ba.BinaryDictionaryLearning(random_state=0, algebra=algebra).fit(X)
        model.partial_fit(X).transform(X)
        model.predict_cell_proba(X)


if __name__ == "__main__":
    main()
