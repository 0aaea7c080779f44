"""Beam coding: its stages. `test_block_machine.py` compares single beams with the oracle."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.engine.coding import CODERS, code_and_repair, code_by_beam
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


@pytest.mark.parametrize(
    ("n_atoms", "widths", "patience"), [(20, (32, 256), 3), (40, (25, 200), 3), (128, (8, 64), 3), (129, (4,), 2)]
)
def test_rows_that_stay_expensive_get_a_wider_beam(beams, n_atoms, widths, patience):
    X, atoms, none, prices = random_rows(n_atoms)
    block, first, rule = block_of(X, atoms, none, "xor"), block_of(X, atoms, none, "xor"), beam_rule(prices)
    tables = first.rows.priced(first.atoms().words, rule.prices)
    first.rows.code_by_beam(tables, rule, widths[0], patience)
    costs = first.row_costs(rule.prices)
    rows = [list(range(70)), np.flatnonzero(costs > 3 * costs.mean()).tolist()]
    if len(widths) > 1:
        first.rows.arrays.stale[:] = costs > 3 * costs.mean()
        first.rows.code_by_beam(tables, rule, widths[1], patience)
    beams.clear()
    change = code_by_beam(block, rule)
    assert beams == [(width, patience, own) for width, own in zip(widths, rows, strict=False)]
    assert 0 < len(rows[1])
    assert block.codes() == first.codes()
    assert_step(block, change, X, (atoms, none), factors(first), "xor")
    beams.clear()
    code_by_beam(block_of(X[[0, 20, 21]], atoms, none[:3], "xor"), rule)
    assert beams[1:] == [(width, patience, []) for width in widths[1:]]  # just three times the mean is not expensive


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


@given(priced_factorisations(n_atoms=st.integers(0, 9)), WORKERS, LIMITS, st.booleans(), st.sampled_from((0.5, 1, 3)))
def test_after_greedy_coding_rows_that_cost_more_than_typical_ones_get_ever_wider_beams(
    problem, workers, max_atoms, every, times
):
    X, atoms, _, prices = problem
    X, none = X[:40], np.zeros((min(40, len(X)), len(atoms)), np.uint8)
    typical = 1 + times * float(np.mean(naive.costs(X, atoms, none, "xor", prices) or [0.0])) / 4
    block = block_of(X, atoms, none, "xor", workers)
    rule = beam_rule(prices, max_atoms)._replace(typical=typical)
    with patch("bitatoms.engine.coding.code_from_information_sets"):  # which finds better codes of a few rows
        change = (CODERS["beam"] if every else code_and_repair)(block, rule)

    def again(codes, rows, width, patience):
        out = codes.copy()
        out[rows] = naive.beam_pass(X[rows], atoms, codes[rows], prices, width, patience, max_atoms)
        return out, np.array(naive.costs(X, atoms, out, "xor", prices), int)

    codes = naive.priced_code(X, atoms, none, "xor", prices, max_atoms)
    greedy = np.array(naive.costs(X, atoms, codes, "xor", prices), int)
    codes, costs = again(codes, (greedy > 1.5 * typical) | every, 8, 2)
    codes, costs = again(codes, (costs < greedy) | (costs > 1.5 * typical), 32, 3)
    codes, _ = again(codes, costs > 3 * typical, 256, 3)
    assert_step(block, change, X, (atoms, none), (atoms, codes), "xor")
