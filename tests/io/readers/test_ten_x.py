"""HDF5 files of 10x Genomics, written by hand as Cell Ranger writes them: cells x features, with annotations."""

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

import bitatoms as ba
from bitatoms.errors import InputWarning
from support.files import assert_read_error
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

COUNTS = random_bits(1, 130, 70, 0.2) * np.arange(1, 71)  # features x cells
IDS = [f"ENSG{number:03}" for number in range(130)]
NAMES = ["twice", "twice", *(f"gene{number}" for number in range(2, 130))]
CELLS = [f"CELL{number}-1" for number in range(70)]
COLUMNS = (*IDS[:2], *NAMES[2:])
TABLE = ba.Table(ba.BitMatrix.from_dense(COUNTS.T > 0), CELLS, COLUMNS)


def write_matrix(group, counts=COUNTS):
    matrix = sp.csc_matrix(counts)
    for name in ("data", "indices", "indptr"):
        group.create_dataset(name, data=getattr(matrix, name).astype(np.int32), compression="gzip")
    group["shape"] = np.int32(matrix.shape)
    group["barcodes"] = np.array(CELLS, "S18")


def write_v3(path, types=("Gene Expression",) * 130, **more):
    with h5py.File(path, "w") as file:
        write_matrix(file.create_group("matrix"))
        features = file.create_group("matrix/features")
        genome = ["GRCh38"] * 130
        for name, values in {"id": IDS, "name": NAMES, "feature_type": types, "genome": genome}.items():
            features[name] = np.array(values, "S")
        features["_all_tag_keys"] = np.array(["genome"], "S")
        for name, values in more.items():
            features[name] = values
        file.attrs["chemistry_description"] = "custom"
    return path


def write_v2(path, *genomes):
    with h5py.File(path, "w") as file:
        for genome in genomes:
            write_matrix(file.create_group(genome))
            file[f"{genome}/genes"] = np.array(IDS, "S")
            file[f"{genome}/gene_names"] = np.array(NAMES, "S")
    return path


def test_version_3(tmp_path):
    path = write_v3(tmp_path / "filtered_feature_bc_matrix.h5", probe_region=["spliced"] * 130, filtered=[True] * 130)
    table = ba.read(path, binarize=0)
    assert table == TABLE
    assert list(table.column_data) == [
        "gene_ids", "gene_symbols", "feature_types", "genome", "filtered", "probe_region",
    ]  # fmt: skip
    assert table.column_data["gene_ids"].tolist() == IDS
    assert table.column_data["gene_symbols"].tolist() == NAMES
    assert table.column_data["filtered"].dtype == bool
    assert table.row_data is not None
    assert ba.read(path, binarize=0, transpose=True).columns == tuple(CELLS)
    assert_read_error(path, "is neither 0 nor 1", "pass binarize=0")


def test_version_2(tmp_path):
    path = write_v2(tmp_path / "counts.h5", "hg19")
    table = ba.read(path, binarize=0)
    assert table == TABLE
    assert list(table.column_data) == ["gene_ids", "gene_symbols", "genome"]
    path = write_v2(tmp_path / "counts.h5", "hg19", "mm10")
    assert_read_error(path, "the matrices of 2 genomes ('hg19', 'mm10'); pass layer")
    assert_read_error(path, "there is no matrix 'x' (matrices: 'hg19', 'mm10')", layer="x")
    assert ba.read(path, binarize=0, layer="mm10") == TABLE


def test_types_of_features(tmp_path):
    path = write_v3(tmp_path / "counts.h5", ["Gene Expression"] * 100 + ["Antibody Capture"] * 30)
    with pytest.warns(InputWarning, match=r"several types \('Gene Expression', 'Antibody Capture'\)"):
        assert ba.read(path, binarize=0) == TABLE
    table = ba.read(path, binarize=0, modality="Antibody Capture")
    assert (table.columns, table.shape) == (COLUMNS[100:], (70, 30))


def test_files_of_other_formats(tmp_path):
    path = write_v3(tmp_path / "counts.h5ad")
    assert_read_error(path, "it looks like '10x'; pass format=\"10x\"")
    assert ba.read(path, format="10x", binarize=0) == TABLE
    ba.write(TABLE, tmp_path / "cells.h5ad")
    other = (tmp_path / "cells.h5ad").rename(tmp_path / "cells.h5")
    assert_read_error(other, "it looks like 'h5ad'; pass format=\"h5ad\"")
    with h5py.File(tmp_path / "weights.h5", "w") as file:
        file["layer/weights"] = np.zeros(3)
    assert_read_error(tmp_path / "weights.h5", "it has no matrix of 10x Genomics")
