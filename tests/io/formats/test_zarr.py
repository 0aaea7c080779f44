"""Zarr stores: round trips, arrays and AnnData of other programs, malformed stores."""

import json
import os
import shutil
import sys
import warnings

import anndata as ad
import numcodecs
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from zarr.codecs import BloscCodec, GzipCodec

import bitatoms as ba
from support.files import assert_read_error
from support.strategies import random_bits

BITS = random_bits(1, 20, 70, 0.3)
TABLE = ba.Table(
    ba.BitMatrix.from_dense(BITS), [f"r{row}" for row in range(20)], [f"c{column}" for column in range(70)]
)
PLAIN = ba.Table(TABLE.bits)


def array(path, values=BITS, **options):
    """Write a store that is one array; return the path."""
    shutil.rmtree(path, ignore_errors=True)
    zarr.create_array(path, data=np.asarray(values), **options)
    return path


def edit_json(file, edit):
    """Change a JSON file."""
    metadata = json.loads(file.read_text())
    edit(metadata)
    file.write_text(json.dumps(metadata))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("bool", {"compressors": [GzipCodec()]}),
        ("int64", {"compressors": [BloscCodec()]}),
        (">i4", {"compressors": None}),
        ("float16", {"chunks": (2, 10), "shards": (4, 30)}),
        ("uint8", {"zarr_format": 2, "compressors": numcodecs.GZip()}),
        ("uint8", {"zarr_format": 2, "compressors": numcodecs.LZ4(), "filters": [numcodecs.Shuffle(1)]}),
        ("float16", {"zarr_format": 2, "compressors": None, "order": "F"}),
        (">i4", {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}}),
        ("bool", {"zarr_format": 2}),
    ],
)
def test_reads_common_types_and_codecs(tmp_path, kind, options):
    path = array(tmp_path / "array.zarr", BITS.astype(kind), **{"chunks": (7, 30)} | options)
    assert ba.read(path) == PLAIN
    for value in (0, 1):  # missing chunks have the fill value
        path = array(path, np.full((20, 70), value), fill_value=value)
        assert len([file for file in path.rglob("*") if file.is_file()]) == 1
        assert ba.read(path).bits.count() == 1400 * value


def test_layer_selects_an_array(tmp_path):
    path = tmp_path / "group.zarr"
    group = zarr.create_group(path)
    assert_read_error(path, "the store contains 0 tables")
    group.create_array("ones", data=BITS)
    group.create_array("line", data=np.arange(3))
    group.create_group("deep").create_array("counts", data=BITS * 3)
    assert ba.read(path) == PLAIN
    assert ba.read(path, layer="ones") == PLAIN
    assert_read_error(path, "3 is neither 0 nor 1", "binarize=0", layer="deep/counts")
    assert ba.read(path, layer="deep/counts", binarize=0) == PLAIN
    assert_read_error(path, "shape (3,)", "not a table of numbers", layer="line")
    for name in ("gone", "../group.zarr/ones", "deep", "ones/more", "", ".", "deep/../ones", "zarr.json"):
        assert_read_error(path, f"there is no array {name!r}", "'deep', 'line', 'ones'", layer=name)
    group.create_array("zeros", data=BITS * 0)
    assert_read_error(path, "the store contains 2 tables", "pass layer", "'ones', 'zeros'")
    assert_read_error(array(tmp_path / "array.zarr"), "omit layer", layer="x")


@pytest.mark.parametrize(("to_format", "version"), [(np.asarray, 2), (sp.csr_matrix, 3)])
def test_reads_anndata(tmp_path, to_format, version):
    frames = [pd.DataFrame({"kind": list(names)}, index=list(names)) for names in (TABLE.row_names, TABLE.columns)]
    values = to_format(BITS.astype(np.float32))
    adata = ad.AnnData(values, *frames, layers={"counts": values * 3})
    adata.raw = adata
    adata, path = adata[:, ::-2].copy(), tmp_path / "cells.zarr"
    with warnings.catch_warnings(action="ignore"), ad.settings.override(zarr_write_format=version):
        adata.write_zarr(path)
    fewer = ba.Table(ba.BitMatrix.from_dense(BITS[:, ::-2]), TABLE.row_names, TABLE.columns[::-2])
    assert ba.read(path) == fewer
    assert ba.read(path, layer="counts", binarize=0) == fewer
    assert ba.read(path, layer="raw") == TABLE
    assert_read_error(path, "there is no layer 'more'", "pass layer", "'counts'", layer="more")
    obs = zarr.open_group(path, use_consolidated=False)["obs"]
    del obs["_index"]
    with warnings.catch_warnings(action="ignore"):
        ad.io.write_elem(obs, "_index", pd.Categorical(TABLE.row_names))  # a group
    assert ba.read(path) == fewer


@pytest.mark.parametrize("version", [2, 3])
def test_error_names_the_corrupt_array(tmp_path, version):
    path = array(tmp_path / "array.zarr", random_bits(3, 20, 70, 0.5), chunks=(5, 70), zarr_format=version)
    chunk = path / ("c/2/0" if version == 3 else "2.0")
    content = chunk.read_bytes()
    for corrupted in (content[:-1], content[:5], b"", bytes(len(content))):
        chunk.write_bytes(corrupted)
        assert_read_error(path, "its array '' is corrupt or truncated in rows 0 to 19")
    if hasattr(os, "mkfifo"):
        chunk.unlink()
        os.mkfifo(chunk)
        assert_read_error(path, f"'{chunk.relative_to(path).as_posix()}' is not a regular file")


