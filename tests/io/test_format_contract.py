"""What holds for all formats: exact cells and names at awkward sizes, chunks, missing values, malformed files, memory.

Kinds of files are in `support.formats`; the tests of a reader have only what is particular to it.
"""

import gzip
import os
import pickle
import shutil
import warnings
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.columns.table import Table
from bitatoms.errors import InputWarning
from bitatoms.io.api import open_table
from bitatoms.io.formats.registry import FORMATS, load_reader
from bitatoms.io.options import ReadOptions
from bitatoms.io.scratch import Scratch
from bitatoms.io.stream import Source, collect
from support.commands import runner
from support.files import assert_read_error, tables
from support.formats import (
    FOREIGN,
    GENOTYPES,
    KINDS,
    WRITTEN,
    Cells,
    Kind,
    names,
    random_table,
    skip_unless_installed,
    use_small_chunks,
    write,
)
from support.memory import read_with_peak

SIZES = [(1, 1), (2, 63), (3, 65), (65, 64), (33, 130)]
pytestmark = pytest.mark.filterwarnings("ignore:Object at .* is not recognized:UserWarning")


def transposed(table):
    return Table(table.bits.transpose(), table.columns, table.row_names)


def reads(path, n_missing=0, **options):
    """Read a file; assert that missing values are counted in a warning if and only if there are any."""
    if not n_missing:
        return ba.read(path, **options)
    number = "1 missing value is read as an unknown cell" if n_missing == 1 else f"{n_missing} missing values are read"
    with pytest.warns(InputWarning, match=f": {number}") as caught:
        table = ba.read(path, **options)
    assert [warning.filename for warning in caught] == [__file__]
    return table


def missing_values(kind, table):
    """Return the number of missing values that are counted: of genotypes, both cells are one value."""
    return table.bits.n_unknown // (2 if kind.format in GENOTYPES else 1)


@pytest.mark.parametrize("name", KINDS)
def test_tables_of_awkward_sizes_are_read_exactly(tmp_path, monkeypatch, name):
    """At once and in chunks of few rows, transposed, with unknown cells or zeros in their place."""
    kind = KINDS[name]
    skip_unless_installed(kind.format)
    path = tmp_path / kind.file
    for shape in SIZES[:-1] if kind.format == "xlsx" else SIZES:
        given, expected = random_table(kind, shape)
        write(kind, path, given)
        n_missing = missing_values(kind, expected)
        assert reads(path, n_missing) == expected
        with monkeypatch.context() as patch:
            use_small_chunks(patch, 64 if shape[0] < 4 else 1024)
            assert reads(path, n_missing) == expected
            assert ba.read(path, missing="zero", transpose=True) == transposed(expected.filled())
            if name not in FOREIGN:
                write(kind, path, given)
        assert name in FOREIGN or reads(path, n_missing) == expected


WITH_UNKNOWN = [name for name in KINDS if KINDS[name].unknown]


@pytest.mark.parametrize("name", WITH_UNKNOWN)
def test_missing_values_are_counted_and_columns_left_out(tmp_path, name):
    kind = KINDS[name]
    skip_unless_installed(kind.format)
    path = tmp_path / kind.file
    given, expected = random_table(kind, (3, 65))
    write(kind, path, given)
    problem = f"{missing_values(kind, expected)} values are missing, the first at "
    assert_read_error(path, problem, missing="refuse")
    if kind.columns:
        dropped = [0, 9, len(expected.columns) - 1]
        kept = [column for column in range(len(expected.columns)) if column not in dropped]
        table = ba.read(path, missing="zero", without=[expected.columns[column] for column in dropped])
        assert table.bits == expected.bits.filled().take_columns(kept)
        assert (table.row_names, table.columns) == (expected.row_names, tuple(expected.columns[k] for k in kept))


def position(kind, row, column):
    """Return the position of a cell in a message; rows of text and sheets count from 1, below a header."""
    if kind.format in ("csv", "tsv", "xlsx"):
        return f"{'row' if kind.format == 'xlsx' else 'line'} {row + 2}, column 'c{column}'"
    if kind.format == "mtx":
        return f"row {row + 1}, column {column + 1}"
    has_names = kind.columns and kind.format != "npz"
    return f"row {row} (counted from 0), column 'c{column}'" if has_names else f"row {row}, column {column} (counted"


