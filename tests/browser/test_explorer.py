"""The explorer of a report in a browser: what clicks, keys and typed rows show, exports, small screens."""

import csv

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.parallel import Workers
from bitatoms.report import report_data
from support.browser import CONTRAST, DESKTOP, HEADING_LEVELS, IS_WIDER_THAN_WINDOW, NAMELESS, PHONE
from support.report_pages import HOSTILE, MAKERS

pytestmark = pytest.mark.usefixtures("few_trials")

VIEWS = ("patterns", "rows", "features", "code", "matrix")
PAGES = ("baskets", "digits", "genotypes", "unknown", "private", "nothing", "one_row")


@pytest.fixture(scope="session")
def made():
    """Return a function that returns the model, the table and the report data of a page, computed once."""
    found = {}

    def make(name):
        if name not in found:
            model, table, *options = MAKERS[name]()
            found[name] = model, table, report_data(model, table, **(options[0] if options else {}))
        return found[name]

    return make


def tab(page, view):
    """Show a view, if the page has it; return whether it has."""
    found = page.locator(f"#tab-{view}")
    if found.count():
        found.click()
    return bool(found.count())


def detail(page):
    """Return the text of what is selected, with single spaces."""
    return " ".join(page.locator("#detail").inner_text().split())


def links(page):
    """Return the names of the patterns of what is selected."""
    return page.locator("#detail .plain button").all_inner_texts()


def entries(page, view):
    """Return the titles of the entries of a list that are shown."""
    return page.eval_on_selector_all(f"#view-{view} .entry b", "all => all.map(each => each.textContent)")


def select(page, view, index):
    """Select an entry of a list."""
    tab(page, view)
    page.locator(f"#view-{view} button.entry").nth(index).click()


def downloaded(page, place):
    """Return the lines of the CSV file that is saved at a place of the page."""
    with page.expect_download() as download:
        page.locator(place).get_by_role("button", name="Save as CSV").click()
    with open(download.value.path(), encoding="utf-8", newline="") as file:
        return [*csv.reader(file)]


# --- what is selected


@pytest.mark.parametrize("name", ["baskets", "unknown"])
def test_a_pattern_shows_its_cells_and_the_rows_behind_it(visit, made, name):
    model, table, data = made(name)
    page, codes = visit(name), data.codes.to_dense().astype(bool)
    X, reconstruction = table.to_dense(float), model.inverse_transform(data.codes.to_dense())
    for atom in range(model.n_components_):
        select(page, "patterns", atom)
        users, features = codes[:, atom], model.components_[atom] == 1
        cells, made_cells = X[users][:, features], reconstruction[users][:, features]
        right, invented = (cells == made_cells).sum(), (cells < made_cells).sum()
        text = detail(page)
        assert text.startswith(f"Pattern {atom + 1} ")
        assert f"have {cells.size:,} cells of its features: {right:,} right" in text
        assert f"0 missed, {invented:,} invented" in text
        assert (f"{np.isnan(cells).sum():,} unknown." in text) == bool(np.isnan(cells).any())
        lines = page.locator("#detail tbody tr").all_inner_texts()
        assert len(lines) == min(20, features.sum())
        shown = page.locator("#detail h4:has-text('Rows behind it') ~ div li").all_inner_texts()
        wrong = (cells < made_cells).sum(axis=1)
        order = np.argsort(wrong, kind="stable")[:20]
        known = (cells == made_cells).sum(axis=1)
        assert [line.strip() for line in shown] == [
            f"{table.row_name(row)}: {known[i]} right, {wrong[i]} wrong"
            for i, row in zip(order, np.flatnonzero(users)[order], strict=True)
        ]


