"""PaNDa+: equal to a slow oracle that recomputes every cost, within its tolerances, and stops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitatoms.baselines.panda import PandaPlus
from bitatoms.datasets import planted
from support.strategies import SEEDS, matrices

ORDERS = ("pairs", "frequency", "correlation")
TOLERANCES = st.sampled_from(((1.0, 1.0), (0.4, 0.4), (0.25, 1.0), (1.0, 0.25), (0.0, 0.5)))
SMALL = matrices(st.sampled_from((1, 2, 7, 20, 65)), st.sampled_from((1, 2, 9, 20, 65)))


# --- the oracle: patterns are pairs of sets, and every cost is computed from the table


def product(X, patterns):
    covered = np.zeros(X.shape, bool)
    for items, rows in patterns:
        covered[np.ix_(sorted(rows), sorted(items))] = True
    return covered


def string(length, ones):
    return math.log2(length + 1) + math.log2(math.comb(length, ones))


def cost_of(X, patterns, cost, weight):
    covered = product(X, patterns)
    zeros, left = int((covered & (X == 0)).sum()), int((~covered & (X == 1)).sum())
    if cost == "patterns":
        return zeros + left + weight * sum(len(items) + len(rows) for items, rows in patterns)
    n, m = X.shape
    bits = sum(string(m, len(items)) + string(n, len(rows)) for items, rows in patterns)
    return bits + string(int(covered.sum()), zeros) + string(int((~covered).sum()), left)


class Oracle:
    def __init__(self, X, cost="mdl", weight=1.0, tolerances=(1.0, 1.0), order="pairs"):
        self.X, self.cost, self.weight, self.order = X, cost, weight, order
        self.row_tolerance, self.column_tolerance = tolerances
        self.found = []

    def total(self, items=None, rows=None):
        patterns = self.found if items is None else [*self.found, (items, rows)]
        return cost_of(self.X, patterns, self.cost, self.weight)

    def no_worse(self, new, old):
        return self.total(*new) <= self.total(*old) + 1e-9  # floats are summed in another order

    def columns_kept(self, items, rows):
        most = self.column_tolerance * len(rows) + 1e-9
        return all(sum(self.X[row, item] == 0 for row in rows) <= most for item in items)

    def row_kept(self, items, row):
        return sum(self.X[row, item] == 0 for item in items) <= self.row_tolerance * len(items) + 1e-9

    def scores(self, rest):
        if self.order == "frequency":
            return rest.sum(axis=0)
        return np.array([rest[rest[:, item]].sum() for item in range(rest.shape[1])])

    def core(self, rest, order):
        first, *others = order
        items, rows, passed = {first}, set(np.flatnonzero(rest[:, first])), []
        while others:
            if self.order == "correlation":
                others.sort(key=lambda item: -sum(rest[row, item] for row in rows))
            item = others.pop(0)
            new = items | {item}, {row for row in rows if rest[row, item]}
            if new[1] and self.no_worse(new, (items, rows)):
                items, rows = new
            elif self.order == "correlation":
                passed = [item, *others]  # the next ones are in fewer of the rows
                break
            else:
                passed.append(item)
        return items, rows, passed

    def with_rows(self, rest, items, rows):
        covered = product(self.X, self.found)
        ones = {row: sum(rest[row, item] for item in items) for row in range(len(self.X))}
        zeros = {
            row: sum(not covered[row, item] and self.X[row, item] == 0 for item in items) for row in range(len(self.X))
        }
        able = [row for row in range(len(self.X)) if row not in rows and ones[row] and self.row_kept(items, row)]
        able.sort(key=lambda row: zeros[row] - ones[row])
        able = self.falling(items, rows, able)
        joined = set(rows)
        for row in able:
            if self.column_tolerance == 1 or self.columns_kept(items, joined | {row}):
                joined.add(row)
        return rows | set(self.falling(items, rows, [row for row in able if row in joined]))

    def falling(self, items, rows, able):
        joined = set(rows)
        for count, row in enumerate(able):
            if not self.no_worse((items, joined | {row}), (items, joined)):
                return able[:count]
            joined.add(row)
        return able

    def extended(self, rest, items, rows, others):
        rows = self.with_rows(rest, items, rows)
        for item in others:
            new = items | {item}
            kept = self.columns_kept({item}, rows) and all(self.row_kept(new, row) for row in rows)
            if kept and rest[sorted(rows), item].any() and self.no_worse((new, rows), (items, rows)):
                items, rows = new, self.with_rows(rest, new, rows)
        return items, rows

    def mine(self, max_patterns, n_orders, random):
        while max_patterns is None or len(self.found) < max_patterns:
            rest = (self.X == 1) & ~product(self.X, self.found)
            scores = self.scores(rest)
            if not scores.any():
                break
            tried = []
            for turn in range(n_orders):
                keys = scores if turn == 0 else scores * random.random(len(scores))
                order = sorted(range(len(scores)), key=lambda item: -keys[item])
                tried.append(self.extended(rest, *self.core(rest, order)))
            costs = [self.total(*pattern) for pattern in tried]
            best = next(i for i, each in enumerate(costs) if each <= min(costs) + 1e-9)
            if costs[best] >= self.total() - 1e-9:
                break
            self.found.append(tried[best])
        atoms = np.zeros((len(self.found), self.X.shape[1]), np.uint8)
        codes = np.zeros((len(self.X), len(self.found)), np.uint8)
        for k, (items, rows) in enumerate(self.found):
            atoms[k, sorted(items)] = 1
            codes[sorted(rows), k] = 1
        return atoms, codes


# --- results


def assert_equals_the_oracle(X, n_components, cost, tolerances, order, n_orders, seed):
    atoms, codes = Oracle(X, *cost, tolerances, order).mine(n_components, n_orders, np.random.default_rng(seed))
    how = dict(zip(("cost", "pattern_weight", "row_tolerance", "column_tolerance"), (*cost, *tolerances), strict=True))
    model = PandaPlus(n_components, **how, order=order, n_orders=n_orders, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.components_, atoms)
    np.testing.assert_array_equal(model.codes_, codes)


@settings(max_examples=40)
@given(SMALL, st.sampled_from((("mdl", 1.0), ("patterns", 1.0), ("patterns", 0.25))), TOLERANCES, SEEDS)
def test_equals_the_oracle(X, cost, tolerances, seed):
    assert_equals_the_oracle(X, 3, cost, tolerances, ORDERS[seed % 3], 1 + seed % 2, seed)


@pytest.mark.parametrize(("order", "cost"), [("pairs", "mdl"), ("frequency", "patterns"), ("correlation", "mdl")])
def test_equals_the_oracle_on_planted_patterns(order, cost):
    X = planted(66, 65, 3, algebra="or", atom_density=0.3, code_density=0.4, noise=0.05, random_state=1).X
    assert_equals_the_oracle(X, 2, (cost, 1.0), (0.4, 0.4), order, 2, 5)


def test_all_ones_are_one_pattern_only_with_cost_patterns():
    """With the cost "mdl", a table of ones takes almost no bits without patterns."""
    X = np.ones((65, 66), np.uint8)
    model = PandaPlus(cost="patterns", random_state=0).fit(X)
    assert model.components_.tolist() == [[1] * 66]
    assert model.codes_.tolist() == [[1]] * 65
    assert cost_of(X, [], "mdl", 1.0) < cost_of(X, [(set(range(66)), set(range(65)))], "mdl", 1.0)
    assert PandaPlus(random_state=0).fit(X).n_components_ == 0
