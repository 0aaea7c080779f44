"""The data of a report: counts, curve, examples, selected rows and groups, against direct computation."""

import re
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import bitatoms as ba
from bitatoms.columns.table import Table
from bitatoms.parallel import Workers
from bitatoms.report import report_data, report_html
from bitatoms.report.data import codelength_curve, curve_sizes
from bitatoms.report.page import render
from support.pages import Outline
from support.zoo import specimen

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture
def baskets():
    return specimen("or")


@pytest.fixture(params=["or", "xor"])
def both(request):
    return specimen(request.param)


def test_curve_points_are_codelengths_with_the_first_atoms(both):
    model, table = both
    data, learned = report_data(model, table), model.as_model()
    assert data.curve_stride == 1
    assert [point.atoms for point in data.curve] == curve_sizes(learned.atoms.n_rows)
    full, fitted = data.curve[-1], model.codelength_  # with all atoms, the codes are those of the fit
    assert (full.bits_errors, full.bits_codes, full.bits_atoms) == (fitted.errors, fitted.codes, fitted.atoms)
    for point in data.curve[:-1]:
        atoms, uses = learned.atoms[: point.atoms], learned.uses[: point.atoms]
        first = replace(learned, atoms=atoms, uses=uses, remembered=None)
        codes = first.code(table.bits, Workers()).factors()[1]
        length = ba.codelength(table, first.atoms, codes, bias=learned.bias, algebra=learned.algebra)
        assert (point.bits_errors, point.bits_codes, point.bits_atoms) == (length.errors, length.codes, length.atoms)
        assert point.bits == length.total
    assert report_data(model, table.bits[1:]).curve[-1].bits != data.curve[-1].bits


def test_counts_of_the_training_table_are_those_of_the_fit(both):
    model, table = both
    learned, X = model.as_model(), table.to_dense()
    for rows in (table, table.bits[::-1]):  # in any order
        data = report_data(model, rows)
        assert (data.is_training_table, data.codelength) == (True, model.codelength_)
        assert (data.uses.tolist(), data.complete.tolist()) == (learned.uses.tolist(), learned.complete.tolist())
    older = replace(learned, complete=None, rows_hash=None)
    assert report_data(older, table).is_training_table
    assert report_data(older, table).uses.tolist() == model.transform(table).sum(axis=0).tolist()
    assert not report_data(older, 1 - X).is_training_table
    assert not report_data(replace(older, ones=None), X[1:]).is_training_table
    shuffled = np.random.default_rng(0).permuted(X, axis=0)  # the same ones in each column
    assert not report_data(model, shuffled).is_training_table
    edited = copy(model)
    edited.components_ = model.components_[::-1].copy()
    assert report_data(edited, table).uses.tolist() == edited.transform(table).sum(axis=0).tolist()


@pytest.mark.parametrize("n_atoms", [0, 1, 2, 20, 21, 68, 500, 5000])
def test_curve_sizes_go_from_none_to_all_in_few_steps(n_atoms):
    sizes = curve_sizes(n_atoms)
    assert (sizes[0], sizes[-1], len(sizes) <= 24) == (0, n_atoms, True)
    assert sizes == sorted(set(sizes))
    assert n_atoms > 20 or sizes == list(range(n_atoms + 1))