def test_a_row_shows_its_patterns_and_what_is_left_over(visit, made):
    _, _, data = made("unknown")
    page = visit("unknown")
    for number in (0, 7, 50):
        row = data.row(number)
        select(page, "rows", number)
        assert detail(page).startswith(row.name)
        for kind, features in (
            (".missed", row.missed),
            (".invented", row.invented),
            (".unknown", np.flatnonzero(row.unknown)),
            ("li:not([class])", np.flatnonzero(row.data & row.reconstruction)),
        ):
            assert page.locator(f"#detail .chips {kind}").all_inner_texts() == [*data.names_of(features)]
        assert links(page) == [f"Pattern {atom + 1}" for atom in row.atoms]
    page.locator("#detail .plain button").first.click()
    assert detail(page).startswith("Pattern ")


def test_a_feature_shows_its_patterns(visit, made):
    model, _, data = made("baskets")
    page = visit("baskets")
    for feature in (5, 17):
        select(page, "features", feature)
        assert detail(page).startswith(f"item {feature} ")
        assert links(page) == [f"Pattern {atom + 1}" for atom in np.flatnonzero(model.components_[:, feature])]
        assert f"ones {data.ones[feature]} ({100 * data.ones[feature] / 300:.1f}%) missed" in detail(page)


def test_names_in_other_sections_lead_to_the_explorer(visit):
    page = visit("baskets")
    for name in ("#rows h3", "#worst th[scope=row]"):
        button = page.locator(f"{name} button").first
        expected = " ".join(button.text_content().split())
        button.click()
        assert detail(page).startswith(expected)
    assert page.locator("#detail").is_visible()


def test_addresses_lead_to_what_is_selected(visit):
    for anchor, first in (("", "Pattern 1 "), ("#explore=pattern-3", "Pattern 3 ")):  # without one, the first pattern
        page = visit("baskets", anchor=anchor)
        assert detail(page).startswith(first)
        assert anchor or page.evaluate("document.activeElement === document.body")
        select(page, "rows", 4)
        assert page.url.endswith("#explore=row-4")
        page.go_back()
        assert detail(page).startswith(first)
    page.go_forward()
    assert detail(page).startswith("basket 4 ")
    for nowhere in ("pattern-0", "pattern-999", "row-300", "feature-40", "other-1"):
        visit("baskets", anchor=f"#explore={nowhere}")


def test_hostile_names_are_text_in_every_view(visit):
    page = visit("baskets")
    for index, name in enumerate(HOSTILE):
        select(page, "features", index)
        assert page.locator("#detail h3").text_content() == name
        page.locator("#view-features input").fill(name)
        assert entries(page, "features") == [name]
        page.locator("#view-features input").fill("")
    for view in VIEWS:
        tab(page, view)
    tab(page, "code")
    page.fill("#typed", HOSTILE[1])
    assert page.evaluate("window.hurt") is None
    assert page.locator("#explorer img, #explorer script").count() == 0


# --- coding


def test_a_typed_row_is_coded_as_by_python(visit, made):
    model, table, _ = made("digits")
    page = visit("digits")
    tab(page, "code")
    assert "“mdl” of bitatoms from empty codes" in page.locator("#view-code").inner_text()
    rng = np.random.default_rng(0)
    for _ in range(3):
        cells = rng.choice([0, 1, 2], table.shape[1], p=[0.7, 0.25, 0.05])
        page.fill("#typed", "".join("01?"[cell] for cell in cells))
        bits = BitMatrix.from_dense((cells[np.newaxis] == 1).astype(np.uint8))
        bits = bits.with_unknown(BitMatrix.from_dense(cells[np.newaxis] == 2))
        expected = np.flatnonzero(model.as_model().greedy_codes(bits, Workers())[0])
        assert links(page) == [f"Pattern {atom + 1}" for atom in expected]
        assert (f"unknown cells {(cells == 2).sum()} " in detail(page)) == bool((cells == 2).any())


