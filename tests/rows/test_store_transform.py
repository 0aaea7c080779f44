"""Codes and scores of the rows of a store are those of the rows in memory."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.errors import InputWarning
from bitatoms.model.row_fit import score_rows
from bitatoms.parallel import Workers
from bitatoms.rows.store_transform import StoreTransform, collect_codes, write_code_store
from support.sources import write_store


def test_codes_and_scores_equal_those_in_memory(tmp_path, any_bits, row_names, any_stores, model):
    block = model.code(any_bits, Workers())
    codes = block.factors()[1]
    scores, soft = -score_rows(model, any_bits, Workers()).bits, model.soft_codes(any_bits, codes, Workers())
    named = write_store(tmp_path / "named.zarr", any_bits, row_names, chunk_bytes=500)
    for store, workers in ((any_stores[0], Workers(2)), (any_stores[1], Workers(2, 192)), (named, Workers(1, 448))):
        rows = StoreTransform(store, model, workers)
        assert collect_codes(store, rows.code_chunks(), model) == codes
        np.testing.assert_array_equal(rows.score_samples(), scores)
        np.testing.assert_array_equal(rows.soft_codes(), soft)
        written = write_code_store(store, rows.code_chunks(), model, tmp_path / "codes.zarr")
        assert ba.read(written.path) == ba.Table(codes, row_names if store is named else None, model.atom_names)


def test_a_dask_array_of_a_store_has_nan_in_unknown_cells(tmp_path, any_bits, any_stores):
    pytest.importorskip("dask")
    from bitatoms.dask import array_of

    array = array_of(any_stores[0], chunk_rows=1000)
    assert array.chunks == ((1000, 1000, 1000, 1), (70,))
    assert array.dtype == (np.float32 if any_bits.n_unknown else np.uint8)
    np.testing.assert_array_equal(array.compute(), any_bits.to_dense(array.dtype))
    assert array_of(ba.pack(any_bits[:0], tmp_path / "empty.zarr")).compute().shape == (0, 70)


def test_soft_codes_that_do_not_fit_into_memory_are_reported(any_stores, model):
    needed = 3001 * model.atoms.n_rows * 8
    problem = f"the soft codes of 3001 samples take {needed} bytes, more than max_memory={needed - 1}; code fewer"
    with pytest.raises(ba.errors.InputError, match=problem):
        StoreTransform(any_stores[0], model, Workers(), needed - 1).soft_codes()


def test_codes_do_not_overwrite_their_rows(tmp_path, bits, model):
    store = write_store(tmp_path / "x.zarr", bits)
    with pytest.raises(ba.FileError, match="choose another name for the codes"):
        write_code_store(store, StoreTransform(store, model, Workers()).code_chunks(), model, tmp_path / "x.zarr")
    assert ba.read(store.path) == ba.Table(bits)


def test_columns_of_stores_and_frames_are_matched_by_name_and_absent_ones_may_be_unknown(tmp_path, any_bits, model):
    names = tuple(f"item {j}" for j in range(70))
    model = replace(model, columns=names)
    columns = [69, *range(3, 69)]
    given = ba.Table(any_bits.take_columns(columns), columns=[names[j] for j in columns])
    block = model.code(any_bits.take_columns([-1, -1, -1, *range(3, 70)], absent="unknown"), Workers())
    scores = -score_rows(model, block.data(), Workers()).bits
    store = ba.pack(given, tmp_path / "rows.zarr")
    rows = StoreTransform(store, model, Workers(2, 64), absent="unknown")
    with pytest.warns(InputWarning, match=r"rows\.zarr: 3 absent columns are unknown: 'item 0', 'item 1', 'item 2'"):
        assert collect_codes(store, rows.code_chunks(), model) == block.codes()
    with pytest.warns(InputWarning, match="3 absent columns are unknown"):
        np.testing.assert_array_equal(rows.score_samples(), scores)
    with pytest.raises(ValueError, match=r"rows\.zarr lacks .*: 'item 0', 'item 1', 'item 2'"):
        StoreTransform(store, model, Workers()).code_chunks()
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(given.to_pandas(), npartitions=3)
    from bitatoms import dask as on_dask

    with pytest.warns(InputWarning, match="3 absent columns are unknown"):
        found = on_dask.score_samples(model, frame, absent="unknown")
    np.testing.assert_array_equal(found.compute(), scores)
