"""Which format a file has: by its name, by its first bytes, and what to do about others."""

import re

import pytest

import bitatoms as ba
from bitatoms.io.formats import FORMATS, infer_format, load_reader


@pytest.mark.parametrize("format", FORMATS)
def test_extensions_select_the_format(format):
    for extension in FORMATS[format].extensions:
        assert infer_format(f"table{extension}") == infer_format(f"a/b.csv/TABLE{extension.upper()}") == format
        if not FORMATS[format].is_writable:
            with pytest.raises(ba.FileError, match=f"the format '{format}' .* can only be read; write .h5ad or .npz"):
                ba.write([[1]], f"table{extension}")
        if FORMATS[format].gzip:
            assert infer_format(f"table{extension}.gz") == format


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("table.cvs", "unknown extension (did you mean .csv?); pass format, one of csv"),
        ("table.npy.gz", "unknown extension (did you mean .npy?)"),
        ("table.fam", "pass the .bed file"),
        ("table.pvar", "pass the .pgen file"),
        ("table.sample", "pass the .haps file"),
        ("table.xls", "save it as .xlsx or .csv"),
        ("table.jpg", "or to black and white (.pbm)"),
        ("table.pkl", "never loaded"),
    ],
)
def test_other_extensions(name, part):
    with pytest.raises(ba.FileError) as caught:
        infer_format(name)
    assert str(caught.value).startswith(f"{name}: ")
    assert part in str(caught.value)


def test_format_overrides_the_extension():
    assert infer_format("table.csv", "npz") == "npz"
    with pytest.raises(ba.FileError, match="there is no format 'excel'; choose from csv"):
        infer_format("table.csv", "excel")
    with pytest.raises(ba.FileError, match=r"unknown extension; use one of \.csv"):
        infer_format("table.jpg", writing=True)


def test_missing_library(monkeypatch):
    monkeypatch.setattr("bitatoms.io.formats.find_spec", lambda name: None)
    for format, library, extra in (
        ("bed", "bed-reader", "plink"),
        ("bcf", "cyvcf2", "vcf"),
        ("pgen", "pgenlib", "pgen"),
    ):
        message = f'table: the format {format!r} needs {library}; install it with pip install "bitatoms[{extra}]"'
        with pytest.raises(ImportError, match=f"^{re.escape(message)}$"):
            load_reader(format, "table")
    assert hasattr(load_reader("csv", "table.csv"), "read")