@pytest.mark.parametrize(
    "name", [name for name in KINDS if KINDS[name].unknown and KINDS[name].format not in GENOTYPES]
)
def test_messages_have_the_position_of_a_cell_in_a_late_chunk(tmp_path, monkeypatch, name):
    kind = KINDS[name]
    path, cells = tmp_path / kind.file, np.zeros((20, 130))
    cells[0, 0], cells[18, 127] = 1, np.nan
    table = Table(ba.BitMatrix.from_dense(cells, missing="unknown"), names("r", 20), names("c", 130))
    if kind.write is ba.write:
        table = Table(table.bits, table.row_names if kind.row_names else None, table.columns if kind.columns else None)
    use_small_chunks(monkeypatch, 64)
    write(kind, path, table)
    assert_read_error(path, f"1 value is missing, at {position(kind, 18, 127)}", missing="refuse")
    if kind.counts:
        kind.write(path, Cells(np.where(np.isnan(cells), 2, cells), names("r", 20), names("c", 130)))
        assert_read_error(path, position(kind, 18, 127), ": 2 is neither 0 nor 1")


@pytest.mark.filterwarnings("ignore:.*missing value")
@pytest.mark.parametrize("name", KINDS)
def test_a_packed_file_is_the_table(tmp_path, monkeypatch, name):
    """Also if what is stored by columns, or in any order, is transposed in a folder for temporary files."""
    kind = KINDS[name]
    skip_unless_installed(kind.format)
    path, folder = tmp_path / kind.file, tmp_path / "scratch"
    folder.mkdir()
    given, expected = random_table(kind, (20 if kind.format == "xlsx" else 200, 65))
    write(kind, path, given)
    use_small_chunks(monkeypatch, 640)
    store = ba.pack(path, tmp_path / "packed.zarr")
    assert store.shape == expected.shape
    assert ba.read(store.path) == expected
    for transpose in (False, True):
        source = Source(path, kind.format, str(path), Scratch(folder, tmp_path / "rows.zarr", 70_000), keeps_rows=False)
        found = collect(open_table(source, ReadOptions(transpose=transpose)))
        assert found == (transposed(expected) if transpose else expected)
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in FOREIGN if FOREIGN[name].counts])
def test_numbers_are_compared_with_the_threshold(tmp_path, monkeypatch, name):
    kind = FOREIGN[name]
    use_small_chunks(monkeypatch)
    random = np.random.default_rng(0)
    cells = random.choice([-2, 0, 0, 0.5, 1, 3, np.nan if kind.unknown else 1], (9, 70))
    cells[0, 0] = cells[8, 69] = 3
    given = Cells(cells, names("r", 9), names("c", 70))
    kind.write(tmp_path / kind.file, given)
    if kind.format not in ("h5ad", "zarr", "10x"):  # which advise about scaled values
        assert_read_error(tmp_path / kind.file, " is neither 0 nor 1", "binarize=0")
    for threshold in (-1, 0, 0.5, 2):
        with pytest.warns(InputWarning) if kind.unknown or kind.format == "h5ad" else monkeypatch.context():
            table = ba.read(tmp_path / kind.file, binarize=threshold)
            filled = ba.read(tmp_path / kind.file, binarize=threshold, missing="zero")
        np.testing.assert_array_equal(table.to_dense(float), np.where(np.isnan(cells), np.nan, cells > threshold))
        np.testing.assert_array_equal(filled.to_dense(), cells > threshold)  # even if zeros are ones


NAMED = {name: kind for name, kind in WRITTEN.items() if kind.columns and kind.format not in (*GENOTYPES, "fimi")}


@pytest.mark.parametrize("name", NAMED)
@settings(max_examples=10)
@given(table=tables(n_rows=st.sampled_from((1, 2, 3)), n_cols=st.sampled_from((1, 2, 9))))
def test_awkward_names_are_read_back_exactly(tmp_path_factory, name, table):
    kind, folder = WRITTEN[name], tmp_path_factory.mktemp("names")
    skip_unless_installed(kind.format)
    header = table.names_of(range(table.shape[1]))
    expected = table
    if kind.format in ("csv", "tsv", "xlsx") and table.row_names is not None:  # a header is written
        expected = Table(table.bits, table.row_names, header)
    if not kind.empty:
        ones = np.maximum(table.to_dense(), np.eye(1, table.shape[1], dtype=np.uint8))
        ones[0] = 1
        rows = table.row_names or tuple(map(str, range(len(table))))
        expected = table = Table(ba.BitMatrix.from_dense(ones), rows if kind.row_names else None, header)
    contents = []
    for path in (folder / kind.file, folder / f"again-{kind.file}"):
        ba.write(table, path)
        assert ba.read(path) == expected
        contents.append([part.read_bytes() for part in sorted([path, *path.rglob("*")]) if part.is_file()])
    assert contents[0] == contents[1]


