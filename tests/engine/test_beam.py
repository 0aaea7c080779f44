"""Beam coding: its stages. `test_block_machine.py` compares single beams with the oracle."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.engine.coding import CODERS, code, code_and_repair, code_by_beam
from bitatoms.engine.host_rows import HostRows
from support.blocks import LIMITS, WORKERS, assert_step, block_of, factors, priced_rule
from support.strategies import planted, priced_factorisations, random_bits, random_prices


def beam_rule(prices, max_atoms=None, algebra="xor"):
    return priced_rule(algebra, prices, max_atoms, 0, "beam")


@pytest.mark.parametrize(
    ("n_atoms", "n_features"), [(p, 130) for p in (1, 16, 17, 63, 65)] + [(17, m) for m in (1, 64)]
)
@pytest.mark.parametrize("most", [(3, 2), (255, 300)])
def test_a_beam_matches_the_oracle_at_awkward_sizes(most, n_atoms, n_features):
    X, atoms, codes = planted(n_atoms, 4, n_features, n_atoms, "xor")
    prices = random_prices(4, n_features, n_atoms, most)
    block, rule = block_of(X, atoms, codes, "xor"), beam_rule(prices)
    block.rows.code_by_beam(block.rows.priced(block.atoms().words, rule.prices), rule, 5, 2)
    np.testing.assert_array_equal(factors(block)[1], naive.beam_pass(X, atoms, codes, prices, 5, 2))


def test_a_cheaper_code_with_the_same_errors_replaces_a_single_candidate():
    """In few columns, many sums of atoms are equal."""
    X, atoms, codes = random_bits(6, 60, 6, 0.5), random_bits(17, 17, 6, 0.4), np.zeros((60, 17), np.uint8)
    prices = random_prices(4, 6, 17)
    block, rule = block_of(X, atoms, codes, "xor"), beam_rule(prices)
    block.rows.code_by_beam(block.rows.priced(block.atoms().words, rule.prices), rule, 2, 3)
    np.testing.assert_array_equal(factors(block)[1], naive.beam_pass(X, atoms, codes, prices, 2, 3))


@pytest.fixture
def beams(monkeypatch):
    """Return a list of the width and patience of each beam, and of the rows that it codes."""
    found, code_by_beam = [], HostRows.code_by_beam

    def recorded(rows, tables, rule, width, patience):
        found.append((width, patience, np.flatnonzero(rows.arrays.stale).tolist()))
        return code_by_beam(rows, tables, rule, width, patience)

    monkeypatch.setattr(HostRows, "code_by_beam", recorded)
    return found


def random_rows(n_atoms):
    """Return 20 rows of a random code, of which most cost more than three times the mean, 50 of zeros, and prices."""
    atoms, true = random_bits(0, n_atoms, 64, 0.4), random_bits(1, 20, n_atoms, 8 / n_atoms)
    X = np.vstack([naive.product(true, atoms, "xor"), np.zeros((50, 64), np.uint8)])
    return X, atoms, np.zeros((70, n_atoms), np.uint8), (np.full(64, 60), np.full(n_atoms, 25))


def test_a_typical_row_costs_the_mean_unless_the_rule_says_otherwise(beams):
    X, atoms, none, prices = random_rows(20)
    for typical, very_expensive in ((0.0, []), (1.0, [0])):
        code_by_beam(block_of(X[[0, 20, 21]], atoms, none[:3], "xor"), beam_rule(prices)._replace(typical=typical))
        assert beams == [(8, 2, [0, 1, 2]), (32, 3, [0]), (256, 3, very_expensive)]  # three times the mean is not
        beams.clear()


@pytest.mark.parametrize(
    ("n_atoms", "expected"), [(20, [(8, 2), (32, 3), (256, 3)]), (128, [(8, 2), (8, 3), (64, 3)]), (129, [(4, 2)])]
)
def test_beams_after_greedy_coding(beams, n_atoms, expected):
    X, atoms, none, prices = random_rows(n_atoms)
    CODERS["beam"](block_of(X, atoms, none, "xor"), beam_rule(prices))
    assert [beam[:2] for beam in beams] == expected
    beams.clear()
    code_and_repair(block_of(X, atoms, none, "xor"), beam_rule(prices)._replace(typical=1.0))
    assert beams
    assert all(max(rows) < 20 for _, _, rows in beams)  # rows of zeros cost nothing


BEAMS = CODERS["beam"], code_and_repair, code_by_beam


@given(
    priced_factorisations(n_atoms=st.integers(0, 9)),
    WORKERS,
    LIMITS,
    st.sampled_from(BEAMS),
    st.sampled_from((0.5, 1, 3)),
)
def test_rows_that_cost_more_than_typical_ones_get_ever_wider_beams(problem, workers, max_atoms, coder, times):
    X, atoms, _, prices = problem
    X, none = X[:40], np.zeros((min(40, len(X)), len(atoms)), np.uint8)
    typical = 1 + times * float(np.mean(naive.costs(X, atoms, none, "xor", prices) or [0.0])) / 4
    block = block_of(X, atoms, none, "xor", workers)
    rule = beam_rule(prices, max_atoms)._replace(typical=typical)
    with patch("bitatoms.engine.coding.code_from_information_sets"):  # which finds better codes of a few rows
        change = coder(block, rule)

    def again(codes, rows, width, patience):
        out = codes.copy()
        out[rows] = naive.beam_pass(X[rows], atoms, codes[rows], prices, width, patience, max_atoms)
        return out, np.array(naive.costs(X, atoms, out, "xor", prices), int)

    codes = none if coder is code_by_beam else naive.priced_code(X, atoms, none, "xor", prices, max_atoms)
    before = np.array(naive.costs(X, atoms, codes, "xor", prices), int)
    is_coded = (before > 1.5 * typical) | (coder is not code_and_repair)
    codes, costs = again(codes, is_coded, 8, 2)
    codes, costs = again(codes, is_coded & ((costs < before) | (costs > 1.5 * typical)), 32, 3)
    codes, _ = again(codes, costs > 3 * typical, 256, 3)
    assert_step(block, change, X, (atoms, none), (atoms, codes), "xor")


@pytest.mark.parametrize("n_draws", [0, 8])
def test_only_stuck_rows_are_repaired_each_on_its_own(beams, n_draws):
    """By draws and by beam; rows with a typical cost keep their greedy code."""
    atoms = random_bits(0, 24, 90, 0.4)
    true = np.vstack([random_bits(1, 50, 24, 0.08), random_bits(2, 30, 24, 0.5)])
    X, none = naive.product(true, atoms, "xor") ^ random_bits(2, 80, 90, 0.03), np.zeros((80, 24), np.uint8)
    rule = beam_rule((np.full(90, 60), np.full(24, 25)))
    greedy, block = (block_of(X, atoms, none, "xor") for _ in range(2))
    code(greedy, rule)
    before = greedy.row_costs(rule.prices)
    rule = rule._replace(typical=float(np.quantile(before, 0.25)))
    change = code_and_repair(block, rule, n_draws)
    assert_step(block, change, X, (atoms, none), factors(block), "xor")
    costs, is_stuck = block.row_costs(rule.prices), before > 1.5 * rule.typical
    assert (costs <= before).all()
    assert 0 < len(beams[0][2]) <= is_stuck.sum() - (n_draws > 0)
    assert (costs[is_stuck] < before[is_stuck]).mean() > 0.5
    np.testing.assert_array_equal(factors(block)[1][~is_stuck], factors(greedy)[1][~is_stuck])
    for row in range(0, 80, 9):
        alone = block_of(X[[row]], atoms, none[:1], "xor")
        code_and_repair(alone, rule, n_draws)
        np.testing.assert_array_equal(factors(alone)[1][0], factors(block)[1][row])
