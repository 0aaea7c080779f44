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


def test_version_3(tmp_path):
    more = {"probe_region": ["spliced"] * 130, "filtered": [True] * 130, "_all_tag_keys": ["genome"]}
    path = write_ten_x(tmp_path / "filtered_feature_bc_matrix.h5", **more)
    table = ba.read(path, binarize=0)
    assert table == TABLE
    fields = ["gene_ids", "gene_symbols", "feature_types", "genome", "filtered", "probe_region"]
    assert list(table.column_data) == fields
    assert table.column_data["gene_ids"].tolist() == IDS
    assert table.column_data["gene_symbols"].tolist() == NAMES
    assert table.column_data["filtered"].dtype == bool
    assert table.row_data is not None
    assert_read_error(path, "is neither 0 nor 1", "pass binarize=0")


def test_version_2(tmp_path):
    path = write_ten_x(tmp_path / "counts.h5", 2)
    table = ba.read(path, binarize=0)
    assert table == TABLE
    assert list(table.column_data) == ["gene_ids", "gene_symbols", "genome"]
    path = write_ten_x(tmp_path / "counts.h5", 2, ("hg19", "mm10"))
    assert_read_error(path, "the matrices of 2 genomes ('hg19', 'mm10'); pass layer")
    assert_read_error(path, "there is no matrix 'x' (matrices: 'hg19', 'mm10')", layer="x")
    assert ba.read(path, binarize=0, layer="mm10") == TABLE


def test_types_of_features(tmp_path):
    path = write_ten_x(tmp_path / "counts.h5", types=["Gene Expression"] * 100 + ["Antibody Capture"] * 30)
    with pytest.warns(InputWarning, match=r"several types \('Gene Expression', 'Antibody Capture'\)"):
        assert ba.read(path, binarize=0) == TABLE
    table = ba.read(path, binarize=0, modality="Antibody Capture")
    assert (table.columns, table.shape) == (COLUMNS[100:], (70, 30))


def test_files_of_other_formats(tmp_path):
    path = write_ten_x(tmp_path / "counts.h5ad")
    assert_read_error(path, "it looks like '10x'; pass format=\"10x\"")
    assert ba.read(path, format="10x", binarize=0) == TABLE
    ba.write(TABLE, tmp_path / "cells.h5ad")
    other = (tmp_path / "cells.h5ad").rename(tmp_path / "cells.h5")
    assert_read_error(other, "it looks like 'h5ad'; pass format=\"h5ad\"")


def write_ten_x(path, version=3, genomes=("hg19",), types=("Gene Expression",) * 130, **more):
    """Write the same matrix for each genome in a file of version 2, or one matrix in a file of version 3."""
    counts = sp.csc_matrix(COUNTS)
    parts = {name: getattr(counts, name).astype(np.int32) for name in ("data", "indices", "indptr")}
    parts |= {"shape": np.int32(counts.shape), "barcodes": np.array(CELLS, "S18")}
    features = {"id": IDS, "name": NAMES, "feature_type": types, "genome": ["GRCh38"] * 130} | more
    named = {f"features/{name}": values for name, values in features.items()}
    with h5py.File(path, "w") as file:
        for group in genomes if version == 2 else ("matrix",):
            for name, values in (parts | ({"genes": IDS, "gene_names": NAMES} if version == 2 else named)).items():
                file[f"{group}/{name}"] = np.array(values, "S") if isinstance(values[0], str) else values
    return path
