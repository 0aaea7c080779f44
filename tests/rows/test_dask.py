"""Rows of Dask arrays: passes, invalid cells, lazy codes. Fits are compared in test_sources."""

import asyncio
import os
import time
from dataclasses import replace
from functools import cache

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse

import bitatoms as ba
from bitatoms import BitMatrix
from bitatoms import dask as dask_api
from bitatoms.engine.coding import coding_rule
from bitatoms.engine.counts import Counts
from bitatoms.engine.passes import PassSpec
from bitatoms.errors import InputWarning
from bitatoms.model.model import Model
from bitatoms.model.row_fit import score_rows
from bitatoms.parallel import OutOfTime, Workers
from bitatoms.rows import dask_transform
from bitatoms.rows.dask import DaskRows
from bitatoms.rows.source import MemoryRows, PassRun
from bitatoms.rows.subsample import learn
from bitatoms.sparse_bits import SparseBits
from bitatoms.validation import as_generator
from support.cluster import kill, local_cluster
from support.sources import assert_same, params_for

N, M = 700, 130
X = ba.datasets.planted(N, M, 12, code_density=0.2, noise=0.02, random_state=0).X
PARTITIONS = {
    "one": da.from_array(X, chunks=(N, M)),
    "awkward": da.from_array(X, chunks=((0, 1, 199, 0, 300, 1, 62, 137, 0), (60, 1, 69))),
    "many": da.from_array(X, chunks=(33, M)),
}
PARTITIONS["sparse"] = PARTITIONS["awkward"].map_blocks(scipy.sparse.csr_array)
PARTITIONS["sparse matrices"] = PARTITIONS["many"].map_blocks(scipy.sparse.csr_matrix, dtype=np.float32)
PARTITIONS["unknown"] = PARTITIONS["awkward"][da.ones(N, dtype=bool, chunks=PARTITIONS["awkward"].chunks[0])]


@pytest.fixture(scope="module")
def client():
    """A cluster of threads, which is made in less time than one of processes."""
    with local_cluster(1, processes=False, threads_per_worker=2) as client:
        yield client


@cache
def in_memory():
    """Return the result in memory of a sample and passes."""
    return fit(MemoryRows(BitMatrix.from_dense(X), Workers(1)))


def fit(rows, callbacks=None):
    params = params_for(n_components=6, search_rows=300, callbacks=callbacks)
    return learn(rows, params, Workers(1), as_generator(0))


@cache
def model():
    """Return a model learned in memory."""
    return Model.from_factorization(in_memory().result)


@pytest.mark.slow  # processes take seconds to start
def test_a_killed_worker_does_not_change_the_result():
    killed, moves = [], []

    def kill_one(row):
        moves.append(row.move)
        if row.move.startswith("pass 1 "):  # the worker with the most rows and codes
            has = client.has_what()
            killed.append(kill(client, max(has, key=lambda worker: len(has[worker]))))

    with local_cluster(2) as client:
        found = fit(DaskRows(PARTITIONS["many"], client=client), kill_one)
        assert killed[0] not in client.run(os.getpid).values()
    assert_same(found.result, in_memory().result)
    assert moves[-1].startswith("pass 2 ")
    assert len(killed) == 1


def spec_of(atoms, algebra="xor"):
    """Return a pass that codes rows with these atoms from scratch."""
    rule = coding_rule("greedy", algebra)
    return PassSpec(BitMatrix.from_dense(atoms), BitMatrix.zeros(1, atoms.shape[1]), "greedy", rule)


def never_saved(partial):
    raise AssertionError("a cluster does not save parts of a pass")


def test_a_pass_on_a_cluster_ends_at_its_deadline_and_releases_its_tasks(client):
    rows = DaskRows(da.from_array(X, chunks=(100, M)), client=client)
    n_held = len(client.futures)
    with pytest.raises(OutOfTime) as caught:  # whose traceback refers to the tasks
        rows.run_pass(spec_of(X[:5]), None, PassRun(1, None, never_saved, 0.0))
    client.sync(asyncio.sleep, 0)  # released futures are reported in another thread
    assert len(client.futures) == n_held, caught
    _, counts = rows.run_pass(spec_of(X[:5]), None, PassRun(1, None, never_saved, time.perf_counter() + 3600))
    assert counts.n_rows == N


