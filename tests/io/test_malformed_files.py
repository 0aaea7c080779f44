"""Malformed, mislabelled and malicious files of every format, on the command line.

Each must give a one-line error and the exit code 2; nothing is written, no link is followed, no code is executed.
"""

import gzip
import io
import json
import os
import pickle
import shutil
import struct
import warnings
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.annotations import Annotations
from bitatoms.io.bgzf import END
from bitatoms.io.formats import FORMATS, HDF5_FORMATS, load_reader
from bitatoms.variants import from_names

pytest.importorskip("typer")

from bitatoms.cli.app import run
from support.commands import runner

pytestmark = pytest.mark.filterwarnings("ignore::bitatoms.errors.InputWarning")  # a file of one comma has blank cells
SNPS = 6
ROWS = tuple(f"person{row}" for row in range(11))
COLUMNS = tuple(f"rs{snp}:{allele}" for snp in range(SNPS) for allele in ("A", "AA"))  # valid in .bed files too
FIRST = np.random.default_rng(0).integers(0, 2, (len(ROWS), SNPS), np.uint8)
FIRST[0] = 1  # a column without ones would be lost in lists of items
X = np.stack([FIRST, FIRST & np.roll(FIRST, 3, axis=0) | (np.arange(11) == 0)[:, None]], axis=2).reshape(len(ROWS), -1)
BITS = ba.BitMatrix.from_dense(X)
NAMES = ("id", "name")
WITHOUT_NAMES = ("npy", "fimi", "pbm", "png", "tiff")


