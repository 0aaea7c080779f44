"""The report in a browser: it searches and sorts, by keyboard too, fits a phone, the dark and paper, and is quiet."""

import json
import re

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.core.model import Model
from bitatoms.mdl import Codelength
from bitatoms.report import write_report
from bitatoms.table import Picture, Table

HOSTILE = ("</script><script>window.hurt = 1</script>", '"><img src=x onerror="window.hurt = 1">', "' onclick='hurt()")
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}


def baskets():
    """A table with names, some of them hostile."""
    X = ba.datasets.planted(300, 40, 6, algebra="or", code_density=0.3, atom_density=0.4, noise=0.03, random_state=0).X
    names = [*HOSTILE, "a name that is long " * 8, *(f"item {n}" for n in range(4, 40))]
    table = Table(BitMatrix.from_dense(X), [f"basket {n}" for n in range(300)], names)
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table), table


def digits():
    """Pictures."""
    table = Table(BitMatrix.from_dense(ba.datasets.digits()[0]), picture=Picture((8, 8)))
    return ba.BinaryDictionaryLearning(random_state=0).fit(table), table


def nothing():
    """A table in which there is no pattern."""
    X = np.random.default_rng(0).integers(0, 2, (30, 9), dtype=np.uint8)
    return ba.BinaryDictionaryLearning(random_state=0).fit(X), X


def large():
    """A model of 500 atoms."""
    rng = np.random.default_rng(0)
    atoms = BitMatrix.from_dense((rng.random((500, 1000)) < 0.05).astype(np.uint8))
    model = Model(
        atoms=atoms,
        bias=np.zeros(1000, np.uint8),
        algebra="or",
        codelength=Codelength(1, 1, 1),
        history=(),
        wrong=np.full(1000, 20),
        coder="mdl",
        n_samples=300,
        uses=np.full(500, 3),
        saved=np.arange(500)[::-1],
    )
    return model, BitMatrix.from_dense((rng.random((300, 1000)) < 0.05).astype(np.uint8))


MAKERS = {maker.__name__: maker for maker in (baskets, digits, nothing, large)}


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    """Where the report of each kind is."""
    folder = tmp_path_factory.mktemp("reports")
    for name, maker in MAKERS.items():
        write_report(*maker(), folder / f"{name}.html", title=f"{name}.csv")
    return folder


@pytest.fixture
def visit(browser, reports):
    """Open a report; at the end it must have been quiet: nothing fetched, nothing in the console, nothing broken."""
    contexts, heard = [], []

    def open_page(name, viewport=None, **how):
        context = browser.new_context(viewport=viewport or DESK, **how)
        contexts.append(context)
        page = context.new_page()
        address = (reports / f"{name}.html").as_uri()
        page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: heard.append(request.url) if _is_foreign(request.url, address) else None)
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []


def _is_foreign(url, address):
    return not (url.split("#")[0] == address or url.startswith("data:"))


def shown(page):
    """The numbers of the patterns that are seen, in their order."""
    return page.eval_on_selector_all(".card:not([hidden])", "cards => cards.map(card => Number(card.dataset.atom))")


def focused(page):
    return page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_no_page_is_wider_than_its_window(visit, name, viewport):
    page = visit(name, viewport)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    wide, window = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= window


def test_hostile_names_are_seen_and_do_nothing(visit):
    page = visit("baskets")
    assert page.evaluate("window.hurt") is None
    for name in HOSTILE:
        page.fill("#search", name)
        assert 0 < len(shown(page)) < page.locator(".card").count()
        assert name in page.locator(".card:not([hidden]) .hits").first.text_content()
    assert page.evaluate("window.hurt") is None


def test_patterns_are_found_by_feature_by_row_and_by_number(visit):
    page = visit("baskets")
    index = json.loads(page.locator("#index").text_content())
    n_atoms = page.locator(".card").count()
    assert page.locator("#shown").text_content() == f"{n_atoms} patterns"
    wanted = index["features"][-1]
    assert wanted.startswith("item ")
    page.fill("#search", f"  {wanted.upper()} ")
    having = [
        int(card.get_attribute("data-atom"))
        for card in page.locator(".card").all()
        if wanted in [chip.text_content() for chip in card.locator(".chips bdi").all()]
    ]
    assert 0 < len(having) < n_atoms
    assert shown(page) == having
    assert page.locator("#shown").text_content() == f"{len(having)} of {n_atoms} patterns"
    row = page.locator(".card .row").first.text_content()
    page.fill("#search", row)
    assert 1 in shown(page)
    page.fill("#search", "pattern 2")
    assert shown(page) == [2]
    page.fill("#search", "no such thing")
    assert shown(page) == []
    assert page.locator("#nothing").is_visible()
    page.fill("#search", "")
    assert len(shown(page)) == n_atoms
    assert not page.locator("#nothing").is_visible()


@pytest.mark.parametrize("by", ["saved", "rows", "features", "atom"])
def test_patterns_are_sorted_by_what_their_cards_say(visit, by):
    page = visit("digits")
    page.select_option("#order", by)
    values = page.eval_on_selector_all(".card", f"cards => cards.map(card => Number(card.dataset.{by}))")
    assert len(values) > 20
    assert values == sorted(values, reverse=by != "atom")


