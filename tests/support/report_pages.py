"""Models and tables whose reports are opened in a browser."""

from dataclasses import replace

import numpy as np

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.core.model import Model
from bitatoms.core.result import reconstruct
from bitatoms.mdl import Codelength
from bitatoms.table import Picture, Table

HOSTILE = ("</script><script>window.hurt = 1</script>", '"><img src=x onerror="window.hurt = 1">', "' onclick='hurt()")


def baskets():
    """Return the model and table of baskets, some with hostile names."""
    X = ba.datasets.planted(300, 40, 6, algebra="or", code_density=0.3, atom_density=0.4, noise=0.03, random_state=0).X
    names = [*HOSTILE, "a name that is long " * 8, *(f"item {n}" for n in range(4, 40))]
    table = Table(BitMatrix.from_dense(X), [f"basket {n}" for n in range(300)], names)
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table), table


def digits():
    """Return the model and table of pictures."""
    table = Table(BitMatrix.from_dense(ba.datasets.digits()[0]), picture=Picture((8, 8)))
    return ba.BinaryDictionaryLearning(random_state=0).fit(table), table


def nothing():
    """Return the model and table of noise, without patterns."""
    X = np.random.default_rng(0).integers(0, 2, (30, 9), dtype=np.uint8)
    return ba.BinaryDictionaryLearning(random_state=0).fit(X), X


def large():
    """Return a random model of 500 atoms and a table."""
    rng = np.random.default_rng(0)
    atoms = BitMatrix.from_dense((rng.random((500, 1000)) < 0.05).astype(np.uint8))
    model = Model(
        atoms=atoms,
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
    return model, BitMatrix.from_dense((rng.random((300, 1000)) < 0.05).astype(np.uint8))


def unknown():
    """Return the model and table of answers, some of them unknown, with names that spreadsheets take for formulas."""
    X = ba.datasets.planted(200, 30, 4, algebra="or", code_density=0.3, atom_density=0.2, noise=0.02, random_state=0).X
    hidden = BitMatrix.from_dense(np.random.default_rng(0).random(X.shape) < 0.1)
    names = ["=1+1", *(f"question {n}, part" for n in range(1, 30))]
    table = Table(BitMatrix.from_dense(X).with_unknown(hidden), [f"@person {n}" for n in range(200)], names)
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table), table


def private():
    """Return the same for a page without single rows."""
    return *unknown(), {"max_rows": 0}


def genotypes():
    """Return the model and table of genotypes with positions and populations."""
    table = ba.datasets.genotypes(60, 40, random_state=0)
    return ba.BinaryDictionaryLearning(6, random_state=0).fit(table), table, {"groups": "population"}


def one_row():
    """Return the model and table of a single row."""
    X = np.array([[1, 0, 1]], np.uint8)
    return ba.BinaryDictionaryLearning(random_state=0).fit(X), X


def huge():
    """Return a model of 500 atoms that fits a table of 100 000 rows and 1000 columns, and the table with its codes."""
    rng, n, m, p = np.random.default_rng(0), 100_000, 1000, 500
    atoms = BitMatrix.from_dense((rng.random((p, m)) < 0.03).astype(np.uint8))
    codes = BitMatrix.from_dense((rng.random((n, p)) < 0.01).astype(np.uint8))
    noise = BitMatrix.from_dense((rng.random((n, m)) < 0.01).astype(np.uint8))
    rows = reconstruct(codes, atoms, np.zeros(m, np.uint8), "or") ^ noise
    model = replace(large()[0], atoms=atoms, wrong=noise.column_weights(), n_samples=n, uses=codes.column_weights())
    table = Table(rows, [f"customer {i}" for i in range(n)], [f"product {i}" for i in range(m)])
    return model, table, {"codes": codes}


MAKERS = {
    maker.__name__: maker for maker in (baskets, digits, nothing, large, unknown, private, genotypes, one_row, huge)
}
