"""Recommendations and rules: probabilities and counts against the oracle and the table."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.imputation.pool import UNFITTED, Pool
from bitatoms.imputation.regression import fit_regression
from bitatoms.model.conditionals import Conditionals
from bitatoms.model.options import RuleOptions
from bitatoms.model.recommendation import largest, recommend
from bitatoms.model.rules import Rule, _without_redundant, find_itemsets, find_rules
from bitatoms.parallel import Workers
from bitatoms.sparse_bits import SparseBits

pytestmark = pytest.mark.usefixtures("few_trials")

SINGLE = Workers(1)


@pytest.mark.parametrize("with_regression", [False, True])
def test_recommendations_are_the_most_probable_zeros_for_any_chunks_and_threads(fitted, monkeypatch, with_regression):
    model, X = fitted
    data = BitMatrix.from_dense(X)
    stated, pool = [Conditionals(model).of_atoms(data)], UNFITTED
    if with_regression:
        regression = fit_regression(data, model.tied_columns, np.random.default_rng(0))
        stated.append(regression.cell_probabilities(data, SINGLE))
        pool = Pool((0.1, 0.5, 0.4), (0.9, 0.2, -0.1, 0.3, 0.1, 0.2))
        model = replace(model, regression=regression, item_pool=pool)
    found = recommend(model, data, 4, SINGLE)
    for number, (row, items) in enumerate(zip(X, found.items, strict=True)):
        wanted = naive.missing_feature(model.predictors.shares, [each[number] for each in stated], *pool, row)
        chosen = items[items >= 0]
        assert len(chosen) == min(4, (row == 0).sum())
        assert not row[chosen].any()
        np.testing.assert_allclose(found.probabilities[number, : len(chosen)], np.sort(wanted)[::-1][: len(chosen)])
        np.testing.assert_allclose(found.probabilities[number, : len(chosen)], wanted[chosen])
    monkeypatch.setattr("bitatoms.model.conditionals._CHUNK_CELLS", 700)
    for rows in (data, SparseBits.from_bits(data)):
        again = recommend(model, rows, 4, Workers(2, chunk_rows=64))
        np.testing.assert_array_equal(again.items, found.items)
        np.testing.assert_array_equal(again.probabilities, found.probabilities)


def without_one(X, random):
    """Return rows with at least two features without one of them, and which one."""
    rows = X[X.sum(axis=1) > 1].copy()
    removed = np.array([random.choice(np.flatnonzero(row)) for row in rows])
    rows[np.arange(len(rows)), removed] = 0
    return rows, removed


@pytest.fixture(scope="module")
def baskets():
    """Return a model of baskets, and others without one item, and which one."""
    X = ba.datasets.baskets(6000).to_dense()
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(X[:4000])
    return model, X[:4000], *without_one(X[4000:], np.random.default_rng(0))


def test_what_is_missing_is_found_more_often_than_by_popularity_and_as_often_as_stated(baskets):
    model, X, rows, removed = baskets
    items, probabilities = model.recommend(rows, 5)
    popular = largest(np.where(rows == 1, -1.0, X.mean(axis=0)), 5)
    is_hit = items == removed[:, np.newaxis]
    assert is_hit.any(axis=1).mean() > 0.03 + (popular == removed[:, np.newaxis]).any(axis=1).mean()
    fifths = np.minimum((probabilities * 5).astype(int), 4)
    for fifth in range(5):
        own = fifths == fifth
        if own.sum() >= 200:
            assert abs((probabilities - is_hit)[own].mean()) < 0.03 + 1.5 / np.sqrt(own.sum())


def test_all_probabilities_of_a_row_sum_to_one(baskets):
    model, _, rows, _ = baskets
    probabilities = model.recommend(rows[:50], rows.shape[1]).probabilities
    np.testing.assert_allclose(np.nansum(probabilities, axis=1), 1)


def test_recommendations_are_fitted_once_and_kept_in_files(baskets, tmp_path):
    model, X, rows, _ = baskets
    expected = model.recommend(rows, 3)
    pool = model.as_model().item_pool
    assert model.as_model().regression is not None
    assert model.recommend(rows, 3).items.tolist() == expected.items.tolist()
    assert model.as_model().item_pool is pool
    model.save(tmp_path / "model.npz")
    loaded = ba.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.recommend(rows, 3).probabilities, expected.probabilities)
    ba.pack(rows, tmp_path / "rows.zarr")
    of_store = model.recommend(tmp_path / "rows.zarr", 3)
    np.testing.assert_array_equal(of_store.probabilities, expected.probabilities)
    stream = ba.BinaryDictionaryLearning(algebra="or", random_state=0).partial_fit(X[:1000])
    before = stream.recommend(rows[:100], 3).probabilities
    assert stream.as_model().item_pool is None
    after = stream.calibrate(X[1000:2000]).recommend(rows[:100], 3).probabilities
    assert (before != after).any()


def test_few_rows_do_not_weigh_what_predicts_items():
    X = np.array([[1, 1, 0], [0, 0, 1]] * 20)
    model = ba.BinaryDictionaryLearning(2, algebra="or", random_state=0).fit(X)
    model.recommend(X)
    assert model.as_model().regression is None
    assert model.as_model().item_pool == UNFITTED


def test_wide_tables_have_no_regression():
    X = ba.datasets.planted(60, 1100, 3, algebra="or", code_density=0.4, noise=0.01, random_state=0).X
    model = ba.BinaryDictionaryLearning(3, algebra="or", random_state=0).fit(X)
    assert model.recommend(X[:2], 2).items.shape == (2, 2)
    assert model.as_model().regression is None
    assert len(model.as_model().item_pool.weights) == 2


def test_ties_go_to_the_first_columns():
    values = np.array([[1.0, 3, 2, 3, 2], [0, 0, 0, 0, 0]])
    assert largest(values, 3).tolist() == [[1, 3, 2], [0, 1, 2]]
    assert largest(values, 0).shape == (2, 0)


def test_a_row_that_has_everything_gets_nothing():
    X = np.array([[1, 1, 0], [0, 0, 1]] * 20)
    model = ba.BinaryDictionaryLearning(2, algebra="or", random_state=0).fit(X)
    items, probabilities = model.recommend([[1, 1, 1], [1, 0, 1]], 9)
    assert items.tolist() == [[-1, -1, -1], [1, -1, -1]]
    assert np.isnan(probabilities[0]).all()
    table = ba.Table(ba.BitMatrix.from_any(X), columns="abc")
    assert model.fit(table).recommend(table[:1], 9).items.tolist() == [["c", "", ""]]


def test_of_a_question_that_is_answered_no_other_answer_is_recommended():
    random = np.random.default_rng(0)
    group = random.integers(2, size=200)
    names = np.array(["a", "b", "c"])
    frame = {f"q{k}": names[np.where(random.random(200) < 0.7, group, random.integers(3, size=200))] for k in range(4)}
    frame["flag"] = group == 1
    table = ba.encode(frame)
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
    items = model.recommend(table, 12).items
    assert set(items.ravel()) == {"", "flag"}  # all other questions have an answer
    partly = table.bits.to_dense()
    partly[:, 3:6] = 0  # nobody has answered the second one
    items = model.recommend(table.with_bits(BitMatrix.from_dense(partly)), 12).items
    assert set(items.ravel()) <= {"", "flag", "q1=a", "q1=b", "q1=c"}
    assert {"q1=a", "q1=b", "q1=c"} <= set(items.ravel())


def test_a_model_without_atoms_recommends_what_is_popular():
    X = np.random.default_rng(0).random((60, 5)) < np.array([0.1, 0.5, 0.3, 0.45, 0.2])
    model = replace(ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(X).as_model())
    assert not model.atoms.n_rows
    order = np.argsort(-X.mean(axis=0), kind="stable")[:2]
    assert recommend(model, BitMatrix.zeros(1, 5), 2, SINGLE).items.tolist() == [order.tolist()]


# --- rules: antecedents are as short as possible, and none is redundant


ALL = RuleOptions(min_support=0.0, min_confidence=0.0, min_lift=0.0)


@pytest.fixture(scope="module", params=["all known", "unknown", "bias"])
def with_rules(request):
    """A table as numbers, and its model."""
    X = ba.datasets.planted(400, 20, 4, algebra="or", code_density=0.3, atom_density=0.2, noise=0.06, random_state=3).X
    cells = (X ^ (request.param == "bias")).astype(float)
    if request.param == "unknown":
        cells[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return cells, ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(cells)


def column_and_value(name):
    """Return the column of a feature without a name, and the value that it stands for."""
    return int(name.removeprefix("not ").removeprefix("x")), 0 if name.startswith("not ") else 1


def assert_counts(rule, cells):
    """Assert that the counts of a rule are those of the table."""
    columns, wanted = map(np.array, zip(*map(column_and_value, rule.antecedent), strict=True))
    column, value = column_and_value(rule.consequent)
    known = ~np.isnan(cells)
    has_antecedent = (cells[:, columns] == wanted).all(axis=1) & known[:, column]
    has_both = has_antecedent & (cells[:, column] == value)
    all_known = known[:, [*columns, column]].all(axis=1)
    counts = has_both.sum(), has_antecedent.sum(), all_known.sum(), len(cells)
    assert (rule.rows, rule.antecedent_rows, rule.known_rows, rule.total_rows) == counts
    assert rule.consequent_share == pytest.approx((cells[known[:, column], column] == value).mean())
    assert rule.confidence == rule.rows / rule.antecedent_rows
    assert rule.lift == pytest.approx(rule.confidence / rule.consequent_share)


def test_a_model_has_exact_rules_without_its_table(with_rules):
    cells, model = with_rules
    rules = model.rules(min_lift=0, min_confidence=0, min_support=0)
    assert rules
    sizes = {pattern.atom: len(pattern.features) for pattern in model.patterns()}
    for rule in rules:
        assert_counts(rule, cells)
        assert len(rule.antecedent) == sizes[rule.atom] - 1
    assert [rule.leverage for rule in rules] == sorted((rule.leverage for rule in rules), reverse=True)


def test_with_the_table_antecedents_are_shorter_and_as_good(with_rules):
    cells, model = with_rules
    whole, short = model.rules(), model.rules(cells)
    assert short
    for rule in short:
        assert_counts(rule, cells)
        full = [other for other in whole if (other.consequent, other.atom) == (rule.consequent, rule.atom)]
        assert all(rule.confidence >= 0.95 * other.confidence for other in full)
        assert all(len(rule.antecedent) <= len(other.antecedent) for other in full)
    n_before, n_after = (sum(len(rule.antecedent) for rule in rules) for rules in (whole, short))
    assert n_after < n_before


def test_limits_are_reached_by_all_rules(with_rules):
    _, model = with_rules
    rules = model.rules(min_lift=0, min_confidence=0, min_support=0)
    kept = model.rules(min_support=0.05, min_confidence=0.5, min_lift=2)
    assert 0 < len(kept) < len(rules)
    for rule in kept:
        assert rule.support >= 0.05
        assert rule.confidence >= 0.5
        assert rule.lift >= 2


def rule_of(antecedent, confidence, consequent="c"):
    """Return a rule with this confidence."""
    return Rule(tuple(antecedent), consequent, round(1000 * confidence), 1000, 2000, 2000, 0.1, 1)


def test_a_rule_is_redundant_if_a_more_general_one_is_about_as_good():
    general, longer, better, other = rule_of("a", 0.8), rule_of("ab", 0.82), rule_of("ab", 0.9), rule_of("bd", 0.3)
    assert _without_redundant([longer, general]) == [general]
    assert _without_redundant([better, general]) == [general, better]
    assert _without_redundant([other, general]) == [general, other]
    assert _without_redundant([general, general._replace(atom=2)]) == [general]
    assert _without_redundant([longer, rule_of("a", 0.8, "d")]) == [rule_of("a", 0.8, "d"), longer]


def test_a_rule_is_a_sentence():
    rule = Rule(("A", "B"), "C", 71, 100, 1000, 1000, 0.12, 1)
    assert str(rule) == "of the 100 rows with A and B, 71.0% also have C; of all, 12.0%"


def test_a_model_without_counts_asks_for_the_table():
    X = ba.datasets.planted(100, 10, 2, algebra="or", noise=0.02, random_state=0).X
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(X).as_model()
    with pytest.raises(ValueError, match="pass the table"):
        find_rules(replace(model, lacking=None), ALL)
    assert find_rules(replace(model, lacking=None), ALL, lambda: [BitMatrix.from_dense(X)])


def test_very_large_atoms_have_no_rules_and_long_rules_no_itemsets(monkeypatch, with_rules):
    cells, model = with_rules
    rules = model.rules(cells)
    monkeypatch.setattr("bitatoms.model.rules._MAX_ITEMSET", 1)
    assert find_itemsets(model.as_model(), rules, lambda: [ba.Table.from_any(cells).bits]) == []
    sizes = model.components_.sum(axis=1)
    monkeypatch.setattr("bitatoms.model.rules._MAX_FEATURES", sizes.min())
    atoms = {rule.atom for rule in model.rules()} | {rule.atom for rule in model.rules(cells)}
    assert all(sizes[atom - 1] == sizes.min() for atom in atoms)


def test_a_large_atom_is_counted_in_few_steps(monkeypatch):
    """Of the features of a large atom, only the rarest are tried."""
    monkeypatch.setattr("bitatoms.model.rules._MAX_CANDIDATES", 3)
    X = np.zeros((300, 70), np.uint8)
    X[:100, :66] = np.random.default_rng(0).random((100, 66)) < 0.97
    model = ba.BinaryDictionaryLearning(1, algebra="or", random_state=0).fit(X)
    for rule in model.rules(X)[:20]:
        assert_counts(rule, X.astype(float))
        assert len(rule.antecedent) <= 3
