"""The HTML report: correct counts, texts and pictures, and safe against hostile names."""

import base64
import hashlib
import re
import struct
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.core.model import Model
from bitatoms.mdl import Codelength
from bitatoms.parallel import Workers
from bitatoms.report import report_data, report_html, write_report
from bitatoms.report.codelength import ticks
from bitatoms.report.curve import codelength_curve, curve_sizes
from bitatoms.report.html.png import encode_png, png_data_uri
from bitatoms.report.html.tables import DataTable
from bitatoms.report.html.text import escape, percent, truncated
from bitatoms.report.page import render
from bitatoms.report.pictures import full_picture
from bitatoms.table import Picture, Table
from support.strategies import random_bits

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "\u202eturned round",
    "a\x00b\x1bc",
    "lone \ud800 surrogate",
    "long " * 1000,
    "{0} %s ${x}",
    "牛乳",
)
VOID = {"meta", "link", "img", "br", "input"}


class Outline(HTMLParser):
    """Parse a page into its tags with attributes and its text, and assert that tags are balanced."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.texts = [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    def find_all(self, tag, **expected):
        expected = {name.rstrip("_"): value for name, value in expected.items()}
        return [attrs for name, attrs in self.tags if name == tag and expected.items() <= attrs.items()]


@pytest.fixture(scope="module")
def baskets():
    """A table with names, and its OR model."""
    X = ba.datasets.planted(300, 40, 5, algebra="or", code_density=0.3, atom_density=0.15, noise=0.02, random_state=0).X
    table = Table(BitMatrix.from_dense(X), [f"basket {n}" for n in range(300)], [f"item {n}" for n in range(40)])
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table), table


@pytest.fixture(scope="module")
def digits():
    """A table of pictures, and its XOR model, which has a bias."""
    X, _ = ba.datasets.digits()
    table = Table(BitMatrix.from_dense(X[:600]), picture=Picture((8, 8)))
    return ba.BinaryDictionaryLearning(random_state=0).fit(table), table


@pytest.fixture(scope="module", params=["baskets", "digits"])
def both(request):
    return request.getfixturevalue(request.param)


def random_model(n_rows, n_features, n_atoms, **more):
    """A random model that was not learned from data."""
    atoms = BitMatrix.from_dense(random_bits(0, n_atoms, n_features, 0.1))
    return Model(
        atoms=atoms,
        bias=np.zeros(n_features, np.uint8),
        algebra="xor",
        codelength=Codelength(1, 1, 1),
        history=(),
        wrong=np.full(n_features, n_rows // 10),
        coder="mdl",
        n_samples=n_rows,
        uses=np.full(n_atoms, n_rows // 5),
        **more,
    )


# --- report data


def test_counts_match_the_table_and_its_reconstruction(both):
    model, table = both
    data = report_data(model, table)
    X, codes = table.to_dense(), model.transform(table)
    reconstruction = model.inverse_transform(codes)
    assert np.array_equal(data.codes.to_dense(), codes)
    assert np.array_equal(data.ones, X.sum(axis=0))
    assert np.array_equal(data.missed, ((X == 1) & (reconstruction == 0)).sum(axis=0))
    assert np.array_equal(data.invented, ((X == 0) & (reconstruction == 1)).sum(axis=0))
    assert np.array_equal(data.uses, codes.sum(axis=0))
    assert np.allclose(data.row_bits, -model.score_samples(table))
    expected = ba.codelength(X, model.components_, codes, bias=model.bias_, algebra=model.algebra_)
    assert data.codelength == expected
    assert data.bits_without == ba.codelength(X).total
    row = data.row(17)
    assert np.array_equal(row.data, X[17])
    assert np.array_equal(row.reconstruction, reconstruction[17])
    assert row.missed.tolist() == np.flatnonzero(X[17] > reconstruction[17]).tolist()
    assert row.invented.tolist() == np.flatnonzero(X[17] < reconstruction[17]).tolist()
    assert row.better == pytest.approx((data.row_bits > data.row_bits[17]).mean())
    assert row.worse == pytest.approx((data.row_bits < data.row_bits[17]).mean())


def test_curve_points_are_codelengths_with_the_first_atoms(both):
    model, table = both
    data, learned = report_data(model, table), model.as_model()
    assert data.curve_stride == 1
    assert [point.atoms for point in data.curve] == curve_sizes(learned.atoms.n_rows)
    for point in data.curve:
        first = replace(learned, atoms=learned.atoms[: point.atoms], uses=learned.uses[: point.atoms])
        codes = first.code(table.bits, Workers()).factors()[1]
        length = ba.codelength(table, first.atoms, codes, bias=learned.bias, algebra=learned.algebra)
        assert (point.bits_errors, point.bits_codes, point.bits_atoms) == (length.errors, length.codes, length.atoms)
        assert point.bits == length.total
    assert data.curve[-1].bits == data.codelength.total


@pytest.mark.parametrize("n_atoms", [0, 1, 2, 20, 21, 68, 500, 5000])
def test_curve_sizes_go_from_none_to_all_in_few_steps(n_atoms):
    ks = curve_sizes(n_atoms)
    assert ks[0] == 0
    assert ks[-1] == n_atoms
    assert ks == sorted(set(ks))
    assert len(ks) <= 24
    assert n_atoms > 20 or ks == list(range(n_atoms + 1))


def test_long_curve_is_estimated_from_every_kth_row(baskets):
    model, table = baskets
    exact = report_data(model, table)
    learned = model.as_model()
    points, stride = codelength_curve(learned, table.bits, exact.codelength, Workers(), max_work=300 * 40 * 10 // 4)
    assert stride == 4
    assert points[-1] == exact.curve[-1]
    for point, expected in zip(points, exact.curve, strict=True):
        assert point.bits == pytest.approx(expected.bits, rel=0.15)
    assert "from one row in 4" in render(replace(exact, curve=points, curve_stride=stride), None, {})
    assert "one row in" not in render(exact, None, {})


def test_examples_use_their_atom_and_little_else(both):
    model, table = both
    data = report_data(model, table)
    codes = data.codes.to_dense()
    cost = data.errors.row_weights() + codes.sum(axis=1)
    for atom, rows in enumerate(data.examples):
        users = np.flatnonzero(codes[:, atom])
        best = sorted(users.tolist(), key=lambda row: (cost[row], row))[:3]
        assert [row for row in rows.tolist() if row >= 0] == best


def test_rows_are_chosen_by_name_or_index_or_by_quantiles_of_fit(baskets):
    model, table = baskets
    assert report_data(model, table, rows=["basket 7", 5, "3"]).chosen == (7, 5, 3)
    assert report_data(model, table.bits, rows=["row 7", "5"]).chosen == (7, 5)
    data = report_data(model, table)
    bits = data.row_bits[list(data.chosen)]
    assert len(bits) == 6
    assert (np.diff(bits) >= 0).all()
    worst = data.row_bits[list(data.worst)]
    assert worst.tolist() == sorted(data.row_bits, reverse=True)[:15]


@pytest.mark.parametrize("row", ["nobody", 300, -1, "300", "", 2.5])
def test_unknown_rows_raise(baskets, row):
    with pytest.raises(ValueError, match=r"the table has no row .*; pass names or indices up to basket 299"):
        report_data(*baskets, rows=[row])


def test_tables_that_do_not_match_the_model_raise(baskets):
    model, table = baskets
    with pytest.raises(ValueError, match="the table has 3 columns, but the model was learned from 40"):
        report_data(model, [[0, 1, 0]])
    with pytest.raises(ValueError, match=r"the table is empty \(0 rows and 40 columns\): nothing to report"):
        report_data(model, np.zeros((0, 40), np.uint8))
    other = Table(table.bits, columns=[f"thing {n}" for n in range(40)])
    with pytest.raises(ValueError, match="columns that the model was not fitted on: 'thing 0'"):
        report_data(model, other)
    with pytest.raises(TypeError, match="model must be a fitted BinaryDictionaryLearning or its Model, not str"):
        report_data("model.npz", table)
    with pytest.raises(NotFittedError):
        report_data(ba.BinaryDictionaryLearning(), table)


def test_raw_table_is_binarized_as_in_fit():
    X = ba.datasets.planted(100, 20, 2, noise=0, random_state=0).X * 5.0
    model = ba.BinaryDictionaryLearning(binarize=2.5, random_state=0).fit(X)
    assert report_data(model, X).ones.tolist() == (X > 2.5).sum(axis=0).tolist()


# --- texts


def test_summary_states_savings_and_accuracy(baskets):
    model, table = baskets
    data, text = report_data(model, table), Outline(report_html(model, table, title="baskets.csv")).text
    assert f"{model.n_components_} patterns make the description of 300 rows and 40 columns" in text
    assert f"{data.codelength.total:,} bits instead of {data.bits_without:,}" in text
    ones, missed = int(data.ones.sum()), int(data.missed.sum())
    assert f"Of the {ones:,} ones in the table the patterns account for {ones - missed:,}" in text
    assert "This is the table that the patterns were learned from." in text
    assert "Made by bitatoms" in text
    assert "bitatoms show MODEL --patterns patterns.csv" in text
    assert "search=fast" in text


def test_other_table_than_the_training_table_is_named_so(baskets):
    model, table = baskets
    assert "This is not the table that the patterns were learned from, which had 300 rows" in report_html(
        model, table.bits[:50]
    )
    other = BitMatrix.from_dense(random_bits(0, 300, 40, 0.1))
    assert "This is not the table" in report_html(model.as_model(), other)


def test_every_atom_has_a_card_with_its_rows_features_and_bits(baskets):
    model, table = baskets
    html = report_html(model, table)
    outline, data = Outline(html), report_data(model, table)
    cards = outline.find_all("li", class_="card")
    assert [int(card["data-atom"]) for card in cards] == list(range(1, model.n_components_ + 1))
    assert [int(card["data-rows"]) for card in cards] == data.uses.tolist()
    assert [int(card["data-features"]) for card in cards] == model.components_.sum(axis=1).tolist()
    assert [int(card["data-saved"]) for card in cards] == model.as_model().saved.tolist()
    for pattern in model.patterns():
        card = html.split(f'id="atom-{pattern.atom}"')[1].split('<p class="hits"')[0]
        assert re.findall(r"<bdi>(.*?)</bdi>", card) == list(pattern.features)


def test_atoms_and_rows_are_drawn_if_features_are_pixels(digits):
    model, table = digits
    outline, data = Outline(report_html(model, table, rows=[0])), report_data(model, table)
    drawn = (model.components_ ^ model.bias_).reshape(-1, 8, 8)
    shown = outline.find_all("img", alt="pattern 3")[0]
    assert np.array_equal(decoded(shown["src"])[0], drawn[2])
    assert (shown["width"], shown["height"]) == ("96", "96")
    before, after, wrong = (
        decoded(outline.find_all("img", alt=f"row 0: {kind}")[0]["src"])[0].ravel()
        for kind in ("data", "reconstruction", "wrong cells")
    )
    row = data.row(0)
    assert np.array_equal(before, row.data)
    assert np.array_equal(after, row.reconstruction)
    assert np.array_equal(np.flatnonzero(wrong == 2), row.missed)
    assert np.array_equal(np.flatnonzero(wrong == 3), row.invented)
    assert "Every row starts from these" in outline.text


def test_full_picture_is_shown_unless_it_is_too_large():
    pytest.importorskip("PIL")
    image = ba.datasets.halftone(1)[100:228, 200:328]
    table = Table(BitMatrix.from_dense(ba.datasets.cut_blocks(image, (8, 8))), picture=Picture((8, 8), (128, 128)))
    model = ba.BinaryDictionaryLearning(random_state=0, max_components=8).fit(table)
    outline = Outline(report_html(model, table))
    before, after = (
        decoded(outline.find_all("img", alt=f"the picture, {kind}")[0]["src"])[0] for kind in ("before", "after")
    )
    assert np.array_equal(before, image)
    reconstruction = model.inverse_transform(model.transform(table))
    assert np.array_equal(after, ba.datasets.stitch_blocks(reconstruction, (128, 128), (8, 8)))
    outline = Outline(full_picture(report_data(model, table), max_pixels=128 * 128 - 1))
    assert "The picture, 128 × 128 pixels, is too large to be shown here." in outline.text
    assert not outline.find_all("img")


def test_features_removed_by_an_atom_are_marked_with_not():
    X = ba.datasets.planted(200, 20, 3, code_density=0.3, noise=0.01, random_state=0).X ^ 1
    table = Table(BitMatrix.from_dense(X), columns=[f"item {n}" for n in range(20)])
    model = ba.BinaryDictionaryLearning(random_state=0).fit(table)
    assert model.bias_.any()
    html = report_html(model, table)
    assert "unless a pattern changes that (the bias)" in html
    for feature in model.patterns()[0].features:
        assert f"<bdi>{feature}</bdi>" in html
    assert "<bdi>not item" in html


def test_features_are_listed_by_number_of_wrong_cells(baskets):
    model, table = baskets
    html, data = report_html(model, table), report_data(model, table)
    body = html.split('id="feature-table"')[1].split("<tbody>")[1].split("</tbody>")[0]
    lines = [re.sub("<.*?>", " ", line).split() for line in body.split("</tr>")[:-1]]
    wrong = data.missed + data.invented
    order = [feature for feature in np.argsort(-wrong, kind="stable") if wrong[feature]]
    assert [line[1] for line in lines] == [str(feature) for feature in order]
    counts = [(data.ones[f], data.missed[f], data.invented[f], wrong[f]) for f in order]
    assert [tuple(map(int, line[2:6])) for line in lines] == counts


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.zeros((20, 5), np.uint8), "The table has no ones at all."),
        (np.ones((20, 5), np.uint8), "The table has no zeros at all."),
        (random_bits(0, 40, 9, 0.3), "No pattern makes the description of 40 rows and 9 columns shorter"),
        (np.array([[1, 0, 1]], np.uint8), "No pattern makes the description of 1 row and 3 columns shorter"),
        (np.array([[1]], np.uint8), "1 row and 1 column"),
    ],
    ids=["zeros", "ones", "noise", "one row", "one cell"],
)
def test_table_without_patterns_has_a_page(X, sentence):
    model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    assert model.n_components_ == 0
    outline = Outline(report_html(model, X))
    assert sentence in outline.text
    assert "No pattern was found that saves more bits" in outline.text
    assert not outline.find_all("li", class_="card")
    targets = {attrs["href"] for attrs in outline.find_all("a")}
    assert targets <= {f"#{attrs['id']}" for _, attrs in outline.tags if "id" in attrs}


@pytest.mark.parametrize("coder", ["bmp", "greedy", "exact"])
def test_models_of_the_paper_search_have_a_page(coder):
    X = ba.datasets.planted(80, 20, 3, noise=0.02, random_state=0).X
    model = ba.BinaryDictionaryLearning(3, search="paper", coder=coder, algebra="or", random_state=0).fit(X)
    assert "3 patterns" in Outline(report_html(model, X[:1])).text
    without_savings = Model.from_factorization(ba.proximus(X, radius=5, random_state=0))
    html = report_html(without_savings, X)
    assert "bits saved</dt><dd>0" not in html
    assert "bits saved</option>" not in html


# --- safety


@pytest.fixture(scope="module")
def hostile():
    """A page with hostile names only."""
    X = ba.datasets.planted(60, 12, 2, algebra="or", noise=0.05, code_density=0.5, random_state=1).X
    table = Table(BitMatrix.from_dense(X), [f"{HOSTILE[n % 12]} {n}" for n in range(60)], HOSTILE)
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
    assert model.n_components_
    return report_html(model, table, title=HOSTILE[0])


def test_hostile_names_are_escaped(hostile):
    outline = Outline(hostile)
    assert len(outline.find_all("script")) == 2
    assert len(outline.find_all("script", type="application/json")) == 1
    assert not any(name.startswith("on") for _, attrs in outline.tags for name in attrs)
    assert not [attrs for attrs in outline.find_all("img") if not attrs["src"].startswith("data:image/png;base64,")]
    assert "</script><script>alert(1)</script>" in outline.text
    hostile.encode("utf-8")
    assert "\x00" not in hostile
    assert "long " * 100 not in hostile


def test_page_makes_no_requests(both):
    html = report_html(*both)
    outline = Outline(html)
    for _, attrs in outline.tags:
        assert attrs.get("src", "data:").startswith("data:")
        assert attrs.get("href", "#").startswith(("#", "data:"))
    assert not re.search(r"https?:|url\(|@import|//[a-z]+\.", html.replace("// ", ""))
    policy = outline.find_all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_page_does_not_depend_on_the_number_of_threads(both):
    model, table = both
    first = report_html(model, table, title="same")
    assert report_html(model, table, title="same") == first
    assert report_html(model, table, title="same", n_jobs=3) == first


def test_write_report_is_atomic(baskets, tmp_path):
    model, table = baskets
    write_report(model, table, tmp_path / "report.html", title="Käse", rows=["basket 3"])
    assert (tmp_path / "report.html").read_bytes() == report_html(
        model, table, title="Käse", rows=["basket 3"]
    ).encode()
    with pytest.raises(ba.FileError, match="there is no folder"):
        write_report(model, table, tmp_path / "nowhere" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(("n_features", "picture"), [(1000, None), (784, Picture((28, 28))), (8000, None)])
def test_page_of_500_atoms_is_small_for_any_table(n_features, picture):
    model = random_model(400, n_features, 500, picture=picture, saved=np.arange(500)[::-1])
    table = Table(BitMatrix.from_dense(random_bits(1, 400, n_features, 0.1)), picture=picture)
    html = report_html(model, table)
    assert len(html.encode()) < 3_000_000
    assert html.count('<li class="card"') == 500
    few = report_html(model, Table(table.bits[:100], picture=picture))
    assert abs(len(html) - len(few)) < 0.2 * len(html)


# --- html


def decoded(uri):
    """Decode a PNG data URI by the PNG specification; return its pixels and palette."""
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, offset = {}, 8
    while offset < len(data):
        (length,) = struct.unpack(">I", data[offset : offset + 4])
        kind, body = data[offset + 4 : offset + 8], data[offset + 8 : offset + 8 + length]
        (check,) = struct.unpack(">I", data[offset + 8 + length : offset + 12 + length])
        assert check == zlib.crc32(kind + body)
        chunks[kind] = body
        offset += 12 + length
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert colour == 3
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    bits = np.unpackbits(lines[:, 1:], axis=1)[:, : width * depth].reshape(height, width, depth)
    return bits @ (1 << np.arange(depth)[::-1]), np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 16), st.integers(0, 9))
def test_png_round_trip(height, width, colours, seed):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, colours, (height, width)).astype(np.uint8)
    palette = [tuple(map(int, colour)) for colour in rng.integers(0, 256, (colours, 3))]
    shown, used = decoded(png_data_uri(encode_png(pixels, palette)))
    assert np.array_equal(shown, pixels)
    assert [tuple(map(int, colour)) for colour in used] == palette


def test_png_is_read_by_pillow():
    image = pytest.importorskip("PIL.Image")
    from io import BytesIO

    pixels = random_bits(0, 9, 13, 0.5)
    seen = np.asarray(image.open(BytesIO(encode_png(pixels, [(0, 0, 0), (255, 0, 9)]))).convert("RGB"))
    assert np.array_equal(seen[:, :, 0] // 255, pixels)


@pytest.mark.parametrize(
    ("part", "total", "expected"),
    [
        (0, 10, "0%"),
        (0, 0, "0%"),
        (10, 10, "100%"),
        (1, 8, "12%"),
        (1, 80, "1.2%"),
        (1, 10**6, "less than 0.1%"),
        (99_950, 10**5, "more than 99.9%"),
        (995, 1000, "99.5%"),
    ],
)
def test_percent_is_never_rounded_to_none_or_all(part, total, expected):
    assert percent(part, total) == expected


@given(st.text())
def test_escaped_text_has_no_markup_characters(value):
    shown = escape(truncated(value))
    assert not set("<>\"'") & set(shown)
    shown.encode("utf-8")


@given(st.integers(1, 10**12))
def test_ticks_are_few_and_round(most):
    marks = ticks(most)
    assert marks[0] == 0
    assert 2 <= len(marks) <= 6
    assert marks[-1] <= most
    step = str(marks[1])
    assert step[0] in "125"
    assert set(step[1:]) <= {"0"}


def test_table_is_exported_as_csv_markdown_and_html():
    table = DataTable.from_rows(("name|", "count", "share"), [("a|b<", 12345, 0.12345), ("c", None, 1234.5)])
    assert table.to_csv() == "name|,count,share\na|b<,12345,0.12345\nc,,1234.5\n"
    lines = table.to_markdown().splitlines()
    assert lines[1:] == [
        "| --- | ---: | ---: |",
        "| a\\|b< | 12,345 | 0.123 |",
        "| c | – | 1,234 |",
    ]
    assert '<td class="number">12,345</td><td class="number">0.123</td>' in table.to_html("label")
    assert "a|b&lt;" in table.to_html("label")


def test_renamed_functions_still_work_with_a_warning(baskets):
    from bitatoms import report

    with pytest.warns(FutureWarning, match="renamed to report_data"):
        assert report.findings is report_data
    with pytest.warns(FutureWarning, match="renamed to ReportData"):
        assert report.Findings is report.ReportData
    with pytest.warns(FutureWarning, match="renamed to report_html"):
        assert report.page(*baskets, title="old") == report_html(*baskets, title="old")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        report.nothing  # noqa: B018