def test_a_row_is_typed_by_names(visit, made):
    model, _, _ = made("baskets")
    page = visit("baskets")
    tab(page, "code")
    features = np.flatnonzero(model.components_[0])
    names = [f"item {feature}" for feature in features if feature > 3]
    page.fill("#typed", ", ".join([*names, "item nowhere", "ITEM 5"]))
    note = page.locator("#typed-note").inner_text()
    assert f"Read: {len({*names, 'item 5'})} ones." in note
    assert "Not a feature of the table: item nowhere." in note
    assert detail(page).startswith("Coded: the typed row Not a feature of the table: item nowhere.")
    page.fill("#typed", "0101")
    assert detail(page) == "Not coded: the typed row There are 4 values, but the table has 40 columns."
    page.get_by_role("button", name="Clear").click()
    assert "It uses no pattern." in detail(page)


def test_a_row_of_the_table_is_coded_in_the_page(visit, made):
    _, table, _ = made("unknown")
    page = visit("unknown")
    select(page, "rows", 3)
    page.get_by_role("button", name="Code it in this page").click()
    typed = page.input_value("#typed").split("\n")
    cells = table.to_dense(float)[3]
    expected = [f"?{n}" if np.isnan(c) else n for n, c in zip(table.columns, cells, strict=True) if c != 0]
    assert typed == expected
    assert detail(page).startswith("Coded: @person 3")


def test_a_picture_is_drawn_and_coded(visit):
    page = visit("digits")
    tab(page, "code")
    canvas = page.locator("#view-code canvas")
    canvas.click(position={"x": 8, "y": 8})
    canvas.focus()
    for key in ("ArrowRight", "ArrowDown", " "):
        page.keyboard.press(key)
    expected = np.zeros((8, 8), int)
    expected[0, 0] = expected[1, 1] = 1
    assert page.input_value("#typed") == "".join(map(str, expected.ravel()))
    assert detail(page).startswith("Coded: a drawn row")
    select(page, "features", 20)
    assert "row 3, column 5 pixel" in detail(page) or "pixel row 3, column 5" in detail(page)


# --- lists


def test_lists_are_searched_sorted_and_filtered(visit, made):
    model, table, data = made("unknown")
    page, codes = visit("unknown"), data.codes.to_dense()
    tab(page, "rows")
    controls = page.locator("#view-rows")
    assert entries(page, "rows") == [table.row_name(row) for row in range(100)]
    controls.get_by_role("button", name="Show 100 more of 200").click()
    assert len(entries(page, "rows")) == 200
    controls.locator("input").fill("Person 15")
    assert entries(page, "rows") == [table.row_name(row) for row in range(200) if "person 15" in table.row_name(row)]
    controls.locator("input").fill("pattern 2")
    assert entries(page, "rows") == [table.row_name(row) for row in np.flatnonzero(codes[:, 1])][:100]
    page.keyboard.press("Escape")
    wrong = data.errors.row_weights()
    controls.get_by_label("Sort by").select_option("wrong cells")
    assert entries(page, "rows") == [table.row_name(row) for row in np.argsort(-wrong, kind="stable")[:100]]
    controls.get_by_label("Show").select_option("without wrong cells")
    assert entries(page, "rows") == [table.row_name(row) for row in np.flatnonzero(wrong == 0)[:100]]
    controls.locator("input").fill("nobody")
    assert controls.locator("[role=status]").inner_text() == "0 of 200 rows"
    tab(page, "patterns")
    controls = page.locator("#view-patterns")
    controls.get_by_label("Sort by").select_option("number of features")
    order = np.argsort(-model.components_.sum(axis=1), kind="stable")
    assert entries(page, "patterns") == [f"Pattern {atom + 1}" for atom in order]
    controls.locator("input").fill("=1+1")
    assert sorted(entries(page, "patterns")) == [f"Pattern {k + 1}" for k in np.flatnonzero(model.components_[:, 0])]
    tab(page, "features")
    page.locator("#view-features").get_by_label("Show").select_option("in no pattern")
    assert entries(page, "features") == [*data.names_of(np.flatnonzero(~model.components_.any(axis=0)))]