class Payload:
    """An object that creates a folder when it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


def table(format):
    """The table, with the names that a format can store."""
    if format in WITHOUT_NAMES:
        return ba.Table(BITS, columns=[str(item) for item in range(BITS.n_cols)] if format == "fimi" else None)
    return ba.Table(BITS, None if format == "baskets" else ROWS, COLUMNS)


def write_h5mu(table, path):
    """Write a MuData with one modality."""
    h5py = pytest.importorskip("h5py")
    ba.write(table, path.with_suffix(".h5ad"))
    with h5py.File(path.with_suffix(".h5ad")) as adata, h5py.File(path, "w", userblock_size=512) as file:
        adata.copy(adata["/"], file.create_group("mod"), "rna")
        file.attrs["encoding-type"] = "MuData"
    with open(path, "r+b") as file:
        file.write(b"MuData (format-version=0.1.0;)")


def write_ten_x(table, path):
    """Write a file as Cell Ranger does."""
    h5py = pytest.importorskip("h5py")
    by_cell = table.bits.to_sparse().astype(np.int32)  # by cell, which is CSC of features x cells
    with h5py.File(path, "w") as file:
        matrix = file.create_group("matrix")
        for name in ("data", "indices", "indptr"):
            matrix[name] = getattr(by_cell, name)
        matrix["shape"] = np.int32(table.shape[::-1])
        matrix["barcodes"] = np.array(table.row_names, "S")
        for name in ("id", "name"):
            matrix[f"features/{name}"] = np.array(table.columns, "S")


def written_table(format):
    """The table as it is written: .haps files store haplotypes, which are read as samples."""
    if format != "haps":
        return table(format)
    haplotypes = X.reshape(len(ROWS), SNPS, 2).transpose(0, 2, 1).reshape(2 * len(ROWS), SNPS)
    names = [f"{name}/{number}" for name in ROWS for number in (1, 2)]
    numbers = Annotations({"haplotype": np.tile([1, 2], len(ROWS))}, len(names))
    data = from_names(COLUMNS)
    assert data is not None
    columns = {"columns": COLUMNS[0::2], "column_data": data.take(np.arange(0, len(COLUMNS), 2))}
    return ba.Table(ba.BitMatrix.from_dense(haplotypes), names, row_data=numbers, **columns)


@pytest.fixture(scope="session")
def valid_file(tmp_path_factory):
    """Copy a valid file of a format, with its companions, into a folder; skip a format that is not installed."""
    originals = tmp_path_factory.mktemp("valid")

    def copy_to(format, folder):
        entry = FORMATS[format]
        if entry.library is not None and find_spec(entry.library) is None:
            pytest.skip(f"{entry.library} is not installed")
        name = f"table{entry.extensions[0]}"
        if not (originals / name).exists():
            {"h5mu": write_h5mu, "10x": write_ten_x}.get(format, ba.write)(written_table(format), originals / name)
        companions = getattr(load_reader(format, name), "companions", lambda path: ())
        for part in (name, *companions(originals / name)):
            copy = shutil.copytree if (originals / part).is_dir() else shutil.copy
            copy(originals / part, folder / part)
        return folder / name

    return copy_to


@pytest.fixture
def convert(capsys, monkeypatch, tmp_path):
    """Convert a file; return the exit code, standard output, standard error, and the names of new files."""
    monkeypatch.chdir(tmp_path)

    def command(name, *arguments):
        before = set(tmp_path.rglob("*"))
        printed = runner(capsys)("convert", name, "converted.npz", *arguments)
        return (*printed, {path.name for path in set(tmp_path.rglob("*")) - before})

    return command


def assert_error(outcome, name):
    """Assert a one-line error that begins with the name of the file, and no other effect."""
    code, output, error, new_files = outcome
    assert error.startswith(f"bitatoms: {name}: "), error
    assert "Traceback" not in error
    assert error.count("\n") == 1
    assert len(error) < 600
    assert (code, output, new_files) == (2, "", set())


def assert_read(outcome):
    """Assert that the file was read and converted."""
    code, _, error, new_files = outcome
    assert (code, error, new_files) == (0, "", {"converted.npz"})


def data_file(path):
    """Return the file that holds the bits: for a store, the largest one in it."""
    return (
        path if path.is_file() else max(path.rglob("c/**/*"), key=lambda file: file.is_file() and file.stat().st_size)
    )


def rewrite(path, change):
    """Change the bytes of the file that holds the bits."""
    file = data_file(path)
    file.write_bytes(change(file.read_bytes()))


# Lists of items stay valid without the last ones, and text without the last line end. The first byte of a CSV file is a
# comma, which is a valid table.
TRUNCATIONS = {"first byte only": 1, "first third": 1 / 3, "most of it": 0.9, "all but the last byte": -1}
VALID_TRUNCATIONS = {
    *((format, kept) for format in ("fimi", "baskets") for kept in TRUNCATIONS),
    *(("pairs", kept) for kept in ("most of it", "all but the last byte")),
    *((format, "all but the last byte") for format in ("csv", "tsv", "mtx", "png", "haps", "vcf")),
    *((format, "first byte only") for format in ("csv", "tsv")),
    ("haps", "first third"),  # two of six lines
}


@pytest.mark.parametrize("kept", TRUNCATIONS)
@pytest.mark.parametrize("format", FORMATS)
def test_truncated_file(valid_file, convert, tmp_path, format, kept):
    path, length = valid_file(format, tmp_path), TRUNCATIONS[kept]
    rewrite(path, lambda data: data[: int(len(data) * length) if isinstance(length, float) else length])
    outcome = convert(path.name)
    if (format, kept) in VALID_TRUNCATIONS:
        assert_read(outcome)
    else:
        assert_error(outcome, path.name)


# Pairs of a content and a format that can read it: text may be lists of names, and the separator of cells is detected.
READABLE_AS = {("csv", "baskets"), ("tsv", "baskets"), ("fimi", "baskets"), ("pairs", "baskets"), ("tsv", "csv")}
READABLE_AS |= {("pairs", "csv"), ("baskets", "csv")}  # detected
READABLE_AS |= {("haps", "baskets"), ("vcf", "baskets"), ("vcf", "bcf"), ("bcf", "vcf")}


@pytest.mark.parametrize("content", FORMATS)
def test_content_of_another_format(valid_file, convert, tmp_path, content):
    found = valid_file(content, tmp_path)
    for format in [each for each in FORMATS if each != content]:
        path = tmp_path / f"{content}{FORMATS[format].extensions[0]}"
        found = found.rename(path)
        outcome = convert(path.name)
        if (content, format) in READABLE_AS:
            assert_read(outcome)
            (tmp_path / "converted.npz").unlink()
        else:
            assert_error(outcome, path.name)


@pytest.mark.parametrize("format", FORMATS)
def test_empty_file(valid_file, convert, tmp_path, format):
    path = valid_file(format, tmp_path)
    rewrite(path, lambda data: b"")
    assert_error(convert(path.name), path.name)


@pytest.mark.parametrize("format", FORMATS)
def test_folder_instead_of_file(convert, tmp_path, format):
    path = tmp_path / f"table{FORMATS[format].extensions[0]}"
    path.mkdir()
    assert_error(convert(path.name), path.name)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("format", FORMATS)
def test_file_without_read_permission(valid_file, convert, tmp_path, format):
    path = valid_file(format, tmp_path)
    data_file(path).chmod(0)
    assert_error(convert(path.name), path.name)


@pytest.mark.parametrize("protocol", [0, 5])
@pytest.mark.parametrize("format", [format for format in FORMATS if format != "zarr"])
def test_pickle_is_never_loaded(valid_file, convert, tmp_path, format, protocol):
    path = valid_file(format, tmp_path)
    path.write_bytes(pickle.dumps(Payload(), protocol))
    outcome = convert(path.name)
    assert not (tmp_path / "unpickled").exists()
    if (format, protocol) == ("baskets", 0):  # protocol 0 is text
        assert_read(outcome)
    else:
        assert_error(outcome, path.name)


def npy(array, **options):
    """Return the bytes of an .npy file."""
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npz(**members):
    """Return the bytes of an .npz file with these members: arrays, or raw bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content if isinstance(content, bytes) else npy(content))
    return file.getvalue()


