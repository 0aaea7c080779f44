"""MuData: a modality of an .h5mu file or a Zarr store, with its layers and annotations; files written by hand."""

import anndata as ad
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_array

import bitatoms as ba
from support.annotations import FRAME
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


def write_element(parent, name, kind, version="0.2.0", data=None, **attributes):
    """Write a group or an array with the attributes of its encoding, by the specification of AnnData files."""
    if data is None:
        element = parent.create_group(name)
    else:
        element = parent.create_dataset(name, data=data, dtype=h5py.string_dtype() if data.dtype == object else None)
    element.attrs.update({"encoding-type": kind, "encoding-version": version, **attributes})
    return element


def write_frame(parent, name, index, categories=None):
    """Write a data frame with its index, and a column of categories if there are any; the last value is missing."""
    columns = np.array(["kind"] if categories else [], object)
    frame = write_element(parent, name, "dataframe", _index="cell id")
    frame.attrs.create("column-order", columns, dtype=h5py.string_dtype())
    write_element(frame, "cell id", "string-array", data=np.array(index, object))
    if categories:
        kind = write_element(frame, "kind", "categorical", ordered=False)
        write_element(kind, "categories", "string-array", data=np.array(categories, object))
        codes = np.arange(len(index), dtype=np.int8) % len(categories)
        write_element(kind, "codes", "array", data=np.append(codes[:-1], np.int8(-1)))


def write_modality(parent, name, bits, names, kind="array", categories=None):
    """Write a modality with a matrix of this kind."""
    group = write_element(parent, name, "anndata", "0.1.0")
    if kind == "array":
        write_element(group, "X", kind, data=bits)
    else:
        matrix = {"csr_matrix": csr_array, "csc_matrix": csc_array}[kind](bits)
        element = write_element(group, "X", kind, "0.1.0", shape=np.array(bits.shape))
        for part in ("data", "indices", "indptr"):
            element.create_dataset(part, data=getattr(matrix, part))
    write_frame(group, "obs", names[0], categories)
    write_frame(group, "var", names[1])


@pytest.mark.parametrize("kind", ["array", "csr_matrix", "csc_matrix"])
def test_modalities_of_other_rows_and_sizes_equal_those_written(tmp_path, kind):
    """The rows of a modality are its own: fewer than in the file, in another order, or none."""
    tables = {
        "rna": (random_bits(1, 5, 70, 0.3), [f"cell {number}" for number in (4, 1, 3, 0, 2)], GENES),
        "no cells": (random_bits(1, 0, 3, 0.5), [], list("abc")),
        "no genes": (random_bits(1, 2, 0, 0.5), ["cell 9", "cell 1"], []),
        "two": (random_bits(2, 2, 2, 0.5), ["cell 9", "cell 1"], ["x", "y"]),
    }
    path = tmp_path / "cells.h5mu"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.attrs.update({"encoding-type": "MuData", "encoding-version": "0.1.0", "axis": 0})
        for name, (bits, *names) in tables.items():
            categories = ["b", "a"] if name == "rna" else None
            write_modality(file.require_group("mod"), name, bits.astype(np.float32), names, kind, categories)
        write_frame(file, "obs", [f"cell {number}" for number in range(10)])
    for name, (bits, rows, columns) in tables.items():
        table = ba.read(path, modality=name)
        np.testing.assert_array_equal(table.to_dense(), bits)
        assert (list(table.row_names or ()), list(table.columns)) == (rows, columns)
    kinds = ba.read(path, modality="rna").row_data["kind"]
    assert list(kinds) == ["b", "a", "b", "a", None]


def test_a_file_without_modalities(tmp_path):
    assert_read_error(write_h5mu(tmp_path / "cells.h5mu"), "it has no modalities")
    assert_read_error(write_h5mu(tmp_path / "cells.h5mu"), "it has no modalities", modality="rna")


def test_a_modality_is_an_anndata(path):
    for layer in (None, "counts"):
        table = ba.read(path, modality="rna", layer=layer, binarize=0)
        assert table == TABLE
        pd.testing.assert_frame_equal(table.row_data.to_pandas(FRAME.index), FRAME)
        assert table.column_data["length"].tolist() == list(range(70))
    assert ba.read(path, modality="protein", binarize=0).columns == tuple("abcd")


def test_several_modalities_are_listed(path):
    assert_read_error(path, "it has 2 modalities ('rna', 'protein'); pass modality", binarize=0)
    assert_read_error(path, "there is no modality 'atac' (modalities: 'rna', 'protein')", modality="atac")
    assert_read_error(path, "there is no layer 'raw' (layers: 'counts')", modality="rna", layer="raw")
    assert_read_error(path, "is neither 0 nor 1", "binarize=0", modality="rna")


def test_one_modality_needs_no_name(tmp_path):
    path = write_h5mu(tmp_path / "cells.h5mu", rna=RNA)
    assert ba.read(path, binarize=0) == TABLE
    assert ba.read(path, binarize=0, transpose=True).row_names == tuple(GENES)
    assert ba.read(ba.pack(path, tmp_path / "cells.zarr", binarize=0).path) == TABLE


def test_other_formats_have_no_modality(tmp_path):
    ba.write(TABLE, tmp_path / "cells.h5ad")
    assert_read_error(tmp_path / "cells.h5ad", "modality applies to h5mu, 10x, zarr, not to 'h5ad'", modality="rna")
    ba.write(TABLE, tmp_path / "cells.zarr")
    assert_read_error(tmp_path / "cells.zarr", "this is not a MuData; omit modality", modality="rna")
