"""The page of a comparison in a browser: small screens, dark mode, and no requests."""

import numpy as np
import pytest

import bitatoms as ba
from support.browser import CONTRAST, DESKTOP, HEADING_LEVELS, IS_WIDER_THAN_WINDOW, PHONE
from support.plans import use_budget

HOSTILE = "<img src=x onerror='window.hurt = 1'> and a name that is long " + "without any blank" * 9


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Write a comparison; return the address of its page."""
    pytest.importorskip("matplotlib")
    from bitatoms.compare import Method, compare

    def fail(task):
        raise RuntimeError("no_blank_in_this_reason" * 9)

    broken = Method("broken", "<b>broken</b>", "or", "wrong cells", "a test", fail)
    tables = {"planted": ba.datasets.planted(90, 20, 2, random_state=0).X, HOSTILE: np.eye(40, dtype=np.uint8)}
    with pytest.MonkeyPatch.context() as patch:
        use_budget(patch, max_trials=4)
        only = ["bitatoms-or", "bitatoms-xor", "bitatoms-or-mdl", "mob", "grecond", broken]
        found = compare(tables, [1, 2, 3, 4, 5, 6], only=only, seeds=2, command="bitatoms compare " + "x" * 300)
    folder = tmp_path_factory.mktemp("compare")
    found.write(folder)
    return (folder / "index.html").as_uri()


@pytest.fixture
def visit(open_page, address):
    """Open the page."""
    return lambda viewport=DESKTOP, **options: open_page(address, viewport, **options)


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_page_fits_the_window(visit, viewport):
    page = visit(viewport)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert not page.evaluate(IS_WIDER_THAN_WINDOW)
    assert page.evaluate("window.hurt") is None


def test_wide_tables_scroll_by_keyboard(visit):
    page = visit(PHONE)
    table = page.locator(".scroll").nth(1)
    table.focus()
    page.keyboard.press("End")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelectorAll('.scroll')[1].scrollLeft > 0")
    assert table.get_attribute("aria-label")


def test_pictures_are_shown_with_alternative_text(visit):
    page = visit()
    sizes = page.evaluate("[...document.images].map(each => [each.naturalWidth, each.alt.length])")
    assert len(sizes) == 16
    assert min(min(size) for size in sizes) > 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(visit, scheme):
    ratios = visit(color_scheme=scheme).evaluate(CONTRAST)
    assert min(ratios.values()) >= 4.5, ratios


def test_headings_are_nested_and_links_have_targets(visit):
    page = visit()
    levels = page.evaluate(HEADING_LEVELS)
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1
    broken = page.evaluate("""[...document.querySelectorAll("a[href^='#']")]
        .filter(each => !document.getElementById(each.getAttribute("href").slice(1))).length""")
    assert broken == 0
