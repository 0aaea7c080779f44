"""Models and tables whose reports are opened in a browser."""

from dataclasses import replace

import numpy as np

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Table
from bitatoms.engine.block import reconstruct
from bitatoms.engine.codelength import Codelength
from bitatoms.model.model import Model
from support.strategies import random_bits
from support.zoo import specimen

HOSTILE = ("</script><script>window.hurt = 1</script>", '"><img src=x onerror="window.hurt = 1">', "' onclick='hurt()")


def fitted(X, row=None, columns=None, **how):
    """Return a model and its table, whose rows are named by a word and a number."""
    bits = X if isinstance(X, BitMatrix) else BitMatrix.from_dense(X)
    table = Table(bits, row and [f"{row} {n}" for n in range(len(bits))], columns)
    return ba.BinaryDictionaryLearning(random_state=0, **how).fit(table), table


def baskets():
    """Return the model and table of baskets, some with hostile names."""
    X = ba.datasets.planted(300, 40, 6, algebra="or", code_density=0.3, atom_density=0.4, noise=0.03, random_state=0).X
    names = [*HOSTILE, "a name that is long " * 8, *(f"item {n}" for n in range(4, 40))]
    return fitted(X, "basket", names, algebra="or")


def unknown():
    """Return the model and table of answers, some of them unknown, with names that spreadsheets take for formulas."""
    X = ba.datasets.planted(200, 30, 4, algebra="or", code_density=0.3, atom_density=0.2, noise=0.02, random_state=0).X
    hidden = BitMatrix.from_dense(np.random.default_rng(0).random(X.shape) < 0.1)
    names = ["=1+1", *(f"question {n}, part" for n in range(1, 30))]
    return fitted(BitMatrix.from_dense(X).with_unknown(hidden), "@person", names, algebra="or")


def large():
    """Return a random model of 500 atoms and a table."""
    model = Model(
        atoms=BitMatrix.from_dense(random_bits(0, 500, 1000, 0.05)),
        bias=np.zeros(1000, np.uint8),
        algebra="or",
        codelength=Codelength(1, 1, 1),
        history=(),
        wrong=np.full(1000, 20),
        coder="mdl",
        n_samples=300,
        uses=np.full(500, 3),
        saved=np.arange(500)[::-1],
    )
    return model, BitMatrix.from_dense(random_bits(1, 300, 1000, 0.05))


def huge():
    """Return a model of 500 atoms that fits a table of 100 000 rows and 1000 columns, and the table with its codes."""
    n, m, p = 100_000, 1000, 500
    sizes = ((p, m, 0.03), (n, p, 0.01), (n, m, 0.01))
    atoms, codes, noise = (BitMatrix.from_dense(random_bits(seed, *size)) for seed, size in enumerate(sizes))
    rows = reconstruct(codes, atoms, np.zeros(m, np.uint8), "or") ^ noise
    model = replace(large()[0], atoms=atoms, wrong=noise.column_weights(), n_samples=n, uses=codes.column_weights())
    table = Table(rows, [f"customer {i}" for i in range(n)], [f"product {i}" for i in range(m)])
    return model, table, {"codes": codes}


MAKERS = {
    "baskets": baskets,
    "digits": lambda: specimen("xor"),
    "genotypes": lambda: (*specimen("genotypes"), {"groups": "population"}),
    "unknown": unknown,
    "private": lambda: (*unknown(), {"max_rows": 0}),
    "nothing": lambda: fitted(np.random.default_rng(0).integers(0, 2, (30, 9), dtype=np.uint8)),
    "one_row": lambda: fitted([[1, 0, 1]]),
    "large": large,
    "huge": huge,
}
