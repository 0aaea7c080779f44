"""Codes from information sets, bit for bit against the oracle, and what they are for."""

import numpy as np
import pytest

from bitatoms.core import information_sets
from bitatoms.core.coding import coding_rule
from bitatoms.core.information_sets import (
    N_DRAWS,
    code_from_information_sets,
    code_hard_rows,
    draw_columns,
    find_hard_rows,
    supports,
)
from bitatoms.core.objective import Objective
from bitatoms.datasets import planted as planted_table
from bitatoms.parallel import Workers
from support.blocks import assert_consistent, block_of, factors, priced_rule
from support.strategies import planted, random_prices


@pytest.mark.parametrize(("more_errors", "is_taken"), [(1, True), (2, True), (3, False)])
def test_a_cheaper_code_may_have_two_more_errors(more_errors, is_taken):
    """Without the atom one expensive bit is wrong, with it several cheap ones."""
    x, atoms = np.eye(1, 6, dtype=np.uint8), np.zeros((1, 6), np.uint8)
    atoms[0, : 2 + more_errors] = 1
    block = block_of(x, atoms, np.zeros((1, 1), np.uint8), "xor")
    rule = priced_rule("xor", (np.array([99, 1, 1, 1, 1, 1]), np.array([0])))
    code_from_information_sets(block, rule, np.random.default_rng(0), 5)
    assert factors(block)[1].tolist() == [[int(is_taken)]]


def test_cases_that_are_not_supported_change_nothing():
    X, atoms, codes = planted(0, 9, 200, 129, "xor")
    prices = random_prices(0, 200, 129)
    many = block_of(X, atoms, codes, "xor"), priced_rule("xor", prices)
    unpriced = block_of(X, atoms[:5], codes[:, :5], "xor"), coding_rule("greedy", "xor")
    limited = unpriced[0], priced_rule("xor", (prices[0], prices[1][:5]), residual_limit=3)
    union = block_of(X, atoms[:5], codes[:, :5], "or"), priced_rule("or", (prices[0], prices[1][:5]))
    none = block_of(X, atoms[:0], codes[:, :0], "xor"), priced_rule("xor", (prices[0], prices[1][:0]))
    for block, rule in (many, unpriced, limited, union, none):
        before = block.codes()
        assert not supports(block, rule)
        assert not code_from_information_sets(block, rule, np.random.default_rng(0))
        assert block.codes() == before
    most = block_of(X, atoms[:128], codes[:, :128], "xor"), priced_rule("xor", (prices[0], prices[1][:128]))
    assert supports(*most)


def with_hard_rows(noise, n_atoms=30, workers=None, algebra="xor", n_features=150):
    """Return a block in which twelve rows, of many atoms, have no code, and the table."""
    table = planted_table(300, n_features, n_atoms, atom_density=0.4, code_density=0.1, noise=noise, random_state=0)
    codes = table.codes.copy()
    hard = np.argsort(codes.sum(axis=1), kind="stable")[-12:]
    codes[hard] = 0
    return block_of(table.X, table.atoms, codes, algebra, workers or Workers()), table, hard


def test_hard_rows_are_coded_from_as_many_draws_as_they_need():
    """A draw is right for a row with probability .01."""
    block, table, hard = with_hard_rows(0.2)
    rule = Objective(True, "xor").rule(block)
    other, _, _ = with_hard_rows(0.2, workers=Workers(5, 64))
    for each in (block, other):
        found = find_hard_rows(each, rule)
        assert set(hard) <= set(found.rows)
        assert code_hard_rows(each, rule, found, np.random.default_rng(0))
        assert_consistent(each, table.X, "xor")
        is_true = (factors(each)[1] == table.codes).all(axis=1)
        assert is_true[hard].sum() >= 9
        assert np.delete(is_true, hard).mean() > 0.99
    assert block.factors() == other.factors()
    usual, _, _ = with_hard_rows(0.2)
    code_from_information_sets(usual, rule, np.random.default_rng(0))
    assert (factors(usual)[1] == table.codes).all(axis=1)[hard].sum() < 6


def test_hard_rows_take_no_more_draws_than_allowed(monkeypatch):
    (block, _, _), drawn = with_hard_rows(0.2), []
    monkeypatch.setattr(information_sets, "draw_columns", lambda *args: drawn.append(args) or draw_columns(*args))
    rule = Objective(True, "xor").rule(block)
    found = find_hard_rows(block, rule)
    assert N_DRAWS < found.n_draws
    monkeypatch.setattr(information_sets, "_MAX_CODED", 1)
    code_hard_rows(block, rule, found, np.random.default_rng(0))
    assert len(drawn) == N_DRAWS


@pytest.mark.parametrize(
    ("noise", "n_atoms", "algebra"), [(0.05, 30, "xor"), (0.35, 30, "xor"), (0.2, 129, "xor"), (0.2, 30, "or")]
)
def test_no_row_is_hard_if_the_usual_draws_are_enough_or_too_many_are_needed(noise, n_atoms, algebra):
    block, _, _ = with_hard_rows(noise, n_atoms, algebra=algebra)
    assert find_hard_rows(block, Objective(True, algebra).rule(block)) is None