def test_groups_and_positions_of_genotypes(visit, made):
    _, table, _ = made("genotypes")
    page = visit("genotypes")
    tab(page, "rows")
    populations = np.asarray(table.row_data["population"])
    page.locator("#view-rows").get_by_label("Show").select_option(f"of {populations[-1]}")
    assert len(entries(page, "rows")) == (populations == populations[-1]).sum()
    select(page, "patterns", 0)
    assert "Variants from " in detail(page)
    select(page, "features", 3)
    assert f"{np.asarray(table.column_data['position'])[3]:,}" in detail(page)


def test_what_is_shown_is_saved_as_csv_without_formulas(visit, made):
    model, table, data = made("unknown")
    page, codes = visit("unknown"), data.codes.to_dense()
    tab(page, "rows")
    page.locator("#view-rows input").fill("pattern 1")
    lines = downloaded(page, "#view-rows")
    users = np.flatnonzero(codes[:, 0])
    assert lines[0] == ["row", "index", "bits", "patterns", "missed", "invented", "unknown"]
    assert [line[0] for line in lines[1:]] == [f"'{table.row_name(row)}" for row in users]
    assert [line[3] for line in lines[1:]] == [
        "; ".join(str(k + 1) for k in np.flatnonzero(codes[row])) for row in users
    ]
    for line, row in zip(lines[1:], users.tolist(), strict=True):
        missed = "; ".join(data.names_of(data.row(row).missed))
        assert line[4] == (f"'{missed}" if missed.startswith("=") else missed)
    select(page, "patterns", 0)
    lines = downloaded(page, "#detail")
    features = np.flatnonzero(model.components_[0])
    assert len(lines) == len(users) + 1
    cells = table.to_dense(float)[users][:, features]
    words = {1: "one", 0: "invented"}
    assert [line[1:] for line in lines[1:]] == [[words.get(cell, "unknown") for cell in row] for row in cells]


# --- keyboard


def focused(page):
    """Return the text or label of the focused element."""
    return page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent.trim()")


def test_everything_is_reached_by_keyboard(visit):
    page = visit("baskets")
    page.locator("#tab-patterns").focus()
    for title in ("Rows", "Features", "Code a row", "Matrix"):
        page.keyboard.press("ArrowRight")
        assert focused(page) == title
        assert page.evaluate("document.activeElement.ariaSelected") == "true"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Home")
    assert focused(page) == "Patterns"
    for _ in range(5):
        page.keyboard.press("Tab")  # search, sort, filter, save, the list
    assert focused(page).startswith("Pattern 1")
    page.keyboard.press("ArrowDown")
    assert focused(page).startswith("Pattern 2")
    page.keyboard.press("Enter")
    assert focused(page) == "Pattern 2"
    assert page.evaluate("document.activeElement.tagName") == "H3"
    page.keyboard.press("Tab")
    assert focused(page) == "Back"
    page.keyboard.press("Enter")
    assert focused(page).startswith("Pattern 2")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert focused(page).startswith("Pattern 2")
    assert page.evaluate("document.activeElement.ariaCurrent") == "true"


def test_patterns_that_are_used_together_are_related(visit, made):
    model, _, data = made("baskets")
    page, codes = visit("baskets"), data.codes.to_dense().astype(int)
    lines = page.locator("#detail h4:has-text('Related patterns') + div li").all_inner_texts()
    for line in lines:
        other = int(line.split(":")[0].split()[1]) - 1
        assert f"{(model.components_[0] & model.components_[other]).sum()} shared feature" in line
        assert f"used together by {(codes[:, 0] & codes[:, other]).sum()} row" in line
    assert lines


def test_the_matrix_is_used_by_keyboard(visit, made):
    _, table, data = made("baskets")
    page = visit("baskets")
    tab(page, "matrix")
    canvas = page.locator("#view-matrix canvas")
    canvas.focus()
    size = "canvas => [canvas.width, canvas.height]"
    assert canvas.evaluate(size) == [40, 300]
    page.keyboard.press("+")
    assert canvas.evaluate(size) == [20, 150]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    row, feature = page.locator("#view-matrix .readout button").all_inner_texts()[:2]
    state = page.locator("#view-matrix .readout").inner_text()
    index, column = int(row.split()[1]), [*table.columns].index(feature)
    shown = data.row(index)
    word = {(1, 1): "one", (0, 0): "zero", (1, 0): "missed", (0, 1): "invented"}
    assert f": {word[int(shown.data[column]), int(shown.reconstruction[column])]}" in state
    page.keyboard.press("f")
    assert detail(page).startswith(feature)
    canvas.focus()
    page.keyboard.press("Enter")
    assert detail(page).startswith(row)


