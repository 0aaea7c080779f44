"""One algorithm at every scale: the estimator learns the same bits wherever the rows are and however they are cut."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse

import bitatoms as ba
from bitatoms.algorithms.rows import RowsInMemory
from bitatoms.io.store import StoreWriter
from bitatoms.io.stream import Rows
from bitatoms.parallel import Workers
from bitatoms.scale import dask as on_dask
from cluster import local_cluster

da = pytest.importorskip("dask.array")
pytest.importorskip("zarr")

N, M, SAMPLE = 500, 70, 150
TABLES = {
    algebra: ba.datasets.planted(N, M, 7, code_density=0.25, noise=0.02, algebra=algebra, random_state=0).X
    for algebra in ("xor", "or")
}
CALLS = [
    {"algebra": algebra, "n_components": k, "search": search}
    for algebra, k, search in product(("xor", "or"), (7, 20, "mdl"), ("fast", "thorough"))
]
AWKWARD = (0, 1, 129, 0, 300, 1, 69, 0)  # rows of partitions


pytestmark = pytest.mark.filterwarnings("ignore:max_iter ended the search")  # few rounds are enough to compare


def estimator(call, **more):
    return ba.BinaryDictionaryLearning(**call, sample_rows=SAMPLE, max_iter=12, random_state=0, **more)


def learned(model, rows):
    """What is to be the same: atoms, bias, codelength, counts, and the codes of all rows."""
    codes = model.transform(rows)
    codes = codes.compute() if hasattr(codes, "compute") else codes
    inner = model.as_model()
    counts = [getattr(inner, name) for name in ("wrong", "uses", "saved", "ones", "missed")]
    return [model.components_, model.bias_, codes, *counts], model.codelength_, model.algebra_


@pytest.fixture(scope="module")
def expected():
    """What dense rows in memory give, for each call."""
    tables = [TABLES[call["algebra"]] for call in CALLS]
    return [learned(estimator(call).fit(X), X) for call, X in zip(CALLS, tables, strict=True)]


def assert_same(expected, number, model, rows):
    arrays, *others = learned(model, rows)
    theirs, *those = expected[number]
    assert others == those
    for mine, other in zip(arrays, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)


NUMBERED = pytest.mark.parametrize("number", range(len(CALLS)), ids=[str(list(call.values())) for call in CALLS])


@NUMBERED
def test_rows_in_memory(expected, number):
    """One, two and seven blocks; two threads; sparse."""
    call = CALLS[number]
    X = TABLES[call["algebra"]]
    assert expected[number][0][0].shape[0] > 4
    for blocks in (1, 2, 7):
        rows = RowsInMemory(ba.BitMatrix.from_any(X), Workers(1, -(-N // blocks)))
        assert_same(expected, number, estimator(call)._fit_rows(rows), X)
    assert_same(expected, number, estimator(call, n_jobs=2).fit(scipy.sparse.csr_array(X)), scipy.sparse.csc_array(X))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The tables as stores of large and of small chunks."""
    folder = tmp_path_factory.mktemp("stores")
    for (algebra, X), size in product(TABLES.items(), (None, 700)):
        with StoreWriter(folder / f"{algebra}-{size}.zarr", M, chunk_bytes=size) as store:
            store.append(Rows(ba.BitMatrix.from_any(X)))
    return folder


@NUMBERED
@pytest.mark.parametrize("size", [None, 700])
def test_rows_in_a_store(expected, stores, number, size):
    call = CALLS[number]
    path = stores / f"{call['algebra']}-{size}.zarr"
    assert_same(expected, number, estimator(call, n_jobs=number % 2 + 1).fit(path), ba.Store(path))


def partitioned(number):
    """A Dask array in awkward partitions: every second one of sparse blocks, every third of unknown sizes."""
    X = da.from_array(TABLES[CALLS[number]["algebra"]], chunks=(AWKWARD, (50, 20)))
    if number % 2:
        X = X.map_blocks(scipy.sparse.csr_array)
    elif number % 3 == 0:
        X = X[da.ones(N, dtype=bool, chunks=(AWKWARD,))]
    return X


@NUMBERED
def test_rows_of_dask_without_a_cluster(expected, number):
    X = partitioned(number)
    assert_same(expected, number, estimator(CALLS[number]).fit(X), X)


@pytest.fixture(scope="module", params=[1, 2, 4])
def client(request):
    with local_cluster(request.param) as client:
        yield client


def test_rows_on_a_cluster(expected, client):
    for number, call in enumerate(CALLS):
        X = partitioned(number)
        assert_same(expected, number, on_dask.fit(estimator(call), X, client), TABLES[call["algebra"]])
