"""The HTML report: texts, pictures, size, and safety against hostile names."""

import base64
import hashlib
import re
from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Picture, Table
from bitatoms.engine.codelength import Codelength
from bitatoms.model.model import Model
from bitatoms.report import report_data, report_html, write_report
from bitatoms.report.pictures import full_picture
from bitatoms.report.sections import verdict
from support.pages import Outline, decode_png
from support.strategies import random_bits
from support.zoo import specimen

pytestmark = pytest.mark.usefixtures("few_trials")

HOSTILE = (
    "</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)", "<!--", "]]>",
    "&lt;b&gt;", "\u202eturned round", "a\x00b\x1bc", "lone \ud800 surrogate", "long " * 1000, "{0} %s ${x}", "牛乳",
)  # fmt: skip


@pytest.fixture
def baskets():
    return specimen("or")


@pytest.fixture
def digits():
    return specimen("xor")


@pytest.fixture(params=["or", "xor"])
def both(request):
    return specimen(request.param)


def test_a_sparse_table_gives_the_page_of_the_packed_one_without_being_packed(monkeypatch):
    model, table = specimen("sparse").model.as_model(), specimen("sparse").table
    X = table.to_dense()
    page = report_html(model, Table(BitMatrix.from_dense(X)))
    monkeypatch.setattr("bitatoms.engine.distinct_rows._HASHED_WORDS", 1 << 10)
    monkeypatch.setattr("bitatoms.sparse_bits.memory_limit", lambda: X.size // 16)
    assert report_html(model, table) == page


def random_model(n_rows, n_features, n_atoms, **more):
    """A random model that was not learned from data."""
    given = {"algebra": "xor", "codelength": Codelength(1, 1, 1), "history": (), "coder": "mdl", "n_samples": n_rows}
    given |= {"atoms": BitMatrix.from_dense(random_bits(0, n_atoms, n_features, 0.1))}
    given |= {"bias": np.zeros(n_features, np.uint8), "wrong": np.full(n_features, n_rows // 10)}
    return Model(**given | {"uses": np.full(n_atoms, n_rows // 5)} | more)


# --- content: test_report_numbers.py has the numbers


def test_the_page_names_its_table_and_search(baskets):
    model, table = baskets
    html = report_html(model, table, title="baskets.csv")
    parts = ["baskets.csv", "5 patterns make the description of 300 rows and 40 columns", "Made by bitatoms"]
    parts += ["This is the table that the patterns were learned from.", "search=fast"]
    parts += ["bitatoms show MODEL --patterns patterns.csv"]
    assert [part for part in parts if part not in Outline(html).text] == []
    assert "Rows are numbered" not in html
    assert html.count("The features of a pattern come together") == 2  # above the patterns and in the glossary
    for pattern in model.patterns():
        listed = html.split(f'id="atom-{pattern.atom}"')[1].split("</tr>")[0]
        assert re.findall(r"<bdi>(.*?)</bdi>", listed) == list(pattern.features[:12])
    other = BitMatrix.from_dense(random_bits(0, 300, 40, 0.1))
    for rows, part in ((table.bits[:50], ", which had 300 rows"), (other, "")):
        html = report_html(model.as_model(), rows)
        assert f"This is not the table that the patterns were learned from{part}" in html
        assert html.count("Rows are numbered from 0.") == 1
        assert "counts are those of this table" in html


XOR_COSTS = {  # bits of the table with patterns combined by XOR, where OR takes 1000
    1100: "Combined by XOR instead of OR, patterns leave 1,100 bits for the training table, 10",
    970: "970 bits for the training table, 3.0% fewer: too few to give up OR",
    1000: "1,000 bits for the training table, as many.",
}


@pytest.mark.parametrize("bits", XOR_COSTS)
def test_report_states_what_the_other_algebra_costs(baskets, bits):
    model, table = baskets
    costs = {"or": 1000, "xor": bits}
    learned = replace(model.as_model(), algebra="or", codelength=Codelength(500, 400, 100), codelengths=costs)
    assert XOR_COSTS[bits] in page_text(learned, table)
    cut = "This comparison is not final: the search was cut short."
    assert cut not in page_text(learned, table)
    assert cut in page_text(replace(learned, ended="max_time"), table)
    assert "Combined by" not in report_html(replace(learned, codelengths={"or": 1000}), table)


VERDICTS = [  # number of patterns, how many are beyond chance, how the search ended
    (2, None, "converged", "The table has few patterns, or the search did not find them. You can try more rows, "),
    (2, 1, "converged", "But 1 pattern of 2 has columns that occur together more or less often than chance "),
    (1, 1, "converged", "But the pattern has columns that occur together more or less often than chance "),
    (2, 0, "converged", "No columns of a pattern occur together more or less often than chance explains, "),
    (2, None, "max_iter", "The search was cut short, so it is not known how many patterns the table has."),
    (0, 0, "converged", "No two columns occur together more or less often than chance explains, "),
    (0, 1, "converged", "But 1 pair of columns occurs together more or less often than chance explains, "),
    (0, 3, "converged", "But 3 pairs of columns occur together more or less often than chance explains, "),
]


@pytest.mark.parametrize(("n_atoms", "beyond", "ended", "expected"), VERDICTS)
def test_the_report_states_what_it_means_that_patterns_save_few_bits(baskets, n_atoms, beyond, ended, expected):
    model = replace(baskets.model.as_model(), codelengths={"or": 1000})
    text = verdict(replace(model, atoms=model.atoms[:n_atoms], beyond_chance=beyond, ended=ended))
    assert text.startswith(expected)
    assert text.endswith(".")


def page_text(model, table):
    """Return the text of a report."""
    return Outline(report_html(model, table)).text


def test_atoms_and_rows_are_drawn_if_features_are_pixels(digits):
    model, table = digits
    outline, row = Outline(report_html(model, table, rows=[0])), report_data(model, table).row(0)
    shown = outline.find_all("img", alt="pattern 3")[0]
    assert np.array_equal(decode_png(shown["src"])[0].ravel(), model.components_[2] ^ model.bias_)
    assert (shown["width"], shown["height"]) == ("96", "96")
    before, after, wrong = (
        decode_png(outline.find_all("img", alt=f"row 0: {kind}")[0]["src"])[0].ravel()
        for kind in ("data", "reconstruction", "wrong cells")
    )
    for found, expected in (
        (before, row.data), (after, row.reconstruction),
        (np.flatnonzero(wrong == 2), row.missed), (np.flatnonzero(wrong == 3), row.invented),
    ):  # fmt: skip
        assert np.array_equal(found, expected)
    assert "Every row starts from these" in outline.text


def test_full_picture_is_shown_unless_it_is_too_large():
    pytest.importorskip("PIL")
    image = ba.datasets.halftone(1)[100:228, 200:328]
    table = Table(BitMatrix.from_dense(ba.datasets.cut_blocks(image, (8, 8))), picture=Picture((8, 8), (128, 128)))
    model = ba.BinaryDictionaryLearning(
        algebra="xor", random_state=0, constraints=ba.Constraints(max_components=8)
    ).fit(table)
    data = report_data(model, table)
    outline = Outline(report_html(model, table))
    before, after = (
        decode_png(outline.find_all("img", alt=f"the picture, {kind}")[0]["src"])[0] for kind in ("before", "after")
    )
    assert np.array_equal(before, image)
    reconstruction = model.inverse_transform(data.codes.to_dense())
    assert np.array_equal(after, ba.datasets.stitch_blocks(reconstruction, (128, 128), (8, 8)))
    outline = Outline(full_picture(data, max_pixels=128 * 128 - 1))
    assert "The picture, 128 × 128 pixels, is too large to be shown here." in outline.text
    assert not outline.find_all("img")


def test_features_removed_by_an_atom_are_marked_with_not():
    X = ba.datasets.planted(200, 20, 3, code_density=0.3, noise=0.01, random_state=0).X ^ 1
    table = Table(BitMatrix.from_dense(X), columns=[f"item {n}" for n in range(20)])
    model = ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(table)
    assert model.bias_.any()
    html = report_html(model, table)
    assert "unless a pattern changes that (the bias)" in html
    features = model.patterns()[0].features[:12]
    assert any(feature.startswith("not item") for feature in features)
    assert all(f"<bdi>{feature}</bdi>" in html for feature in features)


WITHOUT_PATTERNS = {
    "zeros": (np.zeros((20, 5), np.uint8), "The table has no ones at all."),
    "ones": (np.ones((20, 5), np.uint8), "The table has no zeros at all."),
    "noise": (random_bits(0, 40, 9, 0.3), "No pattern makes the description of 40 rows and 9 columns shorter"),
    "row": (np.array([[1, 0, 1]]), "Knowing which columns are usually ones makes the description of 1 row"),
    "cell": (np.array([[1]], np.uint8), "1 row and 1 column"),
}


@pytest.mark.parametrize("name", WITHOUT_PATTERNS)
def test_table_without_patterns_has_a_page(name):
    X, sentence = WITHOUT_PATTERNS[name]
    model = ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(X)
    assert model.n_components_ == 0
    outline = Outline(report_html(model, X))
    for part in (sentence, "No pattern was found that saves more bits", "--algebra auto"):
        assert part in outline.text
    tried = replace(model.as_model(), codelengths={"or": 1, "xor": 1})
    assert "You can try more rows or a longer search (bitatoms fit --search thorough)." in page_text(tried, X)
    assert "listing" not in {attrs.get("id") for _, attrs in outline.tags}
    targets = {attrs["href"] for attrs in outline.find_all("a")}
    assert targets <= {f"#{attrs['id']}" for _, attrs in outline.tags if "id" in attrs}


def test_models_of_the_paper_search_have_a_page():
    X = ba.datasets.planted(80, 20, 3, noise=0.02, random_state=0).X
    model = ba.BinaryDictionaryLearning(3, search=ba.PaperSearch(coder="exact"), algebra="or", random_state=0).fit(X)
    assert "3 patterns" in page_text(model, X[:1])
    html = report_html(Model.from_factorization(ba.proximus(X, radius=5, random_state=0)), X)
    assert '<th scope="col" class="number">bits saved</th>' not in html  # its savings are not known


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
    assert [attrs.get("type") for attrs in outline.find_all("script")] == ["application/json", None]
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
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_write_report_is_atomic(baskets, tmp_path):
    how = {"title": "Käse", "rows": ["basket 3"]}
    write_report(*baskets, tmp_path / "report.html", **how)
    assert (tmp_path / "report.html").read_bytes() == report_html(*baskets, **how).encode()
    with pytest.raises(ba.FileError, match="there is no folder"):
        write_report(*baskets, tmp_path / "nowhere" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_page_of_500_atoms_is_small():
    model = random_model(400, 8000, 500, saved=np.arange(500)[::-1])
    html = report_html(model, BitMatrix.from_dense(random_bits(1, 400, 8000, 0.1)))
    assert len(html.encode()) < 4_000_000
    assert html.count('<a id="atom-') == 500
