"""The data of a report: counts, curve, examples and selected rows, against direct computation."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import bitatoms as ba
import naive
from bitatoms.parallel import Workers
from bitatoms.report import report_data, report_html
from bitatoms.report.curve import codelength_curve, curve_sizes
from bitatoms.report.page import render
from bitatoms.table import Table
from support.pages import Outline
from support.zoo import specimen

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture
def baskets():
    return specimen("or")


@pytest.fixture(params=["or", "xor"])
def both(request):
    return specimen(request.param)


def test_counts_of_another_table_are_those_of_its_reconstruction(both):
    model, training = both
    table = Table(training.bits[1:], columns=training.columns, picture=training.picture)
    data = report_data(model, table)
    assert not data.is_training_table
    X, codes = table.to_dense(), model.transform(table)
    reconstruction = model.inverse_transform(codes)
    assert np.array_equal(data.codes.to_dense(), codes)
    assert np.array_equal(data.ones, X.sum(axis=0))
    assert np.array_equal(data.missed, ((X == 1) & (reconstruction == 0)).sum(axis=0))
    assert np.array_equal(data.invented, ((X == 0) & (reconstruction == 1)).sum(axis=0))
    assert np.array_equal(data.uses, codes.sum(axis=0))
    assert np.allclose(data.row_bits, -model.score_samples(table))
    expected = ba.codelength(X, model.components_, codes, bias=model.bias_, algebra=model.algebra_)
    assert data.codelength == expected
    assert data.bits_without == ba.codelength(X).total
    row = data.row(17)
    assert np.array_equal(row.data, X[17])
    assert np.array_equal(row.reconstruction, reconstruction[17])
    assert row.missed.tolist() == np.flatnonzero(X[17] > reconstruction[17]).tolist()
    assert row.invented.tolist() == np.flatnonzero(X[17] < reconstruction[17]).tolist()
    assert row.better == pytest.approx((data.row_bits > data.row_bits[17]).mean())
    assert row.worse == pytest.approx((data.row_bits < data.row_bits[17]).mean())


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
        assert data.is_training_table
        assert data.codelength == model.codelength_
        assert [pattern.rows for pattern in model.patterns()] == data.uses.tolist()
        assert [pattern.complete for pattern in model.patterns()] == data.complete.tolist()
        assert np.array_equal(data.missed + data.invented, learned.wrong)
    assert np.array_equal(learned.complete, naive.complete(X, model.components_, model.bias_).sum(axis=0))
    older = report_data(replace(learned, complete=None, rows_hash=None), table)
    assert older.is_training_table
    assert older.uses.tolist() == model.transform(table).sum(axis=0).tolist()
    assert not report_data(replace(learned, complete=None, rows_hash=None), 1 - X).is_training_table
    shuffled = np.random.default_rng(0).permuted(X, axis=0)  # the same ones in each column
    assert not report_data(model, shuffled).is_training_table
    edited = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    edited.components_ = edited.components_[::-1].copy()
    assert report_data(edited, X).uses.tolist() == edited.transform(X).sum(axis=0).tolist()


@pytest.mark.parametrize("n_atoms", [0, 1, 2, 20, 21, 68, 500, 5000])
def test_curve_sizes_go_from_none_to_all_in_few_steps(n_atoms):
    ks = curve_sizes(n_atoms)
    assert ks[0] == 0
    assert ks[-1] == n_atoms
    assert ks == sorted(set(ks))
    assert len(ks) <= 24
    assert n_atoms > 20 or ks == list(range(n_atoms + 1))


def test_long_curve_is_estimated_from_every_kth_row(baskets):
    model, table = baskets
    exact = report_data(model, table)
    learned = model.as_model()
    points, stride = codelength_curve(learned, table.bits, exact.codelength, Workers(), max_work=300 * 40 * 10 // 4)
    assert stride == 4
    assert points[-1] == exact.curve[-1]
    for point, expected in zip(points, exact.curve, strict=True):
        assert point.bits == pytest.approx(expected.bits, rel=0.15)
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


def test_rows_are_chosen_by_name_or_index_or_by_quantiles_of_fit(baskets):
    model, table = baskets
    assert report_data(model, table, rows=["basket 7", 5, "3"]).chosen == (7, 5, 3)
    assert report_data(model, table.bits, rows=["row 7", "5"]).chosen == (7, 5)
    data = report_data(model, table)
    bits = data.row_bits[list(data.chosen)]
    assert len(bits) == 6
    assert (np.diff(bits) >= 0).all()
    worst = data.row_bits[list(data.worst)]
    assert worst.tolist() == sorted(data.row_bits, reverse=True)[:15]


@pytest.mark.parametrize("row", ["nobody", 300, -1, "300", "", 2.5])
def test_unknown_rows_raise(baskets, row):
    with pytest.raises(ValueError, match=r"the table has no row .*; pass a row name, or a number from 0 to 299"):
        report_data(*baskets, rows=[row])


def test_tables_that_do_not_match_the_model_raise(baskets):
    model, table = baskets
    with pytest.raises(ValueError, match="the table has 3 columns, but the model was learned from 40"):
        report_data(model, [[0, 1, 0]])
    with pytest.raises(ValueError, match=r"the table is empty \(0 rows and 40 columns\): nothing to report"):
        report_data(model, np.zeros((0, 40), np.uint8))
    other = Table(table.bits, columns=[f"thing {n}" for n in range(40)])
    with pytest.raises(ValueError, match="no column that the model was fitted on: it has 'thing 0'"):
        report_data(model, other)
    with pytest.raises(TypeError, match="model must be a fitted BinaryDictionaryLearning or its Model, not str"):
        report_data("model.npz", table)
    with pytest.raises(NotFittedError):
        report_data(ba.BinaryDictionaryLearning(), table)


def test_raw_table_is_binarized_as_in_fit():
    X = ba.datasets.planted(100, 20, 2, noise=0, random_state=0).X * 5.0
    model = ba.BinaryDictionaryLearning(binarize=2.5, random_state=0).fit(X)
    assert report_data(model, X).ones.tolist() == (X > 2.5).sum(axis=0).tolist()


def test_unknown_cells_of_a_row_are_neither_wrong_nor_missed():
    model, table = specimen("unknown")
    data, dense = report_data(model, table), table.to_dense(float)
    made = model.inverse_transform(data.codes.to_dense())
    number = int(np.isnan(dense).sum(axis=1).argmax())
    row, cells = data.row(number), dense[number]
    assert row.unknown.tolist() == np.isnan(cells).tolist()
    assert row.reconstruction.tolist() == made[number].astype(bool).tolist()
    assert row.missed.tolist() == np.flatnonzero((cells == 1) & (made[number] == 0)).tolist()
    assert row.invented.tolist() == np.flatnonzero((cells == 0) & (made[number] == 1)).tolist()
    assert f"{row.unknown.sum()} cells unknown" in report_html(model, table, rows=[number])
    learned = model.as_model()
    empty = ba.codelength(table, learned.atoms[:0], data.codes.take_columns([]), learned.bias)
    assert data.curve[0].bits_errors == empty.errors


def test_unknown_pixels():
    model, table = specimen("xor")
    hidden = ba.BitMatrix.from_dense(np.random.default_rng(0).random(table.shape) < 0.2)
    html = report_html(model, Table(table.bits.with_unknown(hidden), picture=table.picture))
    assert "nan" not in Outline(html).text.lower()
    assert '<section id="unknown">' in html


def test_old_names_warn(baskets):
    with pytest.warns(FutureWarning, match="renamed to report_data"):
        assert ba.report.findings is report_data
    with pytest.warns(FutureWarning, match="renamed to report_html"):
        assert ba.report.page(*baskets, title="old") == report_html(*baskets, title="old")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ba.report.nothing  # noqa: B018
