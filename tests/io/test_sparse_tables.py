"""Wide tables with few ones are read by their ones, with the same cells and names as packed ones."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, save_npz

import bitatoms as ba
from bitatoms import BitMatrix
from bitatoms.sparse_bits import SparseBits
from support.files import assert_read_error
from support.formats import use_small_chunks
from support.strategies import random_bits

X = random_bits(3, 60, 3000, 0.004)
X[np.arange(3000) % 60, np.arange(3000)] |= np.random.default_rng(0).random(3000) < 0.3
X[0, X.sum(axis=0) == 0] = 1  # lists of items cannot store columns without ones
ROW_NAMES = [f"r{i}" for i in range(60)]
NAMED = ba.Table(BitMatrix.from_dense(X), ROW_NAMES, [f"c{j}" for j in range(3000)])
ROWS, COLUMNS = np.nonzero(X)
APPEARING = list(dict.fromkeys(COLUMNS.tolist()))  # columns in the order of their first one


def assert_sparse(table, expected):
    """Assert that a table is sparse and has these cells and names."""
    assert isinstance(table.data, SparseBits)
    assert table == expected


@pytest.mark.parametrize("format", ["mtx", "mtx.gz", "dat", "basket", "pairs", "csr.h5ad", "csc.h5ad"])
def test_written_tables(format, tmp_path):
    path, expected = tmp_path / f"table.{format}", NAMED
    if format == "dat":
        expected = ba.Table(NAMED.bits, None, [str(column) for column in range(3000)])
    elif format in ("basket", "pairs"):
        names = [NAMED.columns[column] for column in APPEARING]
        expected = ba.Table(BitMatrix.from_dense(X[:, APPEARING]), None if format == "basket" else ROW_NAMES, names)
    if "h5ad" in format:
        adata = pytest.importorskip("anndata").AnnData(csr_array(X).asformat(format[:3]))
        adata.obs_names, adata.var_names = ROW_NAMES, NAMED.columns
        adata.write_h5ad(path)
    else:
        ba.write(ba.Table(NAMED.bits, expected.row_names, None if format == "dat" else NAMED.columns), path)
    assert_sparse(ba.read(path), expected)


def write_entries(path, values, twice=()):
    """Write X with these values, and some of its entries twice, in random order; return the values as an array."""
    cells = np.zeros(X.shape)
    cells[ROWS, COLUMNS] = np.resize(values, len(ROWS))
    chosen = np.random.default_rng(0).permutation([*range(len(ROWS)), *twice])
    rows, columns = ROWS[chosen], COLUMNS[chosen]
    save_npz(path, coo_array((cells[rows, columns].astype(np.asarray(values).dtype), (rows, columns)), shape=X.shape))
    return cells


def test_thresholds_and_unknown_cells(tmp_path):
    path = tmp_path / "table.npz"
    values = write_entries(path, [0.5, 3.0, -1.0])
    for binarize in (1, 0, -2):
        table = ba.read(path, binarize=binarize)
        assert isinstance(table.data, SparseBits) == (binarize >= 0)  # zeros are ones at -2
        np.testing.assert_array_equal(table.to_dense(), values > binarize)
    values = write_entries(path, [1.0, 1.0, np.nan])
    with pytest.warns(UserWarning, match="missing"):
        np.testing.assert_array_equal(ba.read(path).to_dense(float), values)
    assert_sparse(ba.read(path, missing="zero"), ba.Table(BitMatrix.from_dense(values == 1)))


def test_duplicate_entries(tmp_path):
    path = tmp_path / "table.npz"
    write_entries(path, [1.0], twice=[5])
    assert_read_error(path, "which has two entries")
    assert_sparse(ba.read(path, binarize=0), ba.Table(NAMED.bits))
    assert_read_error(path, "has several entries; sum duplicate entries first", binarize=1)
    write_entries(path, [True], twice=[5, 6])  # as items that a basket lists twice
    assert_sparse(ba.read(path), ba.Table(NAMED.bits))


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
    use_small_chunks(monkeypatch, 1 << 9)
    values = csr_array(X, dtype=np.float32)
    values.data[-5:] = np.nan
    anndata.AnnData(values.asformat(kind)).write_h5ad(tmp_path / "table.h5ad")
    with pytest.warns(UserWarning, match="missing"):
        table = ba.read(tmp_path / "table.h5ad")
    np.testing.assert_array_equal(table.to_dense(float), values.toarray())


@pytest.mark.parametrize("extension", ["mtx", "dat", "pairs", "h5ad", "zarr", "npz"])
def test_writing_a_sparse_table(extension, tmp_path):
    names = (None, None) if extension == "dat" else (NAMED.row_names, NAMED.columns)
    sparse = ba.Table(SparseBits.from_bits(NAMED.bits), *names)
    ba.write(sparse, tmp_path / f"table.{extension}")
    if extension != "npz":
        assert isinstance(sparse.data, SparseBits)
    ba.write(ba.Table(NAMED.bits, *names), tmp_path / f"packed.{extension}")
    assert ba.read(tmp_path / f"table.{extension}") == ba.read(tmp_path / f"packed.{extension}")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr"])
def test_sparse_matrices(kind, tmp_path):
    path, dense = tmp_path / "table.npz", random_bits(1, 60, 3000, 0.1)
    save_npz(path, csr_array(X).asformat(kind))
    assert_sparse(ba.read(path), ba.Table(NAMED.bits))
    save_npz(path, csr_array(dense).asformat(kind))  # not sparse after all
    assert isinstance(ba.read(path).data, BitMatrix)
    np.testing.assert_array_equal(ba.read(path).to_dense(), dense)


def test_options(tmp_path):
    ba.write(NAMED, tmp_path / "table.mtx")
    kept = [column for column in range(2999) if column != 7]
    fewer = ba.Table(NAMED.bits.take_columns(kept), ROW_NAMES, [f"c{column}" for column in kept])
    assert_sparse(ba.read(tmp_path / "table.mtx", without=["c7", "c2999"]), fewer)
    transposed = ba.Table(NAMED.bits.transpose(), NAMED.columns, ROW_NAMES)
    assert ba.read(tmp_path / "table.mtx", transpose=True) == transposed
