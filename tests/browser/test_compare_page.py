"""The page of a comparison in a browser: it fits a phone, is read in light and dark, and is quiet."""

import numpy as np
import pytest

import bitatoms as ba
from support.plans import use_budget

HOSTILE = "<img src=x onerror='window.hurt = 1'> and a name that is long " + "without any blank" * 9
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Where the page is."""
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
def visit(browser, address):
    """Open the page; at the end it must have been quiet: nothing fetched, nothing in the console."""
    contexts, heard = [], []

    def open_page(viewport=None, **how):
        context = browser.new_context(viewport=viewport or DESK, **how)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: heard.append(request.url) if is_foreign(request.url) else None)
        page.goto(address)
        return page

    def is_foreign(url):
        return not (url.split("#")[0] == address or url.startswith("data:"))

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_the_page_is_no_wider_than_its_window(visit, viewport):
    page = visit(viewport)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    wide, window = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= window
    assert page.evaluate("window.hurt") is None


def test_wide_tables_scroll_by_keyboard_within_themselves(visit):
    page = visit(PHONE)
    table = page.locator(".scroll").nth(1)
    table.focus()
    page.keyboard.press("End")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelectorAll('.scroll')[1].scrollLeft > 0")
    assert table.get_attribute("aria-label")


def test_every_picture_is_there_and_has_a_text(visit):
    page = visit()
    sizes = page.evaluate("[...document.images].map(each => [each.naturalWidth, each.alt.length])")
    assert len(sizes) == 16
    assert min(min(size) for size in sizes) > 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(visit, scheme):
    from test_page import CONTRAST

    ratios = visit(color_scheme=scheme).evaluate(CONTRAST)
    assert min(ratios.values()) >= 4.5, ratios


def test_headings_go_down_step_by_step_and_links_lead_somewhere(visit):
    page = visit()
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(each => Number(each.tagName[1]))")
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1
    lost = page.evaluate("""[...document.querySelectorAll("a[href^='#']")]
        .filter(each => !document.getElementById(each.getAttribute("href").slice(1))).length""")
    assert lost == 0
