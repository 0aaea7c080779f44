"""MuData: a modality of an .h5mu file or a Zarr store, with its layers and annotations."""

import anndata as ad
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_matrix, csr_matrix

import bitatoms as ba
from support.annotations import FRAME, assert_same_frame
from support.files import assert_read_error
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")
COUNTS = np.random.default_rng(0).poisson(0.5, (3, 70)).astype(np.float32)
GENES = [f"gene{number}" for number in range(70)]
RNA = ad.AnnData(COUNTS, obs=FRAME, var=pd.DataFrame({"length": range(70)}, index=GENES), layers={"counts": COUNTS})
PROTEIN = ad.AnnData(COUNTS[:, :4], obs=FRAME[[]], var=pd.DataFrame(index=list("abcd")))
TABLE = ba.Table(ba.BitMatrix.from_dense(COUNTS > 0), list(FRAME.index), GENES)


def write_h5mu(path, order=None, **modalities):
    """Write a file as mudata does: a block of 512 bytes before the HDF5 file."""
    with h5py.File(path, "w", userblock_size=512) as file, ad.settings.override(allow_write_nullable_strings=True):
        group = file.create_group("mod")
        for name, adata in modalities.items():
            ad.io.write_elem(group, name, adata)
        if order is not None:
            group.attrs["mod-order"] = order
        file.attrs.update({"encoding-type": "MuData", "encoding-version": "0.1.0"})
    with open(path, "r+b") as file:
        file.write(b"MuData (format-version=0.1.0;creator=test)")
    return path


@pytest.fixture
def path(tmp_path):
    return write_h5mu(tmp_path / "cells.h5mu", ["rna", "protein"], protein=PROTEIN, rna=RNA)


@pytest.mark.parametrize("to_format", [np.asarray, csr_matrix, csc_matrix])
def test_modalities_of_other_rows_and_sizes_equal_those_written(tmp_path, to_format):
    """The rows of a modality are its own: fewer than in the file, in another order, or none."""
    tables = {
        "rna": (random_bits(1, 5, 70, 0.3), [f"cell {number}" for number in (4, 1, 3, 0, 2)], GENES),
        "no cells": (random_bits(1, 0, 3, 0.5), [], list("abc")),
        "no genes": (random_bits(1, 2, 0, 0.5), ["cell 9", "cell 1"], []),
        "two": (random_bits(2, 2, 2, 0.5), ["cell 9", "cell 1"], ["x", "y"]),
    }
    modalities = {}
    for name, (bits, *names) in tables.items():
        obs, var = (pd.DataFrame(index=pd.Index(each, dtype=object)) for each in names)
        obs["kind"] = pd.Categorical((["b", "a"] * 3)[: len(bits)], ["b", "a"])
        modalities[name] = ad.AnnData(to_format(bits.astype(np.float32)), obs=obs, var=var)
    path = write_h5mu(tmp_path / "cells.h5mu", **modalities)
    for name, (bits, rows, columns) in tables.items():
        table = ba.read(path, modality=name)
        np.testing.assert_array_equal(table.to_dense(), bits)
        assert (list(table.row_names or ()), list(table.columns)) == (rows, columns)
    assert list(ba.read(path, modality="rna").row_data["kind"]) == ["b", "a", "b", "a", "b"]


def test_a_modality_is_an_anndata(path):
    for layer in (None, "counts"):
        table = ba.read(path, modality="rna", layer=layer, binarize=0)
        assert table == TABLE
        assert_same_frame(table.row_data.to_pandas(FRAME.index), FRAME)
        assert table.column_data["length"].tolist() == list(range(70))
    assert ba.read(path, modality="protein", binarize=0).columns == tuple("abcd")


def test_several_modalities_are_listed(path, tmp_path):
    assert_read_error(path, "it has 2 modalities ('rna', 'protein'); pass modality", binarize=0)
    assert_read_error(path, "there is no modality 'atac' (modalities: 'rna', 'protein')", modality="atac")
    assert_read_error(path, "there is no layer 'raw' (layers: 'counts')", modality="rna", layer="raw")
    assert_read_error(path, "is neither 0 nor 1", "binarize=0", modality="rna")
    for modality in (None, "rna"):
        assert_read_error(write_h5mu(tmp_path / "cells.h5mu"), "it has no modalities", modality=modality)
    for name, part in (
        ("cells.h5ad", "modality applies to h5mu, 10x, zarr, not to 'h5ad'"),
        ("cells.zarr", "this is not a MuData; omit modality"),
    ):
        ba.write(TABLE, tmp_path / name)
        assert_read_error(tmp_path / name, part, modality="rna")