def with_values(cells):
    """Return the table as floats, with other values in some cells."""
    values = X.astype(float)
    for (row, column), value in cells.items():
        values[row, column] = value
    return values


@pytest.mark.parametrize(
    "cells", [{(499, 70): 2}, {(0, 0): -1, (699, 129): 7}, {(3, 3): 2, (250, 7): -np.inf, (600, 9): np.inf}]
)
@pytest.mark.parametrize("sparse", [False, True])
def test_invalid_cells_raise_the_error_of_rows_in_memory(cells, sparse):
    values = with_values({(100, 5): np.nan, **cells})
    with pytest.raises(ValueError) as expected:
        BitMatrix.from_any(scipy.sparse.csr_array(values) if sparse else values, missing="unknown")
    table = da.from_array(values, chunks=((0, 1, 299, 300, 100), (100, 30)))
    with pytest.raises(ValueError) as raised:
        DaskRows(table.map_blocks(scipy.sparse.csr_array) if sparse else table)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("kind", ["dense", "masked", "sparse", "frame", "nullable frame"])
def test_missing_values_are_unknown_cells_whatever_the_partitions(kind):
    """A partition without missing values has no mask; the fingerprint does not depend on that."""
    values = with_values({(0, 0): np.nan, (499, 70): np.nan, (499, 71): np.nan})
    expected = BitMatrix.from_any(values, missing="unknown")
    fingerprints = set()
    for chunks in ((N,), (1, 299, 300, 100), (499, 1, 200)):
        table = da.from_array(values, chunks=(chunks, (M,)))
        if kind == "masked":
            table = da.ma.masked_invalid(table)
        elif kind == "sparse":
            table = table.map_blocks(scipy.sparse.csr_array)
        elif "frame" in kind:
            table = pytest.importorskip("dask.dataframe").from_dask_array(table)
            table = table.astype("Int8") if kind == "nullable frame" else table
        rows = DaskRows(table)
        assert rows.take(np.arange(N)) == expected
        fingerprints.add(rows.fingerprint())
    assert len(fingerprints) == 1
    others = expected.filled(), expected.with_unknown(expected.unknown ^ BitMatrix.from_dense(np.eye(N, M, dtype=bool)))
    for other in others:
        hashed = dask_transform.hash_positions(other, 0)
        assert f"all rows:{hashed:016x}" not in fingerprints


def test_values_are_thresholded_on_the_workers():
    rows = DaskRows(da.from_array(X * 3 - 1.5, chunks=(200, 100)), binarize=0.5)
    assert rows.take(np.arange(N)) == BitMatrix.from_dense(X)
    with pytest.raises(ValueError, match="binarize must be None or a finite number"):
        DaskRows(PARTITIONS["one"], binarize="high")
    with pytest.raises(TypeError, match="X is of type ndarray, not a Dask array"):
        DaskRows(X)
    narrow = DaskRows(ZEROS.map_blocks(first_three, chunks=(2, 4)))  # not as wide as the metadata
    assert (narrow.n_rows, narrow.n_features) == (6, 3)


def first_three(block):
    return block[:, :3]


