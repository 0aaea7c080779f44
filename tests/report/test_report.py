"""The report: its counts are those of the table, its words and pictures say what they do, and it is safe to open."""

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
from bitatoms.report import curve, findings, page, pictures, write_report
from bitatoms.report.html import png
from bitatoms.report.html.text import share, shortened, text
from bitatoms.report.length import ticks
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
    """The tags of a page with their attributes, its text, and whether every tag is closed where it should be."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.said = [], [], []
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
            self.said.append(data)

    @property
    def text(self):
        return " ".join("".join(self.said).split())

    def named(self, tag, **wanted):
        wanted = {name.rstrip("_"): value for name, value in wanted.items()}
        return [attrs for name, attrs in self.tags if name == tag and wanted.items() <= attrs.items()]


@pytest.fixture(scope="module")
def baskets():
    """A table with names and its model under OR."""
    X = ba.datasets.planted(300, 40, 5, algebra="or", code_density=0.3, atom_density=0.15, noise=0.02, random_state=0).X
    table = Table(BitMatrix.from_dense(X), [f"basket {n}" for n in range(300)], [f"item {n}" for n in range(40)])
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table), table


@pytest.fixture(scope="module")
def digits():
    """Pictures and their model under XOR, which has a bias."""
    X, _ = ba.datasets.digits()
    table = Table(BitMatrix.from_dense(X[:600]), picture=Picture((8, 8)))
    return ba.BinaryDictionaryLearning(random_state=0).fit(table), table


@pytest.fixture(scope="module", params=["baskets", "digits"])
def both(request):
    return request.getfixturevalue(request.param)


def random_model(n_rows, n_features, n_atoms, **more):
    """A model that was learned from nothing."""
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


# --- what is counted


def test_counts_are_those_of_the_table_and_of_what_the_model_makes_of_it(both):
    model, table = both
    found = findings(model, table)
    X, codes = table.to_dense(), model.transform(table)
    made = model.inverse_transform(codes)
    assert np.array_equal(found.codes.to_dense(), codes)
    assert np.array_equal(found.ones, X.sum(axis=0))
    assert np.array_equal(found.missed, ((X == 1) & (made == 0)).sum(axis=0))
    assert np.array_equal(found.invented, ((X == 0) & (made == 1)).sum(axis=0))
    assert np.array_equal(found.uses, codes.sum(axis=0))
    assert np.allclose(found.row_bits, -model.score_samples(table))
    how = {"bias": model.bias_, "algebra": model.algebra_}
    assert found.codelength == ba.codelength(X, model.components_, codes, **how)
    assert found.bits_without == ba.codelength(X).total
    row = found.row(17)
    assert np.array_equal(row.data, X[17])
    assert np.array_equal(row.made, made[17])
    assert row.missed.tolist() == np.flatnonzero(X[17] > made[17]).tolist()
    assert row.invented.tolist() == np.flatnonzero(X[17] < made[17]).tolist()
    assert row.better == pytest.approx((found.row_bits > found.row_bits[17]).mean())
    assert row.worse == pytest.approx((found.row_bits < found.row_bits[17]).mean())


def test_every_point_of_the_curve_is_the_codelength_of_the_rows_coded_by_so_many_atoms(both):
    model, table = both
    found, learned = findings(model, table), model.as_model()
    assert found.curve_stride == 1
    assert [point.atoms for point in found.curve] == curve.numbers_of_atoms(learned.atoms.n_rows)
    for point in found.curve:
        few = replace(learned, atoms=learned.atoms[: point.atoms], uses=learned.uses[: point.atoms])
        codes = few.code(table.bits, Workers()).factors()[1]
        length = ba.codelength(table, few.atoms, codes, bias=learned.bias, algebra=learned.algebra)
        assert (point.bits_errors, point.bits_codes, point.bits_atoms) == (length.errors, length.codes, length.atoms)
        assert point.bits == length.total
    assert found.curve[-1].bits == found.codelength.total


@pytest.mark.parametrize("n_atoms", [0, 1, 2, 20, 21, 68, 500, 5000])
def test_the_curve_goes_from_no_atom_to_all_by_few_steps(n_atoms):
    ks = curve.numbers_of_atoms(n_atoms)
    assert ks[0] == 0
    assert ks[-1] == n_atoms
    assert ks == sorted(set(ks))
    assert len(ks) <= 24
    assert n_atoms > 20 or ks == list(range(n_atoms + 1))


def test_a_curve_that_would_take_too_long_is_estimated_from_some_rows_and_says_so(baskets, monkeypatch):
    model, table = baskets
    exact = findings(model, table)
    monkeypatch.setattr(curve, "MOST_WORK", 300 * 40 * 10 // 4)
    found = findings(model, table)
    assert found.curve_stride == 4
    assert found.curve[-1] == exact.curve[-1]
    for point, same in zip(found.curve, exact.curve, strict=True):
        assert point.bits == pytest.approx(same.bits, rel=0.15)
    assert "from one row in 4" in page(model, table)
    assert "one row in" not in page_of_exact(model, table, monkeypatch)


def page_of_exact(model, table, monkeypatch):
    monkeypatch.setattr(curve, "MOST_WORK", 10**11)
    return page(model, table)


def test_examples_use_their_atom_and_as_little_else_as_can_be(both):
    model, table = both
    found = findings(model, table)
    codes = found.codes.to_dense()
    burden = found.errors.row_weights() + codes.sum(axis=1)
    for atom, rows in enumerate(found.examples):
        users = np.flatnonzero(codes[:, atom])
        best = sorted(users.tolist(), key=lambda row: (burden[row], row))[:3]
        assert [row for row in rows.tolist() if row >= 0] == best


def test_rows_are_chosen_by_name_or_number_and_from_good_to_bad_fit_by_default(baskets):
    model, table = baskets
    assert findings(model, table, rows=["basket 7", 5, "3"]).chosen == (7, 5, 3)
    assert findings(model, table.bits, rows=["row 7", "5"]).chosen == (7, 5)
    found = findings(model, table)
    bits = found.row_bits[list(found.chosen)]
    assert len(bits) == 6
    assert (np.diff(bits) >= 0).all()
    worst = found.row_bits[list(found.worst)]
    assert worst.tolist() == sorted(found.row_bits, reverse=True)[:15]


@pytest.mark.parametrize("row", ["nobody", 300, -1, "300", "", 2.5])
def test_rows_that_are_not_there_are_refused(baskets, row):
    with pytest.raises(ValueError, match=r"there is no row .* in the table; its names and numbers go up to basket 299"):
        findings(*baskets, rows=[row])


def test_tables_that_do_not_fit_are_refused(baskets):
    model, table = baskets
    with pytest.raises(ValueError, match="the table has 3 columns, but the model was learned from 40"):
        findings(model, [[0, 1, 0]])
    with pytest.raises(ValueError, match="the table has 0 rows and 40 columns: nothing to report on"):
        findings(model, np.zeros((0, 40), np.uint8))
    other = Table(table.bits, columns=[f"thing {n}" for n in range(40)])
    with pytest.raises(ValueError, match="columns that the model was not fitted on: 'thing 0'"):
        findings(model, other)
    with pytest.raises(TypeError, match="model must be a fitted BinaryDictionaryLearning or its Model, not str"):
        findings("model.npz", table)
    with pytest.raises(NotFittedError):
        findings(ba.BinaryDictionaryLearning(), table)


def test_a_raw_table_is_cut_at_the_threshold_that_the_estimator_was_fitted_with():
    X = ba.datasets.planted(100, 20, 2, noise=0, random_state=0).X * 5.0
    model = ba.BinaryDictionaryLearning(binarize=2.5, random_state=0).fit(X)
    assert findings(model, X).ones.tolist() == (X > 2.5).sum(axis=0).tolist()


# --- what is said


def test_the_summary_says_how_much_was_found_in_words(baskets):
    model, table = baskets
    found, said = findings(model, table), Outline(page(model, table, title="baskets.csv")).text
    assert f"{model.n_components_} patterns make the description of 300 rows and 40 columns" in said
    assert f"{found.codelength.total:,} bits instead of {found.bits_without:,}" in said
    ones, missed = int(found.ones.sum()), int(found.missed.sum())
    assert f"Of the {ones:,} ones in the table the patterns account for {ones - missed:,}" in said
    assert "This is the table that the patterns were learned from." in said
    assert "Made by bitatoms" in said
    assert "bitatoms show MODEL --patterns patterns.csv" in said
    assert "search=fast" in said


def test_a_table_that_was_not_learned_from_is_called_so(baskets):
    model, table = baskets
    assert "This is not the table that the patterns were learned from, which had 300 rows" in page(
        model, table.bits[:50]
    )
    other = BitMatrix.from_dense(random_bits(0, 300, 40, 0.1))
    assert "This is not the table" in page(model.as_model(), other)


def test_every_atom_has_a_card_that_says_its_rows_features_and_bits(baskets):
    model, table = baskets
    html = page(model, table)
    outline, found = Outline(html), findings(model, table)
    cards = outline.named("li", class_="card")
    assert [int(card["data-atom"]) for card in cards] == list(range(1, model.n_components_ + 1))
    assert [int(card["data-rows"]) for card in cards] == found.uses.tolist()
    assert [int(card["data-features"]) for card in cards] == model.components_.sum(axis=1).tolist()
    assert [int(card["data-saved"]) for card in cards] == model.as_model().saved.tolist()
    for pattern in model.patterns():
        card = html.split(f'id="atom-{pattern.atom}"')[1].split('<p class="hits"')[0]
        assert re.findall(r"<bdi>(.*?)</bdi>", card) == list(pattern.features)


def test_pictures_are_drawn_where_the_features_are_pixels(digits):
    model, table = digits
    outline, found = Outline(page(model, table, rows=[0])), findings(model, table)
    drawn = (model.components_ ^ model.bias_).reshape(-1, 8, 8)
    shown = outline.named("img", alt="pattern 3")[0]
    assert np.array_equal(decoded(shown["src"])[0], drawn[2])
    assert (shown["width"], shown["height"]) == ("96", "96")
    before, after, wrong = (
        decoded(outline.named("img", alt=f"row 0{says}")[0]["src"])[0].ravel()
        for says in (" as it is", " as its patterns make it", ": what is wrong")
    )
    row = found.row(0)
    assert np.array_equal(before, row.data)
    assert np.array_equal(after, row.made)
    assert np.array_equal(np.flatnonzero(wrong == 2), row.missed)
    assert np.array_equal(np.flatnonzero(wrong == 3), row.invented)
    assert "Every row begins with these" in outline.text


def test_a_whole_picture_is_shown_before_and_after_unless_it_is_too_large(monkeypatch):
    pytest.importorskip("PIL")
    image = ba.datasets.halftone(1)[100:228, 200:328]
    table = Table(BitMatrix.from_dense(ba.datasets.cut_blocks(image, (8, 8))), picture=Picture((8, 8), (128, 128)))
    model = ba.BinaryDictionaryLearning(random_state=0, max_components=8).fit(table)
    outline = Outline(page(model, table))
    before, after = (
        decoded(outline.named("img", alt=f"the picture, {says}")[0]["src"])[0] for says in ("before", "after")
    )
    assert np.array_equal(before, image)
    made = model.inverse_transform(model.transform(table))
    assert np.array_equal(after, ba.datasets.stitch_blocks(made, (128, 128), (8, 8)))
    monkeypatch.setattr(pictures, "_MOST_PIXELS", 128 * 128 - 1)
    outline = Outline(page(model, table))
    assert "The whole picture, 128 × 128 pixels, is too large to be shown here." in outline.text
    assert not outline.named("img", alt="the picture, before")


def test_features_that_an_atom_takes_away_are_marked_with_not():
    X = ba.datasets.planted(200, 20, 3, code_density=0.3, noise=0.01, random_state=0).X ^ 1
    table = Table(BitMatrix.from_dense(X), columns=[f"item {n}" for n in range(20)])
    model = ba.BinaryDictionaryLearning(random_state=0).fit(table)
    assert model.bias_.any()
    html = page(model, table)
    assert "unless a pattern says otherwise (the bias)" in html
    for feature in model.patterns()[0].features:
        assert f"<bdi>{feature}</bdi>" in html
    assert "<bdi>not item" in html


def test_wrong_bits_are_listed_by_feature_the_most_first(baskets):
    model, table = baskets
    html, found = page(model, table), findings(model, table)
    body = html.split('id="feature-table"')[1].split("<tbody>")[1].split("</tbody>")[0]
    lines = [re.sub("<.*?>", " ", line).split() for line in body.split("</tr>")[:-1]]
    wrong = found.missed + found.invented
    order = [feature for feature in np.argsort(-wrong, kind="stable") if wrong[feature]]
    assert [line[1] for line in lines] == [str(feature) for feature in order]
    counts = [(found.ones[f], found.missed[f], found.invented[f], wrong[f]) for f in order]
    assert [tuple(map(int, line[2:6])) for line in lines] == counts


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (np.zeros((20, 5), np.uint8), "The table has no ones at all."),
        (np.ones((20, 5), np.uint8), "The table has no zeros at all."),
        (random_bits(0, 40, 9, 0.3), "No pattern makes the description of 40 rows and 9 columns shorter"),
        (np.array([[1, 0, 1]], np.uint8), "No pattern makes the description of 1 row and 3 columns shorter"),
        (np.array([[1]], np.uint8), "1 row and 1 column"),
    ],
    ids=["zeros", "ones", "noise", "one row", "one cell"],
)
def test_a_table_without_patterns_gives_a_page_that_says_so(X, says):
    model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    assert model.n_components_ == 0
    outline = Outline(page(model, X))
    assert says in outline.text
    assert "There are none: no pattern saves as many bits" in outline.text
    assert not outline.named("li", class_="card")
    targets = {attrs["href"] for attrs in outline.named("a")}
    assert targets <= {f"#{attrs['id']}" for _, attrs in outline.tags if "id" in attrs}


@pytest.mark.parametrize("coder", ["bmp", "greedy", "exact"])
def test_the_models_of_the_paper_have_a_page_too(coder):
    X = ba.datasets.planted(80, 20, 3, noise=0.02, random_state=0).X
    model = ba.BinaryDictionaryLearning(3, search="paper", coder=coder, algebra="or", random_state=0).fit(X)
    assert "3 patterns" in Outline(page(model, X[:1])).text
    without_savings = Model.from_factorization(ba.proximus(X, radius=5, random_state=0))
    html = page(without_savings, X)
    assert "bits saved</dt><dd>0" not in html
    assert "bits saved</option>" not in html


# --- what is safe


@pytest.fixture(scope="module")
def hostile():
    """A page on which all names are hostile."""
    X = ba.datasets.planted(60, 12, 2, algebra="or", noise=0.05, code_density=0.5, random_state=1).X
    table = Table(BitMatrix.from_dense(X), [f"{HOSTILE[n % 12]} {n}" for n in range(60)], HOSTILE)
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
    assert model.n_components_
    return page(model, table, title=HOSTILE[0])


def test_names_from_files_are_text_and_nothing_else(hostile):
    outline = Outline(hostile)
    assert len(outline.named("script")) == 2
    assert len(outline.named("script", type="application/json")) == 1
    assert not any(name.startswith("on") for _, attrs in outline.tags for name in attrs)
    assert not [attrs for attrs in outline.named("img") if not attrs["src"].startswith("data:image/png;base64,")]
    assert "</script><script>alert(1)</script>" in outline.text
    hostile.encode("utf-8")
    assert "\x00" not in hostile
    assert "long " * 100 not in hostile


def test_the_page_asks_for_nothing_from_elsewhere(both):
    html = page(*both)
    outline = Outline(html)
    for _, attrs in outline.tags:
        assert attrs.get("src", "data:").startswith("data:")
        assert attrs.get("href", "#").startswith(("#", "data:"))
    assert not re.search(r"https?:|url\(|@import|//[a-z]+\.", html.replace("// ", ""))
    policy = outline.named("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_the_same_table_gives_the_same_page_whatever_the_threads(both):
    model, table = both
    first = page(model, table, title="same")
    assert page(model, table, title="same") == first
    assert page(model, table, title="same", n_jobs=3) == first


def test_a_report_is_there_whole_or_not_at_all(baskets, tmp_path):
    model, table = baskets
    write_report(model, table, tmp_path / "report.html", title="Käse", rows=["basket 3"])
    assert (tmp_path / "report.html").read_bytes() == page(model, table, title="Käse", rows=["basket 3"]).encode()
    with pytest.raises(ba.FileError, match="there is no folder"):
        write_report(model, table, tmp_path / "nowhere" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(("n_features", "picture"), [(1000, None), (784, Picture((28, 28))), (8000, None)])
def test_the_page_of_500_atoms_stays_small_and_holds_no_table(n_features, picture):
    model = random_model(400, n_features, 500, picture=picture, saved=np.arange(500)[::-1])
    table = Table(BitMatrix.from_dense(random_bits(1, 400, n_features, 0.1)), picture=picture)
    html = page(model, table)
    assert len(html.encode()) < 3_000_000
    assert html.count('<li class="card"') == 500
    few = page(model, Table(table.bits[:100], picture=picture))
    assert abs(len(html) - len(few)) < 0.2 * len(html)


# --- its pieces


def decoded(uri):
    """The pixels and the palette of a picture, read as the PNG specification says."""
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert check == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + length
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert colour == 3
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    bits = np.unpackbits(lines[:, 1:], axis=1)[:, : width * depth].reshape(height, width, depth)
    return bits @ (1 << np.arange(depth)[::-1]), np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 16), st.integers(0, 9))
def test_pictures_come_back_as_they_were(height, width, colours, seed):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, colours, (height, width)).astype(np.uint8)
    palette = [tuple(map(int, colour)) for colour in rng.integers(0, 256, (colours, 3))]
    shown, used = decoded(png.data_uri(pixels, palette))
    assert np.array_equal(shown, pixels)
    assert [tuple(map(int, colour)) for colour in used] == palette


def test_pictures_are_what_other_readers_take_them_for():
    image = pytest.importorskip("PIL.Image")
    from io import BytesIO

    pixels = random_bits(0, 9, 13, 0.5)
    seen = np.asarray(image.open(BytesIO(png.encoded(pixels, [(0, 0, 0), (255, 0, 9)]))).convert("RGB"))
    assert np.array_equal(seen[:, :, 0] // 255, pixels)


@pytest.mark.parametrize(
    ("part", "whole", "says"),
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
def test_shares_are_rounded_but_never_to_none_or_all(part, whole, says):
    assert share(part, whole) == says


@given(st.text())
def test_text_holds_no_sign_that_html_would_read(value):
    shown = text(shortened(value))
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