def test_long_curve_is_estimated_from_every_kth_row(baskets):
    model, table = baskets
    exact = report_data(model, table)
    how = {"max_work": 300 * 40 * 10 // 4}
    points, stride = codelength_curve(model.as_model(), table.bits, exact.codelength, Workers(), **how)
    assert (stride, points[-1]) == (4, exact.curve[-1])
    assert [point.bits for point in points] == pytest.approx([point.bits for point in exact.curve], rel=0.15)
    assert "from one row in 4" in render(replace(exact, curve=points, curve_stride=stride), None, {})
    assert "one row in" not in render(exact, None, {})


def test_examples_use_their_atom_and_little_else(both):
    model, table = both
    data = report_data(model, table)
    codes = data.codes.to_dense()
    cost = data.errors.row_weights() + codes.sum(axis=1)
    for atom, rows in enumerate(data.examples):
        users = np.flatnonzero(codes[:, atom])
        best = sorted(users.tolist(), key=lambda row: (cost[row], row))[:3]
        assert [row for row in rows.tolist() if row >= 0] == best


def test_rows_are_chosen_by_name_or_index(baskets):
    """By default at quantiles of the fit: test_report_numbers.py has these rows, and the worst."""
    model, table = baskets
    assert report_data(model, table, rows=["basket 7", 5, "3"]).chosen == (7, 5, 3)
    assert report_data(model, table.bits, rows=["row 7", "5"]).chosen == (7, 5)


def test_invalid_rows_tables_and_models_raise(baskets):
    model, table = baskets
    other = Table(table.bits, columns=[f"thing {n}" for n in range(40)])
    no_row = r"the table has no row .*; pass a row name, or a number from 0 to 299"
    for X, how, error, message in (
        *((table, {"rows": [row]}, ValueError, no_row) for row in ("nobody", 300, -1, "300", "", 2.5)),
        (table, {"max_rows": -1}, ValueError, "max_rows must be at least 0, not -1"),
        (table, {"max_rows": 2.5}, TypeError, "max_rows must be an integer"),
        ([[0, 1, 0]], {}, ValueError, "the table has 3 columns, but the model was learned from 40"),
        (np.zeros((0, 40)), {}, ValueError, r"the table is empty \(0 rows and 40 columns\): nothing to report"),
        (other, {}, ValueError, "no column that the model was fitted on: it has 'thing 0'"),
    ):
        with pytest.raises(error, match=message):
            report_data(model, X, **how)
    with pytest.raises(TypeError, match="model must be a fitted BinaryDictionaryLearning or its Model, not str"):
        report_data("model.npz", table)
    with pytest.raises(NotFittedError):
        report_data(ba.BinaryDictionaryLearning(algebra="xor"), table)


def test_raw_table_is_binarized_as_in_fit():
    X = ba.datasets.planted(100, 20, 2, noise=0, random_state=0).X * 5.0
    model = ba.BinaryDictionaryLearning(algebra="xor", binarize=2.5, random_state=0).fit(X)
    assert report_data(model, X).ones.tolist() == (X > 2.5).sum(axis=0).tolist()


def test_unknown_cells_of_a_row_are_neither_wrong_nor_missed():
    model, table = specimen("unknown")
    data, dense = report_data(model, table), table.to_dense(float)
    number = int(np.isnan(dense).sum(axis=1).argmax())
    row, cells = data.row(number), dense[number]
    made = model.inverse_transform(data.codes.to_dense())[number]
    assert row.missed.tolist() == np.flatnonzero(cells > made).tolist()
    assert row.invented.tolist() == np.flatnonzero(cells < made).tolist()
    assert f"{np.isnan(cells).sum()} cells unknown" in report_html(model, table, rows=[number])


def test_unknown_pixels():
    model, table = specimen("xor")
    hidden = ba.BitMatrix.from_dense(np.random.default_rng(0).random(table.shape) < 0.2)
    html = report_html(model, Table(table.bits.with_unknown(hidden), picture=table.picture))
    assert "nan" not in Outline(html).text.lower()
    assert '<section id="unknown">' in html


# --- groups of rows, and the genome


def section(html, name):
    """Return the text of a section, None if there is none."""
    found = re.search(f'<section id="{name}".*?</section>', html, re.DOTALL)
    return None if found is None else found.group()


def test_groups_show_who_uses_each_pattern(tmp_path):
    model, table = specimen("genotypes")
    data = report_data(model, table, groups="population")
    assert data.groups.names == ("north", "south", "island")
    population = np.asarray(table.row_data["population"])
    lines = [f"{table.row_name(row)},{name}" for row, name in enumerate(population)]
    (tmp_path / "groups.csv").write_text("\n".join(["sample,population", *reversed(lines)]), encoding="utf-8")
    for groups in (population, tmp_path / "groups.csv", str(tmp_path / "groups.csv")):
        found = report_data(model, table, groups=groups).groups
        names = np.array(found.names)[found.numbers]
        assert names.tolist() == population.tolist()
    html = section(report_html(model, table, groups="population"), "groups")
    atoms = [int(atom) - 1 for atom in re.findall(r'<a href="#atom-(\d+)">', html)]
    codes = model.transform(table)
    shares = np.array([codes[population == name].mean(axis=0) for name in ("north", "south", "island")])
    assert atoms == np.argsort(-np.ptp(shares, axis=0), kind="stable").tolist()
    drawn = np.array(re.findall(r"--share:([0-9.]+)", html), float).reshape(3, -1)
    np.testing.assert_allclose(drawn, shares[:, atoms], atol=0.001)


def test_the_genome_has_a_line_per_pattern_in_the_order_of_positions():
    model, table = specimen("genotypes")
    html = section(report_html(model, table), "genome")
    position = np.asarray(table.column_data["position"])
    expected = [(int(own.min()), int(own.max())) for own in (position[atom > 0] for atom in model.components_)]
    atoms = [int(atom) - 1 for atom in re.findall(r'<a href="#atom-(\d+)"', html)]
    assert atoms == sorted(range(6), key=lambda atom: expected[atom][0])
    spans = re.findall(r'title="[0-9,]+ columns?, 1:([0-9,]+) to 1:([0-9,]+)"', html)
    numbers = [tuple(int(each.replace(",", "")) for each in span) for span in spans]
    assert numbers == [expected[atom] for atom in atoms]
    other = report_html(*specimen("or"))
    assert section(other, "genome") is section(other, "groups") is None


def test_groups_are_checked():
    for groups, error, message in (
        (
            "country",
            ValueError,
            r'groups="country": there is no such file, and no such field of the rows \(fields: pop',
        ),
        (Path("country.csv"), ba.FileError, r"country.csv: there is no such file"),
        (["a", "b"], ValueError, "there are 2 groups for 60 rows"),
    ):
        with pytest.raises(error, match=message):
            report_data(*specimen("genotypes"), groups=groups)
