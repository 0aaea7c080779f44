"""Every operation on a block, bit for bit against the oracles, for any chunks and threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.atoms import fit_each, update_each, update_together
from bitatoms.core.block import Block, Change
from bitatoms.core.coding import code, code_by_beam, code_from_scratch, coding_rule
from bitatoms.core.exact import code_exactly, update_exactly
from bitatoms.kernels.cpu import packing
from bitatoms.parallel import Workers
from support.blocks import (
    ALGEBRAS,
    LIMITS,
    WORKERS,
    assert_consistent,
    assert_step,
    bits_of,
    block_of,
    factors,
    packed,
    priced_rule,
    prices_of,
    unpacked,
    within,
)
from support.strategies import SEEDS, factorisations, planted, priced_factorisations, random_bits, random_prices


@given(factorisations(), ALGEBRAS, WORKERS)
def test_a_block_starts_consistent_and_counts_right(problem, algebra, workers):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    assert_consistent(block, X, algebra)
    np.testing.assert_array_equal(np.broadcast_to(block.n_known, X.shape[1]), naive.known(X).sum(axis=0))
    wrong = naive.errors(X, atoms, codes, algebra)
    np.testing.assert_array_equal(block.wrong(), wrong.sum(axis=0))
    np.testing.assert_array_equal(block.uses(), codes.sum(axis=0))
    length = block.codelength(block.wrong())
    assert (length.errors, length.codes, length.atoms) == naive.codelength(X, atoms, codes, algebra)


def test_counts_belong_to_who_asks_for_them():
    X, codes = random_bits(0, 70, 65, 0.3), random_bits(1, 70, 3, 0.5)
    block = block_of(X, random_bits(2, 3, 65, 0.3), codes, "xor")
    block.wrong()[:], block.uses()[:] = 77, 77
    assert_consistent(block, X, "xor")


def test_kernels_for_the_arrays_of_a_block_are_those_for_bit_matrices():
    data = BitMatrix.from_dense(random_bits(0, 70, 65, 0.3))
    data.row_weights(), data.column_weights(), data.transpose()
    kernels = packing.row_weights, packing.column_weights, packing.transpose
    before = [len(kernel.signatures) for kernel in kernels]
    block = Block(data, data[:3], None, None, Workers())
    block.uses(), block.weights(), block.wrong(), block.users()
    assert [len(kernel.signatures) for kernel in kernels] == before


@given(factorisations(), ALGEBRAS, st.sampled_from(("greedy", "bmp")), WORKERS, LIMITS, st.sampled_from((0, 3)))
def test_coding_matches_the_oracle(problem, algebra, coder, workers, max_atoms, residual_limit):
    X, atoms, codes = problem
    codes = within(codes, max_atoms)
    block = block_of(X, atoms, codes, algebra, workers)
    change = code(block, coding_rule(coder, algebra, max_atoms, residual_limit))
    expected = naive.code(X, atoms, codes, coder, algebra, max_atoms, residual_limit)
    np.testing.assert_array_equal(factors(block)[1], expected)
    assert change.codes == (expected != codes).sum()
    assert change.errors == (naive.errors(X, atoms, expected, algebra) != naive.errors(X, atoms, codes, algebra)).sum()
    assert_consistent(block, X, algebra)


@pytest.mark.parametrize("algebra", ["xor", "or"])
@pytest.mark.parametrize("coder", ["greedy", "bmp"])
@pytest.mark.parametrize("n_atoms", [1, 15, 16, 17, 64, 65, 130, 200])
def test_coding_with_many_atoms_matches_the_oracle(algebra, coder, n_atoms):
    X, atoms = random_bits(0, 6, 300, 0.3), random_bits(1, n_atoms, 300, 0.2)
    X |= naive.product(random_bits(2, 6, n_atoms, 3 / n_atoms), atoms, algebra)
    codes = random_bits(3, 6, n_atoms, 1 / n_atoms)
    block = block_of(X, atoms, codes, algebra)
    code(block, coding_rule(coder, algebra))
    np.testing.assert_array_equal(factors(block)[1], naive.code(X, atoms, codes, coder, algebra))


def test_overlaps_of_heavy_atoms_exceed_a_byte():
    """Atoms and rows that share more than 255 ones, and rows too wide for 16-bit gains."""
    for n_features in (600, 40000):
        X = np.ones((3, n_features), np.uint8)
        X[1, ::7] = 0
        atoms = np.ones((2, n_features), np.uint8)
        atoms[1, ::7] = 0
        block = block_of(X, atoms, np.zeros((3, 2), np.uint8), "xor")
        code(block, coding_rule("greedy", "xor"))
        np.testing.assert_array_equal(factors(block)[1], [[1, 0], [0, 1], [1, 0]])


@given(factorisations(), ALGEBRAS, WORKERS, LIMITS, st.sampled_from((0, 3)))
def test_exact_coding_matches_the_oracle(problem, algebra, workers, max_atoms, residual_limit):
    X, atoms, codes = problem
    codes = within(codes, max_atoms)
    block = block_of(X, atoms, codes, algebra, workers)
    change = code_exactly(block, coding_rule("exact", algebra, max_atoms, residual_limit))
    expected = naive.exact_code(X, atoms, codes, algebra, max_atoms, residual_limit)
    np.testing.assert_array_equal(factors(block)[1], expected)
    assert change.codes == (expected != codes).sum()
    assert_consistent(block, X, algebra)


@given(factorisations(), ALGEBRAS, WORKERS)
def test_mob_matches_the_oracle(problem, algebra, workers):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    change = update_each(block)
    expected = naive.mob_sweep(X, atoms, codes, algebra)
    np.testing.assert_array_equal(factors(block)[0], expected)
    assert change.atoms == (expected != atoms).sum()
    assert_consistent(block, X, algebra)


@given(factorisations(), ALGEBRAS, WORKERS, LIMITS)
def test_k_prox_matches_the_oracle(problem, algebra, workers, max_atoms):
    X, atoms, codes = problem
    codes = within(codes, max_atoms)
    block = block_of(X, atoms, codes, algebra, workers)
    fit_each(block, coding_rule("greedy", algebra, max_atoms))
    expected = naive.kprox_sweep(X, atoms, codes, algebra, max_atoms)
    for found, wanted in zip(factors(block), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert_consistent(block, X, algebra)


@given(factorisations(n_atoms=st.integers(0, 4)), ALGEBRAS, WORKERS)
def test_exact_atoms_match_the_oracle(problem, algebra, workers):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    change = update_exactly(block)
    expected = naive.exact_atoms(X, atoms, codes, algebra)
    np.testing.assert_array_equal(factors(block)[0], expected)
    assert change.atoms == (expected != atoms).sum()
    assert_consistent(block, X, algebra)


@given(factorisations(), ALGEBRAS, st.sampled_from(("greedy", "bmp")), st.sampled_from(("update", "fit")), LIMITS)
def test_skipping_rows_and_atoms_that_are_not_stale_changes_nothing(problem, algebra, coder, update, max_atoms):
    """Alternating on one block, which remembers what is stale, equals oracles that look at everything each time."""
    X, atoms, codes = problem
    codes = within(codes, max_atoms)
    rule = coding_rule(coder, algebra, max_atoms)
    block = block_of(X, atoms, codes, algebra)
    for _ in range(4):
        code(block, rule)
        codes = naive.code(X, atoms, codes, coder, algebra, max_atoms)
        if update == "update":
            update_each(block)
            atoms = naive.mob_sweep(X, atoms, codes, algebra)
        else:
            fit_each(block, rule)
            atoms, codes = naive.kprox_sweep(X, atoms, codes, algebra, max_atoms)
        for found, wanted in zip(factors(block), (atoms, codes), strict=True):
            np.testing.assert_array_equal(found, wanted)


def steps(n_features, n_atoms, algebra):
    """Every step that keeps the number of atoms, by name, with its oracle from factors to factors."""
    prices = random_prices(7, n_features, n_atoms, (3, 4))
    rule, at_prices = coding_rule("greedy", algebra), priced_rule(algebra, prices)

    def exact(X, D, A):
        return D, naive.exact_code(X, D, A, algebra)

    def afresh(X, D, A):
        return D, naive.code_from_scratch(X, D, A, algebra, prices)

    def beam(X, D, A):
        return D, naive.beam_code(X, D, A, prices)

    return {
        "greedy": (lambda block: code(block, rule), lambda X, D, A: (D, naive.code(X, D, A, "greedy", algebra))),
        "mdl": (lambda block: code(block, at_prices), lambda X, D, A: (D, naive.priced_code(X, D, A, algebra, prices))),
        "afresh": (lambda block: code_from_scratch(block, at_prices), afresh),
        "beam": (lambda block: code_by_beam(block, at_prices), beam if algebra == "xor" else afresh),
        "exact": (lambda block: code_exactly(block, rule), exact),
        "mob": (update_each, lambda X, D, A: (naive.mob_sweep(X, D, A, algebra), A)),
        "k-prox": (lambda block: fit_each(block, rule), lambda X, D, A: naive.kprox_sweep(X, D, A, algebra)),
        "together": (update_together, lambda X, D, A: (naive.update_together(X, D, A, algebra), A)),
        "exact atoms": (update_exactly, lambda X, D, A: (naive.exact_atoms(X, D, A, algebra), A)),
    }


NAMES = tuple(steps(1, 1, "xor"))


def take_steps(block, X, now, algebra, names):
    """Take these steps, comparing each with its oracle from the factors ``now``; returns the factors they lead to."""
    kinds = steps(X.shape[1], len(now[0]), algebra)
    for name in names:
        step, oracle = kinds[name]
        step(block)
        now = oracle(X, *now)
        for found, wanted in zip(factors(block), now, strict=True):
            np.testing.assert_array_equal(found, wanted)
        assert_consistent(block, X, algebra)
    return now


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(
    factorisations(st.sampled_from((5, 17, 65)), st.sampled_from((2, 9, 31)), st.integers(2, 4)),
    ALGEBRAS,
    WORKERS,
    st.permutations(("greedy", "mob")),
    st.permutations(("greedy", "mob")),
)
def test_steps_of_all_kinds_can_follow_each_other(name, problem, algebra, workers, first, last):
    """What those that pass over rows and atoms remember of them does not outlive a step of another kind."""
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    take_steps(block, X, (atoms, codes), algebra, (*first, *first, name, *last))


def test_greedy_coding_after_an_exact_update_codes_the_rows_that_changed():
    X, atoms, codes = (np.array(table, np.uint8) for table in ([[1], [0], [1]], [[0], [0]], [[1, 1], [1, 0], [1, 0]]))
    block = block_of(X, atoms, codes, "or")
    code(block, coding_rule("greedy", "or"))
    update_exactly(block)
    assert factors(block)[0].tolist() == [[1], [0]]
    code(block, coding_rule("greedy", "or"))
    assert factors(block)[1].tolist() == [[1, 1], [0, 0], [1, 0]]


@given(factorisations(), ALGEBRAS, WORKERS, st.integers(0, 2**32 - 1))
def test_votes_count_free_and_wrong_bits_of_users(problem, algebra, workers, seed):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    free, wrong = block.votes(0, len(atoms))
    now_wrong = naive.errors(X, atoms, codes, algebra)
    for k in range(len(atoms)):
        _, is_open = naive.wanted_and_open(X, atoms, codes, k, algebra)
        users = codes[:, k] == 1
        np.testing.assert_array_equal(free[k], is_open[users].sum(axis=0))
        np.testing.assert_array_equal(wrong[k], (is_open & now_wrong)[users].sum(axis=0))


@given(factorisations(), ALGEBRAS, WORKERS, st.integers(0, 2**32 - 1))
def test_errors_fixed_by_new_atoms(problem, algebra, workers, seed):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    offered = random_bits(seed, 3, X.shape[1], 0.3)
    expected = []
    for atom in offered:
        larger = np.vstack([atoms, atom])
        off, on = (np.hstack([codes, np.full((len(X), 1), use, np.uint8)]) for use in (0, 1))
        saved = [
            naive.wrong_bits(x, larger, a, algebra) - naive.wrong_bits(x, larger, b, algebra)
            for x, a, b in zip(X, off, on, strict=True)
        ]
        expected.append(sum(max(0, bits) for bits in saved))
    assert block.errors_fixed_by(BitMatrix.from_dense(offered).words.copy()).tolist() == expected


@given(factorisations(), ALGEBRAS, WORKERS, st.sampled_from((1, 2, 15)))
def test_appended_atoms_are_unused_and_the_others_unchanged(problem, algebra, workers, n_new):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    code(block, coding_rule("greedy", algebra))
    codes = naive.code(X, atoms, codes, "greedy", algebra)
    new = random_bits(5, n_new, X.shape[1], 0.5)
    block.append(packed(new))
    atoms, codes = np.vstack([atoms, new]), np.hstack([codes, np.zeros((len(X), n_new), np.uint8)])
    assert_step(block, Change(), X, (atoms, codes), (atoms, codes), algebra)
    change = code(block, coding_rule("greedy", algebra))
    after = atoms, naive.code(X, atoms, codes, "greedy", algebra)
    assert_step(block, change, X, (atoms, codes), after, algebra)


@given(factorisations(), ALGEBRAS, WORKERS, SEEDS, st.sampled_from((0.0, 0.4, 1.0)))
def test_discarding_atoms_leaves_the_product_of_the_others(problem, algebra, workers, seed, share):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    code(block, coding_rule("greedy", algebra))
    codes = naive.code(X, atoms, codes, "greedy", algebra)
    dropped = np.random.default_rng(seed).random(len(atoms)) < share
    block.discard(dropped)
    atoms, codes = atoms[~dropped], codes[:, ~dropped]
    assert_step(block, Change(), X, (atoms, codes), (atoms, codes), algebra)
    change = code(block, coding_rule("greedy", algebra))
    after = atoms, naive.code(X, atoms, codes, "greedy", algebra)
    assert_step(block, change, X, (atoms, codes), after, algebra)


@given(
    factorisations(),
    ALGEBRAS,
    WORKERS,
    SEEDS,
    st.sampled_from((0.0, 0.05, 0.5)),
    st.permutations(("greedy", "mob")),
)
def test_flipping_atoms_updates_the_rows(problem, algebra, workers, seed, density, names):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    atoms, codes = take_steps(block, X, (atoms, codes), algebra, names)
    flips = random_bits(seed, len(atoms), X.shape[1], density)
    flips[::2] = 0  # atoms that stay as they are
    change = block.flip(packed(flips))
    assert change.atoms == 0  # those who ask for flips count them
    change += Change(atoms=int(flips.sum()))
    assert_step(block, change, X, (atoms, codes), (atoms ^ flips, codes), algebra)
    take_steps(block, X, (atoms ^ flips, codes), algebra, names[::-1])


@pytest.mark.parametrize("algebra", ["xor", "or"])
@pytest.mark.parametrize("n_atoms", [15, 16, 17, 63, 64, 65, 130])
def test_many_atoms_are_appended_and_discarded(algebra, n_atoms):
    X, atoms, codes = planted(0, 20, 65, n_atoms, algebra)
    block = block_of(X, atoms, codes, algebra)
    dropped = np.arange(n_atoms) % 3 == 0
    block.discard(dropped)
    block.append(packed(atoms[dropped]))
    now = (
        np.vstack([atoms[~dropped], atoms[dropped]]),
        np.hstack([codes[:, ~dropped], np.zeros_like(codes[:, dropped])]),
    )
    assert_step(block, Change(), X, now, now, algebra)
    change = code(block, coding_rule("greedy", algebra))
    assert_step(block, change, X, now, (now[0], naive.code(X, *now, "greedy", algebra)), algebra)


def test_atoms_can_be_appended_past_a_word():
    X = random_bits(0, 70, 40, 0.3)
    block = block_of(X, np.zeros((0, 40), np.uint8), np.zeros((70, 0), np.uint8), "xor")
    for k in range(130):
        block.append(BitMatrix.from_dense(random_bits(k, 1, 40, 0.3)).words)
    code(block, coding_rule("greedy", "xor"))
    assert_consistent(block, X, "xor")
    atoms, codes = factors(block)
    np.testing.assert_array_equal(codes, naive.code(X, atoms, np.zeros((70, 130), np.uint8), "greedy", "xor"))


def test_changes_add_up():
    assert Change(1, 2, 3) + Change(10, 20, 30) == Change(11, 22, 33)
    assert Change(codes=1)
    assert not Change()


@given(factorisations(n_rows=st.sampled_from((1, 5, 65)), n_atoms=st.sampled_from((0, 3, 63, 64))), ALGEBRAS, SEEDS)
def test_a_row_appended_as_an_atom_is_used_by_that_row_alone(problem, algebra, seed):
    X, atoms, codes = problem
    bias = random_bits(seed, 1, X.shape[1], 0.3)
    tables = (bits_of(table) for table in (X, atoms, codes))
    block = Block(*tables, algebra == "or", Workers(), BitMatrix.from_dense(bias))
    row = seed % len(X)
    block.append_row_as_atom(row)
    codes = np.hstack([codes, np.zeros((len(X), 1), np.uint8)])
    codes[row] = 0
    codes[row, -1] = 1
    np.testing.assert_array_equal(factors(block)[0], np.vstack([atoms, (X[row] ^ bias[0]) * naive.known(X[row])]))
    np.testing.assert_array_equal(factors(block)[1], codes)
    assert not block.errors().words[row].any()
    assert_consistent(block, X ^ bias, algebra)


@given(factorisations(), ALGEBRAS)
def test_a_saved_state_is_restored(problem, algebra):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra)
    state = block.save()
    update_each(block)
    code(block, coding_rule("greedy", algebra))
    block.restore(state)
    np.testing.assert_array_equal(factors(block)[0], atoms)
    np.testing.assert_array_equal(factors(block)[1], codes)
    assert_consistent(block, X, algebra)


@given(factorisations(n_rows=st.sampled_from((1, 5, 65, 130))), ALGEBRAS, WORKERS, SEEDS)
def test_a_sample_has_the_rows_with_their_codes_and_the_bias(problem, algebra, workers, seed):
    X, atoms, codes = problem
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(random.random(len(X)) < 0.5)
    bias = random_bits(seed, 1, X.shape[1], 0.3)
    block = Block(*map(bits_of, (X, atoms, codes)), algebra == "or", workers, BitMatrix.from_dense(bias))
    errors = block.errors()
    sample = block.sample(rows)
    assert sample.bias == block.bias
    assert sample.data() == block.data()[rows]
    assert sample.errors() == errors[rows]
    np.testing.assert_array_equal(np.broadcast_to(sample.n_known, X.shape[1]), naive.known(X[rows]).sum(axis=0))
    np.testing.assert_array_equal(factors(sample)[0], atoms)
    np.testing.assert_array_equal(factors(sample)[1], codes[rows])
    np.testing.assert_array_equal(unpacked(sample.users(), len(rows)), codes[rows].T)
    if algebra == "or":
        own, others = sample.rows_on_host(), block.rows_on_host()
        np.testing.assert_array_equal(own.covered, others.covered[rows])
        np.testing.assert_array_equal(own.twice, others.twice[rows])
    sample.discard(np.ones(len(atoms), bool))  # the block has its own atoms and codes
    np.testing.assert_array_equal(factors(block)[0], atoms)
    assert block.errors() == errors


@given(priced_factorisations(), ALGEBRAS, WORKERS)
def test_targets_and_costs_of_rows_match_the_oracle(problem, algebra, workers):
    X, atoms, codes, prices = problem
    block = block_of(X, atoms, codes, algebra, workers)
    np.testing.assert_array_equal(block.targets(), packed(X == 1))
    assert block.row_costs(prices_of(*prices)).tolist() == naive.costs(X, atoms, codes, algebra, prices)
    assert_consistent(block, X, algebra)
