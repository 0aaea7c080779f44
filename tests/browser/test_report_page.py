"""The report in a browser: search, sorting, keyboard, small screens, dark mode and print."""

import json
import re

import numpy as np
import pytest

from support.browser import CONTRAST, DESKTOP, HEADING_LEVELS, IS_WIDER_THAN_WINDOW, PHONE
from support.report_pages import HOSTILE

pytestmark = pytest.mark.usefixtures("few_trials")

PAGES = ("baskets", "digits", "nothing", "large")


def shown(page):
    """Return the numbers of the visible patterns, in order."""
    return page.eval_on_selector_all(".card:not([hidden])", "cards => cards.map(card => Number(card.dataset.atom))")


def focused(page):
    """Return the id or text of the focused element."""
    return page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_page_fits_the_window(visit, name, viewport):
    page = visit(name, viewport)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert not page.evaluate(IS_WIDER_THAN_WINDOW)


def test_hostile_names_are_shown_and_not_executed(visit):
    page = visit("baskets")
    assert page.evaluate("window.hurt") is None
    for name in HOSTILE:
        page.fill("#search", name)
        assert 0 < len(shown(page)) < page.locator(".card").count()
        assert name in page.locator(".card:not([hidden]) .hits").first.text_content()
    assert page.evaluate("window.hurt") is None


def test_patterns_are_searched_by_feature_row_and_number(visit):
    page = visit("baskets")
    names = json.loads(page.locator("#data").text_content())["features"]["names"]
    n_atoms = page.locator(".card").count()
    assert page.locator("#shown").text_content() == f"{n_atoms} patterns"
    wanted = names[-1]
    assert wanted.startswith("item ")
    page.fill("#search", f"  {wanted.upper()} ")
    expected = [
        int(card.get_attribute("data-atom"))
        for card in page.locator(".card").all()
        if wanted in [chip.text_content() for chip in card.locator(".chips bdi").all()]
    ]
    assert 0 < len(expected) < n_atoms
    assert shown(page) == expected
    assert page.locator("#shown").text_content() == f"{len(expected)} of {n_atoms} patterns"
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
def test_patterns_are_sorted(visit, by):
    page = visit("digits")
    page.select_option("#order", by)
    values = page.eval_on_selector_all(".card", f"cards => cards.map(card => Number(card.dataset.{by}))")
    assert len(values) > 20
    assert values == sorted(values, reverse=by != "atom")


def test_features_are_sorted_by_column(visit):
    page = visit("baskets")
    for column, head in enumerate(["feature", "ones", "missed", "invented", "wrong"]):
        button = page.get_by_role("button", name=head, exact=True)
        button.focus()
        directions = []
        for key in ("Enter", "Space"):
            page.keyboard.press(key)
            directions.append(page.locator("#feature-table thead th").nth(column).get_attribute("aria-sort"))
            values = page.eval_on_selector_all(
                "#feature-table tbody tr", f"lines => lines.map(line => line.cells[{column}].textContent)"
            )
            if column:
                numbers = [int(value.replace(",", "")) for value in values]
                assert numbers == sorted(numbers, reverse=directions[-1] == "descending")
            else:
                items = [int(value.split()[1]) for value in values if re.fullmatch(r"item \d+", value)]
                assert items == sorted(items, reverse=directions[-1] == "descending")
        assert sorted(directions) == ["ascending", "descending"]
        assert page.locator("#feature-table [aria-sort]").count() == 1


def test_features_are_searched_independently_of_patterns(visit):
    page = visit("baskets")
    page.fill("#search-feature", "item 3")
    lines = page.eval_on_selector_all(
        "#feature-table tbody tr:not([hidden])", "lines => lines.map(line => line.cells[0].textContent)"
    )
    assert lines
    assert all("item 3" in line for line in lines)
    assert page.locator("#shown-features").text_content().startswith(f"{len(lines)} of ")
    assert len(shown(page)) == page.locator(".card").count()


def test_slash_focuses_the_search_and_escape_clears_it(visit):
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


def test_controls_are_reached_by_tab_in_reading_order_with_an_outline(visit):
    page = visit("baskets")
    selector = ":is(a[href], input, select, button, summary, [tabindex='0']):not([tabindex='-1'])"
    n_controls = page.eval_on_selector_all(selector, "all => all.filter(each => each.checkVisibility()).length")
    reached, tops = [], []
    for _ in range(n_controls):
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


def test_link_to_a_hidden_pattern_shows_it(visit):
    page = visit("baskets")
    link = page.locator('#worst a[href^="#atom-"]').first
    target = link.get_attribute("href")
    page.fill("#search", "no such thing")
    link.click()
    page.wait_for_function("() => document.querySelector('#search').value === ''")
    assert page.locator(target).is_visible()


def test_500_patterns_are_searched_and_sorted(visit):
    page = visit("large")
    assert len(shown(page)) == 500
    page.fill("#search", "x123")
    n_shown = len(shown(page))
    assert 0 < n_shown < 100
    assert page.locator("#shown").text_content() == f"{n_shown} of 500 patterns"
    page.fill("#search", "")
    page.select_option("#order", "features")
    values = page.eval_on_selector_all(".card", "cards => cards.map(card => Number(card.dataset.features))")
    assert values == sorted(values, reverse=True)


def test_page_works_without_scripts(visit):
    page = visit("baskets", java_script_enabled=False)
    assert page.locator(".card").first.is_visible()
    assert not page.locator("#find").is_visible()
    assert not page.locator("#find-feature").is_visible()


@pytest.mark.parametrize("name", ["baskets", "digits", "nothing"])
def test_text_has_contrast_in_light_and_dark_mode(visit, name):
    backgrounds = []
    for scheme in ("light", "dark"):
        page = visit(name, color_scheme=scheme)
        ratios = page.evaluate(CONTRAST)
        assert min(ratios.values()) >= 4.5, ratios
        backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert backgrounds[0] != backgrounds[1]


def test_print_unfolds_details_and_hides_controls(visit):
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


def test_controls_and_pictures_have_names_and_headings_are_nested(visit):
    for name in ("baskets", "digits", "nothing"):
        page = visit(name)
        nameless = page.evaluate("""[...document.querySelectorAll("input, select, button, a, summary, img, [role=img]")]
            .filter(each => !(each.labels?.length || each.textContent.trim() || each.ariaLabel))
            .filter(each => !each.hasAttribute("alt"))
            .map(each => each.outerHTML.slice(0, 80))""")
        assert nameless == []
        levels = page.evaluate(HEADING_LEVELS)
        assert levels[0] == 1
        assert max(np.diff(levels)) <= 1