def narrower_at_the_end(block, block_info=None):
    return block[:, : 4 - block_info[0]["chunk-location"][0] // 2]


def fail(block):
    raise OSError("the disk is gone")


FAILING = PARTITIONS["many"].map_blocks(fail, dtype=np.uint8, meta=np.empty((0, 0), np.uint8))
INVALID = da.from_array(with_values({(499, 70): 2}), chunks=(100, 50))
ZEROS = da.zeros((6, 4), chunks=(2, 4))
NARROWER = ZEROS.map_blocks(narrower_at_the_end, meta=np.empty((0, 0)))


@pytest.mark.parametrize(
    ("table", "kind", "message"),
    [
        (da.zeros(5), ValueError, "Expected 2D array, got 1D array"),
        (da.zeros((0, 5)), ValueError, r"Found array with 0 sample\(s\)"),
        (da.zeros((5, 0)), ValueError, r"Found array with 0 feature\(s\)"),
        (NARROWER, ValueError, "partition 2 of X has 3 columns, but the first has 4"),
        (INVALID, ValueError, r"\(first: 2 at row 499, column 70\); for counts, pass binarize=0"),
        (FAILING, OSError, "the disk is gone"),
    ],
)
def test_arrays_that_are_not_tables_raise(client, table, kind, message):
    for each in (None, client):
        with pytest.raises(kind, match=message):
            dask_api.fit(ba.BinaryDictionaryLearning(algebra="xor"), table, client=each)


@pytest.mark.parametrize("partitions", ["sparse", "sparse matrices", "unknown"])
def test_lazy_codes_scores_and_samples_equal_those_in_memory(partitions):
    table = PARTITIONS[partitions]
    assert dask_api.transform(model(), FAILING).shape == (N, 6)  # nothing is computed
    block = model().code(BitMatrix.from_dense(X), Workers(1))
    expected = block.factors()[1]
    codes = dask_api.transform(model(), table)
    assert codes.dtype == np.uint8
    assert codes.numblocks == (table.numblocks[0], 1)
    np.testing.assert_array_equal(codes.compute(), expected.to_dense())
    bits = score_rows(model(), block.data(), Workers(1)).bits
    np.testing.assert_array_equal(dask_api.score_samples(model(), table).compute(), -bits)
    soft = dask_api.decision_function(model(), table)
    assert soft.numblocks == codes.numblocks
    np.testing.assert_array_equal(soft.compute(), model().soft_codes(block.data(), expected, Workers(1)))
    samples = dask_api.inverse_transform(model(), codes)
    np.testing.assert_array_equal(samples.compute(), model().reconstruct(expected).to_dense())


@pytest.mark.parametrize(
    ("call", "table", "message"),
    [
        (dask_api.transform, PARTITIONS["many"][:, :-1], "X has 129 columns, but the model was learned from 130"),
        (dask_api.inverse_transform, PARTITIONS["one"], "the codes have 130 columns"),
        (dask_api.transform, INVALID, "2 at row 499, column 70"),
    ],
)
def test_lazy_codes_check_columns_and_values(call, table, message):
    with pytest.raises(ValueError, match=message):
        call(model(), table).compute()


def test_columns_of_data_frames_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    import dask.dataframe as dd

    names = [f"item {j}" for j in range(M)]
    learned = replace(model(), columns=tuple(names))
    frame = pandas.DataFrame(X, columns=names)[names[::-1]]
    table = dd.from_pandas(frame.assign(**{"item 0": frame["item 0"].astype(bool)}), npartitions=3)
    assert dask_transform.column_names(table) == tuple(names[::-1])
    assert dask_transform.column_names(PARTITIONS["one"]) is None
    assert DaskRows(table).take(np.arange(N)) == BitMatrix.from_dense(X[:, ::-1])
    table = table.assign(day="monday")
    with pytest.warns(InputWarning, match="X: ignored 1 column that the model was not fitted on: 'day'"):
        codes, scores = dask_api.transform(learned, table), dask_api.score_samples(learned, table)
    np.testing.assert_array_equal(codes.compute(), dask_api.transform(learned, PARTITIONS["many"]).compute())
    np.testing.assert_array_equal(scores.compute(), dask_api.score_samples(learned, PARTITIONS["many"]).compute())
    with pytest.raises(ValueError, match=r"X lacks columns .*: 'item 0', .*absent=\"zero\""):
        dask_api.transform(learned, table[names[5:]])


def test_sizeof_of_packed_rows_and_counts():
    assert dask.sizeof.sizeof(BitMatrix.zeros(1000, 130)) == 24_000
    assert dask.sizeof.sizeof(Counts.none(5, 130)) > 2 * 5 * 130 * 8
    voted = SparseBits.from_bits(BitMatrix.from_dense(np.eye(5, 130)))
    assert 4 * 130 * 8 < dask.sizeof.sizeof(Counts.none(5, 130, voted)) < 5 * 130 * 8