def swapped_byte_order(array):
    """Return the bytes of an .npy file whose header claims the other byte order."""
    data = npy(array.astype("<i8"))
    assert b"<i8" in data
    return data.replace(b"<i8", b">i8")


def npy_claiming(shape, n_bytes=1000):
    """Return the bytes of an .npy file that claims this shape."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(n_bytes)


def with_metadata(data, **changes):
    """Return the bytes of a bitatoms .npz file with changed metadata."""
    with np.load(io.BytesIO(data)) as file:
        members = dict(file)
    metadata = json.loads(members["bitatoms"].tobytes()) | changes
    return npz(**members | {"bitatoms": np.frombuffer(json.dumps(metadata).encode(), np.uint8)})


def replace_text(old, new):
    """Replace the first occurrence of some bytes."""

    def change(path):
        data = path.read_bytes()
        assert old in data
        path.write_bytes(data.replace(old, new, 1))

    return change


def replace_all(data):
    """Replace the content of the file."""
    return lambda path: path.write_bytes(data)


def edit_bytes(change):
    """Apply a function to the content of the file."""
    return lambda path: path.write_bytes(change(path.read_bytes()))


def image(pixels, format, n_pages=1):
    """Return the bytes of an image by Pillow, or nothing, which is malformed too, where that is not installed."""
    if find_spec("PIL") is None:
        return b""
    from PIL import Image

    file, page = io.BytesIO(), Image.fromarray(pixels)
    page.save(file, format, **({"save_all": True, "append_images": [page] * (n_pages - 1)} if n_pages > 1 else {}))
    return file.getvalue()


def claiming_png(data, side):
    """Return a PNG file whose header claims to have this many pixels in each direction."""
    header = b"IHDR" + side.to_bytes(4, "big") * 2 + data[24:29]
    return data[:12] + header + zlib.crc32(header).to_bytes(4, "big") + data[33:]


def edit_sheet(old, new):
    """Replace some bytes of the sheet of a workbook."""

    def change(path):
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        sheet = parts["xl/worksheets/sheet1.xml"]
        assert old in sheet
        parts["xl/worksheets/sheet1.xml"] = sheet.replace(old, new, 1)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)

    return change


def edit_archive(change):
    """Change a workbook as an archive."""

    def edit(path):
        with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings(action="ignore"):  # of duplicate names
            change(archive)

    return edit


def companion(extension, change):
    """Change the companion file with this extension."""
    return lambda path: change(path.with_suffix(extension))


def arrow_columns(columns):
    """Replace the file by a Parquet or Feather file with these columns."""

    def change(path):
        import pyarrow as pa
        from pyarrow import feather, parquet

        write = parquet.write_table if path.suffix == ".parquet" else feather.write_feather
        write(pa.Table.from_arrays([pa.array(values) for _, values in columns], [name for name, _ in columns]), path)

    return change


def edit_hdf5(change):
    """Change an .h5ad file with h5py."""

    def edit(path):
        import h5py

        with h5py.File(path, "a") as file:
            change(file)

    return edit


def replace_dataset(name, **new):
    """Replace an array of an .h5ad file."""

    def change(file):
        del file[name]
        file.create_dataset(name, **new)

    return edit_hdf5(change)


def replace_by_link(name, target):
    """Replace an element of an .h5ad file by a link to another file."""

    def change(file):
        import h5py

        del file[name]
        file[name] = h5py.ExternalLink(target, "/X")

    return edit_hdf5(change)


def zarr_array(value=None, **options):
    """Replace the store by a Zarr array, with this value, if any, in all cells."""

    def change(path):
        import zarr

        shutil.rmtree(path)
        array = zarr.create_array(path, **{"shape": (4, 4), "chunks": (4, 4), "dtype": "uint8"} | options)
        if value is not None:
            array[:] = value

    return change


def edit_zarr_json(old, new, *folders):
    """Change the metadata of a store, or of an array in it."""

    def change(path):
        replace_text(old, new)(path.joinpath(*folders, "zarr.json"))

    return change


def replace_chunk_by_link(path):
    """Move a chunk out of a store and link to it."""
    chunk = data_file(path)
    shutil.move(chunk, path.parent / "outside")
    chunk.symlink_to(path.parent / "outside")


MTX = b"%%MatrixMarket matrix coordinate integer general\n2 2 2\n"
LONG_LINE = gzip.compress(b"0" * (5 << 20), 9, mtime=0)  # one long line
TWO = np.where(np.eye(5, dtype=np.int32), 2, 0)
SPARSE = {"format": np.array(b"csr"), "shape": np.array([3, 4]), "data": np.ones(3), "indptr": np.arange(4)}

MALFORMED = {
    "csv": {
        "not binary": replace_text(b",1", b",2"),
        "ragged": replace_text(b",1", b",1,1"),
        "duplicate name": replace_text(b"rs1:A,", b"rs0:A,"),
        "UTF-16": edit_bytes(lambda data: data.decode().encode("utf-16-be")),
        "a bomb": replace_all(LONG_LINE),
        "unclosed quote": replace_text(b"person5", b'"person5'),
    },
    "xlsx": {
        "not binary": edit_sheet(b"<v>1</v>", b"<v>2</v>"),
        "ragged": edit_sheet(b'</row><row r="3">', b'<c r="N2" t="n"><v>1</v></c></row><row r="3">'),
        "duplicate name": edit_sheet(b"<t>rs1:A</t>", b"<t>rs0:A</t>"),
        "a claimed row": edit_sheet(b'<row r="2">', b'<row r="999999999">'),
        "a claimed column": edit_sheet(b'<row r="2">', b'<row r="2"><c r="ZZZZZZZ2" t="n"><v>1</v></c>'),
        "an index of no text": edit_sheet(b't="inlineStr"><is><t>rs1:A</t></is>', b't="s"><v>9</v>'),
        "entities": edit_sheet(b"<worksheet", b'<!DOCTYPE x [<!ENTITY a "1">]><worksheet'),
        "a comment without end": edit_sheet(b"<worksheet", b"<!--" + b" " * (1 << 17) + b"--><worksheet"),
        "unclosed element": edit_sheet(b"</sheetData>", b""),
        "a bomb": edit_sheet(b"<worksheet", b" " * (1 << 25) + b"<worksheet"),
        "not a workbook": replace_all(npz(X=X)),
        "two parts of the same name": edit_archive(lambda archive: archive.writestr("xl/workbook.xml", b"<x/>")),
    },
    "npy": {
        "not binary": replace_all(npy(TWO)),
        "wrong byte order": replace_all(swapped_byte_order(TWO // 2)),
        "a bomb": replace_all(npy_claiming((10**9, 10**9))),
        "claims many rows without columns": replace_all(npy_claiming((10**15, 0), 0)),
        "negative lengths": replace_all(npy_claiming((-1, -1000))),
        "three dimensions": replace_all(npy(np.zeros((2, 2, 2)))),
        "Python objects": replace_all(npy(np.array([[Payload()]]), allow_pickle=True)),
    },
    "npz": {
        "not binary": replace_all(npz(X=TWO)),
        "wrong byte order": replace_all(npz(X=swapped_byte_order(TWO // 2))),
        "ragged": edit_bytes(lambda data: with_metadata(data, rows=list(ROWS[:-1]))),
        "duplicate name": edit_bytes(lambda data: with_metadata(data, columns=[*COLUMNS[:-1], "rs0:A"])),
        "names that are not text": edit_bytes(lambda data: with_metadata(data, columns=list(range(len(COLUMNS))))),
        "wrong picture shape": edit_bytes(lambda data: with_metadata(data, picture=[[5, 5], None])),
        "a newer version": edit_bytes(lambda data: with_metadata(data, version=99)),
        "a bomb": replace_all(npz(X=bytes(1 << 24))),
        "claims a huge shape": replace_all(npz(X=npy_claiming((10**9, 10**9)))),
        "claims more rows than memory": edit_bytes(lambda data: with_metadata(data, n_rows=10**14)),
        "Python objects": replace_all(npz(X=npy(np.array([[Payload()]]), allow_pickle=True))),
        "sparse, index out of range": replace_all(npz(**SPARSE, indices=np.array([0, 1, 4]))),
        "sparse, negative index": replace_all(npz(**SPARSE, indices=np.array([0, 1, -4]))),
        "sparse, wrong byte order": replace_all(npz(**SPARSE, indices=swapped_byte_order(np.arange(3)))),
        "sparse, Python objects": replace_all(npz(**SPARSE, indices=npy(np.array([Payload()] * 3), allow_pickle=True))),
        "sparse, duplicate entries": replace_all(npz(**SPARSE | {"indptr": [0, 3, 3, 3]}, indices=np.array([1, 1, 1]))),
    },
    "parquet": {
        "not binary": arrow_columns([("a", [0, 1, 2])]),
        "duplicate name": arrow_columns([("a", [0, 1]), ("a", [1, 0])]),
        "lists": arrow_columns([("a", [[1], [0]])]),
        "dates": arrow_columns([("a", np.array(["2020-01-01", "2020-01-02"], "datetime64[s]"))]),
        "no footer": edit_bytes(lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1"),
    },
    "mtx": {
        "not binary": replace_all(MTX + b"1 1 1\n2 2 2\n"),
        "ragged": replace_all(MTX + b"1 1 1\n2 2\n"),
        "duplicate name": replace_text(b'"rs1:A"', b'"rs0:A"'),
        "index out of range": replace_all(MTX + b"1 1 1\n3 2 1\n"),
        "zero-based indices": replace_all(MTX + b"0 0 1\n1 1 1\n"),
        "too many entries": replace_all(MTX + b"1 1 1\n1 2 1\n2 2 1\n"),
        "duplicate entry": replace_all(MTX + b"1 1 1\n1 1 1\n"),
        "UTF-16": edit_bytes(lambda data: data.decode().encode("utf-16-le")),
        "a bomb": replace_all(MTX.replace(b"2 2 2", b"999999999999999 999999999999999 0")),
        "compressed long line": replace_all(gzip.compress(MTX + b"0" * (5 << 20), 9, mtime=0)),
    },
    "fimi": {
        "negative": replace_all(b"1 2\n-3 4\n"),
        "not an integer": replace_all(b"1 2\n3.5 4\n"),
        "names": replace_all(b"1 2\nmilk bread\n"),
        "too large": replace_all(b"1 2\n99999999999999999999\n"),
        "UTF-16": replace_all("1 2\n3\n".encode("utf-16")),
        "a bomb": replace_all(LONG_LINE),
    },
    "pairs": {
        "ragged": replace_all(b"row,item\nann,milk\nbob\n"),
        "one column": replace_all(b"item\nmilk\nbread\n"),
        "three columns": replace_all(b"who,what,count\nann,milk,1\nbob,milk,2\n"),
        "missing row": replace_all(b"row,item\nann,milk\n ,milk\n"),
        "missing item": replace_all(b"row,item\nann,milk\nann,\nbob,milk\n"),
        "unclosed quote": replace_all(b'row,item\nann,"milk\n'),
        "blank lines": replace_all(b"\n\n"),
        "UTF-16": replace_all("row,item\nann,milk\n".encode("utf-16")),
        "a bomb": replace_all(LONG_LINE),
    },
    "baskets": {
        "unclosed quote": replace_all(b'a,b\nc,"d\n'),
        "UTF-16": replace_all("a,b\nc\n".encode("utf-16")),
        "a bomb": replace_all(LONG_LINE),
    },
    "pbm": {
        "not binary": replace_all(b"P1\n2 2\n0 1 2 0\n"),
        "ragged": replace_all(b"P1\n2 2\n0 1\n0\n"),
        "trailing bytes": edit_bytes(lambda data: data + b"\0"),
        "gray": replace_all(b"P5\n2 2\n255\n" + bytes(4)),
        "no pixels": replace_all(b"P4\n0 5\n"),
        "a bomb": replace_all(b"P4\n999999999 999999999\n" + bytes(100)),
        "compressed bomb": replace_all(gzip.compress(b"P4\n999999999 999999999\n" + bytes(1 << 20), mtime=0)),
    },
    "png": {
        "gray": replace_all(image(np.arange(16, dtype=np.uint8).reshape(4, 4), "png")),
        "transparent": replace_all(image(np.zeros((4, 4, 4), np.uint8), "png")),
        "wrong checksum": edit_bytes(lambda data: data[:50] + bytes([data[50] ^ 255]) + data[51:]),
        "a bomb": edit_bytes(lambda data: claiming_png(data, 1 << 20)),
    },
    "tiff": {
        "gray": replace_all(image(np.arange(16, dtype=np.uint8).reshape(4, 4), "tiff")),
        "several pages": replace_all(image(np.zeros((4, 4), np.uint8), "tiff", n_pages=2)),
        "float": replace_all(image(np.full((4, 4), 0.5, np.float32), "tiff")),
    },
    "h5ad": {
        "not binary": replace_dataset("X", data=TWO),
        "wrong shape": replace_dataset("X", data=np.ones((3, 3), np.float32)),
        "wrong byte order": replace_dataset("X", data=X.astype("<f4").view(">f4")),
        "a bomb": replace_dataset("X", shape=(10**9, 10**7), chunks=(1000, 1000), dtype="f4"),
        "a link to another file": replace_by_link("X", "other.h5ad"),
        "names linked from another file": replace_by_link("var", "other.h5ad"),
        "values in another file": replace_dataset("X", shape=X.shape, dtype="u1", external=[("other.bin", 0, X.size)]),
        "duplicate name": edit_hdf5(lambda file: file["var/_index"].__setitem__(1, "rs0:A")),
        "Python objects": replace_dataset("X", data=np.void(pickle.dumps(Payload()))),
    },
    "h5mu": {
        "not binary": replace_dataset("mod/rna/X", data=TWO),
        "wrong shape": replace_dataset("mod/rna/X", data=np.ones((3, 3), np.float32)),
        "a link to another file": replace_by_link("mod", "other.h5ad"),
        "no modality": edit_hdf5(lambda file: file["mod"].__delitem__("rna")),
        "two modalities": edit_hdf5(lambda file: file["mod"].copy("rna", "protein")),
        "an array for a modality": replace_dataset("mod/rna", data=X),
        "Python objects": replace_dataset("mod/rna/X", data=np.void(pickle.dumps(Payload()))),
    },
    "10x": {
        "not binary": edit_hdf5(lambda file: file["matrix/data"].__setitem__(0, 2)),
        "negative": edit_hdf5(lambda file: file["matrix/data"].__setitem__(0, -1)),
        "wrong shape": replace_dataset("matrix/shape", data=np.int32([3, 3])),
        "a negative shape": replace_dataset("matrix/shape", data=np.int32([-12, 11])),
        "one size": replace_dataset("matrix/shape", data=np.int32([12])),
        "a bomb": replace_dataset("matrix/shape", data=np.int64([10**9, 10**9])),
        "ragged": replace_dataset("matrix/indptr", data=np.arange(5)),
        "index out of range": edit_hdf5(lambda file: file["matrix/indices"].__setitem__(0, 99)),
        "missing names": edit_hdf5(lambda file: file["matrix/features"].__delitem__("name")),
        "missing row": replace_dataset("matrix/barcodes", data=np.array(ROWS[1:], "S")),
        "numbers as names": replace_dataset("matrix/barcodes", data=np.arange(len(ROWS))),
        "duplicate name": edit_hdf5(
            lambda file: [file[f"matrix/features/{n}"].__setitem__(1, b"rs0:A") for n in NAMES]
        ),
        "a link to another file": replace_by_link("matrix", "other.h5ad"),
        "names linked from another file": replace_by_link("matrix/features", "other.h5ad"),
        "values in another file": replace_dataset(
            "matrix/data", shape=(X.size,), dtype="u1", external=[("other.bin", 0, X.size)]
        ),
        "another HDF5 file": edit_hdf5(lambda file: file.move("matrix/barcodes", "weights")),
    },
    "bed": {
        "ragged": companion(".fam", replace_text(b" 0 0 0 0", b" 0 0 0")),
        "missing row": companion(".fam", edit_bytes(lambda data: data.split(b"\n", 5)[5])),
        "duplicate name": companion(".bim", replace_text(b"rs1", b"rs0")),
        "wrong byte order": edit_bytes(lambda data: b"\x1b\x6c" + data[2:]),
        "individual-major order": edit_bytes(lambda data: data[:2] + b"\0" + data[3:]),
        "missing names": companion(".bim", lambda path: path.unlink()),
        "genome intervals": replace_all(b"chr1\t100\t200\n"),
        "a bomb": companion(".fam", edit_bytes(lambda data: data * 300)),
    },
    "pgen": {
        "ragged": companion(".psam", replace_text(b"\tperson3", b"")),
        "missing row": companion(".psam", edit_bytes(lambda data: data.split(b"\n", 2)[2])),
        "duplicate name": companion(".pvar", replace_text(b"rs1", b"rs0")),
        "wrong byte order": edit_bytes(lambda data: b"\x1b\x6c" + data[2:]),
        "missing names": companion(".pvar", lambda path: path.unlink()),
        "PLINK 1": edit_bytes(lambda data: data[:2] + b"\x01" + data[3:]),
        "a bomb": companion(".psam", edit_bytes(lambda data: data + data.split(b"\n", 1)[1] * 300)),
    },
    "vcf": {
        "not an allele": replace_text(b"0/1", b"0/x"),
        "an allele that is not listed": replace_text(b"0/1", b"0/7"),
        "ragged": replace_text(b"\t0/1", b""),
        "duplicate name": replace_text(b"rs1", b"rs0"),
        "duplicate row": replace_text(b"person1\t", b"person0\t"),
        "no header": edit_bytes(lambda data: data[data.index(b"0\t0") :]),
        "UTF-16": edit_bytes(lambda data: data.decode().encode("utf-16-be")),
        "a bomb": replace_all(LONG_LINE),
    },
    "bcf": {"a bomb": replace_all(LONG_LINE), "a block": replace_all(END), "header only": replace_all(b"BCF\x02\x02")},
    "haps": {
        "not binary": replace_text(b" 0 1", b" 0 2"),
        "ragged": replace_text(b" 0 1", b" 0 1 1"),
        "duplicate name": replace_text(b"rs1", b"rs0"),
        "missing row": companion(".sample", edit_bytes(lambda data: data.rpartition(b"0 person10")[0])),
        "missing names": companion(".sample", lambda path: path.unlink()),
        "UTF-16": edit_bytes(lambda data: data.decode().encode("utf-16-be")),
        "a bomb": replace_all(LONG_LINE),
    },
    "zarr": {
        "not binary": zarr_array(value=2),
        "ragged": edit_zarr_json(b'"n_cols": 12', b'"n_cols": 20'),
        "duplicate name": edit_zarr_json(b'"rs1:A"', b'"rs0:A"'),
        "wrong byte order": zarr_array(dtype=">i4", value=1 << 24),
        "a bomb": zarr_array(shape=(10**9, 10**7), chunks=(1000, 1000)),
        "a link to another file": replace_chunk_by_link,
        "unknown codec": edit_zarr_json(b'"zstd"', b'"pickle"', "bits"),
        "missing chunk": lambda path: data_file(path).unlink(),
        "incomplete": edit_zarr_json(b'"complete": true', b'"complete": false'),
    },
}
MALFORMED["tsv"] = MALFORMED["csv"] | {
    "not binary": replace_text(b"\t1", b"\t2"),
    "ragged": replace_text(b"\t1", b"\t1\t1"),
    "duplicate name": replace_text(b"rs1:A\t", b"rs0:A\t"),
}
MALFORMED["feather"] = MALFORMED["parquet"] | {
    "no footer": edit_bytes(lambda data: data[:-10] + b"\xff\xff\xff\x7fARROW1")
}


@pytest.mark.parametrize(("format", "kind"), [(format, kind) for format in FORMATS for kind in MALFORMED[format]])
def test_malformed_file(valid_file, convert, monkeypatch, tmp_path, format, kind):
    monkeypatch.setattr("bitatoms.io.text_numbers._LONGEST_LINE", 1 << 22)  # so that the test files can be small
    (tmp_path / "other.bin").write_bytes(X.tobytes())
    path = valid_file(format, tmp_path)
    if format in HDF5_FORMATS:
        shutil.copy(path, tmp_path / "other.h5ad")
    MALFORMED[format][kind](path)
    assert_error(convert(path.name), path.name)
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize(
    ("changes", "arrays"),
    [
        ({"codelength": 5}, {}),
        ({"picture": []}, {}),
        ({"picture": [[], None]}, {}),
        ({"columns": ["\ud800"] * len(COLUMNS)}, {}),
        ({"reading": {"blocks": 5}}, {}),
        ({"reading": {"binarize": "0"}}, {}),
        ({"reading": {"missing": "guess"}}, {}),
        ({"reading": 7}, {}),
        ({"max_atoms_per_sample": 2**70}, {}),
        ({"residual_limit": -1}, {}),
        ({"n_samples": 2**70}, {}),
        ({"n_features": -3}, {}),
        ({}, {"uses": npy(np.array([Payload()] * 2), allow_pickle=True)}),
        ({}, {"atoms": npy_claiming((10**9, 10**9))}),
    ],
)
@pytest.mark.parametrize("command", ["show MODEL", "transform MODEL table.csv -o made.csv"])
def test_malformed_model(capsys, monkeypatch, tmp_path, valid_file, model, command, changes, arrays):
    monkeypatch.chdir(tmp_path)
    valid_file("csv", tmp_path)
    with np.load(model) as file:
        members = dict(file)
    metadata = json.loads(members["bitatoms"].tobytes()) | changes
    (tmp_path / "model.npz").write_bytes(
        npz(**members | arrays | {"bitatoms": np.frombuffer(json.dumps(metadata).encode(), np.uint8)})
    )
    if changes.get("columns"):
        command = "show MODEL --patterns patterns.csv"  # these names cannot be encoded as text
    before = set(tmp_path.rglob("*"))
    with pytest.raises(SystemExit) as ended:
        run(command.replace("MODEL", "model.npz").split())
    captured = capsys.readouterr()
    new = {path.name for path in set(tmp_path.rglob("*")) - before}
    name = "patterns.csv" if changes.get("columns") else "model.npz"
    assert_error((ended.value.code, captured.out, captured.err, new), name)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A model file of the table."""
    path = tmp_path_factory.mktemp("model") / "model.npz"
    ba.BinaryDictionaryLearning(n_components=2, algebra="or", random_state=0).fit(table("csv")).save(path)
    return path


