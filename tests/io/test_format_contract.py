"""What holds for all formats: exact cells and names at awkward sizes, chunks, missing values, truncated and other files.

Kinds of files are in `support.formats`; the tests of a reader have only what is particular to it.
"""

import pickle
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.errors import InputWarning
from bitatoms.io.formats import FORMATS, load_reader
from bitatoms.table import Table
from support.commands import runner
from support.files import assert_read_error, tables
from support.formats import (
    FOREIGN,
    KINDS,
    WRITTEN,
    Cells,
    Kind,
    names,
    random_table,
    skip_unless_installed,
    use_small_chunks,
    write,
    write_h5mu,
    write_ten_x,
)

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
    return table.bits.n_unknown // (2 if kind.format == "bed" else 1)


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


@pytest.mark.parametrize("name", [name for name in KINDS if KINDS[name].unknown])
def test_missing_values_are_counted_and_columns_left_out(tmp_path, name):
    kind = KINDS[name]
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


@pytest.mark.parametrize("name", KINDS)
def test_a_packed_file_is_the_table(tmp_path, monkeypatch, name):
    kind = KINDS[name]
    skip_unless_installed(kind.format)
    given, expected = random_table(kind, (70, 65))
    write(kind, tmp_path / kind.file, given)
    use_small_chunks(monkeypatch, 640)
    with pytest.warns(InputWarning) if kind.unknown else monkeypatch.context():
        store = ba.pack(tmp_path / kind.file, tmp_path / "packed.zarr")
    assert store.shape == expected.shape
    assert reads(store.path, expected.bits.n_unknown) == expected


@pytest.mark.parametrize("name", [name for name in FOREIGN if FOREIGN[name].counts])
def test_numbers_are_compared_with_the_threshold(tmp_path, monkeypatch, name):
    kind = FOREIGN[name]
    use_small_chunks(monkeypatch)
    random = np.random.default_rng(0)
    cells = random.choice([-2, 0, 0, 0.5, 1, 3, np.nan if kind.unknown else 1], (9, 70))
    cells[0, 0] = cells[8, 69] = 3
    given = Cells(cells, names("r", 9), names("c", 70))
    kind.write(tmp_path / kind.file, given)
    if kind.format not in ("h5ad", "zarr"):  # which advise about scaled values
        assert_read_error(tmp_path / kind.file, " is neither 0 nor 1", "binarize=0")
    for threshold in (-1, 0, 0.5, 2):
        with pytest.warns(InputWarning) if kind.unknown or kind.format == "h5ad" else monkeypatch.context():
            table = ba.read(tmp_path / kind.file, binarize=threshold)
        np.testing.assert_array_equal(table.to_dense(float), np.where(np.isnan(cells), np.nan, cells > threshold))


NAMED = {name: kind for name, kind in WRITTEN.items() if kind.columns and name not in ("bed", "fimi", "fimi.gz")}


@pytest.mark.parametrize("name", NAMED)
@settings(max_examples=10)
@given(table=tables(n_rows=st.sampled_from((1, 2, 3)), n_cols=st.sampled_from((1, 2, 9))))
def test_awkward_names_are_read_back_exactly(tmp_path_factory, name, table):
    kind, folder = WRITTEN[name], tmp_path_factory.mktemp("names")
    skip_unless_installed(kind.format)
    expected = table
    if kind.format in ("csv", "tsv", "xlsx") and table.row_names is not None:  # a header is written
        expected = Table(table.bits, table.row_names, table.names_of(range(table.shape[1])))
    if not kind.empty:
        ones = np.maximum(table.to_dense(), np.eye(1, table.shape[1], dtype=np.uint8))
        ones[0] = 1
        rows = table.row_names or tuple(map(str, range(len(table))))
        bits = ba.BitMatrix.from_dense(ones)
        table = Table(bits, rows if kind.row_names else None, table.names_of(range(table.shape[1])))
        expected = table
    for file in (kind.file, f"again-{kind.file}"):
        ba.write(table, folder / file)
    assert ba.read(folder / kind.file) == expected
    contents = [
        [part.read_bytes() for part in (sorted(path.rglob("*")) if path.is_dir() else [path]) if part.is_file()]
        for path in (folder / kind.file, folder / f"again-{kind.file}")
    ]
    assert contents[0] == contents[1]


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


# Files that are not what they should be.

MADE = {**{kind.format: kind for kind in WRITTEN.values()}, "fimi": WRITTEN["fimi"], "mtx": WRITTEN["mtx"]}
MADE |= {"pbm": WRITTEN["pbm"], "tsv": Kind("table.tsv"), "h5mu": FOREIGN["h5mu"], "10x": FOREIGN["10x"]}
MADE |= {format: Kind(f"table.{format}") for format in ("pgen", "vcf", "bcf", "haps")}


