"""A browser to open reports in. Without one these tests are skipped, unless REQUIRE_BROWSER says that they must run."""

import os
import shutil

import pytest

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


def give_up(why):
    """Skip, or fail where a browser is required."""
    if os.environ.get("REQUIRE_BROWSER"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        give_up('playwright is not installed; pip install -e ".[browser]" does it')
    chromium = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if chromium is None:
        give_up("there is no Chromium; install it, or say in CHROMIUM where it is")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield browser
        browser.close()