def test_archive_members_are_not_extracted_to_their_paths(convert, tmp_path):
    (tmp_path / "table.npz").write_bytes(npz(**{"../../outside": X}))
    assert_read(convert("table.npz"))
    assert ba.read(tmp_path / "converted.npz").bits == BITS
    assert not list(Path(tmp_path).parent.parent.glob("outside*"))


@pytest.mark.parametrize("format", FORMATS)
def test_valid_file(valid_file, convert, tmp_path, format):
    assert_read(convert(valid_file(format, tmp_path).name))
    again, expected = ba.read(tmp_path / "converted.npz"), table(format)
    if format in ("baskets", "pairs"):  # in the order of first occurrence, that of the first row
        assert again.columns == COLUMNS
    assert again == expected


def test_outputs_never_overwrite_inputs_or_each_other(capsys, monkeypatch, tmp_path, valid_file, model):
    monkeypatch.chdir(tmp_path)
    valid_file("csv", tmp_path)
    shutil.copy(model, "model.npz")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for command, name in (
        ("fit table.csv -o table.csv", "table.csv"),
        ("fit table.csv -o ./model.csv --codes model.csv", "model.csv"),
        ("fit table.csv --codes new.csv --atoms-to new.csv", "new.csv"),
        ("transform model.npz table.csv -o model.npz", "model.npz"),
        ("transform model.npz table.csv -o table.csv", "table.csv"),
        ("reconstruct model.npz --codes table.csv -o table.csv", "table.csv"),
        ("report model.npz table.csv -o table.csv", "table.csv"),
        ("show model.npz --atoms-to model.npz", "model.npz"),
    ):
        with pytest.raises(SystemExit) as ended:
            run(command.split())
        captured = capsys.readouterr()
        assert_error((ended.value.code, captured.out, captured.err, set()), name)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_messages_show_file_and_column_names_unchanged(convert, tmp_path):
    (tmp_path / "row_names.csv").write_text("max_time,n_jobs\n" + "1,2\n" * 3)
    error = convert("row_names.csv")[2]
    assert error.startswith("bitatoms: row_names.csv: line 2, column 'n_jobs': 2 is neither 0 nor 1")