@pytest.fixture(scope="session")
def valid_file(tmp_path_factory):
    """Copy a valid file of a format, with its companions, into a folder; skip a format that is not installed."""
    originals = tmp_path_factory.mktemp("valid")

    def copy_to(format, folder):
        skip_unless_installed(format)
        kind = MADE[format]
        path = originals / kind.file
        if not path.exists():
            if format in ("bed", "pgen", "vcf", "bcf", "haps"):
                from support.genotypes import haplotype_table, random_alleles

                bed = random_table(MADE["bed"], (11, 6))[0]
                table = bed if format == "bed" else haplotype_table(random_alleles(11, 6))
            else:
                table = random_table(kind._replace(unknown=False), (11, 12))[0]
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
def test_the_file_that_is_malformed_below_is_valid(valid_file, tmp_path, format):
    table = ba.read(valid_file(format, tmp_path), missing="zero")
    assert table.shape == (11, 12)
    assert table.bits.count() > 20


# Text that ends early may be a shorter table; what it contains then is in the tests of these readers.
SHORTER = ("csv", "tsv", "fimi", "baskets", "pairs", "haps", "vcf")


@pytest.mark.parametrize("format", [format for format in FORMATS if format not in SHORTER])
@settings(max_examples=10)
@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_files_are_errors(valid_file, tmp_path_factory, format, share):
    path = valid_file(format, tmp_path_factory.mktemp("truncated"))
    content = data_file(path).read_bytes()
    length = int(share * (len(content) - (format in ("mtx", "png"))))  # the last byte of these may be absent
    data_file(path).write_bytes(content[:length])
    assert_read_error(path)


def other_contents(format):
    """Yield names and contents that no file of a format has."""
    yield "empty", b""
    yield "pickle 0", pickle.dumps(Payload(), 0)
    yield "pickle 5", pickle.dumps(Payload(), 5)
    yield "noise", bytes(range(256)) * 9


class Payload:
    """An object that creates a folder when it is unpickled."""

    def __reduce__(self):
        import os

        return (os.mkdir, ("unpickled",))


@pytest.mark.parametrize("format", FORMATS)
def test_other_contents_are_errors_and_nothing_is_unpickled(valid_file, tmp_path, monkeypatch, format):
    monkeypatch.chdir(tmp_path)
    path = valid_file(format, tmp_path)
    for name, content in other_contents(format):
        data_file(path).write_bytes(content)
        if (format, name) == ("baskets", "pickle 0"):  # which is text
            ba.read(path)
        else:
            assert_read_error(path)
        assert not (tmp_path / "unpickled").exists()
        if path.is_dir():
            break  # the largest file is another one now
    (tmp_path / "folder").mkdir()
    folder = (tmp_path / "folder").rename(tmp_path / f"folder{FORMATS[format].extensions[0]}")
    assert_read_error(folder, "folder")


# Pairs of a content and a format that can read it: text may be lists of names, and the separator of cells is detected.
READABLE_AS = {("csv", "baskets"), ("tsv", "baskets"), ("fimi", "baskets"), ("pairs", "baskets"), ("tsv", "csv")}
READABLE_AS |= {("pairs", "csv"), ("baskets", "csv")}  # detected
READABLE_AS |= {("haps", "baskets"), ("vcf", "baskets"), ("vcf", "bcf"), ("bcf", "vcf")}


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
        else:
            assert_read_error(path)


MAGIC = ("npy", "npz", "xlsx", "parquet", "feather", "mtx", "h5ad", "h5mu", "png", "tiff", "bed")


@pytest.mark.parametrize("content", MAGIC)
def test_the_error_names_the_format_of_the_content(valid_file, tmp_path, content):
    path = valid_file(content, tmp_path).rename(tmp_path / "table.npy" if content != "npy" else tmp_path / "table.csv")
    assert_read_error(path, f"it looks like '{content}'; pass format=\"{content}\"")


@pytest.mark.parametrize("format", ["csv", "npz", "h5ad"])
def test_the_command_line_prints_one_line_and_writes_nothing(valid_file, tmp_path, monkeypatch, capsys, format):
    pytest.importorskip("typer")
    monkeypatch.chdir(tmp_path)
    path = valid_file(format, tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    before = set(tmp_path.rglob("*"))
    code, output, error = runner(capsys)("convert", path.name, "converted.npz")
    assert (code, output, set(tmp_path.rglob("*"))) == (2, "", before)
    assert error.startswith(f"bitatoms: {path.name}: ")
    assert error.count("\n") == 1
