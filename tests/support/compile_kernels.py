"""Compile the kernels that most tests need, before the tests: otherwise each process of a test run compiles its own."""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor

import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.core.atoms import fit_each, update_each
from bitatoms.core.block import Block
from bitatoms.core.coding import code, coding_rule
from bitatoms.parallel import Workers
from support.plans import use_small_budget


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
        ba.BinaryDictionaryLearning(random_state=0, algebra=algebra).fit(X).partial_fit(X).transform(X)
        for how in ({}, {"n_components": 20, "search": "paper"}):
            ba.BinaryDictionaryLearning(random_state=0, algebra=algebra, **how).fit(X).predict_cell_proba(X)
        if algebra == "xor":
            dense = {"atom_density": 0.5, "code_density": 0.5, "noise": 0.01}
            ba.factorize(ba.datasets.planted(200, 70, 8, **dense, random_state=0).X, random_state=0)
    compile_for_chunks(BitMatrix.from_sparse(csr_array(X)), algebra)


def compile_for_chunks(data: BitMatrix, algebra: str) -> None:
    """Update the atoms of a table that is large enough to be split into chunks."""
    rule = coding_rule("greedy", algebra)
    block = Block(data, data[:3], None, rule.covers, Workers(2, 64))
    code(block, rule)
    update_each(block)
    fit_each(block, rule)


def main() -> None:
    """Compile for each algebra in a process of its own: hardly any time is spent on kernels that both need."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(compile_for, ("or", "xor")))


if __name__ == "__main__":
    main()