COMMANDS = (
    "fit table.csv -o table.csv",
    "fit table.csv -o ./new.csv --codes new.csv",
    "fit table.csv --codes new.csv --atoms-to new.csv",
    "transform model.npz table.csv -o model.npz",
    "transform model.npz table.csv -o table.csv",
    "reconstruct model.npz --codes table.csv -o table.csv",
    "report model.npz table.csv -o table.csv",
    "show model.npz --atoms-to model.npz",
)
SHAPES = {  # tables without rows or columns, and the formats that hold them
    (0, 5): ("npy", "npz", "mtx", "h5ad", "zarr", "parquet", "feather"),
    (5, 0): ("npy", "npz", "mtx", "h5ad", "zarr"),
    (0, 0): ("npy", "npz", "mtx"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_empty_tables_are_read_back(tmp_path, shape):
    for name in SHAPES[shape]:
        ba.write(Table(ba.BitMatrix.zeros(*shape)), tmp_path / WRITTEN[name].file)
        assert ba.read(tmp_path / WRITTEN[name].file) == Table(ba.BitMatrix.zeros(*shape))


@pytest.mark.parametrize("name", ["npz", "parquet", "feather", "h5ad", "zarr"])
def test_sizes_of_pictures_are_kept(tmp_path, name):
    bits = ba.BitMatrix.from_dense(np.arange(24).reshape(4, 6) % 5 == 0)
    for picture in (((2, 3), None), ((2, 3), (4, 6))):
        ba.write(Table(bits, picture=picture), tmp_path / WRITTEN[name].file)
        assert ba.read(tmp_path / WRITTEN[name].file) == Table(bits, picture=picture)


@pytest.mark.parametrize("name", ["npz", "mtx", "zarr"])
def test_names_of_any_characters_and_empty_names_are_kept(tmp_path, monkeypatch, name):
    use_small_chunks(monkeypatch)
    path, any_characters = tmp_path / WRITTEN[name].file, ["", "a\nb", "%", "\ud800", "\0", " c ", "ä"]
    for rows in (any_characters, [""] * 90, [f"{row}" * 3 for row in range(200)]):
        table = Table(ba.BitMatrix.zeros(len(rows), 7), rows, any_characters)
        ba.write(table, path)
        assert ba.read(path) == table


# Files that are not what they should be.

MADE = {**{kind.format: kind for kind in WRITTEN.values()}, "fimi": WRITTEN["fimi"], "mtx": WRITTEN["mtx"]}
MADE |= {"pbm": WRITTEN["pbm"], "tsv": Kind("table.tsv"), "h5mu": FOREIGN["h5mu"], "10x": FOREIGN["10x"]}


@pytest.fixture(scope="session")
def valid_file(tmp_path_factory):
    """Copy a valid file of a format, with its companions, into a folder; skip a format that is not installed."""
    originals = tmp_path_factory.mktemp("valid")

    def copy_to(format, folder):
        skip_unless_installed(format)
        kind = MADE[format]
        path = originals / kind.file
        if not path.exists():
            shape = (11, 6) if format in GENOTYPES else (11, 12)
            table = random_table(kind._replace(unknown=False), shape)[0]
            write(kind, path, table)
        companions = getattr(load_reader(format, path.name), "companions", lambda path: ())
        for part in (path.name, *companions(path)):
            copy = shutil.copytree if (originals / part).is_dir() else shutil.copy
            copy(originals / part, folder / part)
        return folder / path.name

    return copy_to


def data_file(path):
    """Return the file that holds the bits: for a store, the largest one in it."""
    if path.is_file():
        return path
    return max(path.rglob("c/**/*"), key=lambda file: file.is_file() and file.stat().st_size)


@pytest.mark.parametrize("format", FORMATS)
def test_the_files_that_are_changed_below_are_valid(valid_file, tmp_path, format):
    table = ba.read(valid_file(format, tmp_path), missing="zero")
    assert table.shape == (11, 12)
    assert table.bits.count() > 20


# Text that ends early may be a shorter table; what it contains then is in the tests of these readers.
SHORTER = ("csv", "tsv", "fimi", "baskets", "pairs", "vcf")


@pytest.mark.parametrize("format", [format for format in FORMATS if format not in SHORTER])
@settings(max_examples=10)
@given(share=st.floats(0, 1, exclude_max=True))
@example(share=1 - 1e-12)  # all but the last byte
def test_truncated_files_are_errors(valid_file, tmp_path_factory, format, share):
    path = valid_file(format, tmp_path_factory.mktemp("truncated"))
    content = data_file(path).read_bytes()
    spare = {"mtx": 4, "png": 13}.get(format, 0)  # the end of the last number, or of the image, may be absent
    length = int(share * (len(content) - spare))
    data_file(path).write_bytes(content[:length])
    assert_read_error(path)


class Payload:
    """An object that creates a folder when it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


OTHER_CONTENTS = {
    "empty": b"",
    "pickle 0": pickle.dumps(Payload(), 0),
    "pickle 5": pickle.dumps(Payload(), 5),
    "noise": bytes(range(256)) * 9,
}
OTHER_LIBRARIES = ("xlsx", "parquet", "feather", "png", "tiff", "zarr")  # whose messages differ


@pytest.mark.parametrize("format", FORMATS)
def test_other_contents_are_errors_and_nothing_is_unpickled(valid_file, tmp_path, monkeypatch, format):
    monkeypatch.chdir(tmp_path)
    path = valid_file(format, tmp_path)
    for name, content in OTHER_CONTENTS.items():
        data_file(path).write_bytes(content)
        if (format, name) == ("baskets", "pickle 0"):  # which is text
            ba.read(path)
        else:
            assert_read_error(path, *["empty"] * (name == "empty" and format not in OTHER_LIBRARIES))
        assert not (tmp_path / "unpickled").exists()
        if path.is_dir():
            break  # the largest file is another one now
    (tmp_path / "folder").mkdir()
    folder = (tmp_path / "folder").rename(tmp_path / f"folder{FORMATS[format].extensions[0]}")
    assert_read_error(folder, "folder")


# Pairs of a content and a format that can read it: text may be lists of names, and the separator of cells is detected.
READABLE_AS = {("csv", "baskets"), ("tsv", "baskets"), ("fimi", "baskets"), ("pairs", "baskets"), ("tsv", "csv")}
READABLE_AS |= {("baskets", "csv")}  # detected
READABLE_AS |= {("vcf", "baskets"), ("vcf", "bcf"), ("bcf", "vcf")}
# Known by their bytes.
MAGIC = ("npy", "npz", "xlsx", "parquet", "feather", "mtx", "h5ad", "h5mu", "png", "tiff", "bed")


@pytest.mark.filterwarnings("ignore::bitatoms.errors.InputWarning")
@pytest.mark.parametrize("content", FORMATS)
def test_content_of_another_format(valid_file, tmp_path, content):
    found = valid_file(content, tmp_path)
    for format in [each for each in FORMATS if each != content]:
        try:
            skip_unless_installed(format)
        except pytest.skip.Exception:
            continue
        path = tmp_path / f"{content}{FORMATS[format].extensions[0]}"
        found = found.rename(path)
        if (content, format) in READABLE_AS:
            assert ba.read(path).shape[0] > 5
        elif content in MAGIC and format in ("csv", "npy", "npz", "mtx"):
            assert_read_error(path, f"it looks like '{content}'; pass format=\"{content}\"")
        else:
            assert_read_error(path)


# Malformed workbooks, HDF5 files and images; those of other formats are in the tests of their readers.


def replace_part(old, new):
    """Replace some bytes of the sheet of a workbook, or add a part of the same name as another one."""

    def change(path):
        with zipfile.ZipFile(path) as archive:
            parts = [(name, archive.read(name)) for name in archive.namelist()]
        assert any(old in content for _, content in parts)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings(action="ignore"):
            for name, content in parts if old else [*parts, ("xl/workbook.xml", b"<x/>")]:
                archive.writestr(name, content.replace(old, new, 1) if "sheet1" in name else content)

    return change


def edit_hdf5(change):
    """Change an HDF5 file with h5py."""

    def edit(path):
        with pytest.importorskip("h5py").File(path, "a") as file:
            change(file)

    return edit


def replace_dataset(name, **new):
    """Replace an element of an HDF5 file by an array, or by a link to another file."""

    def change(file):
        del file[name]
        if new:
            file.create_dataset(name, **new)
        else:
            file[name] = pytest.importorskip("h5py").ExternalLink("other.h5ad", "/X")

    return edit_hdf5(change)


def set_value(name, value):
    """Change the first value of an array of an HDF5 file."""
    return edit_hdf5(lambda file: file[name].__setitem__(0, value))


def shape_of(*shape):
    return replace_dataset("matrix/shape", data=np.int64(shape))


def rename_second(file):
    for name in ("id", "name"):
        file[f"{FEATURES}/{name}"][1] = b"c0"


def image(pixels, **options):
    """Replace the file by an image of these pixels."""

    def save(path):
        from PIL import Image

        page = Image.fromarray(pixels)
        page.save(path, **options | ({"append_images": [page]} if options else {}))

    return save


def claim_many_pixels(path):
    data = path.read_bytes()
    header = b"IHDR" + (1 << 20).to_bytes(4, "big") * 2 + data[24:29]
    path.write_bytes(data[:12] + header + zlib.crc32(header).to_bytes(4, "big") + data[33:])


GRAY = np.arange(16, dtype=np.uint8).reshape(4, 4)
FEATURES, BARCODES = "matrix/features", "matrix/barcodes"
NOT_XLSX, LINK = "corrupt, or not a file of the format 'xlsx'", "is a link, which is not followed"
ELSEWHERE = {"shape": (9,), "dtype": "u1", "external": [("other.bin", 0, 9)]}
BAD = {
    ("xlsx", "not binary"): (replace_part(b"<v>0</v>", b"<v>2</v>"), "row 2, column 'c", "2 is neither 0 nor 1"),
    ("xlsx", "duplicate name"): (replace_part(b"<t>c1</t>", b"<t>c0</t>"), "columns 1 and 2 have the same name 'c0'"),
    ("xlsx", "a claimed column"): (replace_part(b'<row r="2">', b'<row r="2"><c r="ZZZZZZZ2"><v>1</v></c>'), NOT_XLSX),
    ("xlsx", "no text"): (replace_part(b't="inlineStr"><is><t>c1</t></is>', b't="s"><v>9</v>'), NOT_XLSX),
    ("xlsx", "entities"): (replace_part(b"<wor", b'<!DOCTYPE x [<!ENTITY a "1">]><wor'), "not plain XML: corrupt"),
    ("xlsx", "a long comment"): (replace_part(b"<wor", b"<!--" + b" " * (1 << 17) + b"--><wor"), "not plain XML"),
    ("xlsx", "unclosed element"): (replace_part(b"</sheetData>", b""), NOT_XLSX),
    ("xlsx", "a bomb"): (replace_part(b"<wor", b" " * (1 << 25) + b"<wor"), "claims an impossible size"),
    ("xlsx", "two parts"): (replace_part(b"", b""), "it contains two parts of the same name"),
    ("10x", "negative"): (set_value("matrix/data", -1), "its values are scaled"),
    ("10x", "another shape"): (shape_of(3, 3), "'/matrix' has no valid 'barcodes': shape (11,)"),
    ("10x", "a negative shape"): (shape_of(-12, 11), "it claims to have 11 rows and -12 columns"),
    ("10x", "one size"): (shape_of(12), "'/matrix' has no valid 'shape': shape (1,)"),
    ("10x", "a bomb"): (shape_of(10**9, 10**9), "it claims to have 1000000000 rows and 1000000000 columns, far more"),
    ("10x", "ragged"): (replace_dataset("matrix/indptr", data=np.arange(5)), "do not fit its shape (11, 12)"),
    ("10x", "index out of range"): (set_value("matrix/indices", 99), "it has a column index outside 0..11"),
    ("10x", "no names"): (edit_hdf5(lambda file: file[FEATURES].__delitem__("name")), "has no array 'name'"),
    ("10x", "numbers as names"): (
        replace_dataset(BARCODES, data=np.arange(11)),
        "has no valid 'barcodes': shape (11,), type int64",
    ),
    ("10x", "duplicate name"): (edit_hdf5(rename_second), "columns 1 and 2 have the same name 'c0'"),
    ("10x", "a link"): (replace_dataset("matrix"), f"'/matrix' {LINK}"),
    ("10x", "linked names"): (replace_dataset(FEATURES), f"'/matrix/features' {LINK}"),
    ("10x", "other values"): (replace_dataset("matrix/data", **ELSEWHERE), "stores its values in another file"),
    ("10x", "no matrix"): (edit_hdf5(lambda file: file.move(BARCODES, "weights")), "no matrix of 10x Genomics"),
    ("h5mu", "another shape"): (replace_dataset("mod/rna/X", data=np.ones((11, 3))), "'var' has 12 names; expected 3"),
    ("h5mu", "a link"): (replace_dataset("mod"), f"'/mod' {LINK}"),
    ("h5mu", "an array"): (replace_dataset("mod/rna", data=GRAY), "there is no modality 'rna' (modalities: 'rna')"),
    ("png", "gray"): (image(GRAY), "gray or color image (first: 254 of 255 at row 0, column 1", "binarize=127"),
    ("png", "transparent"): (image(np.zeros((4, 4, 4), np.uint8)), "the image has transparent pixels"),
    ("png", "a bomb"): (claim_many_pixels, "corrupt, or not a file of the format 'png'"),
    ("tiff", "two pages"): (image(np.zeros((4, 4), np.uint8), save_all=True), "the file contains 2 images"),
    ("tiff", "floats"): (image(np.full((4, 4), 0.5, np.float32)), "pixels of the image are floating-point numbers"),
}


@pytest.mark.parametrize(("format", "case"), BAD)
def test_malformed_files_are_errors(valid_file, tmp_path, format, case):
    corrupt, *parts = BAD[format, case]
    path = valid_file(format, tmp_path)
    corrupt(path)
    assert_read_error(path, *parts)


# The command line


def test_outputs_never_overwrite_inputs_or_each_other(valid_file, tmp_path, monkeypatch, capsys):
    pytest.importorskip("click")
    monkeypatch.chdir(tmp_path)
    table = ba.read(valid_file("csv", tmp_path))
    ba.BinaryDictionaryLearning(1, search="paper", random_state=0).fit(table).save("model.npz")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for command in COMMANDS:
        code, output, error = runner(capsys)(*command.split())
        assert (code, output) == (2, "")
        assert error.startswith(f"bitatoms: {command.split()[-1]}: ")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# Memory


FRUGAL = [f"bitatoms {name}" for name in ("npz", "mtx", "fimi", "pbm", "parquet", "feather", "bed")]
FRUGAL += ["csv, NA", "npy, Fortran order", "csr", "csc", "h5ad, array", "h5ad, csc"]


@pytest.mark.parametrize("name", FRUGAL)
def test_memory_is_that_of_the_packed_table_and_a_chunk(tmp_path, monkeypatch, name):
    kind = KINDS[name]
    skip_unless_installed(kind.format)
    n_rows, limit = (10_000, 12e6) if kind.format == "h5ad" else (1000, 3e6)  # the numbers take 20e6 and 4e6 bytes
    given, expected = random_table(kind._replace(unknown=False), (n_rows, 250 if name == "bitatoms bed" else 500))
    write(kind, tmp_path / kind.file, given)
    use_small_chunks(monkeypatch, 1 << 15)
    table, peak = read_with_peak(tmp_path / kind.file)
    assert table == expected
    assert peak < limit


@pytest.mark.parametrize("file", ["x.csv.gz", "x.pairs.gz", "x.basket.gz", "x.dat.gz", "x.mtx.gz"])
def test_endless_lines_are_errors_before_all_of_them_is_read(tmp_path, monkeypatch, file):
    monkeypatch.setattr("bitatoms.io.formats.number_lines.LONGEST_NUMBER_LINE", 1 << 16)
    monkeypatch.setattr("bitatoms.io.text.LONGEST_LINE", 1 << 16)
    beginning = b"%%MatrixMarket matrix coordinate pattern general\n3 3 3\n" if "mtx" in file else b""
    (tmp_path / file).write_bytes(gzip.compress(beginning + b"0" * (1 << 21), mtime=0))
    assert_read_error(tmp_path / file, "longer than 0 MiB")
