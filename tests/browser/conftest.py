"""A browser for the tests of pages. Without one they are skipped, or fail if REQUIRE_BROWSER is set."""

import os
import shutil

import pytest

from bitatoms.report import write_report
from support.browser import DESKTOP
from support.report_pages import MAKERS

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def skip_or_fail(reason):
    """Skip the test, or fail it if a browser is required."""
    if os.environ.get("REQUIRE_BROWSER"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip_or_fail('playwright is not installed; install it with pip install -e ".[browser]"')
    chromium = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if chromium is None:
        skip_or_fail("Chromium is not installed; install it, or set CHROMIUM to its path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Open addresses; at the end, assert that no page made a request or wrote to the console."""
    contexts, messages = [], []

    def open_address(address, viewport=DESKTOP, **options):
        def log_request(request):
            if request.url.split("#")[0] != address.split("#")[0] and not request.url.startswith("data:"):
                messages.append(request.url)

        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", log_request)
        page.goto(address)
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert messages == []


@pytest.fixture(scope="session")
def report_path(tmp_path_factory):
    """Return a function that writes a report by the name of its maker, once, and returns its path."""
    folder = tmp_path_factory.mktemp("reports")

    def write(name):
        path = folder / f"{name}.html"
        if not path.exists():
            model, table, *options = MAKERS[name]()
            write_report(model, table, path, title=f"{name}.csv", **(options[0] if options else {}))
        return path

    return write


@pytest.fixture
def visit(open_page, report_path):
    """Open a report by name, at a place of it if an anchor is given; wait until something is selected in it."""

    def open_report(name, viewport=DESKTOP, anchor="", **options):
        page = open_page(report_path(name).as_uri() + anchor, viewport, **options)
        if options.get("java_script_enabled", True) and page.locator("#detail").count():
            page.locator("#detail > *").first.wait_for(state="attached")
        return page

    return open_report
