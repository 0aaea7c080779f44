"""Recommendations, rules and rows that fit badly: probabilities and counts against the oracle and the table."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.imputation.pool import UNFITTED, Pool
from bitatoms.imputation.regression import fit_regression
from bitatoms.model.likelihood import Frequencies
from bitatoms.model.model import Model, Recommender
from bitatoms.model.options import RuleOptions
from bitatoms.model.recommendation import HiddenItems, largest, recommend
from bitatoms.model.row_fit import score_rows, worst_rows
from bitatoms.model.rules import Rule, _without_redundant, find_itemsets, find_rules
from bitatoms.parallel import Workers
from bitatoms.sparse_bits import SparseBits

pytestmark = pytest.mark.usefixtures("few_trials")

SINGLE = Workers(1)


@pytest.fixture(scope="module", params=["or", "xor", "bias"])
def fitted(request):
    """A model, and rows of its table."""
    algebra = "or" if request.param == "bias" else request.param
    X = ba.datasets.planted(200, 70, 4, algebra=algebra, code_density=0.4, noise=0.04, random_state=2).X
    X ^= request.param == "bias"
    return ba.BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(X).as_model(), X


@pytest.mark.parametrize("unknown", [0.0, 0.2])
def test_probabilities_equal_the_oracle(fitted, unknown):
    model, X = fitted
    cells = X[:12] + 2 * (np.random.default_rng(0).random(X[:12].shape) < unknown).astype(np.uint8)
    cells = np.where(cells > 1, 2, cells).astype(np.uint8)
    assert_probabilities(model, cells)


def assert_probabilities(model, cells):
    """Assert that the probabilities of all cells are those of the oracle; a cell above 1 is unknown."""
    data = ba.Table.from_any(np.where(cells > 1, np.nan, cells)).bits
    codes, counts = model.codes(data, SINGLE), Frequencies.of_result(model)
    given = model.atoms.to_dense(), model.algebra, model.bias, counts.cells, counts.uses
    expected = [
        [naive.hidden_probability(row, column, code, *given) for column in range(cells.shape[1])]
        for row, code in zip(cells, codes.to_dense(), strict=True)
    ]
    np.testing.assert_allclose(HiddenItems(model).probabilities(data), expected, atol=2e-5)  # costs are rounded


@pytest.mark.parametrize("algebra", ["or", "xor"])
def test_many_atoms_may_share_a_column_that_the_bias_sets(algebra):
    """The product of what they contribute is too small for a number."""
    random = np.random.default_rng(0)
    atoms = (random.random((40, 60)) < 0.5).astype(np.uint8)
    atoms[:, 0] = 1
    codes = (random.random((300, 40)) < 0.02).astype(np.uint8)
    X = naive.product(codes, atoms, algebra)
    given = {"search": ba.PaperSearch(coder="greedy", update="mob"), "max_iter": 1}
    model = Model.from_factorization(ba.factorize(X, 40, init=atoms, algebra=algebra, **given))
    flipped = {"ones": len(X) - model.ones, "missed": model.wrong - model.missed}
    model = replace(model, bias=np.ones(60, np.uint8), **flipped)
    assert_probabilities(model, np.vstack([1 - X[:4], np.ones((1, 60), np.uint8)]))


@pytest.fixture(scope="module", params=["or", "xor"])
def with_parts(request):
    """A model of a bundle of three features, of which each may lack one, and of its parts; and its table."""
    random = np.random.default_rng(0)
    X = (random.random((600, 6)) < 0.05).astype(np.uint8)
    X[:200, :3] |= (random.random((200, 3)) < 0.9).astype(np.uint8)
    atoms = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]], np.uint8)
    given = {"search": ba.PaperSearch(coder="greedy", update="mob"), "max_iter": 1, "algebra": request.param}
    return Model.from_factorization(ba.factorize(X, 4, init=atoms, **given)), X


def test_a_part_of_an_atom_is_evidence_for_the_whole(with_parts):
    """Rows that lack one feature of a bundle use a part of it in their code, and yet the feature is probable."""
    model, X = with_parts
    two = np.array([[1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]], np.uint8)
    assert_probabilities(model, np.vstack([two, X[:40], X[-10:]]))
    hidden = HiddenItems(model).probabilities(BitMatrix.from_dense(two))[[0, 1, 2], [2, 1, 0]]
    alike = [X[np.delete(X[:, :3], i, axis=1).all(axis=1), i].mean() for i in (2, 1, 0)]
    np.testing.assert_allclose(hidden, alike, atol=0.1)


@pytest.mark.parametrize("with_regression", [False, True])
def test_recommendations_are_the_most_probable_zeros_for_any_chunks_and_threads(fitted, monkeypatch, with_regression):
    model, X = fitted
    data = BitMatrix.from_dense(X)
    stated, pool = [HiddenItems(model).probabilities(data)], UNFITTED
    if with_regression:
        regression = fit_regression(data, model.tied_columns, np.random.default_rng(0))
        stated.append(regression.cell_probabilities(data, SINGLE))
        pool = Pool((0.1, 0.5, 0.4), (0.9, 0.2, -0.1, 0.3, 0.1, 0.2))
        model = replace(model, recommender=Recommender(regression, pool))
    found = recommend(model, data, 4, SINGLE)
    for number, (row, items) in enumerate(zip(X, found.items, strict=True)):
        wanted = naive.missing_feature(model.predictors.shares, [each[number] for each in stated], *pool, row)
        chosen = items[items >= 0]
        assert len(chosen) == min(4, (row == 0).sum())
        assert not row[chosen].any()
        np.testing.assert_allclose(found.probabilities[number, : len(chosen)], np.sort(wanted)[::-1][: len(chosen)])
        np.testing.assert_allclose(found.probabilities[number, : len(chosen)], wanted[chosen])
    monkeypatch.setattr("bitatoms.model.recommendation._CHUNK_CELLS", 700)
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
    recommender = model.as_model().recommender
    assert recommender.regression is not None
    assert model.recommend(rows, 3).items.tolist() == expected.items.tolist()
    assert model.as_model().recommender is recommender
    model.save(tmp_path / "model.npz")
    loaded = ba.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.recommend(rows, 3).probabilities, expected.probabilities)
    ba.pack(rows, tmp_path / "rows.zarr")
    of_store = model.recommend(tmp_path / "rows.zarr", 3)
    np.testing.assert_array_equal(of_store.probabilities, expected.probabilities)
    stream = ba.BinaryDictionaryLearning(algebra="or", random_state=0).partial_fit(X[:1000])
    before = stream.recommend(rows[:100], 3).probabilities
    assert stream.as_model().recommender is None
    after = stream.calibrate(X[1000:2000]).recommend(rows[:100], 3).probabilities
    assert (before != after).any()


def test_few_rows_do_not_weigh_what_predicts_items():
    X = np.array([[1, 1, 0], [0, 0, 1]] * 20)
    model = ba.BinaryDictionaryLearning(2, algebra="or", random_state=0).fit(X)
    model.recommend(X)
    assert model.as_model().recommender == Recommender(None, UNFITTED)


def test_wide_tables_have_no_regression():
    X = ba.datasets.planted(60, 1100, 3, algebra="or", code_density=0.4, noise=0.01, random_state=0).X
    model = ba.BinaryDictionaryLearning(3, algebra="or", random_state=0).fit(X)
    assert model.recommend(X[:2], 2).items.shape == (2, 2)
    assert model.as_model().recommender.regression is None
    assert len(model.as_model().recommender.pool.weights) == 2


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


# --- rows that fit badly


@pytest.fixture(scope="module", params=[0.0, 0.1])
def fitted_rows(request):
    X = ba.datasets.planted(300, 70, 4, algebra="or", code_density=0.3, noise=0.05, random_state=0).X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < request.param] = np.nan
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(X), X


def test_the_worst_rows_have_the_lowest_scores_and_name_all_wrong_cells(fitted_rows):
    model, X = fitted_rows
    scores, codes = model.score_samples(X), model.transform(X)
    expected = model.inverse_transform(codes)
    worst = model.worst_rows(X, 7)
    assert [fit.row for fit in worst] == np.argsort(scores, kind="stable")[:7].tolist()
    for fit in worst:
        row = fit.row
        assert fit.bits == pytest.approx(-scores[row])
        assert fit.atoms == tuple(np.flatnonzero(codes[row]) + 1)
        unexpected = {f"x{i}" for i in np.flatnonzero((X[row] == 1) & (expected[row] == 0))}
        missing = {f"x{i}" for i in np.flatnonzero((X[row] == 0) & (expected[row] == 1))}
        assert {cell.feature for cell in fit.cells if cell.kind == "unexpected"} == unexpected
        assert {cell.feature for cell in fit.cells if cell.kind == "missing"} == missing
        bits = [cell.bits for cell in fit.cells]
        assert bits == sorted(bits, reverse=True)
        assert sum(bits) < fit.bits


def test_chunks_and_storage_do_not_matter(fitted_rows):
    model, X = fitted_rows
    learned, data = model.as_model(), ba.Table.from_any(X).bits
    whole = worst_rows([score_rows(learned, data, SINGLE)], 9, SINGLE)
    chunks = (score_rows(learned, data[at : at + 64], SINGLE, at) for at in range(0, 300, 64))
    assert worst_rows(chunks, 9, SINGLE) == whole
    if data.unknown is None:
        fits = worst_rows([score_rows(learned, SparseBits.from_bits(data), SINGLE)], 9, SINGLE)
        assert [(fit.row, fit.atoms) for fit in fits] == [(fit.row, fit.atoms) for fit in whole]
    assert worst_rows([score_rows(learned, data, SINGLE)], 0, SINGLE) == []
    assert len(worst_rows([score_rows(learned, data, SINGLE)], 999, SINGLE)) == 300


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
