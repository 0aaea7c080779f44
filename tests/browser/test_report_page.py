"""The static sections of a report in a browser: keyboard, no scripts, and print."""

import pytest

pytestmark = pytest.mark.usefixtures("few_trials")


def focused(page):
    """Return the id or text of the focused element."""
    return page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")


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
    assert len(set(tops)) > 10
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement === document.body || document.activeElement.className === 'skip'")


def test_the_patterns_are_a_table_without_scripts_and_on_paper(visit):
    page = visit("baskets", anchor="#atom-2", java_script_enabled=False)
    assert page.locator("#listing tbody tr").count() == 6
    assert page.locator("#atom-2").is_visible()
    assert not page.locator("#explorer").is_visible()
    page = visit("baskets", anchor="#atom-2")
    assert page.locator("#detail h3").inner_text() == "Pattern 2"
    assert not page.locator("#listing").is_visible()
    pdf = page.pdf(format="A4")
    assert (pdf[:4], len(pdf) > 20_000) == (b"%PDF", True)
    page.emulate_media(media="print")
    assert page.locator("#listing").is_visible()
    assert not any(page.locator(each).is_visible() for each in ("#explore", "nav"))
    assert page.locator("#words dd").first.is_visible()  # details are unfolded
