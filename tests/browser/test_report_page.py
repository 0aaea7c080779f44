"""The static sections of a report in a browser: search, sorting, keyboard and print."""

import json
import re

import pytest

pytestmark = pytest.mark.usefixtures("few_trials")


def shown(page):
    """Return the numbers of the visible patterns, in order."""
    return page.eval_on_selector_all(".card:not([hidden])", "cards => cards.map(card => Number(card.dataset.atom))")


def focused(page):
    """Return the id or text of the focused element."""
    return page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")


def test_patterns_are_searched_by_feature_row_and_number(visit):
    page = visit("baskets")
    wanted = json.loads(page.locator("#data").text_content())["features"]["names"][-1]
    n_atoms = page.locator(".card").count()
    assert page.locator("#shown").text_content() == f"{n_atoms} patterns"
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
    page.fill("#search", page.locator(".card .row").first.text_content())
    assert 1 in shown(page)
    for text, found in (("pattern 2", [2]), ("no such thing", []), ("", [*range(1, n_atoms + 1)])):
        page.fill("#search", text)
        assert sorted(shown(page)) == found
        assert page.locator("#nothing").is_visible() == (not found)


@pytest.mark.parametrize(
    ("name", "by"), [("digits", "saved"), ("digits", "rows"), ("large", "features"), ("large", "atom")]
)
def test_patterns_are_sorted(visit, name, by):
    page = visit(name)
    page.select_option("#order", by)
    values = page.eval_on_selector_all(".card", f"cards => cards.map(card => Number(card.dataset.{by}))")
    assert len(values) == (500 if name == "large" else 10)
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
    assert (page.input_value("#search"), shown(page)) == ("item/no", [])
    page.keyboard.press("Enter")
    assert page.input_value("#search") == "item/no"
    page.keyboard.press("Escape")
    assert (page.input_value("#search"), len(shown(page))) == ("", page.locator(".card").count())


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


def test_page_works_without_scripts(visit):
    page = visit("baskets", java_script_enabled=False)
    assert [page.locator(each).first.is_visible() for each in (".card", "#find", "#find-feature")] == [
        True,
        False,
        False,
    ]


def test_print_unfolds_details_and_hides_controls(visit):
    page = visit("baskets")
    pdf = page.pdf(format="A4")
    assert (pdf[:4], len(pdf) > 20_000) == (b"%PDF", True)
    page.emulate_media(media="print")
    assert not any(page.locator(each).is_visible() for each in ("#find", "nav"))
    for event, others in (("beforeprint", "details:not([open])"), ("afterprint", "details[open]")):
        page.evaluate(f"dispatchEvent(new Event('{event}'))")
        assert page.locator(others).count() == 0
