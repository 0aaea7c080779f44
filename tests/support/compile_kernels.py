"""Compile the kernels that most tests need, before the tests: otherwise each process of a test run compiles its own."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from scipy.sparse import csr_array

from bitatoms.bits import BitMatrix
from bitatoms.core.atoms import fit_each, update_each
from bitatoms.core.block import Block
from bitatoms.core.coding import code, coding_rule
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from bitatoms.warmup import JOBS, run_job


def compile_for(algebra: str) -> None:
    """Compile what fits need, and the parts of them that tests call alone."""
    for name in JOBS:
        run_job((name, algebra))
    X = planted(200, 70, 4, algebra=algebra, noise=0.05, random_state=0).X
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
