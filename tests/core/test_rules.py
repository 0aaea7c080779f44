"""Rules: counts against the table, antecedents that are as short as possible, and no redundant ones."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.core.rules import Rule, RuleLimits, _without_redundant, find_itemsets, find_rules

pytestmark = pytest.mark.usefixtures("few_trials")

ALL = RuleLimits(0.0, 0.0, 0.0)


@pytest.fixture(scope="module", params=["all known", "unknown", "bias"])
def fitted(request):
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


def test_a_model_has_exact_rules_without_its_table(fitted):
    cells, model = fitted
    rules = model.rules(min_lift=0, min_confidence=0, min_support=0)
    assert rules
    sizes = {pattern.atom: len(pattern.features) for pattern in model.patterns()}
    for rule in rules:
        assert_counts(rule, cells)
        assert len(rule.antecedent) == sizes[rule.atom] - 1
    assert [rule.leverage for rule in rules] == sorted((rule.leverage for rule in rules), reverse=True)


def test_with_the_table_antecedents_are_shorter_and_as_good(fitted):
    cells, model = fitted
    whole, short = model.rules(), model.rules(cells)
    assert short
    for rule in short:
        assert_counts(rule, cells)
        full = [other for other in whole if (other.consequent, other.atom) == (rule.consequent, rule.atom)]
        assert all(rule.confidence >= 0.95 * other.confidence for other in full)
        assert all(len(rule.antecedent) <= len(other.antecedent) for other in full)
    n_before, n_after = (sum(len(rule.antecedent) for rule in rules) for rules in (whole, short))
    assert n_after < n_before


def test_limits_are_reached_by_all_rules(fitted):
    _, model = fitted
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


def test_very_large_atoms_have_no_rules_and_long_rules_no_itemsets(monkeypatch, fitted):
    cells, model = fitted
    rules = model.rules(cells)
    monkeypatch.setattr("bitatoms.core.rules._MAX_ITEMSET", 1)
    assert find_itemsets(model.as_model(), rules, lambda: [ba.Table.from_any(cells).bits]) == []
    sizes = model.components_.sum(axis=1)
    monkeypatch.setattr("bitatoms.core.rules._MAX_FEATURES", sizes.min())
    atoms = {rule.atom for rule in model.rules()} | {rule.atom for rule in model.rules(cells)}
    assert all(sizes[atom - 1] == sizes.min() for atom in atoms)


def test_a_large_atom_is_counted_in_few_steps(monkeypatch):
    """Of the features of a large atom, only the rarest are tried."""
    monkeypatch.setattr("bitatoms.core.rules._MAX_CANDIDATES", 3)
    X = np.zeros((300, 70), np.uint8)
    X[:100, :66] = np.random.default_rng(0).random((100, 66)) < 0.97
    model = ba.BinaryDictionaryLearning(1, algebra="or", random_state=0).fit(X)
    for rule in model.rules(X)[:20]:
        assert_counts(rule, X.astype(float))
        assert len(rule.antecedent) <= 3
