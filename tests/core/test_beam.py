"""Beam coding, bit for bit against the oracle, and what it is for."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.core.coding import CODERS, code, code_and_repair, code_by_beam, code_from_scratch
from support.blocks import ALGEBRAS, LIMITS, WORKERS, assert_step, block_of, factors, priced_rule, within
from support.strategies import planted, priced_factorisations, random_bits, random_prices


def beam_rule(prices, max_atoms=None, residual_limit=0, algebra="xor"):
    return priced_rule(algebra, prices, max_atoms, residual_limit, "beam")


@given(priced_factorisations(n_atoms=st.integers(0, 9)), WORKERS, LIMITS, st.sampled_from((0, 3)))
def test_beam_coding_matches_the_oracle(problem, workers, max_atoms, residual_limit):
    X, atoms, codes, prices = problem
    X, codes = X[:70], within(codes, max_atoms)[:70]
    block = block_of(X, atoms, codes, "xor", workers)
    change = code_by_beam(block, beam_rule(prices, max_atoms, residual_limit))
    least = residual_limit if residual_limit > 0 else -1
    expected = naive.beam_code(X, atoms, codes, prices, max_atoms, least)
    assert_step(block, change, X, (atoms, codes), (atoms, expected), "xor")


@pytest.mark.parametrize("most", [(1, 1), (3, 2), (255, 300)])
@pytest.mark.parametrize(
    ("n_atoms", "n_features"),
    [(p, 130) for p in (1, 15, 16, 17, 63, 64, 65, 130)] + [(17, m) for m in (1, 63, 64, 65)],
)
def test_beam_coding_matches_the_oracle_at_awkward_sizes(most, n_atoms, n_features):
    X, atoms, codes = planted(n_atoms, 4, n_features, n_atoms, "xor")
    prices = random_prices(4, n_features, n_atoms, most)
    block = block_of(X, atoms, codes, "xor")
    change = code_by_beam(block, beam_rule(prices))
    expected = naive.beam_code(X, atoms, codes, prices)
    assert_step(block, change, X, (atoms, codes), (atoms, expected), "xor")


def test_rows_that_stay_expensive_get_a_wider_beam():
    """Rows of a random code, among rows of zeros that cost next to nothing."""
    atoms, true = random_bits(0, 40, 64, 0.4), random_bits(1, 6, 40, 0.2)
    X = np.vstack([naive.product(true, atoms, "xor"), np.zeros((60, 64), np.uint8)])
    prices, none = (np.full(64, 60), np.full(40, 25)), np.zeros((66, 40), np.uint8)
    block = block_of(X, atoms, none, "xor")
    code_by_beam(block, beam_rule(prices))
    expected = naive.beam_code(X, atoms, none, prices)
    np.testing.assert_array_equal(factors(block)[1], expected)
    assert (expected != naive.beam_pass(X, atoms, none, prices, 25, 3)).any()


@given(priced_factorisations(), ALGEBRAS, WORKERS, LIMITS)
def test_no_row_costs_more_after_beam_coding(problem, algebra, workers, max_atoms):
    X, atoms, codes, prices = problem
    codes = within(codes, max_atoms)
    block = block_of(X, atoms, codes, algebra, workers)
    code_by_beam(block, beam_rule(prices, max_atoms, 0, algebra))
    found = factors(block)[1]
    before, after = (naive.costs(X, atoms, table, algebra, prices) for table in (codes, found))
    changed = (found != codes).any(axis=1)
    assert all(now < then if new else now == then for now, then, new in zip(after, before, changed, strict=True))
    assert max_atoms is None or found.sum(axis=1).max(initial=0) <= max_atoms


@given(priced_factorisations())
def test_under_or_beam_coding_is_coding_from_scratch(problem):
    X, atoms, codes, prices = problem
    one, other = (block_of(X, atoms, codes, "or") for _ in range(2))
    rule = beam_rule(prices, algebra="or")
    assert code_by_beam(one, rule) == code_from_scratch(other, rule)
    np.testing.assert_array_equal(factors(one)[1], factors(other)[1])


@pytest.mark.parametrize(("n_features", "density"), [(64, 0.15), (200, 0.2)])
def test_beam_coding_finds_more_true_codes_than_greedy_coding(n_features, density):
    """About 97 % of them, against 67 %."""
    atoms, true = random_bits(0, 24, n_features, density), random_bits(1, 300, 24, 0.2)
    X = naive.product(true, atoms, "xor") ^ random_bits(2, 300, n_features, 0.03)
    prices = np.full(n_features, 60), np.full(24, 25)
    block = block_of(X, atoms, np.zeros((300, 24), np.uint8), "xor")
    shares = []
    for operation in (code, code_by_beam):
        operation(block, beam_rule(prices))
        shares.append((factors(block)[1] == true).all(axis=1).mean())
    greedy, beam = shares
    assert greedy < 0.75
    assert beam > 0.95


@given(priced_factorisations(n_atoms=st.integers(0, 9)), WORKERS, LIMITS, st.booleans(), st.sampled_from((0.5, 1, 3)))
def test_greedy_then_beam_coding_matches_the_oracle(problem, workers, max_atoms, every, times):
    X, atoms, _, prices = problem
    X, none = X[:70], np.zeros((min(70, len(X)), len(atoms)), np.uint8)
    typical = 1 + times * float(np.mean(naive.costs(X, atoms, none, "xor", prices) or [0.0])) / 4
    block = block_of(X, atoms, none, "xor", workers)
    rule = beam_rule(prices, max_atoms)._replace(typical=typical)
    with patch("bitatoms.core.coding.code_from_information_sets"):  # which finds better codes of a few rows
        change = (CODERS["beam"] if every else code_and_repair)(block, rule)
    expected = naive.beam_where_it_matters(X, atoms, prices, typical, every, max_atoms)
    assert_step(block, change, X, (atoms, none), (atoms, expected), "xor")


@given(priced_factorisations(n_atoms=st.integers(1, 9)), st.booleans())
def test_the_code_of_a_row_does_not_depend_on_other_rows(problem, every):
    X, atoms, codes, prices = problem
    rule = beam_rule(prices)._replace(typical=200.0)
    coder = CODERS["beam"] if every else code_and_repair
    together = block_of(X, atoms, np.zeros_like(codes), "xor")
    coder(together, rule)
    for j in range(0, len(X), 7):
        alone = block_of(X[j : j + 1], atoms, np.zeros_like(codes[j : j + 1]), "xor")
        coder(alone, rule)
        np.testing.assert_array_equal(factors(alone)[1][0], factors(together)[1][j])
