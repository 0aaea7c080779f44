"""Codes from information sets, bit for bit against the oracle, and what they are for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix
from bitatoms.core import information_sets
from bitatoms.core.block import Block
from bitatoms.core.coding import code, code_by_beam, coding_rule
from bitatoms.core.information_sets import (
    N_DRAWS,
    code_from_information_sets,
    code_hard_rows,
    draw_columns,
    find_hard_rows,
    identity,
    supports,
)
from bitatoms.core.objective import Objective, unit_prices
from bitatoms.datasets import planted as planted_table
from bitatoms.parallel import Workers
from support.blocks import (
    LIMITS,
    WORKERS,
    assert_consistent,
    assert_step,
    bits_of,
    block_of,
    factors,
    priced_rule,
    within,
)
from support.strategies import SEEDS, planted, priced_factorisations, random_bits, random_prices


def oracle(X, atoms, codes, random, n_draws, prices, max_atoms=None):
    """Code rows from as many sets of columns, drawn as the coder draws them."""
    for _ in range(n_draws):
        order, columns = random.permutation(len(atoms)), random.permutation(X.shape[1])
        codes = naive.information_set_code(X, atoms, codes, order, columns, prices, max_atoms)
    return codes


@given(priced_factorisations(n_atoms=st.integers(1, 9)), WORKERS, LIMITS, SEEDS)
def test_codes_of_one_draw_match_the_oracle(problem, workers, max_atoms, seed):
    X, atoms, codes, prices = problem
    X, codes = X[:17], within(codes, max_atoms)[:17]
    block = block_of(X, atoms, codes, "xor", workers)
    change = code_from_information_sets(block, priced_rule("xor", prices, max_atoms), np.random.default_rng(seed), 1)
    expected = oracle(X, atoms, codes, np.random.default_rng(seed), 1, prices, max_atoms)
    assert_step(block, change, X, (atoms, codes), (atoms, expected), "xor")


@pytest.mark.parametrize(
    ("n_atoms", "n_features"), [(p, 70) for p in (1, 8, 9, 63, 65)] + [(9, m) for m in (1, 63, 64, 65, 130)]
)
def test_codes_of_several_draws_match_the_oracle_at_awkward_sizes(n_atoms, n_features):
    """With dependent atoms and atoms of zeros, and also with more atoms than features."""
    X, atoms, codes = planted(n_atoms, 4, n_features, n_atoms, "xor")
    prices = random_prices(4, n_features, n_atoms, (9, 5))
    block = block_of(X, atoms, codes, "xor")
    code_from_information_sets(block, priced_rule("xor", prices), np.random.default_rng(0), 3)
    expected = oracle(X, atoms, codes, np.random.default_rng(0), 3, prices)
    np.testing.assert_array_equal(factors(block)[1], expected)
    assert_consistent(block, X, "xor")


@given(priced_factorisations(n_atoms=st.integers(0, 9)), WORKERS, LIMITS, SEEDS)
def test_no_row_costs_more_than_before(problem, workers, max_atoms, seed):
    X, atoms, codes, prices = problem
    codes = within(codes, max_atoms)
    block = block_of(X, atoms, codes, "xor", workers)
    change = code_from_information_sets(block, priced_rule("xor", prices, max_atoms), np.random.default_rng(seed), 4)
    found = factors(block)[1]
    assert_consistent(block, X, "xor")
    before, after = (naive.costs(X, atoms, table, "xor", prices) for table in (codes, found))
    is_changed = (found != codes).any(axis=1)
    assert all(now < then if new else now == then for now, then, new in zip(after, before, is_changed, strict=True))
    assert bool(change) == is_changed.any()
    assert change.codes == (found != codes).sum()
    assert max_atoms is None or found.sum(axis=1).max(initial=0) <= max_atoms


@settings(max_examples=15)
@given(priced_factorisations(n_atoms=st.integers(1, 6), n_rows=st.just(17)), SEEDS)
def test_a_bias_is_taken_off_the_rows(problem, seed):
    X, atoms, codes, prices = problem
    bias = random_bits(seed, 1, X.shape[1], 0.5)
    blocks = [
        Block(bits_of(X), bits_of(atoms), bits_of(codes), None, Workers(), BitMatrix.from_dense(bias)),
        block_of(np.where(X > 1, X, X ^ bias), atoms, codes, "xor"),
    ]
    for block in blocks:
        code_from_information_sets(block, priced_rule("xor", prices), np.random.default_rng(seed), 2)
    assert blocks[0].codes() == blocks[1].codes()
    assert blocks[0].errors() == blocks[1].errors()
    np.testing.assert_array_equal(blocks[0].targets(), blocks[1].targets())
    assert blocks[1].targets().tolist() == bits_of(np.where(X > 1, 0, X ^ bias)).words.tolist()


def test_threads_and_chunks_do_not_change_the_codes():
    data = planted_table(400, 70, 12, atom_density=0.4, code_density=0.4, noise=0.05, random_state=0)
    blocks = []
    for workers in (Workers(), Workers(2, 64), Workers(5), Workers(5, 100), Workers(1, 128)):
        blocks.append(block_of(data.X, data.atoms, np.zeros((400, 12), np.uint8), "xor", workers))
        random = np.random.default_rng(3)
        assert code_from_information_sets(blocks[-1], Objective(False, "xor").rule(blocks[-1]), random, 6)
    assert all(block.codes() == blocks[0].codes() for block in blocks)
    assert_consistent(blocks[-1], data.X, "xor")


def test_the_code_of_a_row_does_not_depend_on_other_rows():
    X, atoms, codes = planted(1, 130, 65, 17, "xor")
    rule = priced_rule("xor", random_prices(2, 65, 17))
    together, alone = block_of(X, atoms, codes, "xor"), block_of(X[77:78], atoms, codes[77:78], "xor")
    for block in (together, alone):
        code_from_information_sets(block, rule, np.random.default_rng(0), 5)
    np.testing.assert_array_equal(factors(together)[1][77], factors(alone)[1][0])


@pytest.mark.parametrize("n_atoms", [1, 20, 64, 65, 128])
def test_without_noise_the_codes_are_the_true_ones(n_atoms):
    """One draw is enough, also from other codes, and also if some cells are unknown, then with some more."""
    atoms, true = random_bits(0, n_atoms, 200, 0.5), random_bits(1, 70, n_atoms, 0.4)
    assert naive.rank(atoms) == n_atoms
    X = naive.product(true, atoms, "xor")
    rule = coding_rule("mdl", "xor", None, 0, unit_prices(200, n_atoms))
    for codes in (np.zeros_like(true), random_bits(2, 70, n_atoms, 0.5)):
        block = block_of(X, atoms, codes, "xor")
        code_from_information_sets(block, rule, np.random.default_rng(0), 1)
        np.testing.assert_array_equal(factors(block)[1], true)
        assert not block.wrong().any()


def test_unknown_cells_do_not_hide_the_true_codes():
    atoms, true = random_bits(0, 8, 100, 0.5), random_bits(1, 70, 8, 0.4)
    X = naive.product(true, atoms, "xor")
    X[random_bits(2, 70, 100, 0.1) == 1] = 2
    block = block_of(X, atoms, np.zeros_like(true), "xor")
    code_from_information_sets(block, Objective(False, "xor").rule(block), np.random.default_rng(0))
    np.testing.assert_array_equal(factors(block)[1], true)
    assert_consistent(block, X, "xor")


def test_it_finds_codes_of_many_atoms_that_other_coders_miss():
    data = planted_table(100, 100, 20, atom_density=0.5, code_density=0.5, noise=0.03, random_state=0)
    shares = []
    for coder in (code, code_by_beam, lambda *args: code_from_information_sets(*args, np.random.default_rng(0))):
        block = block_of(data.X, data.atoms, np.zeros_like(data.codes), "xor")
        coder(block, Objective(False, "xor").rule(block))
        shares.append((factors(block)[1] == data.codes).all(axis=1).mean())
    assert max(shares[:2]) < 0.5
    assert shares[2] > 0.97


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


@pytest.fixture
def drawn(monkeypatch):
    """Return a list that gets an item for each draw of columns."""
    draws = []
    monkeypatch.setattr(information_sets, "draw_columns", lambda *args: draws.append(args) or draw_columns(*args))
    return draws


def test_hard_rows_take_no_more_draws_than_allowed(drawn, monkeypatch):
    block, _, _ = with_hard_rows(0.2)
    rule = Objective(True, "xor").rule(block)
    found = find_hard_rows(block, rule)
    assert N_DRAWS < found.n_draws
    monkeypatch.setattr(information_sets, "_MAX_CODED", 1)
    code_hard_rows(block, rule, found, np.random.default_rng(0))
    assert len(drawn) == N_DRAWS


def test_rows_that_are_hard_for_another_reason_take_few_draws(drawn):
    """They are random, and no code has few errors."""
    block, table, hard = with_hard_rows(0.2, n_features=250)
    X = table.X.copy()
    X[hard] = random_bits(1, len(hard), X.shape[1], 0.5)
    block = block_of(X, table.atoms, factors(block)[1], "xor")
    rule = Objective(True, "xor").rule(block)
    found = find_hard_rows(block, rule)
    assert set(hard) <= set(found.rows)
    code_hard_rows(block, rule, found, np.random.default_rng(0))
    assert len(drawn) == N_DRAWS < found.n_draws


def test_rows_and_atoms_are_stale_after_hard_rows_are_coded():
    block, _, _ = with_hard_rows(0.2)
    rule = Objective(True, "xor").rule(block)
    for stale in (block._read_rows.stale, block._atoms.stale):
        stale[:] = 0
    code_hard_rows(block, rule, find_hard_rows(block, rule), np.random.default_rng(0))
    assert block._read_rows.stale.all()
    assert block._atoms.stale.all()


@pytest.mark.parametrize(
    ("noise", "n_atoms", "algebra"), [(0.05, 30, "xor"), (0.35, 30, "xor"), (0.2, 129, "xor"), (0.2, 30, "or")]
)
def test_no_row_is_hard_if_the_usual_draws_are_enough_or_too_many_are_needed(noise, n_atoms, algebra):
    block, _, _ = with_hard_rows(noise, n_atoms, algebra=algebra)
    assert find_hard_rows(block, Objective(True, algebra).rule(block)) is None


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130])
def test_the_identity(n):
    np.testing.assert_array_equal(BitMatrix.from_words(identity(n), n).to_dense(), np.eye(n))


def test_draws_differ_and_depend_on_the_generator_only():
    block = block_of(*planted(0, 9, 65, 12, "xor"), "xor")
    random = np.random.default_rng(0)
    first, second = draw_columns(block, random), draw_columns(block, random)
    assert sorted(first.pivots) != sorted(second.pivots)
    again = draw_columns(block, np.random.default_rng(0))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(first.pivots) == naive.rank(factors(block)[0])
