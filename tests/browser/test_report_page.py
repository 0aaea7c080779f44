"""The static sections of a report in a browser: search, sorting, keyboard and print."""

import json

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


def test_patterns_and_features_are_sorted(visit):
    page = visit("baskets")
    for by in ("rows", "atom"):
        page.select_option("#order", by)
        values = page.eval_on_selector_all(".card", f"cards => cards.map(card => Number(card.dataset.{by}))")
        assert values == sorted(values, reverse=by != "atom")
    head = page.locator("#feature-table thead th").nth(1)
    for _ in range(2):
        page.get_by_role("button", name="ones", exact=True).press("Enter")
        cells = page.locator("#feature-table tbody tr td:nth-child(2)").all_text_contents()
        ones = [int(cell.replace(",", "")) for cell in cells]
        assert ones == sorted(ones, reverse=head.get_attribute("aria-sort") == "descending")


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


def test_page_works_without_scripts(visit):
    page = visit("baskets", java_script_enabled=False)
    assert page.locator(".card").first.is_visible()
    assert not any(page.locator(each).is_visible() for each in ("#find", "#find-feature"))


def test_print_unfolds_details_and_hides_controls(visit):
    page = visit("baskets")
    pdf = page.pdf(format="A4")
    assert (pdf[:4], len(pdf) > 20_000) == (b"%PDF", True)
    page.emulate_media(media="print")
    assert not any(page.locator(each).is_visible() for each in ("#find", "nav"))
    for event, others in (("beforeprint", "details:not([open])"), ("afterprint", "details[open]")):
        page.evaluate(f"dispatchEvent(new Event('{event}'))")
        assert page.locator(others).count() == 0
