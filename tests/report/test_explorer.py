"""The explorer of a report: what its data contain, in which order, and what it leaves out."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.parallel import Workers
from bitatoms.report import explorer, report_data, report_html
from bitatoms.report.explorer import base64_numbers, contents_of, script_json
from bitatoms.report.ordering import block_orders, shared_ones
from support.pages import Outline
from support.scripts import bits_of, data_of, numbers_of
from support.strategies import random_bits
from support.zoo import specimen

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(params=["or", "xor"])
def both(request):
    return specimen(request.param)


@pytest.mark.parametrize("numbers", [[], [0], [127, 128, 0, 16383, 16384, 2**40], range(300)])
def test_numbers_are_packed(numbers):
    assert numbers_of(base64_numbers(numbers)) == [*numbers]


def test_json_is_compact_and_cannot_end_a_script():
    assert script_json({"a": [1, "</b>&"]}) == '{"a":[1,"\\u003c/b\\u003e\\u0026"]}'


def test_codes_of_the_fit_are_shown_only_for_its_rows_in_their_order():
    X = ba.datasets.planted(300, 40, 12, code_density=0.3, noise=0.15, random_state=2).X
    model = ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(X)
    fitted = ba.factorize(X, algebra="xor", random_state=0).codes
    again = model.as_model().codes(BitMatrix.from_dense(X), Workers())
    assert fitted != again  # this table shows the difference
    assert report_data(model, X).codes == fitted
    assert report_data(model.as_model(), X).codes == again
    assert report_data(model.as_model(), X, codes=fitted).codes == fitted
    assert report_data(model, X[::-1]).codes == again[::-1]
    assert report_data(model, X[:200]).codes == again[:200]
    copy = pickle.loads(pickle.dumps(model))
    assert report_data(copy, X).codes == again
    for rows, sentence in ((X, "does not hold the codes of its fit"), (X[:200], "that transform gives them.")):
        assert sentence in Outline(report_html(copy, rows)).text
    with pytest.raises(ValueError, match="codes has the shape 300 x 3; pass one row per row and one column per atom"):
        report_data(model, X, codes=np.zeros((300, 3)))
    model.components_ = model.components_[::-1].copy()
    assert not report_data(model, X).has_codes_of_fit
    model.fit(X[:60])
    assert report_data(model, X).codes == model.as_model().codes(BitMatrix.from_dense(X), Workers())


def test_overlapping_atoms_are_contiguous_blocks():
    """Atoms of a chain, in any order, with features and rows in any order."""
    rng = np.random.default_rng(0)
    atoms, codes = np.zeros((6, 40), np.uint8), np.zeros((90, 6), np.uint8)
    for atom in range(6):
        atoms[atom, 6 * atom : 6 * atom + 8] = 1
        codes[14 * atom : 14 * atom + 18, atom] = 1
    names, columns, rows = rng.permutation(6), rng.permutation(40), rng.permutation(90)
    shuffled = BitMatrix.from_dense(atoms[names][:, columns]), BitMatrix.from_dense(codes[rows][:, names])
    orders = block_orders(*shuffled)
    chain = names[orders.atoms].tolist()
    assert chain in ([*range(6)], [*range(5, -1, -1)])
    for bits, order in ((shuffled[0].to_dense(), orders.features), (shuffled[1].to_dense().T, orders.rows)):
        for members in bits[:, order]:
            places = np.flatnonzero(members)
            assert np.array_equal(places, np.arange(places[0], places[0] + len(places)))
        assert sorted(order.tolist()) == [*range(len(order))]
    assert not atoms[:, columns[orders.features[-2:]]].any()


def test_rows_and_features_are_sorted_by_the_first_and_the_last_of_their_atoms():
    atoms, codes = random_bits(0, 6, 40, 0.2), random_bits(1, 90, 6, 0.3)
    orders = block_orders(BitMatrix.from_dense(atoms), BitMatrix.from_dense(codes))
    position = np.argsort(orders.atoms)
    for members, order in ((codes, orders.rows), (atoms.T, orders.features)):
        places = [position[np.flatnonzero(row)] for row in members[order]]
        keys = [(own.min(), own.max()) if len(own) else (6, 6) for own in places]
        assert keys == sorted(keys)
        assert keys[-1] == (6, 6)


@pytest.mark.parametrize(("n_atoms", "n_rows"), [(0, 3), (1, 0), (1, 1), (5, 0)])
def test_orders_of_small_models(n_atoms, n_rows):
    orders = block_orders(BitMatrix.zeros(n_atoms, 4), BitMatrix.zeros(n_rows, n_atoms))
    assert [order.tolist() for order in orders] == [[*range(n_atoms)], [0, 1, 2, 3], [*range(n_rows)]]


def test_shared_ones_are_counted():
    bits = random_bits(0, 7, 70, 0.4)
    assert np.array_equal(shared_ones(BitMatrix.from_dense(bits)), bits.astype(int) @ bits.T)


# --- what the page leaves out


def test_rows_are_drawn_at_random_besides_those_that_are_named(both):
    model, table = both
    data = report_data(model, table, max_rows=120)
    rows = contents_of(data).rows
    assert len(rows) == 120
    assert (np.diff(rows) > 0).all()
    named = {*data.chosen, *data.worst, *data.examples[data.examples >= 0].tolist()}
    assert len(named) < 120
    assert named < {*rows.tolist()}
    page = report_html(model, table, max_rows=120)
    assert "The page contains 120 of the 300 rows, drawn at random" in Outline(page).text
    found = data_of(page)["rows"]
    assert numbers_of(found["indices"]) == rows.tolist()
    assert np.array_equal(bits_of(found["bits"], 120, table.shape[1]), table.to_dense()[rows])
    assert report_html(model, table, max_rows=120) == page
    assert len(contents_of(report_data(model, table, max_rows=4)).rows) == 4
    assert "drawn at random" not in report_html(model, table, max_rows=300)


def test_a_page_without_rows_names_and_draws_none_of_them():
    model, table = specimen("unknown")
    page = report_html(model, table, max_rows=0)
    assert "person" not in page
    assert "The page contains no single rows, only counts." in page
    data = data_of(page)
    assert [data["rows"][key] for key in ("indices", "bits", "codes", "wrong")] == [""] * 4
    assert numbers_of(data["atoms"]["coded"]) == model.as_model().uses.tolist()
    ids = {attrs.get("id") for _, attrs in Outline(page).tags}
    assert not ids & {"rows", "worst", "picture", "tab-rows", "tab-matrix"}
    with pytest.raises(ValueError, match="no rows can be shown with max_rows=0; omit it, or row 3"):
        report_html(model, table, rows=[3], max_rows=0)
    images = Outline(report_html(*specimen("xor"), max_rows=0)).find_all("img")
    assert not [image for image in images if image["alt"].startswith("row") or not image["alt"]]


def test_a_wide_table_shows_all_features_of_patterns_and_bias_and_the_most_frequent_others(monkeypatch):
    monkeypatch.setattr(explorer, "MAX_FEATURES", 30)
    model, table = specimen("or")
    data = report_data(model, table)
    features = contents_of(data).features
    in_use = np.flatnonzero(model.components_.any(axis=0))
    others = [feature for feature in np.argsort(-data.ones, kind="stable") if feature not in in_use]
    assert features.tolist() == sorted([*in_use, *others[: 30 - len(in_use)]])
    page = report_html(model, table)
    assert "The views have 30 of the 40 features" in Outline(page).text
    found = data_of(page)
    assert found["features"]["names"] == [f"item {feature}" for feature in features]
    assert np.array_equal(bits_of(found["rows"]["bits"], 300, 30), table.to_dense()[:, features])
    model, table = specimen("xor")
    learned = replace(model.as_model(), bias=np.ones(64, np.uint8), rows_hash=None, remembered=None)
    assert not learned.atoms.column_weights().all()
    assert contents_of(report_data(learned, table)).features.tolist() == [*range(64)]


def test_wide_rows_are_fewer_and_a_model_that_is_too_large_is_not_explored(monkeypatch):
    model, table = specimen("or")
    monkeypatch.setattr(explorer, "_MAX_ROWS_SIZE", 5000)
    assert 200 < len(contents_of(report_data(model, table)).rows) < 300
    assert len(contents_of(report_data(model, table, max_rows=300)).rows) == 300  # as asked for
    monkeypatch.setattr(explorer, "_MAX_MODEL_SIZE", 1)
    page = report_html(model, table)
    assert "is too large to be explored in a page" in " ".join(page.split())
    assert 'id="data"' not in page


def test_groups_and_positions_are_in_the_page():
    model, table = specimen("genotypes")
    data = data_of(report_html(model, table, groups="population"))
    names = np.array(data["rows"]["groupNames"], object)
    assert names[numbers_of(data["rows"]["groups"])].tolist() == np.asarray(table.row_data["population"]).tolist()
    positions = [int(where.split(":")[1].replace(",", "")) for where in data["genome"]["where"]]
    assert positions == np.asarray(table.column_data["position"]).tolist()
    places = numbers_of(data["genome"]["places"])
    assert (min(places), max(places) <= 1_000_000) == (0, True)
    assert data_of(report_html(*specimen("or")))["genome"] is None


def test_a_single_row_and_no_atoms_can_be_explored():
    for X in (np.array([[1, 0, 1]], np.uint8), np.array([[1]], np.uint8), np.zeros((3, 70), np.uint8)):
        model = ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(X)
        data = data_of(report_html(model, X))
        assert data["shape"] == [*X.shape, 0]
        assert np.array_equal(bits_of(data["rows"]["bits"], *X.shape), X)


def test_coded_rows_need_not_be_those_of_the_counts():
    """The counts of the training table are those of the fit, and ``coded`` those of the rows shown."""
    model, table = specimen("or")
    atoms = data_of(report_html(model, table, codes=BitMatrix.zeros(300, model.n_components_)))["atoms"]
    assert numbers_of(atoms["uses"]) == model.as_model().uses.tolist()
    assert not any(numbers_of(atoms["coded"]))