def set_items(**items):
    return lambda metadata: metadata.update(items)


def chunk_shape(*shape):
    return {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}}}


def codecs(*names):
    return [{"name": name, "configuration": {}} for name in names]


PICKLE_IN_SHARDS = {
    "chunk_shape": [1, 1],
    "codecs": codecs("bytes", "numcodecs.pickle"),
    "index_codecs": codecs("bytes"),
}
SHARDS = [{"name": "sharding_indexed", "configuration": PICKLE_IN_SHARDS}]
KEYS = {"name": "v2", "configuration": {"separator": "/../"}}
METADATA = [
    (3, set_items(shape=[10**9, 10**9]), "malicious"),
    (3, set_items(**chunk_shape(1 << 20, 1 << 20)), "malicious"),
    (3, set_items(codecs=codecs("bytes", "numcodecs.pickle")), "needs the codec 'pickle'"),
    (3, set_items(codecs=codecs("bytes", "strange")), "needs the codec 'strange'"),
    (3, set_items(codecs=SHARDS), "needs the codec 'pickle'"),
    (3, set_items(data_type={"name": "struct", "configuration": {}}), "has the type {'name'"),
    (3, set_items(data_type="complex128"), "corrupt"),
    (3, set_items(data_type="string"), "corrupt"),
    (3, set_items(shape=[20, -70]), "corrupt"),
    (3, set_items(zarr_format=9), "corrupt"),
    (3, lambda metadata: metadata.pop("codecs"), "corrupt"),
    (3, set_items(chunk_key_encoding=KEYS), "corrupt"),
    (2, set_items(dtype="|O", filters=[{"id": "pickle"}]), "needs the codec 'pickle'"),
    (2, set_items(dtype="|O", filters=[{"id": "msgpack2"}]), "needs the codec 'msgpack2'"),
    (2, set_items(dtype="|O"), "has the type |O"),
    (2, set_items(dtype=[["a", "<i4"]]), "has the type [["),
    (2, set_items(compressor={"id": "json2"}), "needs the codec 'json2'"),
    (2, set_items(dtype="<M8[s]"), "not a table of numbers"),
    (2, set_items(chunks=[0, 0]), "corrupt"),
    (2, set_items(dimension_separator="/../../"), "corrupt"),
]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 5, "bitatoms": "9.1"}, "written by bitatoms 9.1, which is newer"),
        (
            {"version": 3, "bitatoms": "0.2.0"},
            "an older version, whose files are not read; pack the table again",
        ),
        ({"form": "columns"}, "its form is 'columns'"),
        ({"n_cols": 73}, "does not match its 73 columns"),
        ({"n_cols": 66, "columns": None}, "the bits past column 66 must be zero"),
        ({"id": None}, "it has no valid id"),
        ({"columns": ["a"]}, "names do not match its 70 columns"),
        ({"columns": [1] * 70}, "names do not match its 70 columns"),
        ({"columns": ["a"] * 70}, "have the same name 'a'"),
        ({"columns": 5}, "corrupt"),
        ({"picture": [[2, 3], None]}, "corrupt"),
        ({"complete": None}, "incomplete"),
    ],
)
def test_inconsistent_packed_store_is_an_error(tmp_path, changes, message):
    path = tmp_path / "table.zarr"
    ba.write(TABLE, path)
    edit_json(path / "zarr.json", lambda metadata: metadata["attributes"]["bitatoms"].update(changes))
    assert_read_error(path, message)


def test_inconsistent_names_are_errors(tmp_path):
    path = tmp_path / "table.zarr"
    for name, values in (
        ("name_ends", np.arange(19)),
        ("name_ends", np.arange(20)[::-1]),
        ("name_ends", np.arange(20) * 10**9),
        ("name_bytes", np.full(100, 255, np.uint8)),
        ("name_bytes", np.ones(100)),
    ):
        ba.write(TABLE, path)
        shutil.rmtree(path / name)
        zarr.open_group(path).create_array(name, data=values)
        assert_read_error(path, "corrupt")


@pytest.mark.parametrize(("version", "corrupt", "message"), METADATA)
def test_malformed_metadata_is_an_error(tmp_path, version, corrupt, message):
    path = array(tmp_path / "array.zarr", zarr_format=version)
    edit_json(path / ("zarr.json" if version == 3 else ".zarray"), corrupt)
    assert_read_error(path, message)


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need privileges")
@pytest.mark.parametrize("name", ["zarr.json", "bits", "bits/zarr.json", "bits/c", "bits/c/0", "bits/c/0/0", "more"])
def test_links_are_not_followed(tmp_path, name):
    inside, outside = tmp_path / "table.zarr", tmp_path / "outside.zarr"
    ba.write(TABLE, inside)
    ba.write(TABLE, outside)
    link = inside / name
    if link.is_dir():
        shutil.rmtree(link)
    else:
        link.unlink(missing_ok=True)
    link.symlink_to(outside / name)
    assert_read_error(inside, f"'{name}' is a symbolic link, which is not followed")


def test_folders_that_are_no_store_are_errors(tmp_path):
    folder = tmp_path / "empty.zarr"
    folder.mkdir()
    assert_read_error(folder, "this folder is not a Zarr store")
    for content in ("{", "[]", "[" * 100_000, ""):
        (folder / "zarr.json").write_text(content)
        assert_read_error(folder, "corrupt")
    (tmp_path / "file.zarr").write_text("text")
    assert_read_error(tmp_path / "file.zarr", "this is a file, but a Zarr store is a folder")
