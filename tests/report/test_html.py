"""The building blocks of pages: PNG images, tables, text and ticks."""

import gzip
import json
import re
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.html.png import encode_png, png_data_uri
from bitatoms.html.tables import DataTable, escape_markdown
from bitatoms.html.text import escape, truncated
from bitatoms.report.codelength import ticks
from support.pages import decode_png
from support.strategies import random_bits


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 16), st.integers(0, 9))
def test_png_round_trip(height, width, colours, seed):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, colours, (height, width)).astype(np.uint8)
    palette = [tuple(map(int, colour)) for colour in rng.integers(0, 256, (colours, 3))]
    shown, used = decode_png(png_data_uri(encode_png(pixels, palette)))
    assert np.array_equal(shown, pixels)
    assert [tuple(map(int, colour)) for colour in used] == palette


def test_png_is_read_by_pillow():
    image = pytest.importorskip("PIL.Image")
    pixels = random_bits(0, 9, 13, 0.5)
    seen = np.asarray(image.open(BytesIO(encode_png(pixels, [(0, 0, 0), (255, 0, 9)]))).convert("RGB"))
    assert np.array_equal(seen[:, :, 0] // 255, pixels)


def test_escaped_text_has_no_markup_characters():
    shown = escape(truncated("<a href='x'>\"b\" & \ud800</a>"))
    assert shown == "&lt;a href=&#x27;x&#x27;&gt;&quot;b&quot; &amp; \ufffd&lt;/a&gt;"


@given(st.integers(1, 10**12))
def test_ticks_are_few_and_round(most):
    marks = ticks(most)
    assert (marks[0], 2 <= len(marks) <= 6, marks[-1] <= most) == (0, True, True)
    assert re.fullmatch("[125]0*", str(marks[1]))


def test_table_is_exported_as_csv_markdown_and_html():
    table = DataTable.from_rows(("name|", "count", "share"), [("a|b<", 12345, 0.12345), ("c", None, 1234.5)])
    assert table.to_csv() == "name|,count,share\na|b<,12345,0.12345\nc,,1234.5\n"
    lines = table.to_markdown().splitlines()
    assert lines[1:] == ["| --- | ---: | ---: |", "| a\\|b\\< | 12,345 | 0.123 |", "| c | – | 1,234 |"]
    assert '<td class="number">12,345</td><td class="number">0.123</td>' in table.to_html("label")
    assert "a|b&lt;" in table.to_html("label")


MIXED = DataTable(
    ("names", "share", "known", "never", "lifts"),
    ((("a;b", "<c>"), 0.123456, True, None, (1.25, None)), ((), None, False, None, None)),
    {"share": ".2f", "lifts": ".3g"},
    frozenset({"never", "lifts"}),
)


def test_a_table_is_written_in_all_formats(tmp_path):
    for name in ("t.csv", "t.tsv", "t.csv.gz", "t.json", "t.md", "t.html", "t.xlsx"):
        MIXED.write(tmp_path / name)
    assert (tmp_path / "t.csv").read_text() == 'names,share,known,lifts\n"""a;b""; <c>",0.12,yes,1.25; \n,,no,\n'
    assert (tmp_path / "t.tsv").read_text().splitlines()[0] == "names\tshare\tknown\tlifts"
    assert gzip.decompress((tmp_path / "t.csv.gz").read_bytes()) == (tmp_path / "t.csv").read_bytes()
    records = json.loads((tmp_path / "t.json").read_text())
    assert records[0] == {
        "names": ["a;b", "<c>"], "share": 0.123456, "known": True, "never": None, "lifts": [1.25, None]
    }  # fmt: skip
    lines = (tmp_path / "t.md").read_text(encoding="utf-8").splitlines()
    assert lines[1:] == ["| --- | ---: | --- | --- |", '| "a;b"; \\<c\\> | 0.12 | yes | 1.25; |', "|  | – | no | – |"]
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "<h1>t</h1>" in page
    assert '<td class="number">0.12</td><td>yes</td>' in page
    sheet = pytest.importorskip("openpyxl").load_workbook(tmp_path / "t.xlsx").active
    assert list(sheet.values)[1:] == [('"a;b"; <c>', 0.12, "yes", "1.25; "), (None, None, "no", None)]


def test_markdown_is_escaped():
    shown = "__init__ a_b \\* [x](y)\n<b>|# `c` \x1b"
    assert escape_markdown(shown) == "\\_\\_init\\_\\_ a_b \\\\\\* \\[x\\](y) \\<b\\>\\|\\# \\`c\\` \\\\x1b"


def test_rows_are_generated_once(tmp_path):
    DataTable(("n",), ((number,) for number in range(3))).write(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "n\n0\n1\n2\n"
    with pytest.raises(ba.FileError, match=r"t.xlsx.gz: tables are written as .csv, .tsv, .json, .md, .html or .xlsx"):
        MIXED.write(tmp_path / "t.xlsx.gz")
