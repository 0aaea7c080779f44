"""The page of the paper's experiments in a browser: it fits a phone and the dark, shows all figures, and is quiet."""

import pytest

import bitatoms as ba
from bitatoms import BitMatrix, datasets
from bitatoms.reproduce import reproduce
from bitatoms.table import Table

PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    ba.write(Table(BitMatrix.from_dense(datasets.halftone()[100:260, 200:520])), folder / "picture.pbm")
    ba.write(Table(BitMatrix.from_dense(datasets.digits()[0][:200])), folder / "digits.npz")
    reproduce(folder, einstein=folder / "picture.pbm", mnist=folder / "digits.npz")
    return (folder / "index.html").as_uri()


@pytest.fixture(params=[PHONE, DESK], ids=["phone", "desk"])
def page(request, browser, address):
    context = browser.new_context(viewport=request.param, color_scheme="dark" if request.param is PHONE else "light")
    page = context.new_page()
    page.heard = []
    page.on("console", lambda message: page.heard.append(message.text))
    page.on("pageerror", lambda error: page.heard.append(str(error)))
    page.on("request", lambda request: page.heard.append(request.url) if request.url.startswith("http") else None)
    page.goto(address)
    yield page
    context.close()


def test_it_fits_and_is_quiet(page):
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.heard == []


def test_every_figure_is_shown_and_described(page):
    images = page.locator("figure img")
    assert images.count() > 20
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0 && image.alt)")


def test_the_contents_lead_to_the_experiments(page):
    for place in page.locator("nav a").evaluate_all("links => links.map(link => link.hash)"):
        assert page.locator(place).count() == 1


def test_numbers_unfold_and_scroll_within_themselves(page):
    for summary in page.locator("figure summary").all()[:4]:
        summary.click()
    assert page.locator("figure details[open] table").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