def test_the_matrix_marks_the_selected_pattern(visit, made):
    model, _, data = made("baskets")
    page = visit("baskets")
    tab(page, "matrix")
    select(page, "patterns", 0)
    tab(page, "matrix")
    count = """canvas => {
      const text = getComputedStyle(document.documentElement).getPropertyValue('--cell-selected').trim();
      const wanted = [1, 3, 5].map(start => parseInt(text.slice(start, start + 2), 16));
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let n = 0;
      for (let i = 0; i < data.length; i += 4) n += wanted.every((channel, c) => data[i + c] === channel);
      return n;
    }"""
    users, features = data.codes.to_dense()[:, 0] == 1, model.components_[0] == 1
    expected = (data.table.to_dense()[users][:, features] == 1).sum()
    assert page.locator("#view-matrix canvas").evaluate(count) == expected


# --- screens


@pytest.mark.parametrize(
    ("name", "viewport"), [*((name, PHONE) for name in (*PAGES, "large")), ("baskets", DESKTOP), ("digits", DESKTOP)]
)
def test_every_view_fits_the_window(visit, name, viewport):
    page = visit(name, viewport)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    for view in VIEWS:
        if not tab(page, view):
            assert name == "private"
            continue
        entry = page.locator(f"#view-{view} button.entry")
        if entry.count():
            entry.first.click()
        assert not page.evaluate(IS_WIDER_THAN_WINDOW), view
        levels = page.evaluate(HEADING_LEVELS)
        assert (levels[0], max(np.diff(levels)) <= 1) == (1, True)


@pytest.mark.parametrize("name", ["digits", "unknown"])
def test_views_have_contrast_and_controls_and_pictures_have_names(visit, name):
    backgrounds = set()
    for scheme in ("light", "dark"):
        page = visit(name, color_scheme=scheme)
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        for view in VIEWS:
            tab(page, view)
            entry = page.locator(f"#view-{view} button.entry")
            if entry.count():
                entry.last.click()
            ratios = page.evaluate(CONTRAST)
            assert min(ratios.values()) >= 4.5, (view, ratios)
            assert page.evaluate(NAMELESS) == []
    assert len(backgrounds) == 2


def test_a_page_without_rows_can_be_explored(visit, made):
    model, table, _ = made("private")
    page = visit("private")
    select(page, "patterns", 0)
    assert "cells of its features" in detail(page)
    assert "Rows behind it" not in detail(page)
    lines = downloaded(page, "#detail")
    assert len(lines) == model.components_[0].sum() + 1
    select(page, "features", 2)
    tab(page, "code")
    page.fill("#typed", table.columns[2])
    assert detail(page).startswith("Coded: the typed row")
    assert "person" not in page.content()


def test_pages_without_patterns_can_be_explored(visit):
    for name in ("nothing", "one_row"):
        page = visit(name)
        select(page, "rows", 0)
        assert "It uses no pattern." in detail(page)
        select(page, "features", 0)
        assert "No pattern has it." in detail(page)
        tab(page, "patterns")
        assert page.locator("#view-patterns [role=status]").inner_text() == "0 patterns"


def test_the_page_of_a_large_table_is_small(visit, report_path):
    """100 000 rows, 1000 features and 500 patterns."""
    assert report_path("huge").stat().st_size < 8_000_000
    page = visit("huge")
    for view in VIEWS:
        assert tab(page, view)
    assert "of the 100,000 rows, drawn at random" in page.locator("#explore").inner_text()
