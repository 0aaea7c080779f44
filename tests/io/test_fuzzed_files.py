"""Files with changed bytes: an error, or exactly the table that another parser finds in them.

Formats with checksums give the original table or an error. The others are read again by the library whose format it is,
or by a few lines of Python; what these cannot read must be an error.
"""

import gzip
import io
import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

import bitatoms as ba
from bitatoms.table import Table
from support.files import outcome
from support.formats import names, sparse
from support.npz import npz
from support.strategies import random_bits

X = random_bits(13, 6, 10, 0.5)
TABLE = Table(ba.BitMatrix.from_dense(X), names("r", 6), names("c", 10))
MANY = settings(max_examples=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return one folder for all examples of hypothesis."""
    return tmp_path_factory.mktemp("fuzzed")


@st.composite
def mutations(draw, alphabet=None):
    """Draw a function that changes up to four bytes, anywhere or to those of an alphabet, and may cut the end off."""
    bytes_drawn = st.integers(0, 255) if alphabet is None else st.sampled_from(alphabet) | st.integers(0, 255)
    changes = draw(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), bytes_drawn), max_size=4))
    kept = draw(st.just(1.0) | st.just(1.0) | st.floats(0, 1))

    def mutate(content, start=0):
        content = bytearray(content)
        for share, byte in changes:
            content[start + int(share * (len(content) - start))] = byte
        return bytes(content[: start + int(kept * (len(content) - start))])

    return mutate


def cells_of(path, **options):
    """Return the cells that are read from a file, or None after an error."""
    table = outcome(lambda path: ba.read(path, duplicates="number", **options), path)
    return None if table is None else table.to_dense(float).tolist()


# Checksums


@pytest.mark.parametrize("kind", ["table.npz", "csr.npz", "table.png", "table.xlsx", "table.csv.gz"])
@MANY
@given(mutate=mutations())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_files_with_checksums_give_the_original_table_or_an_error(folder, kind, mutate):
    path = folder / kind
    if kind == "csr.npz":
        sp.save_npz(path, sparse(TABLE, "csr"))
    else:
        ba.write(TABLE if kind != "table.png" else TABLE.bits, path)
    path.write_bytes(mutate(path.read_bytes()))
    table = outcome(ba.read, path)
    assert table is None or table.bits == TABLE.bits


@MANY
@given(mutate=mutations(), data=st.data())
def test_a_packed_store_gives_the_original_table_or_an_error(folder, mutate, data):
    """Only the names of columns are not protected by checksums."""
    path = folder / "packed.zarr"
    ba.write(TABLE, path)
    file = data.draw(st.sampled_from(sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())))
    (path / file).write_bytes(mutate((path / file).read_bytes()))
    table = outcome(ba.read, path)
    if table is not None:
        columns = json.loads((path / "zarr.json").read_text())["attributes"]["bitatoms"].get("columns")
        assert table == Table(TABLE.bits, TABLE.row_names, columns)


# The libraries of a format


ARROW = pa.table({f"c{column}": X[:, column].astype(float) for column in range(10)})
LIBRARIES = {  # a file, how it is written, and read again
    "npy": ("x.npy", lambda path: np.save(path, X.astype("<i2")), np.load),
    "npy, Fortran order": ("x.npy", lambda path: np.save(path, np.asfortranarray(X)), np.load),
    "parquet": ("x.parquet", lambda path: parquet.write_table(ARROW, path), parquet.read_table),
    "feather": ("x.feather", lambda path: feather.write_feather(ARROW, path), feather.read_table),
}


@pytest.mark.parametrize("kind", LIBRARIES)
@MANY
@given(mutate=mutations())
def test_what_is_read_is_what_the_library_of_the_format_reads(folder, kind, mutate):
    name, write, reference = LIBRARIES[kind]
    path = folder / name
    write(path)
    path.write_bytes(mutate(path.read_bytes()))
    found = cells_of(path)
    if found is not None:
        table = reference(path)
        columns = table.T if isinstance(table, np.ndarray) else [column.to_numpy() for column in table.columns]
        assert found == np.stack(columns, axis=1).astype(float).tolist()


@MANY
@given(format=st.sampled_from(("csr", "csc", "coo", "bsr", "dia")), data=st.data())
def test_changed_arrays_of_a_sparse_matrix_are_read_as_scipy_reads_them(folder, format, data):
    file = io.BytesIO()
    sp.save_npz(file, sparse(TABLE, format))
    parts = dict(np.load(io.BytesIO(file.getvalue())))
    name = data.draw(st.sampled_from(sorted(set(parts) - {"format", "_is_array"})))
    array, far = parts[name], st.sampled_from((2**31, 2**62, -(2**62)))
    match data.draw(st.sampled_from(("values", "type", "shorter", "shape", "gone"))):
        case "values" if array.dtype.kind in "iu":
            array = array.astype(np.int64)
            drawn = st.integers(-3, 200) if name == "shape" else st.integers(-3, 30) | far
            for index in data.draw(st.lists(st.integers(0, array.size - 1), max_size=5)):
                array.flat[index] = data.draw(drawn)
        case "type":
            array = array.astype(data.draw(st.sampled_from(("?", "u1", "i8", "f8", "S3"))))
        case "shorter":
            array = array[: data.draw(st.integers(0, len(array)))]
        case "shape":
            array = array[np.newaxis]
        case "gone":
            array = None
    path = folder / "x.npz"
    path.write_bytes(npz(**{key: value for key, value in (parts | {name: array}).items() if value is not None}))
    found = cells_of(path)
    if found is not None:
        assert found == sp.load_npz(path).toarray().astype(float).tolist()


@pytest.mark.parametrize("version", [2, 3])
@MANY
@given(mutate=mutations(), data=st.data())
@pytest.mark.filterwarnings("ignore")
def test_changed_zarr_arrays_are_read_as_zarr_reads_them(folder, version, mutate, data):
    import zarr

    path = folder / "x.zarr"
    shutil.rmtree(path, ignore_errors=True)
    zarr.create_array(path, data=X, chunks=(4, 10), zarr_format=version, compressors=None)
    file = data.draw(st.sampled_from(sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())))
    (path / file).write_bytes(mutate((path / file).read_bytes()))
    found = cells_of(path)
    assert found is None or found == zarr.open_array(path, mode="r")[:].astype(float).tolist()


# Derandomized: the HDF5 library may crash on an example, and Python with it.
@settings(max_examples=30, derandomize=True)
@given(mutate=mutations(), sparse_kind=st.booleans())
@pytest.mark.filterwarnings("ignore")
def test_changed_hdf5_files_are_read_as_h5py_reads_them(folder, mutate, sparse_kind):
    h5py = pytest.importorskip("h5py")
    ad = pytest.importorskip("anndata")
    path = folder / "x.h5ad"
    values = X.astype(np.float32)
    ad.AnnData(sp.csr_matrix(values) if sparse_kind else values).write_h5ad(path)
    path.write_bytes(mutate(path.read_bytes()))
    found = cells_of(path, missing="zero")
    if found is not None:
        with h5py.File(path) as file:
            matrix = file["X"]
            if isinstance(matrix, h5py.Group):
                parts = [np.asarray(matrix[name]) for name in ("data", "indices", "indptr")]
                cells = sp.csr_matrix(tuple(parts), shape=tuple(matrix.attrs["shape"])).toarray()
            else:
                cells = np.asarray(matrix)
        assert found == np.nan_to_num(cells).tolist()


# A few lines of Python


def parsed_mtx(text):
    """Return the cells of a Matrix Market file of a general pattern, or None."""
    first, *lines = text.split("\n")
    if first.split() != ["%%MatrixMarket", "matrix", "coordinate", "pattern", "general"]:
        return None
    while lines and (lines[0].startswith("%") or not lines[0].strip()):
        lines.pop(0)
    numbers = [line.split() for line in lines if line.strip()]
    if not numbers or not all(re.fullmatch(r"\d+", word) for line in numbers for word in line):
        return None
    size, *entries = [[int(word) for word in line] for line in numbers]
    if len(size) != 3 or any(len(entry) != 2 for entry in entries) or len(entries) != size[2]:
        return None
    if any(not (1 <= row <= size[0] and 1 <= column <= size[1]) for row, column in entries):
        return None
    cells = np.zeros(size[:2])
    for row, column in entries:
        cells[row - 1, column - 1] += 1
    return None if (cells > 1).any() else cells.tolist()


def parsed_items(text):
    """Return one list of item numbers per line, as cells, or None."""
    rows = [line.split() for line in re.split("\r\n|\n", text)]
    if not text or not all(re.fullmatch("[0-9]+", word) and int(word) < 2**63 for row in rows for word in row):
        return None
    rows = [{int(word) for word in row} for row in (rows[:-1] if text.endswith("\n") else rows)]
    items = sorted(set().union(*rows))
    return [[float(item in row) for item in items] for row in rows]


def parsed_baskets(text):
    """Return one list of item names per line, in the order of their first occurrence, as cells."""
    lines = text.split("\n")
    rows = [[item.strip() for item in line.split(",") if item.strip()] for line in lines]
    rows = rows[:-1] if text.endswith("\n") else rows
    items = list(dict.fromkeys(item for row in rows for item in row))
    return [[float(item in row) for item in items] for row in rows] if text else None


def parsed_pairs(text):
    """Return the cells of a long table without a header, or None."""
    lines = [[cell.strip() for cell in line.split(",")] for line in text.split("\n") if line.strip()]
    if not lines or any(len(line) != 2 or not line[0] or not line[1] for line in lines):
        return None
    rows, items = (list(dict.fromkeys(line[part] for line in lines)) for part in (0, 1))
    return [[float([row, item] in lines) for item in items] for row in rows]


def parsed_csv(text):
    """Return the cells of a table with a header and row names, NaN for blank ones, or None."""
    lines = [line.split(",") for line in text.split("\n") if line]
    if any(len(line) != 4 for line in lines):
        return None
    cells = [line[1:] for line in lines[1:]]
    if any(cell not in ("0", "1", "") for row in cells for cell in row):
        return None
    return [[float(cell or "nan") for cell in row] for row in cells]


TEXTS = {  # a file, how it begins, what may follow, options, and what reads it
    "x.mtx": ("%%MatrixMarket matrix coordinate pattern general\n", "012 3\n", {}, parsed_mtx),
    "x.dat": ("", "0129 \n-a", {}, parsed_items),
    "x.basket": ("a", "abc ,\n", {"separator": ","}, parsed_baskets),
    "x.pairs": ("", "ab1,\n", {"header": False}, parsed_pairs),
    "x.csv": (",a,b,c\nann,1,0,1\nbob,", "01,\n2", {"header": True, "row_names": True}, parsed_csv),
}


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=60)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::bitatoms.errors.InputWarning")
def test_texts_are_read_as_a_few_lines_of_python_read_them(folder, name, data):
    beginning, alphabet, options, parse = TEXTS[name]
    text = beginning + data.draw(st.text(st.sampled_from(alphabet), max_size=24))
    (folder / name).write_text(text, newline="")
    np.testing.assert_equal(cells_of(folder / name, **options), parse(text))


def parsed_pbm(content):
    """Return the pixels of an image without comments, or None."""
    header = re.match(rb"P([14])\s+(\d+)\s+(\d+)(\s|$)", content)
    if header is None or b"0" in (header[2], header[3]):
        return None
    width, height, data = int(header[2]), int(header[3]), content[header.end() :]
    if header[1] == b"1":
        pixels = re.sub(rb"\s", b"", data)
        if len(pixels) != width * height or pixels.strip(b"01"):
            return None
        return np.reshape([float(pixel) for pixel in pixels.decode()], (height, width)).tolist()
    n_bytes = -(-width // 8)
    if len(data) != height * n_bytes:
        return None
    rows = np.frombuffer(data, np.uint8).reshape(height, n_bytes)
    return np.unpackbits(rows, axis=1, count=width).astype(float).tolist()


PBM = {"raw": b"P4\n10 6\n" + np.packbits(X, axis=1).tobytes(), "plain": b"P1 10 6\n" + b"".join(
    str(bit).encode() for bit in X.ravel()
)}  # fmt: skip


@pytest.mark.parametrize("kind", PBM)
@settings(max_examples=60)
@given(mutate=mutations(b"01P4 \n"))
def test_changed_images(folder, kind, mutate):
    content = mutate(PBM[kind])
    if b"#" in content:
        return  # a comment
    for name, written in (("x.pbm", content), ("x.pbm.gz", gzip.compress(content, mtime=0))):
        (folder / name).write_bytes(written)
        assert cells_of(folder / name) == parsed_pbm(content)


BIM = "1\trs1\t0\t5\tA\tG\n1\trs2\t0\t7\tC\tT\n2\trs3\t0\t9\tC\tT\n"
FAM = "".join(f"0 person{number} 0 0 0 -9\n" for number in range(5))


@settings(max_examples=60)
@given(mutate=mutations())
@pytest.mark.filterwarnings("ignore:.*missing value")
def test_changed_genotypes(folder, mutate):
    """Two bits per individual, from the lowest: 00 two copies, 10 one copy, 11 none, 01 missing."""
    pytest.importorskip("bed_reader")
    (folder / "x.bim").write_text(BIM)
    (folder / "x.fam").write_text(FAM)
    content = mutate(b"\x6c\x1b\x01" + bytes(range(0x1B, 0x1B + 6)))
    (folder / "x.bed").write_bytes(content)
    if content[:3] != b"\x6c\x1b\x01" or len(content) != 9:
        assert cells_of(folder / "x.bed") is None
        return
    variants = []
    for variant in np.frombuffer(content[3:], np.uint8).reshape(3, 2):
        codes = [variant[person // 4] >> 2 * (person % 4) & 3 for person in range(5)]
        copies = np.array([{0: 2, 2: 1, 3: 0, 1: np.nan}[code] for code in codes])
        variants += [np.where(np.isnan(copies), np.nan, copies >= least) for least in (1, 2)]
    np.testing.assert_equal(cells_of(folder / "x.bed"), np.transpose(variants).tolist())
