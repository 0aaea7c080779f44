"""Wide tables with few ones are read by their ones, with the same cells and names as packed ones."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, save_npz

import bitatoms as ba
from bitatoms import BitMatrix
from bitatoms.sparse_bits import SparseBits
from support.files import assert_read_error
from support.strategies import random_bits

X = random_bits(3, 60, 3000, 0.004)
X[np.arange(3000) % 60, np.arange(3000)] |= np.random.default_rng(0).random(3000) < 0.3
X[0, X.sum(axis=0) == 0] = 1  # lists of items cannot store columns without ones
NAMED = ba.Table(BitMatrix.from_dense(X), [f"r{i}" for i in range(60)], [f"c{j}" for j in range(3000)])


def packed_table(path, monkeypatch, **options):
    """Read a file as tables were read before there were sparse ones."""
    with monkeypatch.context() as patch:
        patch.setattr("bitatoms.sparse_bits._MIN_COLS", 1 << 60)
        table = ba.read(path, **options)
    assert isinstance(table.data, BitMatrix)
    return table


@pytest.mark.parametrize("format", ["mtx", "mtx.gz", "dat", "basket", "pairs", "csr.h5ad", "csc.h5ad"])
def test_written_tables(format, tmp_path, monkeypatch):
    path = tmp_path / f"table.{format}"
    named = NAMED
    if format in ("dat", "basket"):
        named = ba.Table(NAMED.bits, None, NAMED.columns if format == "basket" else None)
    if "h5ad" in format:
        anndata = pytest.importorskip("anndata")
        anndata.AnnData(csr_array(X).asformat(format[:3])).write_h5ad(path)
    else:
        ba.write(named, path)
    table = ba.read(path)
    assert isinstance(table.data, SparseBits)
    assert table == packed_table(path, monkeypatch)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr"])
def test_sparse_matrices(kind, tmp_path):
    save_npz(tmp_path / "table.npz", csr_array(X).asformat(kind))
    table = ba.read(tmp_path / "table.npz")
    assert isinstance(table.data, SparseBits)
    np.testing.assert_array_equal(table.to_dense(), X)


@pytest.mark.parametrize("options", [{"transpose": True}, {"without": ["c7", "c2999"]}], ids=["transpose", "without"])
def test_options(options, tmp_path, monkeypatch):
    ba.write(NAMED, tmp_path / "table.mtx")
    table = ba.read(tmp_path / "table.mtx", **options)
    assert isinstance(table.data, SparseBits)
    assert table == packed_table(tmp_path / "table.mtx", monkeypatch, **options)


def write_entries(path, values, twice=()):
    """Write X with these values, and some of its entries twice, in random order."""
    rows, columns = np.nonzero(X)
    values = np.resize(values, len(rows))
    again = np.arange(len(rows))[list(twice)]
    order = np.random.default_rng(0).permutation(len(rows) + len(again))
    entries = [np.concatenate((each, each[again]))[order] for each in (rows, columns, values)]
    save_npz(path, coo_array((entries[2], (entries[0], entries[1])), shape=X.shape))


def test_thresholds(tmp_path, monkeypatch):
    path = tmp_path / "table.npz"
    write_entries(path, [0.5, 3.0, -1.0])
    for binarize in (1, 0, -2):
        table = ba.read(path, binarize=binarize)
        assert isinstance(table.data, SparseBits) == (binarize >= 0)  # zeros are ones at -2
        assert table == packed_table(path, monkeypatch, binarize=binarize)


def test_unknown_cells_are_packed(tmp_path, monkeypatch):
    path = tmp_path / "table.npz"
    write_entries(path, [1.0, 1.0, np.nan])
    with pytest.warns(UserWarning, match="missing"):
        table, expected = ba.read(path), packed_table(path, monkeypatch)
    assert table == expected
    assert table.bits.n_unknown == len(np.nonzero(X)[0]) // 3
    assert isinstance(ba.read(path, missing="zero").data, SparseBits)


def test_duplicate_entries(tmp_path, monkeypatch):
    path = tmp_path / "table.npz"
    write_entries(path, [1.0], twice=[5])
    assert_read_error(path, "which has two entries")
    table = ba.read(path, binarize=0)
    assert isinstance(table.data, SparseBits)
    assert table == packed_table(path, monkeypatch, binarize=0)
    assert_read_error(path, "has several entries; sum duplicate entries first", binarize=1)
    write_entries(path, [True], twice=[5, 6])  # as items that a basket lists twice
    assert ba.read(path) == packed_table(path, monkeypatch)


def test_a_table_that_is_not_sparse_after_all_is_packed(tmp_path):
    dense = random_bits(1, 60, 3000, 0.1)
    save_npz(tmp_path / "dense.npz", csr_array(dense))
    table = ba.read(tmp_path / "dense.npz")
    assert isinstance(table.data, BitMatrix)
    np.testing.assert_array_equal(table.to_dense(), dense)


def test_a_table_that_would_not_fit_into_memory(tmp_path, monkeypatch):
    ba.write(NAMED, tmp_path / "table.mtx")
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 60 * 3000 // 9)
    monkeypatch.setattr("bitatoms.io.stream._BYTES_PER_LINE", 1)
    monkeypatch.setattr("bitatoms.io.stream._BYTES_PER_ONE", 4)
    assert ba.read(tmp_path / "table.mtx").shape == X.shape
    save_npz(tmp_path / "dense.npz", csr_array(random_bits(1, 60, 3000, 0.1)))
    assert_read_error(tmp_path / "dense.npz", "60 rows of 3000 columns take", "GiB packed")


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_unknown_cells_of_an_anndata(kind, tmp_path, monkeypatch):
    anndata = pytest.importorskip("anndata")
    monkeypatch.setattr("bitatoms.io.readers.anndata_matrix._CHUNK_ENTRIES", 1 << 9)
    monkeypatch.setattr("bitatoms.io.readers.anndata_matrix.CHUNK_ENTRIES", 1 << 9)
    values = csr_array(X, dtype=np.float32)
    values.data[-5:] = np.nan
    anndata.AnnData(values.asformat(kind)).write_h5ad(tmp_path / "table.h5ad")
    with pytest.warns(UserWarning, match="missing"):
        table, expected = ba.read(tmp_path / "table.h5ad"), packed_table(tmp_path / "table.h5ad", monkeypatch)
    assert table.bits.n_unknown == 5
    assert table == expected


@pytest.mark.parametrize("extension", ["mtx", "dat", "pairs", "h5ad", "zarr", "npz"])
def test_writing_a_sparse_table(extension, tmp_path):
    names = (None, None) if extension == "dat" else (NAMED.row_names, NAMED.columns)
    sparse = ba.Table(SparseBits.from_bits(NAMED.bits), *names)
    ba.write(sparse, tmp_path / f"table.{extension}")
    if extension != "npz":
        assert isinstance(sparse.data, SparseBits)
    ba.write(ba.Table(NAMED.bits, *names), tmp_path / f"packed.{extension}")
    assert ba.read(tmp_path / f"table.{extension}") == ba.read(tmp_path / f"packed.{extension}")
