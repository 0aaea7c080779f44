"""Rules, recommendations and rows that fit badly, as methods of the estimator."""

import numpy as np
import pytest
from sklearn.base import clone

import bitatoms as ba
from support.zoo import specimen

pytestmark = pytest.mark.usefixtures("few_trials")

COLUMNS = [
    "antecedents", "consequents", "antecedent support", "consequent support", "support", "confidence", "lift",
    "representativity", "leverage", "conviction", "zhangs_metric", "jaccard", "certainty", "kulczynski",
]  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    return specimen("or")


def test_rules_are_a_frame_with_the_columns_of_mlxtend(fitted):
    pytest.importorskip("pandas")
    model, table = fitted
    frame, rules = model.to_rules(table), model.rules(table)
    assert list(frame.columns) == COLUMNS
    assert [(set(rule.antecedent), {rule.consequent}) for rule in rules] == [
        (set(a), set(c)) for a, c in zip(frame["antecedents"], frame["consequents"], strict=True)
    ]
    assert all(isinstance(items, frozenset) for items in (*frame["antecedents"], *frame["consequents"]))
    np.testing.assert_allclose(frame["lift"], frame["confidence"] / frame["consequent support"])
    np.testing.assert_allclose(frame["support"], frame["confidence"] * frame["antecedent support"])
    assert (frame["representativity"] == 1).all()
    nothing = model.to_rules(min_support=1)
    assert (list(nothing.columns), len(nothing)) == (COLUMNS, 0)


@pytest.mark.parametrize(
    ("antecedent", "figures"),  # the columns from "antecedent support" on
    [
        ("x0", [0.5, 0.6, 0.4, 4 / 5, 4 / 3, 10 / 12, 0.1, 2, 0.1 / 0.2, 4 / 7, 1 / 2, (4 / 5 + 4 / 6) / 2]),
        ("x1", [0.6, 0.5, 0.4, 4 / 6, 4 / 3, 10 / 12, 0.1, 1.5, 0.1 / 0.16, 4 / 7, 1 / 3, (4 / 6 + 4 / 5) / 2]),
        ("x2", [0.3, 1, 0.3, 1, 1, 10 / 12, 0, np.inf, 0, 0.3, 0, (1 + 0.3) / 2]),
        ("x3", [1, 0.3, 0.3, 0.3, 1, 10 / 12, 0, 1, 0, 0.3, 0, (0.3 + 1) / 2]),
    ],
)
def test_figures_of_rules_by_hand(antecedent, figures):
    """Ten rows, and two of unknown cells: x0 is in 5, x1 in 6, both in 4; x2 in 3, x3 in all."""
    pytest.importorskip("pandas")
    model = ba.BinaryDictionaryLearning(2, algebra="or", random_state=0)
    model.fit(np.array([[1, 1, 0, 0]] * 20 + [[0, 0, 1, 1]] * 20))
    X = np.zeros((12, 4))
    X[:5, 0] = X[1:7, 1] = X[:3, 2] = X[:10, 3] = 1
    X[10:] = np.nan
    rules = model.to_rules(X, min_support=0, min_confidence=0, min_lift=0)
    row = rules[rules["antecedents"] == {antecedent}].iloc[0]
    np.testing.assert_allclose(row[COLUMNS[2:]].astype(float), figures, atol=1e-15)


def test_itemsets_are_the_parts_of_rules_with_their_supports(fitted):
    """As mlxtend's `association_rules` takes them."""
    pytest.importorskip("pandas")
    model, table = fitted
    rules, itemsets = model.to_rules(table), model.to_itemsets(table)
    X = dict(zip(table.columns, table.to_dense().T, strict=True))
    parts = {part for a, c in zip(rules["antecedents"], rules["consequents"], strict=True) for part in (a, c, a | c)}
    assert set(itemsets["itemsets"]) == parts
    assert len(itemsets) == len(parts) > 10
    expected = [np.all([X[name] for name in items], axis=0).mean() for items in itemsets["itemsets"]]
    np.testing.assert_allclose(itemsets["support"], expected)


def test_a_store_and_columns_in_another_order_give_what_the_table_gives(fitted, tmp_path):
    pytest.importorskip("zarr")
    model, table = fitted
    store = ba.pack(table, tmp_path / "rows.zarr")
    order = np.random.default_rng(0).permutation(table.shape[1])
    shuffled = ba.Table(table.bits.take_columns(order), table.row_names, [table.columns[column] for column in order])
    assert model.rules(store) == model.rules(table) == model.rules(shuffled)
    np.testing.assert_array_equal(model.recommend(shuffled).items, model.recommend(table).items)
    indices = clone(model).fit(table.bits).recommend(table.bits).items
    np.testing.assert_array_equal(np.array(table.columns, object)[indices], model.recommend(table).items)
    assert model.worst_rows(store, 5) == model.worst_rows(table, 5)
    assert model.worst_rows(table, 0) == []
    for n in (3, 100):  # of 40 items
        items, probabilities = model.recommend(str(store.path), n)
        in_memory = model.recommend(table, n)
        np.testing.assert_array_equal(items, in_memory.items)
        np.testing.assert_array_equal(probabilities, in_memory.probabilities)
        assert items.shape == (300, min(n, 40))


def test_dask_collections_are_refused_with_advice(fitted):
    dask_array = pytest.importorskip("dask.array")
    model, table = fitted
    X = dask_array.from_array(table.bits.to_dense(), chunks=(100, -1))
    for method in (model.rules, model.recommend, model.worst_rows):
        with pytest.raises(TypeError, match=r"bitatoms\.pack"):
            method(X)
