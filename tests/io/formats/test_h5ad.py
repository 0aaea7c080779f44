"""AnnData in .h5ad files: round trips, files of anndata, malformed files, annotated files."""

import re
import shutil
import warnings
from dataclasses import replace

import anndata as ad
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import bitatoms as ba
from bitatoms.columns.table import Header
from bitatoms.columns.variants import column_data, column_names
from bitatoms.io.formats.single_cell.h5ad import annotate, write_annotated
from bitatoms.model.model import Model
from bitatoms.parallel import Workers
from support.annotations import FRAME, assert_same_frame
from support.files import assert_read_error
from support.genotypes import variants
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")
BITS = random_bits(1, 20, 70, 0.3)
COUNTS = np.random.default_rng(2).poisson(0.5, BITS.shape).astype(np.float32)
CELLS = tuple(f"cell{row}" for row in range(20))
GENES = tuple(f"gene{column}" for column in range(70))
TABLE = ba.Table(ba.BitMatrix.from_dense(BITS), CELLS, GENES)
CSR = sp.csr_matrix(BITS.astype(np.float32))
KINDS = {
    "booleans": (BITS.astype(bool), None),
    "integers": (BITS.astype(np.int64), "gzip"),
    "csr array of booleans": (sp.csr_array(BITS.astype(bool)), "lzf"),
    "csc of doubles": (sp.csc_matrix(BITS.astype(np.float64)), None),
    "explicit zeros": (sp.csr_matrix((BITS.ravel(), np.tile(np.arange(70), 20), np.arange(0, 1401, 70))), "gzip"),
}


