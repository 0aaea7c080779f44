"""Fitted models and their tables, for reports."""

from functools import cache

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.table import Picture, Table


@cache
def fitted_baskets():
    """Return the OR model of a table with names, and the table."""
    X = ba.datasets.planted(300, 40, 5, algebra="or", code_density=0.3, atom_density=0.15, noise=0.02, random_state=0).X
    table = Table(BitMatrix.from_dense(X), [f"basket {n}" for n in range(300)], [f"item {n}" for n in range(40)])
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table), table


@cache
def fitted_digits():
    """Return the XOR model of a table of pictures, which has a bias, and the table."""
    X, _ = ba.datasets.digits()
    table = Table(BitMatrix.from_dense(X[:300]), picture=Picture((8, 8)))
    return ba.BinaryDictionaryLearning(random_state=0).fit(table), table
