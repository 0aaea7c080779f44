"""Pictures: what is drawn where, and what is refused."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from bitatoms import BitMatrix
from bitatoms.plots import codelength_curve, mosaic

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ROWS = [(1, 3, 900, 50, 20), (2, 4, 700, 70, 25), (3, 5, 690, 95, 31)]
FIELDS = ("round", "atoms", "bits_errors", "bits_codes", "bits_atoms")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def drawn(ax):
    return np.ma.filled(ax.images[0].get_array().astype(float), np.nan)


def test_tiles_hold_the_atoms_in_reading_order():
    atoms = (np.arange(5 * 6).reshape(5, 6) % 4 == 0).astype(np.uint8)
    ax = mosaic(atoms, shape=(2, 3), columns=2)
    sheet = drawn(ax)
    assert sheet.shape == (3 * 3 + 1, 2 * 4 + 1)
    for place, atom in enumerate(atoms):
        top, left = 3 * (place // 2) + 1, 4 * (place % 2) + 1
        assert np.array_equal(sheet[top : top + 2, left : left + 3], atom.reshape(2, 3))
    assert np.isnan(sheet[7:, 5:]).all()  # the place of a sixth atom
    assert np.isnan(sheet[::3]).all()
    assert np.isnan(sheet[:, ::4]).all()


def test_one_is_black_and_zero_white():
    image = mosaic([[1, 0, 0, 0]]).images[0]
    assert image.cmap(image.norm(1.0))[:3] == (0, 0, 0)
    assert image.cmap(image.norm(0.0))[:3] == (1, 1, 1)


@pytest.mark.parametrize(("n_features", "tile"), [(64, (8, 8)), (1, (1, 1)), (63, (1, 63))])
def test_tiles_are_square_where_they_can_be_and_lines_elsewhere(n_features, tile):
    sheet = drawn(mosaic(np.ones((4, n_features)), columns=1))
    assert sheet.shape == (4 * (tile[0] + 1) + 1, tile[1] + 2)


def test_a_mosaic_is_about_square_by_default():
    assert drawn(mosaic(np.ones((36, 256)))).shape == (6 * 17 + 1, 6 * 17 + 1)
    assert drawn(mosaic(np.ones((20, 63)))).shape == (20 * 2 + 1, 63 + 2)
    assert drawn(mosaic(np.ones((2, 4)), columns=9)).shape == (4, 7)


def test_mosaic_takes_packed_atoms_and_draws_where_told():
    atoms = np.eye(4, dtype=np.uint8)
    figure, ax = plt.subplots()
    assert mosaic(BitMatrix.from_dense(atoms), ax=ax) is ax
    assert np.array_equal(drawn(ax), drawn(mosaic(atoms)), equal_nan=True)
    figure.canvas.draw()


@pytest.mark.parametrize("shape", [(0, 64), (3, 0), (0, 0)])
def test_no_atoms_are_said_in_words(shape):
    ax = mosaic(np.zeros(shape))
    assert ax.texts[0].get_text() == "no atoms"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"atoms": np.zeros(4)}, "atoms has 1 dimensions; pass a 2-D array with one atom a row"),
        ({"atoms": np.zeros((2, 6)), "shape": (2, 2)}, "shape is 2 × 2 = 4, but an atom has 6 bits"),
        ({"atoms": np.zeros((2, 4)), "columns": 0}, "columns is 0; pass a number ≥ 1"),
    ],
)
def test_mosaic_refuses_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        mosaic(**arguments)


@pytest.mark.parametrize(
    "history",
    [
        tuple(SimpleNamespace(**dict(zip(FIELDS, row, strict=True))) for row in ROWS),
        np.array(ROWS, dtype=[(field, np.int64) for field in FIELDS]),
    ],
    ids=["rows", "structured array"],
)
def test_the_curves_are_the_parts_and_their_sum(history):
    ax = codelength_curve(history)
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["total", "errors", "codes", "atoms"]
    for name, column in zip(["errors", "codes", "atoms"], np.array(ROWS).T[2:], strict=True):
        assert np.array_equal(lines[name].get_ydata(), column)
    assert np.array_equal(lines["total"].get_ydata(), [970, 795, 816])
    assert np.array_equal(lines["total"].get_xdata(), [3, 4, 5])
    assert ax.get_xlabel() == "atoms"
    assert ax.get_ylim()[0] == 0
    ax.figure.canvas.draw()


def test_with_a_fixed_number_of_atoms_the_curves_go_over_the_rounds():
    rows = [(number, 8, 900 - number, 50, 20) for number in range(4)]
    _, ax = plt.subplots()
    assert codelength_curve(np.array(rows, dtype=[(field, np.int64) for field in FIELDS]), ax=ax) is ax
    assert ax.get_xlabel() == "round"
    assert np.array_equal(ax.lines[0].get_xdata(), range(4))


@pytest.mark.parametrize(
    "history",
    [[SimpleNamespace(atoms=1)], np.zeros(2, dtype=[("atoms", int)]), np.zeros(2)],
    ids=["row", "array", "plain"],
)
def test_a_history_without_the_fields_is_refused(history):
    with pytest.raises(ValueError, match=r"history has no field '.*'; pass the history of a result"):
        codelength_curve(history)


@pytest.mark.parametrize("draw", [lambda: mosaic(np.eye(4)), lambda: codelength_curve([])], ids=["mosaic", "curve"])
def test_without_matplotlib_the_error_names_the_extra(monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "bitatoms\[plot\]"'):
        draw()
