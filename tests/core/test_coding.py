"""Coding at prices, from the codes there are and from nothing, bit for bit against the oracles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.block import Block
from bitatoms.core.coding import (
    CODERS,
    code,
    code_from_scratch,
    code_from_subsets,
    coding_rule,
    pursue,
    would_use,
)
from bitatoms.core.exact import code_exactly
from bitatoms.core.objective import unit_prices
from bitatoms.parallel import Workers
from support.blocks import (
    ALGEBRAS,
    LIMITS,
    WORKERS,
    assert_step,
    block_of,
    factors,
    packed,
    priced_rule,
    unpacked,
    within,
)
from support.strategies import SEEDS, factorisations, planted, priced_factorisations, random_bits, random_prices

N_ATOMS = (1, 15, 16, 17, 63, 64, 65, 130)
N_FEATURES = (1, 63, 64, 65, 300)
RESIDUAL_LIMITS = st.sampled_from((0, 3))
OUT = 1 << 27  # the price of an atom that is to go

operations = pytest.mark.parametrize(
    ("operation", "oracle"),
    [(code, naive.priced_code), (code_from_scratch, naive.code_from_scratch)],
    ids=["code", "from scratch"],
)
both_algebras = pytest.mark.parametrize("algebra", ["xor", "or"])


def limit_at_a_price(residual_limit):
    """No limit is one that also a row without a wrong bit is above: it may still be coded for less."""
    return residual_limit if residual_limit > 0 else -1


@operations
@given(priced_factorisations(), ALGEBRAS, WORKERS, LIMITS, RESIDUAL_LIMITS)
def test_coding_at_prices_matches_the_oracle(operation, oracle, problem, algebra, workers, max_atoms, residual_limit):
    X, atoms, codes, prices = problem
    codes = within(codes, max_atoms)
    block = block_of(X, atoms, codes, algebra, workers)
    change = operation(block, priced_rule(algebra, prices, max_atoms, residual_limit))
    expected = oracle(X, atoms, codes, algebra, prices, max_atoms, limit_at_a_price(residual_limit))
    assert_step(block, change, X, (atoms, codes), (atoms, expected), algebra)


@operations
@both_algebras
@pytest.mark.parametrize("most", [(3, 2), (255, 300)])
@pytest.mark.parametrize(("n_atoms", "n_features"), [(p, 300) for p in N_ATOMS] + [(17, m) for m in N_FEATURES])
def test_coding_at_prices_matches_the_oracle_at_awkward_sizes(operation, oracle, algebra, most, n_atoms, n_features):
    X, atoms, codes = planted(n_atoms, 9, n_features, n_atoms, algebra)
    prices = random_prices(4, n_features, n_atoms, most)
    block = block_of(X, atoms, codes, algebra)
    change = operation(block, priced_rule(algebra, prices))
    expected = oracle(X, atoms, codes, algebra, prices)
    assert_step(block, change, X, (atoms, codes), (atoms, expected), algebra)


@both_algebras
def test_prices_of_many_bits_add_up_past_16_bits(algebra):
    """300 wrong bits at the highest price, and more."""
    for n_features in (257, 258, 300, 1000):
        X, atoms = random_bits(0, 6, n_features, 0.9), random_bits(1, 20, n_features, 0.95)
        X[0], atoms[0] = 1, 1
        prices = np.full(n_features, 255), np.full(20, 70000)
        none = np.zeros((6, 20), np.uint8)
        block = block_of(X, atoms, none, algebra)
        code(block, priced_rule(algebra, prices))
        np.testing.assert_array_equal(factors(block)[1], naive.priced_code(X, atoms, none, algebra, prices))


@operations
@given(priced_factorisations(), ALGEBRAS, LIMITS)
def test_no_row_costs_more_after_coding(operation, oracle, problem, algebra, max_atoms):
    X, atoms, codes, prices = problem
    codes = within(codes, max_atoms)
    block = block_of(X, atoms, codes, algebra)
    operation(block, priced_rule(algebra, prices, max_atoms))
    found = factors(block)[1]
    before, after = (naive.costs(X, atoms, table, algebra, prices) for table in (codes, found))
    assert all(now <= then for now, then in zip(after, before, strict=True))
    assert max_atoms is None or found.sum(axis=1).max(initial=0) <= max_atoms


@given(factorisations(), WORKERS, LIMITS, RESIDUAL_LIMITS)
def test_pursuit_matches_the_oracle(problem, workers, max_atoms, residual_limit):
    """Also the next steps, in which rows that did not change are skipped."""
    X, atoms, codes = problem
    codes = within(codes, max_atoms)
    block, rule = block_of(X, atoms, codes, "xor", workers), coding_rule("bmp", "xor", max_atoms, residual_limit)
    for _ in range(3):
        change = pursue(block, rule)
        expected = naive.pursue(X, atoms, codes, "xor", max_atoms, residual_limit)
        assert_step(block, change, X, (atoms, codes), (atoms, expected), "xor")
        codes = expected


@pytest.mark.parametrize(("n_atoms", "n_features"), [(p, 300) for p in N_ATOMS] + [(17, m) for m in N_FEATURES])
def test_pursuit_matches_the_oracle_at_awkward_sizes(n_atoms, n_features):
    X, atoms, codes = planted(n_atoms, 9, n_features, n_atoms, "xor")
    block = block_of(X, atoms, codes, "xor")
    change = pursue(block, coding_rule("bmp", "xor"))
    assert_step(block, change, X, (atoms, codes), (atoms, naive.pursue(X, atoms, codes, "xor")), "xor")


def test_pursuit_goes_by_the_gains_at_the_beginning():
    """After the first atom, the third would fix two errors; but the second was ahead of it, and no longer gains."""
    x = np.array([[1, 1, 1, 1, 1, 0, 0, 1, 1]], np.uint8)
    atoms = np.array([[1, 1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1]], np.uint8)
    block = block_of(x, atoms, np.zeros((1, 3), np.uint8), "xor")
    pursue(block, coding_rule("bmp", "xor"))
    assert factors(block)[1].tolist() == [[1, 0, 0]]
    code(block, coding_rule("bmp", "xor"))
    assert factors(block)[1].tolist() == [[1, 0, 1]]


@given(priced_factorisations(), ALGEBRAS)
def test_no_toggle_and_no_swap_gains_after_coding(problem, algebra):
    X, atoms, codes, prices = problem
    block = block_of(X, atoms, codes, algebra)
    code(block, priced_rule(algebra, prices))
    if len(atoms):
        for x, found in zip(X, factors(block)[1], strict=True):
            now = naive.row_cost(x, atoms, found, algebra, prices)
            assert naive.costs_after(x, atoms, found, algebra, prices).min() >= now
            assert naive.swapped(x, atoms, found, algebra, prices) is None
    assert not code(block, priced_rule(algebra, prices))


@given(factorisations(), ALGEBRAS, LIMITS)
def test_coding_at_a_price_of_one_per_error_equals_coding_without_prices(problem, algebra, max_atoms):
    X, atoms, codes = problem
    codes = within(codes, max_atoms)
    plain, at_prices = (block_of(X, atoms, codes, algebra) for _ in range(2))
    prices = np.ones(X.shape[1], int), np.zeros(len(atoms), int)
    change = code(plain, coding_rule("greedy", algebra, max_atoms))
    assert code(at_prices, priced_rule(algebra, prices, max_atoms)._replace(swaps=False)) == change
    np.testing.assert_array_equal(factors(at_prices)[1], factors(plain)[1])


@operations
@both_algebras
@pytest.mark.parametrize("n_atoms", [1, 16, 65])
def test_no_row_uses_an_atom_at_a_very_high_price(operation, oracle, algebra, n_atoms):
    X, atoms, codes = planted(1, 70, 65, n_atoms, algebra)
    codes[::3, 0] = 1
    prices = random_prices(4, 65, n_atoms)
    prices[1][0] = prices[1][n_atoms // 3] = OUT
    block = block_of(X, atoms, codes, algebra)
    operation(block, priced_rule(algebra, prices))
    found = factors(block)[1]
    assert codes[:, 0].any()
    assert not found[:, [0, n_atoms // 3]].any()
    np.testing.assert_array_equal(found, oracle(X, atoms, codes, algebra, prices))


def test_a_swap_gains_where_no_toggle_does():
    x, atoms = np.array([[1, 1, 1, 1, 0, 0]], np.uint8), np.array([[1, 1, 0, 0, 1, 0], [1, 1, 1, 1, 1, 1]], np.uint8)
    prices = np.ones(6, int), np.array([1, 1])
    for algebra in ("xor", "or"):
        block = block_of(x, atoms, np.array([[1, 0]], np.uint8), algebra)
        rule = priced_rule(algebra, prices)
        assert not code(block, rule._replace(swaps=False))
        assert code(block, rule).codes == 2
        assert factors(block)[1].tolist() == [[0, 1]]


def test_a_swap_keeps_to_max_atoms():
    """Also where a row uses more atoms than it may: it may drop and swap, not add."""
    X, atoms, codes = planted(5, 130, 65, 17, "xor")
    for algebra in ("xor", "or"):
        for limit in (1, 2, 3):
            for start in (codes, within(codes, limit)):
                prices = random_prices(limit, 65, 17, (5, 5))
                block = block_of(X, atoms, start, algebra)
                code(block, priced_rule(algebra, prices, limit))
                found = factors(block)[1]
                assert (found.sum(axis=1) <= np.maximum(limit, start.sum(axis=1))).all()
                np.testing.assert_array_equal(found, naive.priced_code(X, atoms, start, algebra, prices, limit))


@given(priced_factorisations(), ALGEBRAS, WORKERS, SEEDS)
def test_rows_would_use_a_new_atom_where_it_gains(problem, algebra, workers, seed):
    X, atoms, codes, prices = problem
    offered = np.vstack([random_bits(seed, 3, X.shape[1], 0.3), atoms, np.zeros((1, X.shape[1]), np.uint8)])
    offered[0] = X[0] == 1 if len(X) else 0
    uses = np.random.default_rng(seed).integers(0, 5, len(offered))
    block = block_of(X, atoms, codes, algebra, workers)
    found = would_use(block, packed(offered), priced_rule(algebra, (prices[0], uses)))
    expected = naive.who_gains(X, atoms, codes, offered, algebra, (prices[0], uses))
    np.testing.assert_array_equal(unpacked(found, len(X)), expected)
    assert not block.users()[:, len(X) // 64 + 1 :].any()
    np.testing.assert_array_equal(factors(block)[1], codes)


@both_algebras
@pytest.mark.parametrize("n_offered", [1, 16, 17, 65])
def test_rows_would_use_many_new_atoms_where_they_gain(algebra, n_offered):
    X, atoms, codes = planted(2, 70, 300, 5, algebra)
    offered = np.vstack([X[:1], random_bits(3, n_offered - 1, 300, 0.05)])
    prices = random_prices(4, 300, n_offered)
    block = block_of(X, atoms, codes, algebra)
    found = would_use(block, packed(offered), priced_rule(algebra, prices))
    expected = naive.who_gains(X, atoms, codes, offered, algebra, prices)
    np.testing.assert_array_equal(unpacked(found, 70), expected)


@given(factorisations(), ALGEBRAS, WORKERS)
def test_exact_coding_after_greedy_coding_codes_all_rows(problem, algebra, workers):
    """After greedy coding no row is stale, but that holds for the greedy coder only."""
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    code(block, coding_rule("greedy", algebra))
    greedy = naive.code(X, atoms, codes, "greedy", algebra)
    change = code_exactly(block, coding_rule("exact", algebra))
    assert_step(block, change, X, (atoms, greedy), (atoms, naive.exact_code(X, atoms, greedy, algebra)), algebra)


def test_exact_coding_finds_what_greedy_coding_does_not():
    x, atoms = np.array([[1, 1, 1, 0, 0, 0]], np.uint8), np.array([[1, 1, 0, 1, 1, 0], [0, 0, 1, 1, 1, 0]], np.uint8)
    block = block_of(x, atoms, np.zeros((1, 2), np.uint8), "xor")
    assert not code(block, coding_rule("greedy", "xor"))
    assert code_exactly(block, coding_rule("exact", "xor")).codes == 2
    assert not block.wrong().any()


@pytest.mark.parametrize("seed", range(4))
def test_under_or_subsets_find_codes_that_greedy_coding_misses(seed):
    """A row is the union of three atoms; greedy coding first takes and keeps a fourth, which shares more with it."""
    random = np.random.default_rng(seed)
    parts = np.zeros((3, 65), np.uint8)
    for part, bits in zip(parts, np.split(random.permutation(65)[:36], 3), strict=True):
        part[bits] = 1
    row = parts.any(axis=0)
    decoy = np.zeros(65, np.uint8)
    decoy[np.concatenate([np.flatnonzero(row)[:24], np.flatnonzero(~row)[:6]])] = 1
    atoms, data = np.vstack([decoy, parts]), np.vstack([row, np.zeros((2, 65), bool)]).astype(np.uint8)
    block = Block(BitMatrix.from_dense(data), BitMatrix.from_dense(atoms), None, True, Workers())
    CODERS["beam"](block, coding_rule("beam", "or", prices=unit_prices(65, 4)))
    codes = block.codes().to_dense()
    assert codes.tolist() == [[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert (naive.product(codes, atoms, "or") == data).all()
    assert not block.wrong().any()


def test_coding_from_subsets_does_not_depend_on_the_chunk_size():
    data, atoms = BitMatrix.from_dense(random_bits(0, 150, 65, 0.5)), BitMatrix.from_dense(random_bits(1, 20, 65, 0.1))
    found = []
    rule = coding_rule("beam", "or", prices=unit_prices(65, 20))
    for chunk_rows in (1, 7, 8192):
        block = Block(data, atoms, None, True, Workers())
        assert code_from_subsets(block, rule, chunk_rows)
        found.append(block.codes())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("max_atoms", [0, 1, 2, 3, 20])
def test_codes_of_all_subsets_are_kept_up_to_the_limit(max_atoms):
    target, atoms = random_bits(0, 150, 65, 0.5), random_bits(1, 20, 65, 0.06)
    within = np.array([[not (atom & ~row & 1).any() for atom in atoms] for row in target])
    assert set(within.sum(axis=1)) >= {0, 1, 2, 3, 4}
    within[within.sum(axis=1) > max_atoms] = False
    block = block_of(target, atoms, np.zeros((150, 20), np.uint8), "or")
    codes = block.kernels.subset_codes(packed(target), packed(atoms), max_atoms)
    np.testing.assert_array_equal(unpacked(codes, 20), within)
