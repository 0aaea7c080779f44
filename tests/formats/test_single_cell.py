"""Single-cell files that scanpy and mudata write or read: bitatoms gives the same cells, genes and annotations."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import bitatoms as ba
from support.annotations import assert_same_frame

sc = pytest.importorskip("scanpy", reason="scanpy is not installed; these tests compare files with it")
mudata = pytest.importorskip("mudata", reason="mudata is not installed; these tests compare files with it")
h5py = pytest.importorskip("h5py")
ad = pytest.importorskip("anndata")
pytestmark = pytest.mark.filterwarnings("ignore")
COUNTS = np.random.default_rng(0).poisson(0.4, (60, 25))  # genes x cells
IDS = [f"ENSG{number}" for number in range(60)]
NAMES = ["twice", "twice", *(f"gene{number}" for number in range(2, 60))]
CELLS = [f"CELL{number}-1" for number in range(25)]


def assert_same(table, adata):
    """Assert that a table has the ones, the cells and the annotations of an AnnData of scanpy."""
    assert np.array_equal(table.to_dense(), (adata.X.toarray() if sp.issparse(adata.X) else adata.X) > 0)
    assert table.row_names == tuple(adata.obs_names)
    assert table.column_data["gene_symbols"].tolist() == list(adata.var_names)
    for name in adata.var:
        assert table.column_data[name].tolist() == adata.var[name].tolist()


def write_h5(path, version):
    matrix = sp.csc_matrix(COUNTS)
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix" if version == 3 else "hg19")
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(matrix, name)
        group["shape"], group["barcodes"] = np.int32(COUNTS.shape), np.array(CELLS, "S")
        names = {"features/id": IDS, "features/name": NAMES} if version == 3 else {"genes": IDS, "gene_names": NAMES}
        if version == 3:
            names |= {"features/feature_type": ["Gene Expression"] * 60, "features/genome": ["hg19"] * 60}
        for name, values in names.items():
            group[name] = np.array(values, "S")
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_10x_h5(tmp_path, version):
    path = write_h5(tmp_path / "counts.h5", version)
    assert_same(ba.read(path, binarize=0), sc.read_10x_h5(path))


def test_10x_folder(tmp_path):
    texts = {"features": "".join(f"{i}\t{n}\tGene Expression\n" for i, n in zip(IDS, NAMES, strict=True))}
    texts["barcodes"] = "".join(f"{cell}\n" for cell in CELLS)
    for name, text in texts.items():
        with gzip.open(tmp_path / f"{name}.tsv.gz", "wt") as file:
            file.write(text)
    entries = "".join(f"{row + 1} {column + 1} {COUNTS[row, column]}\n" for row, column in np.argwhere(COUNTS))
    with gzip.open(tmp_path / "matrix.mtx.gz", "wt") as file:
        size = f"60 25 {np.count_nonzero(COUNTS)}"
        file.write(f"%%MatrixMarket matrix coordinate integer general\n{size}\n{entries}")
    assert_same(ba.read(tmp_path, binarize=0), sc.read_10x_mtx(tmp_path, make_unique=False))


def test_the_usual_steps_of_scanpy(tmp_path):
    """Counts in a layer, scaled values in X, clusters: everything in obs and var is kept."""
    adata = ad.AnnData(sp.csr_matrix(COUNTS.T.astype(np.float32)), var=pd.DataFrame(index=IDS))
    adata.obs_names = CELLS
    adata.layers["counts"] = adata.X.copy()
    sc.pp.calculate_qc_metrics(adata, inplace=True, percent_top=None)
    sc.pp.normalize_total(adata)
    sc.pp.log1p(adata)
    adata.raw = adata
    sc.pp.scale(adata)
    sc.pp.pca(adata, n_comps=5)
    adata.obs["cluster"] = pd.Categorical(["b", "a"] * 12 + ["b"], ["b", "a", "c"])
    adata.write_h5ad(tmp_path / "cells.h5ad")
    with pytest.raises(ba.FileError, match=r'its values are scaled .* pass layer="counts" and binarize=0'):
        ba.read(tmp_path / "cells.h5ad")
    table = ba.read(tmp_path / "cells.h5ad", layer="counts", binarize=0)
    for name in ("a.npz", "b.zarr", "c.h5ad"):
        ba.write(table, tmp_path / name)
        table = ba.read(tmp_path / name)
    again = sc.read_h5ad(tmp_path / "c.h5ad")
    assert_same_frame(again.obs, adata.obs)
    assert_same_frame(again.var, adata.var)
    assert ba.read(tmp_path / "cells.h5ad", layer="obsm/X_pca", binarize=0).shape == (25, 5)


@pytest.fixture
def mdata():
    obs = pd.DataFrame({"kind": pd.Categorical(["t", "b", "t"])}, index=list("xyz"))
    rna = ad.AnnData(np.eye(3, 70, dtype=np.float32), obs=obs, var=pd.DataFrame(index=[f"g{k}" for k in range(70)]))
    protein = ad.AnnData(sp.csr_matrix(np.ones((3, 2), np.float32)), obs=obs[[]], var=pd.DataFrame(index=["a", "b"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mudata.MuData({"rna": rna, "protein": protein})


@pytest.mark.parametrize("name", ["cells.h5mu", "cells.zarr"])
def test_files_of_mudata(tmp_path, mdata, name):
    (mdata.write if name.endswith("h5mu") else mdata.write_zarr)(tmp_path / name)
    for modality in mdata.mod:
        table = ba.read(tmp_path / name, modality=modality)
        assert table == ba.Table.from_any(mdata, modality=modality) == ba.Table.from_any(mdata[modality])
        assert table.row_data == ba.Table.from_any(mdata[modality]).row_data
    with pytest.raises(ba.FileError, match=r"it has 2 modalities \('rna', 'protein'\); pass modality"):
        ba.read(tmp_path / name)


def test_mudata_in_memory(mdata):
    message = r"the MuData has 2 modalities \('rna', 'protein'\); pass one of them, such as mdata\['rna'\]"
    for call in (ba.Table.from_any, ba.BinaryDictionaryLearning(1, algebra="xor").fit, ba.factorize):
        with pytest.raises(ValueError, match=message):
            call(mdata, *((1,) if call is ba.factorize else ()))
    with pytest.raises(ValueError, match="the MuData has no modality 'atac'; it has 'rna', 'protein'"):
        ba.Table.from_any(mdata, modality="atac")
    with pytest.raises(ValueError, match="modality='rna' requires a MuData, got AnnData"):
        ba.Table.from_any(mdata["rna"], modality="rna")
