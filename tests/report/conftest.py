"""Tables and their models."""

import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.table import Picture, Table


@pytest.fixture(scope="module")
def baskets():
    """A table with names, and its OR model."""
    X = ba.datasets.planted(300, 40, 5, algebra="or", code_density=0.3, atom_density=0.15, noise=0.02, random_state=0).X
    table = Table(BitMatrix.from_dense(X), [f"basket {n}" for n in range(300)], [f"item {n}" for n in range(40)])
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table), table


@pytest.fixture(scope="module")
def digits():
    """A table of pictures, and its XOR model, which has a bias."""
    X, _ = ba.datasets.digits()
    table = Table(BitMatrix.from_dense(X[:600]), picture=Picture((8, 8)))
    return ba.BinaryDictionaryLearning(random_state=0).fit(table), table


@pytest.fixture(scope="module", params=["baskets", "digits"])
def both(request):
    return request.getfixturevalue(request.param)