def test_features_are_sorted_by_the_heads_of_their_columns(visit):
    page = visit("baskets")
    for place, head in enumerate(["feature", "ones", "missed", "invented", "wrong"]):
        button = page.get_by_role("button", name=head, exact=True)
        button.focus()
        ways = []
        for key in ("Enter", "Space"):
            page.keyboard.press(key)
            ways.append(page.locator("#feature-table thead th").nth(place).get_attribute("aria-sort"))
            values = page.eval_on_selector_all(
                "#feature-table tbody tr", f"lines => lines.map(line => line.cells[{place}].textContent)"
            )
            if place:
                numbers = [int(value.replace(",", "")) for value in values]
                assert numbers == sorted(numbers, reverse=ways[-1] == "descending")
            else:
                items = [int(value.split()[1]) for value in values if re.fullmatch(r"item \d+", value)]
                assert items == sorted(items, reverse=ways[-1] == "descending")
        assert sorted(ways) == ["ascending", "descending"]
        assert page.locator("#feature-table [aria-sort]").count() == 1


def test_features_are_searched_on_their_own(visit):
    page = visit("baskets")
    page.fill("#search-feature", "item 3")
    lines = page.eval_on_selector_all(
        "#feature-table tbody tr:not([hidden])", "lines => lines.map(line => line.cells[0].textContent)"
    )
    assert lines
    assert all("item 3" in line for line in lines)
    assert page.locator("#shown-features").text_content().startswith(f"{len(lines)} of ")
    assert len(shown(page)) == page.locator(".card").count()


def test_slash_goes_to_the_search_and_escape_clears_it(visit):
    page = visit("baskets")
    page.keyboard.press("/")
    assert focused(page) == "search"
    page.keyboard.type("item/no")
    assert page.input_value("#search") == "item/no"
    assert shown(page) == []
    page.keyboard.press("Enter")
    assert page.input_value("#search") == "item/no"
    page.keyboard.press("Escape")
    assert page.input_value("#search") == ""
    assert len(shown(page)) == page.locator(".card").count()


def test_all_that_can_be_done_is_reached_by_tab_in_reading_order_and_seen(visit):
    page = visit("baskets")
    wanted = page.evaluate("""[...document.querySelectorAll("a[href], input, select, button, summary, [tabindex='0']")]
        .filter(each => each.checkVisibility()).length""")
    reached, tops = [], []
    for _ in range(wanted):
        page.keyboard.press("Tab")
        reached.append(focused(page))
        tops.append(page.evaluate("document.activeElement.getBoundingClientRect().top + scrollY"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", reached[-1]
    assert reached[0] == "Skip to the patterns"
    assert reached.index("search") < reached.index("order") < reached.index("search-feature")
    assert len(set(tops)) > 10
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement === document.body || document.activeElement.className === 'skip'")


def test_a_link_to_a_pattern_that_the_search_hides_shows_it(visit):
    page = visit("baskets")
    link = page.locator('#worst a[href^="#atom-"]').first
    target = link.get_attribute("href")
    page.fill("#search", "no such thing")
    link.click()
    page.wait_for_function("document.querySelector('#search').value === ''")
    assert page.locator(target).is_visible()


def test_500_patterns_are_searched_and_sorted(visit):
    page = visit("large")
    assert len(shown(page)) == 500
    index = json.loads(page.locator("#index").text_content())
    assert len(index["atoms"]) == 500
    page.fill("#search", "x123")
    few = len(shown(page))
    assert 0 < few < 100
    assert page.locator("#shown").text_content() == f"{few} of 500 patterns"
    page.fill("#search", "")
    page.select_option("#order", "features")
    values = page.eval_on_selector_all(".card", "cards => cards.map(card => Number(card.dataset.features))")
    assert values == sorted(values, reverse=True)


def test_the_page_is_whole_without_scripts(visit):
    page = visit("baskets", java_script_enabled=False)
    assert page.locator(".card").first.is_visible()
    assert not page.locator("#find").is_visible()
    assert not page.locator("#find-feature").is_visible()


@pytest.mark.parametrize("name", ["baskets", "digits", "nothing"])
def test_text_stands_out_in_light_and_dark(visit, name):
    grounds = []
    for scheme in ("light", "dark"):
        page = visit(name, color_scheme=scheme)
        ratios = page.evaluate(CONTRAST)
        assert min(ratios.values()) >= 4.5, ratios
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


# For each kind of text that is seen, the contrast with what is behind it, by the formula of WCAG 2.
CONTRAST = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).slice(0, 3).map(x => x / 255);
    const linear = (x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const behind = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = {};
  for (const each of document.querySelectorAll("body *")) {
    const says = [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!says || !each.checkVisibility() || ["SCRIPT", "STYLE"].includes(each.tagName)) continue;
    const pair = [light(getComputedStyle(each).color), light(behind(each))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const kind = each.tagName + "." + each.className;
    found[kind] = Math.min(found[kind] ?? 21, ratio);
  }
  return found;
}"""


def test_on_paper_everything_is_unfolded_and_nothing_is_to_be_typed(visit):
    page = visit("baskets")
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 20_000
    page.emulate_media(media="print")
    assert not page.locator("#find").is_visible()
    assert not page.locator("nav").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_every_control_and_picture_has_a_name(visit):
    for name in ("baskets", "digits", "nothing"):
        page = visit(name)
        nameless = page.evaluate("""[...document.querySelectorAll("input, select, button, a, summary, img, [role=img]")]
            .filter(each => !(each.labels?.length || each.textContent.trim() || each.ariaLabel))
            .filter(each => !each.hasAttribute("alt"))
            .map(each => each.outerHTML.slice(0, 80))""")
        assert nameless == []
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(each => Number(each.tagName[1]))")
        assert levels[0] == 1
        assert max(np.diff(levels)) <= 1
