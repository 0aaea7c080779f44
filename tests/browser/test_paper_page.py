"""The page of the paper's experiments in a browser: small screens, dark mode, figures and tables."""

import pytest

import bitatoms as ba
from bitatoms import BitMatrix, datasets
from bitatoms.reproduce import reproduce
from bitatoms.table import Table
from support.browser import DESKTOP, IS_WIDER_THAN_WINDOW, PHONE

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Reproduce the experiments on small data; return the address of the page."""
    folder = tmp_path_factory.mktemp("paper")
    ba.write(Table(BitMatrix.from_dense(datasets.halftone()[100:260, 200:520])), folder / "picture.pbm")
    ba.write(Table(BitMatrix.from_dense(datasets.digits()[0][:200])), folder / "digits.npz")
    reproduce(folder, einstein=folder / "picture.pbm", mnist=folder / "digits.npz")
    return (folder / "index.html").as_uri()


@pytest.fixture(params=[PHONE, DESKTOP], ids=["phone", "desktop"])
def page(request, open_page, address):
    """Open the page, on the phone in dark mode."""
    return open_page(address, request.param, color_scheme="dark" if request.param is PHONE else "light")


def test_page_fits_the_window(page):
    assert not page.evaluate(IS_WIDER_THAN_WINDOW)


def test_figures_are_shown_with_alternative_text(page):
    images = page.locator("figure img")
    assert images.count() > 20
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0 && image.alt)")


def test_contents_link_to_the_experiments(page):
    for anchor in page.locator("nav a").evaluate_all("links => links.map(link => link.hash)"):
        assert page.locator(anchor).count() == 1


def test_tables_unfold_and_scroll(page):
    for summary in page.locator("figure summary").all()[:4]:
        summary.click()
    assert page.locator("figure details[open] table").first.is_visible()
    assert not page.evaluate(IS_WIDER_THAN_WINDOW)