def make_adata(X=None, genes=GENES, **kwargs):
    """Return an AnnData with annotations in obs and var, and a raw."""
    kinds = pd.Categorical(["t", "b"] * 10)
    obs = pd.DataFrame({"kind": kinds, "depth": np.arange(20.0)}, index=list(CELLS))
    var = pd.DataFrame({"length": np.arange(70)}, index=list(genes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate genes
        adata = ad.AnnData(X, obs=obs, var=var, **kwargs)
        if X is not None:
            adata.raw = adata
    return adata


def write_file(path, adata, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata.write_h5ad(path, **options)
    return path


def test_anndata_reads_written_files(tmp_path):
    ba.write(TABLE, tmp_path / "table.h5ad")
    adata = ad.read_h5ad(tmp_path / "table.h5ad")
    assert (tuple(adata.obs_names), tuple(adata.var_names)) == (CELLS, GENES)
    assert isinstance(adata.X, sp.csr_matrix)
    assert adata.X.dtype == np.float32
    assert np.array_equal(adata.X.toarray(), BITS)
    ba.write(ba.Table(TABLE.bits), tmp_path / "table.h5ad")
    adata = ad.read_h5ad(tmp_path / "table.h5ad")[[3, 1]].copy()  # names that are not the default ones
    assert ba.read(write_file(tmp_path / "fewer.h5ad", adata)).row_names == ("3", "1")


@pytest.mark.parametrize("kind", KINDS)
def test_reads_anndata_files(tmp_path, kind):
    X, compression = KINDS[kind]
    assert ba.read(write_file(tmp_path / "cells.h5ad", make_adata(X.copy()), compression=compression)) == TABLE


def test_names_of_genes_and_cells_may_occur_twice(tmp_path):
    path = write_file(tmp_path / "cells.h5ad", make_adata(BITS, genes=("A", "B", "A", *GENES[3:])))
    assert_read_error(path, "columns 1 and 3 have the same name 'A'")
    assert ba.read(path, duplicates="number").columns[:3] == ("A", "B", "A.2")
    table = ba.Table(ba.BitMatrix.from_dense([[1, 0], [0, 1]]), ("ann", "ann"), ("a", "b"))
    ba.write(table, path)  # without a warning
    assert ba.read(path) == table


def test_layer_selects_a_matrix(tmp_path):
    path = write_file(tmp_path / "cells.h5ad", make_adata(layers={"ones": BITS, "counts": COUNTS}))
    assert_read_error(path, "there is no X", "pass layer", "'counts', 'ones'")
    assert ba.read(path, layer="ones") == TABLE
    for name in ("two", "../X", "/X", "", "."):
        assert_read_error(path, f"there is no layer {name!r}", "'counts', 'ones'", layer=name)


def test_reads_names_of_other_types(tmp_path):
    path = write_file(tmp_path / "cells.h5ad", make_adata(BITS))
    for index in (np.array(CELLS, "S"), pd.Categorical(CELLS), np.arange(20)):
        with h5py.File(path, "a") as file:
            del file["obs"]["_index"]
            ad.io.write_elem(file["obs"], "_index", index)
        assert ba.read(path).row_names == tuple(
            name.decode() if isinstance(name, bytes) else str(name) for name in index
        )


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Return a folder with a file whose X is an array, and with another file of the same matrix."""
    folder = tmp_path_factory.mktemp("originals")
    write_file(folder / "other.h5ad", make_adata(CSR))
    (folder / "values.bin").write_bytes(BITS.tobytes())
    write_file(folder / "cells.h5ad", make_adata(BITS))
    return folder


@pytest.mark.parametrize("name", ["obs/_index", "obs/_index/values"])
def test_corrupt_lengths_of_text_are_errors(path, name):
    with h5py.File(path, "a") as file:
        replace_element("obs/_index", masked_text(CELLS) if name.endswith("values") else write_text(CELLS))(file)
        first = file[name].id.get_offset()
    content = path.read_bytes()
    assert content[first : first + 4] == len(CELLS[0]).to_bytes(4, "little")
    path.write_bytes(content[:first] + b"\xff" * 4 + content[first + 4 :])
    assert_read_error(path, "corrupt, or not a file of the format 'h5ad'")


@pytest.fixture
def path(originals, tmp_path):
    """Return a copy of the file whose X is an array, next to copies of the others."""
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    return tmp_path / "cells.h5ad"


def replace_element(name, make):
    """Return a function that replaces an element of a file and keeps its attributes."""

    def corrupt(file):
        group, _, last = f"/{name}".rpartition("/")
        attributes = dict(file[name].attrs)
        del file[name]
        made = make(file[group or "/"], last)
        if made is not None:
            made.attrs.update(attributes)

    return corrupt


def put(name, *args, **dataset):
    return replace_element(name, lambda group, last: group.create_dataset(last, *args, **dataset))


def link(name, made=None):
    made = made or h5py.ExternalLink("other.h5ad", name)
    return replace_element(name, lambda group, last: group.update({last: made}))


def gone(name):
    return replace_element(name, lambda group, last: None)


def write_text(values):
    """Return a function that writes text as an array."""

    def make(group, name):
        group[name] = list(values)
        group[name].attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})

    return make


def masked_text(values):
    """Return a function that writes text, in which None is missing, as anndata 0.13 does: in a group, with a mask."""

    def make(group, name):
        made = group.create_group(name)
        made.attrs.update({"encoding-type": "nullable-string-array", "encoding-version": "0.1.0", "na-value": "NaN"})
        write_text([value or "" for value in values])(made, "values")
        made["mask"] = [value is None for value in values]
        made["mask"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})

    return make


def test_text_may_be_stored_with_a_mask(path):
    with h5py.File(path, "a") as file:
        for name, values in {
            "obs/_index": (*CELLS[:19], None),
            "var/_index": GENES,
            "obs/kind/categories": ("b", "t"),
            "obs/depth": ("deep", None) * 10,
        }.items():
            replace_element(name, masked_text(values))(file)
    table = ba.read(path)
    assert table == ba.Table(TABLE.bits, (*CELLS[:19], ""), GENES)
    assert table.row_data["kind"].tolist() == ["t", "b"] * 10
    assert table.row_data["depth"].tolist() == ["deep", None] * 10


def attribute(name, key, value):
    return lambda file: file[name].attrs.create(key, value, dtype=getattr(value, "dtype", None))


def virtual(group, name):
    layout = h5py.VirtualLayout(BITS.shape, BITS.dtype)
    layout[:] = h5py.VirtualSource("other.h5ad", "X", BITS.shape)
    return group.create_virtual_dataset(name, layout)


def sparse(**parts):
    """Replace X by a sparse matrix with other arrays than it should have."""

    def make(group, name):
        made = group.create_group(name)
        arrays = {"data": CSR.data, "indices": CSR.indices, "indptr": CSR.indptr} | parts
        for part, values in arrays.items():
            if values is not None and part != "shape":
                made[part] = values
        made.attrs["encoding-type"] = "csr_matrix"
        made.attrs["shape"] = parts.get("shape", np.array(BITS.shape))

    return replace_element("X", make)


LISTS = np.empty(1, h5py.vlen_dtype(np.int32))
LISTS[0] = np.int32([1, 2])
NO_TABLE, POINTERS = "not a table of numbers", "the arrays of the sparse matrix X do not fit its shape"
MALFORMED = {
    "an external link": (link("X"), "not followed"),
    "a link in place of a data frame": (link("obs"), "'/obs' is a link"),
    "a link in a sparse matrix": (sparse(data=h5py.ExternalLink("other.h5ad", "X/data")), "is a link"),
    "external values": (put("X", BITS.shape, "u1", external=[("values.bin", 0, BITS.size)]), "another file"),
    "a virtual array": (replace_element("X", virtual), "another file"),
    "an index outside the data frame": (attribute("obs", "_index", "../var/_index"), "does not contain its index"),
    "a missing index": (attribute("obs", "_index", "gone"), "does not contain its index 'gone'"),
    "no names": (gone("var"), "not in the format of AnnData 0.7 or later"),
    "a data frame of an old format": (put("obs", data=np.zeros(20, [("index", "S5")])), "rewrite an older file"),
    "too few names": (put("obs/_index", data=CELLS[1:]), "has 19 names"),
    "text": (put("X", data=BITS.astype("S1")), NO_TABLE),
    "no values in X": (put("X", dtype="f4"), NO_TABLE),
    "a group for X": (replace_element("X", h5py.Group.create_group), "neither an array nor a sparse matrix"),
    "variable-length lists": (put("X", (3,), h5py.vlen_dtype(np.int32)), "malicious"),
    "a list as an attribute": (attribute("X", "encoding-type", LISTS), "'encoding-type' of '/X' is not text"),
    "a list as a missing value": (attribute("obs/_index", "na-value", LISTS), "'na-value' of '/obs/_index' is not"),
    "a huge array": (put("X", (10**9, 10**9), "u1", chunks=(1000, 1000)), "malicious"),
    "a huge chunk": (put("X", (20, 70), "u1", maxshape=(None, None), chunks=(1 << 16, 1 << 15)), "malicious"),
    "a huge sparse matrix": (sparse(shape=np.array((10**9, 10**9))), "corrupt or malicious"),
    "rows without columns": (sparse(shape=np.array((10**15, 0))), "GiB packed"),
    "a negative shape": (sparse(shape=np.array((-1, 5))), "claims to have -1 rows"),
    "too few pointers": (sparse(indptr=CSR.indptr[:-1]), "do not fit its shape"),
    "pointers beyond the data": (sparse(indptr=CSR.indptr * 2), POINTERS),
    "a pointer just beyond the data": (sparse(indptr=np.append(CSR.indptr[:-1], CSR.nnz + 1)), POINTERS),
    "column indices too large": (sparse(indices=CSR.indices + 1), "column index outside"),
    "floats as column indices": (sparse(indices=CSR.indices + 0.5), "'/X' has no valid 'indices'"),
    "no data": (sparse(data=None), "'/X' has no array 'data'"),
    "more values in a row than columns": (sparse(indptr=np.array([0] * 20 + [CSR.nnz])), POINTERS),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_links_and_malformed_files_are_errors(path, case):
    corrupt, message = MALFORMED[case]
    with h5py.File(path, "a") as file:
        corrupt(file)
    assert path.stat().st_size < 1e6
    assert_read_error(path, message)


@pytest.fixture(scope="module")
def learned():
    """Return a result and a model of the table."""
    result = ba.factorize(TABLE, 3, algebra="xor", random_state=0)
    return result, Model.from_factorization(result, header=Header(len(GENES), GENES))


def test_annotate(tmp_path, learned):
    result, model = learned
    adata = make_adata(CSR)
    soft = model.soft_codes(TABLE.bits, result.codes, Workers())
    annotate(adata, result.codes, model, soft)
    again = ad.read_h5ad(write_file(tmp_path / "cells.h5ad", adata))
    expected = {"algebra": result.algebra, "codelength": result.codelength.total, "bias": result.bias}
    expected |= {"names": ["atom1", "atom2", "atom3"], "bits_saved": model.saved}
    for found in (adata, again):
        np.testing.assert_array_equal(found.obsm["X_bitatoms"], result.codes.to_dense())
        np.testing.assert_array_equal(found.obsm["X_bitatoms_soft"], soft.astype(np.float32))
        np.testing.assert_array_equal(found.varm["bitatoms_atoms"].T, result.atoms.to_dense())
        for name, value in expected.items():
            np.testing.assert_array_equal(found.uns["bitatoms"][name], value)
    some = again[again.obs["kind"] == "t", again.var_names[:7]]
    assert (some.obsm["X_bitatoms"].shape, some.varm["bitatoms_atoms"].shape) == ((10, 3), (7, 3))
    annotate(adata, result.codes, model)
    assert "X_bitatoms_soft" not in adata.obsm  # they may be those of another model
    ba.annotate(
        adata, ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(np.zeros((5, 70)))
    )  # without atoms
    again = ad.read_h5ad(write_file(tmp_path / "cells.h5ad", adata))
    assert again.obsm["X_bitatoms_soft"].shape == (20, 0)
    assert list(again.uns["bitatoms"]["names"]) == []


def test_annotate_checks_shapes_and_names(learned):
    result, model = learned
    adata, unnamed = make_adata(BITS), Model.from_factorization(result)
    other = make_adata(BITS, genes=[f"other {gene}" for gene in GENES])
    for message, *call in (
        (r"codes has shape .*; expected 19 observations", adata[1:].copy(), result.codes, model),
        (r"soft_codes has shape .*; expected 20 observations", adata, result.codes, model, np.zeros((20, 1))),
        ("the AnnData has no column that the model was fitted on", other, result.codes, model),
        ("the AnnData has 69 columns, but the model was learned", adata[:, 1:].copy(), result.codes, unnamed),
    ):
        with pytest.raises(ValueError, match=message):
            annotate(*call)


def test_annotate_stores_atoms_in_the_order_of_the_genes(learned):
    """Variables that an atom clears are stored as minus one; genes of the same name are those that are numbered."""
    result, model = learned
    bias = np.arange(70, dtype=np.uint8) % 2
    atoms = np.maximum(model.atoms.to_dense(), np.eye(3, 70, 1, dtype=np.uint8))
    signed = np.where(bias, -1.0, 1.0) * atoms
    header = Header(len(GENES), ("A", *GENES[1:69], "A.2"))
    model = Model.from_factorization(result, header=header)
    model = replace(model, atoms=ba.BitMatrix.from_dense(atoms), bias=bias, lacking=None)
    genes = ("new gene", "A", *GENES[68:0:-1])  # the last gene is absent
    adata = make_adata(BITS, genes=genes)
    annotate(adata, result.codes, model)
    stored = adata.uns["bitatoms"]
    assert np.array_equal(adata.varm["bitatoms_atoms"].T[:, 1:], np.hstack((signed[:, :1], signed[:, 68:0:-1])))
    assert not adata.varm["bitatoms_atoms"][0].any()
    assert np.array_equal(stored["bias"], [0, bias[0], *bias[68:0:-1]])
    assert np.array_equal(stored["wrong"], [0, model.wrong[0], *model.wrong[68:0:-1]])
    twice = make_adata(BITS, genes=("A", *GENES[1:69], "A"))
    annotate(twice, result.codes, model)
    assert np.array_equal(twice.varm["bitatoms_atoms"].T, signed)


def test_annotate_turns_atoms_around_where_the_other_allele_is_counted(learned):
    about, names = variants(70), [f"rs{number}" for number in range(70)]
    exchanged = np.arange(70) % 3 == 0
    own, other = (np.array(about[name].tolist()) for name in ("allele", "other"))
    given = about.updated(allele=np.where(exchanged, other, own), other=np.where(exchanged, own, other))
    header = Header(70, tuple(column_names(names, own, 1)), data=column_data(about, 1))
    model = Model.from_factorization(learned[0], header=header)
    var = column_data(given, 1).to_pandas(column_names(names, given["allele"], 1))
    adata = ad.AnnData(BITS.astype(np.float32), var=var)
    annotate(adata, learned[0].codes, model)
    assert np.array_equal(adata.varm["bitatoms_atoms"].T, np.where(exchanged, -1, 1) * model.signed_atoms())


def test_write_annotated_keeps_the_rest_of_the_file(tmp_path, learned):
    result, model = learned
    source = write_file(tmp_path / "cells.h5ad", make_adata(KINDS["csc of doubles"][0], layers={"counts": COUNTS}))
    write_annotated(source, tmp_path / "coded.h5ad", result.codes, model)
    adata = ad.read_h5ad(tmp_path / "coded.h5ad")
    assert ba.read(tmp_path / "coded.h5ad") == TABLE
    assert list(adata.obs.columns) == ["kind", "depth"]
    assert adata.raw is not None
    assert np.array_equal(adata.layers["counts"], COUNTS)
    assert np.array_equal(adata.obsm["X_bitatoms"], result.codes.to_dense())
    with h5py.File(source, "a") as file:
        file["uns/far"] = h5py.ExternalLink("other.h5ad", "X")
    with pytest.raises(ba.FileError, match="'/uns/far' is a link"):
        write_annotated(source, tmp_path / "coded.h5ad", result.codes, model)


@pytest.fixture
def with_raw():
    """Return an AnnData with scaled values of some genes in X, and counts of all genes in raw."""
    adata = make_adata(COUNTS.copy())[:, [5, 3, 60, 8]].copy()
    adata.X = adata.X - 0.5
    return adata


RAW_TABLE = ba.Table(ba.BitMatrix.from_dense(COUNTS > 0), CELLS, GENES)


@pytest.mark.parametrize("to_format", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_layer_raw_is_raw_with_its_own_genes(tmp_path, with_raw, to_format):
    adata = ad.AnnData(to_format(COUNTS), obs=with_raw.obs, var=pd.DataFrame({"length": range(70)}, index=list(GENES)))
    adata.raw = adata
    adata = adata[:, [5, 3, 60, 8]].copy()
    path = write_file(tmp_path / "cells.h5ad", adata)
    assert ba.read(path, layer="raw", binarize=0) == RAW_TABLE
    assert ba.read(path, layer="raw", binarize=0).column_data["length"].tolist() == list(range(70))
    assert ba.read(path, binarize=0).column_data["length"].tolist() == [5, 3, 60, 8]
    assert ba.Table.from_any(adata, layer="raw", binarize=0) == RAW_TABLE
    assert ba.Table.from_any(ad.read_h5ad(path, backed="r").raw, binarize=0) == RAW_TABLE
    for several in (adata, ad.read_h5ad(path, backed="r")):
        assert ba.Table.from_any(several[:7], layer="raw", binarize=0).shape == (7, 70)


def test_missing_layers_and_raw(tmp_path, with_raw):
    for layer, listed in (("counts", "'raw'"), ("raw", "none")):
        path = write_file(tmp_path / "cells.h5ad", with_raw)
        assert_read_error(path, f"there is no layer {layer!r} (layers: {listed}); pass layer", layer=layer)
        with pytest.raises(ValueError, match=f"the AnnData has no layer {layer!r}; it has {listed}"):
            ba.Table.from_any(with_raw, layer=layer)
        del with_raw.raw
    with_raw.raw = with_raw.copy()
    with_raw.layers["raw"] = BITS[:, :4]  # a layer of that name wins
    expected = ba.Table(ba.BitMatrix.from_dense(BITS[:, :4]), CELLS, tuple(with_raw.var_names))
    assert ba.read(write_file(tmp_path / "cells.h5ad", with_raw), layer="raw") == expected
    assert ba.Table.from_any(with_raw, layer="raw") == expected


def test_estimators_and_functions_take_raw(with_raw):
    model = ba.BinaryDictionaryLearning(3, algebra="xor", binarize=0, random_state=0).fit(with_raw.raw)
    assert tuple(model.feature_names_in_) == GENES
    codes = model.transform(with_raw.raw)
    np.testing.assert_array_equal(codes, model.transform(RAW_TABLE))
    assert ba.factorize(with_raw.raw, 3, algebra="xor", binarize=0, random_state=0).atoms == model.as_model().atoms
    ba.annotate(with_raw, model, layer="raw")
    np.testing.assert_array_equal(with_raw.obsm["X_bitatoms"], codes)
    atoms = model.as_model().signed_atoms()
    np.testing.assert_array_equal(with_raw.varm["bitatoms_atoms"], atoms[:, [5, 3, 60, 8]].T)
    with pytest.raises(TypeError, match='got Raw; for its raw, pass layer="raw"'):
        ba.annotate(with_raw.raw, model)
    with pytest.raises(ValueError, match="requires an AnnData, got Raw"):
        ba.Table.from_any(with_raw.raw, layer="raw")


SCALED = "its values are scaled (some are negative) and do not show what is present; use counts instead"


def scaled_adata(**kwargs):
    adata = make_adata(COUNTS - COUNTS.mean(0), **kwargs)
    del adata.raw
    return adata


@pytest.mark.parametrize("layer", ["counts", "raw", "obsm/protein_counts"])
def test_scaled_values_name_the_counts(tmp_path, layer):
    """Also those of an array of obsm, if counts of that array are in obsm."""
    of_obsm = layer.startswith("obsm")
    adata, scaled = scaled_adata(layers={"counts": COUNTS} if layer != "raw" else {}), {}
    adata.raw = ad.AnnData(COUNTS, obs=adata.obs, var=adata.var)
    if of_obsm:
        adata.obsm["protein"], scaled = np.array([[-1.0], [1]] * 10), {"layer": "obsm/protein"}
        path = write_file(tmp_path / "cells.h5ad", adata)
        assert "layer" not in assert_read_error(path, SCALED, **scaled)
        adata.obsm["protein_counts"] = COUNTS
    path = write_file(tmp_path / "cells.h5ad", adata)
    message = f'{SCALED}, pass layer="{layer}" and binarize=0'
    assert_read_error(path, message, **scaled)
    with pytest.warns(ba.errors.InputWarning) as warned:
        ba.read(path, binarize=0, **scaled)
    assert [str(each.message) for each in warned] == [f"{path}: {message}"]
    assert ba.read(path, layer=layer, binarize=0).bits == RAW_TABLE.bits

    message = f'the AnnData: {SCALED}, Table.from_any(adata, layer="{layer}", binarize=0)'
    with pytest.raises(ValueError, match=re.escape(message)):
        ba.Table.from_any(adata, **scaled) if of_obsm else ba.BinaryDictionaryLearning(algebra="xor").fit(adata)
    if not of_obsm:
        with pytest.warns(ba.errors.InputWarning, match=re.escape(message)):
            ba.BinaryDictionaryLearning(2, algebra="xor", binarize=0, random_state=0).fit(adata)
    assert ba.Table.from_any(adata, layer=layer, binarize=0).bits == RAW_TABLE.bits


def test_scaled_values_without_counts(tmp_path):
    adata = scaled_adata()
    path = write_file(tmp_path / "cells.h5ad", adata)
    threshold = ", or pass binarize=0 to read values above 0 as 1, or another threshold"
    assert_read_error(path, SCALED + threshold)
    with pytest.raises(ValueError, match=re.escape(SCALED + threshold)):
        ba.Table.from_any(adata)
    for read in (lambda: ba.read(path, binarize=1), lambda: ba.Table.from_any(adata, binarize=1)):
        with pytest.warns(ba.errors.InputWarning, match=re.escape(SCALED) + "$"):
            assert read().to_dense().tolist() == (adata.X > 1).tolist()


def annotated():
    """Return an AnnData whose obs and var have columns of every type."""
    var = pd.concat([FRAME, FRAME], ignore_index=True).set_index(pd.Index([f"gene{k}" for k in range(6)], dtype=object))
    obs = FRAME.copy()
    adata = ad.AnnData(np.eye(3, 6, dtype=np.float32), obs=obs, var=var.iloc[:, :6])
    adata.obsm["protein"] = sp.csr_matrix(np.eye(3, 4))
    adata.obsm["X_pca"] = np.array([[0, 1], [1, 0], [1, 1]])
    adata.obsm["frame"] = pd.DataFrame({"CD3": [1, 0, 1], "CD4": pd.array([1, None, 0], "Int8")}, index=obs.index)
    adata.obsm["text"] = pd.DataFrame({"CD3": ["a", "b", "c"]}, index=obs.index)
    return adata


@pytest.fixture(scope="module")
def annotated_original(tmp_path_factory):
    return write_annotations(tmp_path_factory.mktemp("annotated") / "annotated.h5ad", annotated())


@pytest.fixture
def annotated_path(tmp_path, annotated_original):
    return shutil.copy(annotated_original, tmp_path / "annotated.h5ad")


def write_annotations(path, adata):
    with ad.settings.override(allow_write_nullable_strings=True):
        return write_file(path, adata, convert_strings_to_categoricals=False)


def test_obs_and_var_survive_every_format_that_stores_them(tmp_path, annotated_path):
    pytest.importorskip("zarr")
    adata, table = annotated(), ba.read(annotated_path)
    with warnings.catch_warnings(action="ignore"), ad.settings.override(allow_write_nullable_strings=True):
        adata.write_zarr(tmp_path / "cells.zarr", convert_strings_to_categoricals=False)
    assert ba.read(tmp_path / "cells.zarr").row_data == table.row_data
    for name in ("a.npz", "b.zarr", "c.h5ad"):
        ba.write(table, tmp_path / name)
        table = ba.read(tmp_path / name)
    again = ad.read_h5ad(tmp_path / "c.h5ad")
    assert_same_frame(again.obs, adata.obs)
    assert_same_frame(again.var, adata.var)
    assert isinstance(again.obs["nullable text"].dtype, pd.StringDtype)
    for axis in ("row_data", "column_data"):
        assert getattr(table, axis) == getattr(ba.Table.from_any(adata), axis)


def test_columns_of_other_types_are_ignored_with_a_warning(annotated_path):
    with h5py.File(annotated_path, "a") as file:
        obs = file["obs"]
        obs["pairs"], obs["complex"], obs["old"] = np.zeros((3, 2)), np.zeros(3, complex), np.int8([1, -1, 0])
        obs["__categories/old"] = ["x", "y"]  # as AnnData 0.7 stored them
        obs["__categories/old"].attrs["ordered"] = True
        obs.create_group("group")
        obs.attrs["column-order"] = ["pairs", "text", "complex", "group", "old"]
    with pytest.warns(ba.errors.InputWarning, match="columns of 'obs' are ignored, .*: 'pairs', 'complex', 'group'$"):
        found = ba.read(annotated_path).row_data.to_pandas()
    assert list(found) == ["text", "old"]
    assert found["old"].tolist()[::2] == ["y", "x"]
    assert found["old"].cat.ordered


def nest(file):
    """Let the categories of a column be the column itself."""
    del file["obs/ordered/categories"]
    file["obs/ordered/categories"] = file["obs/ordered"]


UNREADABLE = "corrupt: the column 'obs/"
MALFORMED_COLUMNS = {
    "a link": (link("obs/text", h5py.ExternalLink("other.h5ad", "X")), "'/obs/text' is a link"),
    "a link to codes": (link("obs/categories/codes", h5py.SoftLink("/obs/int8")), "is a link"),
    "too few values": (put("obs/int8", data=[1]), "has 1 value; expected 3"),
    "a code without a category": (put("obs/ordered/codes", data=[0, 1, 2]), UNREADABLE),
    "a code below -1": (put("obs/ordered/codes", data=[0, 1, -(2**40)]), UNREADABLE),
    "the same category twice": (put("obs/ordered/categories", data=["a", "a"]), UNREADABLE),
    "no categories": (gone("obs/ordered/categories"), UNREADABLE),
    "categories of categories": (nest, UNREADABLE),
    "no mask": (gone("obs/nullable integers/mask"), UNREADABLE),
    "a mask of numbers": (put("obs/nullable integers/mask", data=[0, 1, 2]), UNREADABLE),
    "a missing column": (gone("obs/int8"), "there is no 'obs/int8'"),
    "lists as column names": (attribute("obs", "column-order", LISTS), "'column-order' of '/obs' is not text"),
    "a list that states the order": (attribute("obs/ordered", "ordered", LISTS), "'ordered' of '/obs/ordered' is not"),
    "a huge column": (put("obs/int8", (10**12,), "f8", chunks=(1000,)), "malicious"),
}


@pytest.mark.parametrize("case", MALFORMED_COLUMNS)
def test_malformed_columns_are_errors(annotated_path, case):
    corrupt, message = MALFORMED_COLUMNS[case]
    with h5py.File(annotated_path, "a") as file:
        corrupt(file)
    assert_read_error(annotated_path, message)


def test_the_same_large_column_many_times_does_not_fit_into_memory(annotated_path, monkeypatch):
    with h5py.File(annotated_path, "a") as file:
        for number in range(100):
            file[f"obs/copy{number}"] = file["obs/int8"]
        file["obs"].attrs["column-order"] = [f"copy{number}" for number in range(100)]
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 1000)
    assert_read_error(annotated_path, "the columns of 'obs' take", "of memory are available")


OBSM = {
    "protein": (np.eye(3, 4), [f"protein{number}" for number in range(1, 5)]),
    "X_pca": ([[0, 1], [1, 0], [1, 1]], ["X_pca1", "X_pca2"]),
    "frame": ([[1, 1], [0, np.nan], [1, 0]], ["CD3", "CD4"]),
}


@pytest.mark.filterwarnings("ignore:.*1 missing value")
def test_arrays_of_obsm_are_tables(annotated_path):
    adata = annotated()
    for key, (values, columns) in OBSM.items():
        expected = ba.Table(ba.BitMatrix.from_any(np.array(values), missing="unknown"), list(FRAME.index), columns)
        for table in (ba.read(annotated_path, layer=f"obsm/{key}"), ba.Table.from_any(adata, layer=f"obsm/{key}")):
            assert table == expected
            assert list(table.row_data) == list(FRAME)
            assert list(table.column_data) == []
    listed = "'X_pca', 'frame', 'protein', 'text'"
    assert_read_error(annotated_path, f"there is no obsm/x (obsm: {listed}); pass layer", layer="obsm/x")
    assert_read_error(annotated_path, "the column 'CD3' of 'obsm/text' does not contain numbers", layer="obsm/text")
    with pytest.raises(ValueError, match="the AnnData has no 'obsm/x'; its obsm has 'protein'"):
        ba.Table.from_any(adata, layer="obsm/x")
    del adata.obsm
    with pytest.raises(ValueError, match="its obsm has none"):
        ba.Table.from_any(adata, layer="obsm/x")


def test_annotations_that_cannot_be_stored(tmp_path):
    bits, masked = ba.BitMatrix.zeros(2, 2), np.ma.array([1.5, 2], mask=[0, 1])
    with pytest.raises(ba.FileError, match=r"row_data\['a'\] has a zero byte"):
        ba.write(ba.Table(bits, row_data={"a": ["x\0y", "z"]}), tmp_path / "t.h5ad")
    table = ba.Table(bits, column_data={"_index": [1, 2], "a/b": [1.0, 2.0], "c": [3, 4], "masked": masked})
    with pytest.warns(ba.errors.InputWarning, match="cannot store column_data of the name '_index', 'a/b'$"):
        ba.write(table, tmp_path / "t.h5ad")
    again = ba.read(tmp_path / "t.h5ad").column_data
    assert list(again) == ["c", "masked"]
    assert np.isnan(again["masked"][1])
