"""Plots: the drawn content, and errors."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from bitatoms import BitMatrix
from bitatoms.plots import (
    atom_dots,
    atom_shares,
    before_after,
    codelength_curve,
    genome_atoms,
    group_heat_map,
    mosaic,
    row_bits,
    wrong_bits,
)

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


def labels(ax, axis):
    return [label.get_text() for label in getattr(ax, f"get_{axis}ticklabels")()]


def test_mosaic_shows_atoms_in_reading_order_in_black_and_white():
    atoms = (np.arange(5 * 6).reshape(5, 6) % 4 == 0).astype(np.uint8)
    figure, ax = plt.subplots()
    assert mosaic(BitMatrix.from_dense(atoms), shape=(2, 3), columns=2, ax=ax) is ax
    sheet = drawn(ax)
    assert np.array_equal(sheet, drawn(mosaic(atoms, shape=(2, 3), columns=2)), equal_nan=True)
    assert sheet.shape == (3 * 3 + 1, 2 * 4 + 1)
    for index, atom in enumerate(atoms):
        top, left = 3 * (index // 2) + 1, 4 * (index % 2) + 1
        assert np.array_equal(sheet[top : top + 2, left : left + 3], atom.reshape(2, 3))
    for gap in (sheet[7:, 5:], sheet[::3], sheet[:, ::4]):  # a sixth atom would be in the first
        assert np.isnan(gap).all()
    image = ax.images[0]
    assert [image.cmap(image.norm(value))[:3] for value in (1.0, 0.0)] == [(0, 0, 0), (1, 1, 1)]
    figure.canvas.draw()
    for shape in ((0, 64), (3, 0), (0, 0)):
        assert mosaic(np.zeros(shape)).texts[0].get_text() == "no atoms"


def test_pictures_and_the_mosaic_are_square_if_possible():
    for n_features, height, width in ((64, 8, 8), (1, 1, 1), (63, 1, 63)):
        assert drawn(mosaic(np.ones((4, n_features)), columns=1)).shape == (4 * (height + 1) + 1, width + 2)
    assert drawn(mosaic(np.ones((36, 256)))).shape == (6 * 17 + 1, 6 * 17 + 1)
    assert drawn(mosaic(np.ones((20, 63)))).shape == (20 * 2 + 1, 63 + 2)
    assert drawn(mosaic(np.ones((2, 4)), columns=9)).shape == (4, 7)


HISTORY = np.array(ROWS, dtype=[(field, np.int64) for field in FIELDS])


@pytest.mark.parametrize("history", [[SimpleNamespace(**dict(zip(FIELDS, row, strict=True))) for row in ROWS], HISTORY])
def test_curve_shows_the_parts_and_their_sum(history):
    ax = codelength_curve(history)
    assert {line.get_label(): line.get_ydata().tolist() for line in ax.lines} == {
        "total": [970, 795, 816], "errors": [900, 700, 690], "codes": [50, 70, 95], "atoms": [20, 25, 31]
    }  # fmt: skip
    assert [line.get_xdata().tolist() for line in ax.lines] == [[3, 4, 5]] * 4
    assert (ax.get_xlabel(), ax.get_ylim()[0]) == ("atoms", 0)
    ax.figure.canvas.draw()


def test_curve_with_fixed_atoms_is_over_rounds():
    rows = [(number, 8, 900 - number, 50, 20) for number in range(4)]
    _, ax = plt.subplots()
    assert codelength_curve(np.array(rows, HISTORY.dtype), ax=ax) is ax
    assert ax.get_xlabel() == "round"
    assert np.array_equal(ax.lines[0].get_xdata(), range(4))
    ax = codelength_curve([SimpleNamespace(atoms=0, bits_errors=90, bits_codes=0, bits_atoms=0)])  # of one point
    assert (ax.get_xlabel(), ax.lines[0].get_ydata().tolist()) == ("atoms", [90])


def test_before_after_colours_the_errors():
    data, made = np.array([[1, 1, 0, 0]]), np.array([[1, 0, 1, 0]])
    ax = before_after(BitMatrix.from_dense(data), made, shape=(2, 2))
    image, sheet = ax.images[0], drawn(ax)
    colour = {value: matplotlib.colors.to_hex(image.cmap(image.norm(value))) for value in range(5)}
    before, after, wrong = (sheet[1:3, left : left + 2].ravel().tolist() for left in (1, 4, 7))
    assert [colour[value] for value in before] == ["#000000", "#000000", "#ffffff", "#ffffff"]
    assert [colour[value] for value in after] == ["#000000", "#ffffff", "#000000", "#ffffff"]
    assert [colour[value] for value in wrong] == ["#bcb9b2", "#d55e00", "#5b3fc4", "#ffffff"]


def test_wrong_bits_are_sorted_bars_without_zeros_or_a_heat_map():
    missed, invented = np.array([3, 0, 4, 1]), np.array([4, 0, 1, 0])
    ax = wrong_bits(missed, invented, ["a", "b", "c", "d"], most=2)
    assert labels(ax, "y") == ["a", "c"]
    assert [bar.get_width() for bar in ax.patches] == [3, 4, 4, 1]
    assert [bar.get_x() for bar in ax.patches] == [0, 0, 3, 4]
    assert ax.yaxis_inverted()
    unnamed = wrong_bits(missed, invented)
    assert labels(unnamed, "y") == ["x0", "x2", "x3"]
    unnamed.figure.canvas.draw()
    heat_map = wrong_bits(missed, invented, shape=(2, 2)).images[0]
    assert (heat_map.get_array().tolist(), heat_map.cmap.name) == ([[7, 0], [5, 1]], "Oranges")


def test_row_bits_bars_and_median():
    ax = row_bits([5.0, 20.0, 10.0, 20.0], ["ann", "bob", "cy", "di"], most=3)
    assert labels(ax, "y") == ["bob", "di", "cy"]
    assert [bar.get_width() for bar in ax.patches] == [20, 20, 10]
    assert ax.lines[0].get_xdata() == [15, 15]
    assert labels(row_bits([1.0, 2.0]), "y") == ["row 1", "row 0"]
    assert not row_bits([]).patches


@pytest.mark.parametrize("name", ["$x^2$", r"\$a$", "$$", r"$\frac$", "plain"])
def test_names_are_drawn_literally_not_as_formulas(name):
    ax = row_bits([3.0], [name]) if len(name) % 2 else wrong_bits([3], [1], [name])
    ax.figure.canvas.draw()  # a malformed formula raises an error here
    (label,) = ax.get_yticklabels()
    literal = ax.figure.text(0, 0, name, parse_math=False, fontproperties=label.get_fontproperties())
    assert label.get_window_extent().size == pytest.approx(literal.get_window_extent().size)


CODES = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1], [1, 0, 0]])
GROUPS = ["b", "a", "b", None, "a"]


def bars(ax):
    """Return the heights of the bars of each atom, by its name."""
    return {container.get_label(): [bar.get_height() for bar in container] for container in ax.containers}


def test_atom_shares_are_sorted_by_group_and_largest_atom_and_ignore_negative_values():
    ax = atom_shares(CODES, GROUPS, ["x", "y", "z"], most=2)
    assert labels(ax, "x") == ["a", "b", "unknown"]
    # Rows in the order drawn: 4 and 1 (group a), 0 and 2 (group b), 3.
    assert bars(ax) == {"x": [1, 0, 0.5, 0, 0.5], "y": [0, 1, 0.5, 0, 0], "others": [0, 0, 0, 0, 0.5]}
    assert ax.get_xticks().tolist() == [0.5, 2.5, 4.0]
    assert bars(atom_shares([[3.0, -5.0, 1.0]], ["a"])) == {"atom1": [0.75], "atom3": [0.25], "atom2": [0.0]}


@pytest.mark.parametrize(("n_atoms", "palette", "last"), [(10, "tab10", 9), (11, "turbo", 1.0)])
def test_atoms_have_distinct_colours(n_atoms, palette, last):
    ax = atom_shares(np.eye(n_atoms), ["a"] * n_atoms, most=n_atoms)
    colours = [container[0].get_facecolor() for container in ax.containers]
    assert len(set(colours)) == n_atoms
    assert (colours[0], colours[-1]) == tuple(map(matplotlib.colormaps[palette], (0, last)))


def test_groups_of_a_categorical_keep_their_order():
    pd = pytest.importorskip("pandas")
    groups = pd.Series(pd.Categorical(["low", "high", "low", "high", "low"], ["low", "none", "high"]))
    ax = group_heat_map(CODES, groups)
    assert labels(ax, "y") == ["low", "high"]
    np.testing.assert_allclose(ax.images[0].get_array(), [[2 / 3, 1 / 3, 0], [0.5, 0.5, 0.5]])


def test_atom_dots_show_shares_and_mean_bits():
    soft = np.where(CODES > 0, 4.0, -1.0)
    ax = atom_dots(soft, GROUPS)
    dots = ax.collections[0]
    assert dots.get_offsets().tolist() == [[x, y] for y in range(3) for x in range(3)]
    sizes = dots.get_sizes() / 160
    np.testing.assert_allclose(sizes, [0.5, 0.5, 0, 0.5, 0.5, 0, 1, 0, 1])
    np.testing.assert_allclose(dots.get_array(), [1.5, 1.5, -1, 1.5, 1.5, -1, 4, -1, 4])
    used = atom_dots(soft, GROUPS, codes=np.zeros_like(CODES)).collections[0]
    assert not used.get_sizes().any()


def test_genome_atoms_are_drawn_by_position_above_r2():
    data = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    atoms = [[1, 0, 0, 0], [1, 1, 0, 1], [0, 0, 0, 0]]
    ax = genome_atoms(atoms, data, [30, 10, 20, 40], most=3)
    expected = [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(ax.images[0].get_array(), expected, atol=1e-12)
    assert labels(ax, "y") == ["atom2", "atom1"]
    events = [collection for collection in ax.collections if hasattr(collection, "get_positions")]
    assert [list(event.get_positions()) for event in events] == [[0, 2, 3], [2]]
    assert labels(ax, "x") == ["10", "20", "30", "40"]
    assert ax.get_xlabel() == "position"
    unplaced = genome_atoms(atoms, data, [0, 0, 0, 0])  # as in tables of dosages, whose variants have no positions
    assert labels(unplaced, "x") == ["0", "1", "2", "3"]
    assert unplaced.get_xlabel() == "column"


def test_plots_of_groups_and_genomes_without_rows_or_atoms():
    assert atom_shares(np.zeros((0, 2)), []).get_ylim() == (0, 1)
    assert atom_shares(np.zeros((2, 0)), ["a", "b"]).get_legend() is None
    atom_dots(np.zeros((0, 0)), [])
    group_heat_map(np.zeros((2, 1)), ["a", "b"])
    genome_atoms(np.zeros((0, 3)), np.zeros((2, 3)))
    genome_atoms(np.ones((1, 2)), BitMatrix.from_dense([[1, np.nan], [0, 1]], missing="unknown"))


SAME_ROWS = "pass the same rows of both"
INVALID = [
    (lambda: mosaic(np.zeros(4)), "atoms has 1 dimensions; pass a 2-D array with one atom per row"),
    (lambda: mosaic(np.zeros((2, 6)), shape=(2, 2)), "shape is 2 × 2 = 4, but an atom has 6 bits"),
    (lambda: mosaic(np.zeros((2, 4)), columns=0), "columns must be at least 1, not 0"),
    (lambda: codelength_curve([SimpleNamespace(atoms=1)]), r"history has no field '.*'; pass the history of a result"),
    (lambda: codelength_curve(np.zeros(2, dtype=[("atoms", int)])), "history has no field"),
    (lambda: codelength_curve(np.zeros(2)), "history has no field"),
    (lambda: before_after([[1, 0]], [[1]]), rf"data has shape \(1, 2\), but made has shape \(1, 1\); {SAME_ROWS}"),
    (lambda: before_after(np.zeros((0, 4)), np.zeros((0, 4))), SAME_ROWS),
    (lambda: wrong_bits([1, 2], [1]), r"missed has shape \(2,\), but invented has shape \(1,\); pass one number per"),
    (lambda: wrong_bits([1, 2], [1, 0], shape=(3, 3)), "shape is 3 × 3 = 9, but an atom has 2 bits"),
    (lambda: row_bits([[1, 2]]), "bits has 2 dimensions; pass one number per row"),
    (lambda: atom_shares(CODES, ["a"]), "there are 1 groups for 5 rows"),
    (lambda: group_heat_map([1, 0], ["a", "b"]), "1 dimensions"),
    (lambda: group_heat_map(CODES, GROUPS, ["x"]), "there are 1 names for 3 atoms"),
    (lambda: atom_dots(CODES, GROUPS, codes=CODES[:, :2]), r"codes has shape \(5, 2\)"),
    (lambda: genome_atoms([[1, 0]], [[1, 0, 1]]), "pass the same columns"),
    (lambda: genome_atoms([[1, 0]], [[1, 0]], [3]), "positions has shape"),
    (lambda: genome_atoms(np.zeros((1, 3001)), np.zeros((1, 3001))), "too many for a heat map"),
]


@pytest.mark.parametrize(("draw", "message"), INVALID)
def test_invalid_arguments_raise(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    eye = np.eye(4)
    for draw, data in ((mosaic, [eye]), (codelength_curve, [[]]), (before_after, [eye, eye]), (wrong_bits, [[1], [2]])):
        with pytest.raises(ImportError, match=r'pip install "bitatoms\[plot\]"'):
            draw(*data)
