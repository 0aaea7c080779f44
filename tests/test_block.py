"""Every operation on rows in memory, bit for bit against the oracles, whatever the blocks and threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.algorithms.atoms import fit_each, update_each
from bitatoms.algorithms.block import Block, Change
from bitatoms.algorithms.coding import code, coding_rule
from bitatoms.algorithms.exact import code_exactly, update_exactly
from bitatoms.bits import BitMatrix
from bitatoms.parallel import Workers
from strategies import factorisations, random_bits

ALGEBRAS = st.sampled_from(("xor", "or"))
WORKERS = st.sampled_from((Workers(), Workers(1, 64), Workers(2, 64), Workers(3)))
LIMITS = st.sampled_from((None, 1, 2, 3))


def block_of(X, atoms, codes, algebra, workers=Workers()):  # noqa: B008 - frozen
    packed = [BitMatrix.from_dense(table) for table in (X, atoms, codes)]
    return Block(*packed, algebra == "or", workers)


def within(codes, limit):
    """Codes with no more atoms a row than the limit."""
    return codes if limit is None else codes * (np.cumsum(codes, axis=1) <= limit).astype(np.uint8)


def factors(block):
    atoms, codes = block.factors()
    return atoms.to_dense(), codes.to_dense()


def assert_consistent(block, X, algebra):
    """Errors, transposed codes and cover masks are what the atoms and codes say."""
    atoms, codes = factors(block)
    errors = BitMatrix.trusted(block.rows.errors.copy(), block.n_features).to_dense()
    np.testing.assert_array_equal(errors, naive.errors(X, atoms, codes, algebra))
    users = BitMatrix.trusted(block.rows.users.copy(), block.n_rows).to_dense()
    np.testing.assert_array_equal(users, codes.T)
    if algebra == "or":
        cover = codes.astype(int) @ atoms
        for mask, least in ((block.rows.covered, 1), (block.rows.twice, 2)):
            bits = BitMatrix.trusted(mask.copy(), block.n_features).to_dense()
            np.testing.assert_array_equal(bits, cover >= least)


def assert_change(change, before, after):
    """A step counts what it changed in codes and atoms."""
    assert (change.codes > 0) == (before[1] != after[1]).any()
    assert change.atoms == (before[0] != after[0]).sum()


@given(factorisations(), ALGEBRAS, WORKERS)
def test_a_block_starts_consistent_and_counts_right(problem, algebra, workers):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra, workers)
    assert_consistent(block, X, algebra)
    wrong = naive.errors(X, atoms, codes, algebra)
    np.testing.assert_array_equal(block.wrong(), wrong.sum(axis=0))
    np.testing.assert_array_equal(block.uses(), codes.sum(axis=0))
    length = block.codelength(block.wrong())
    assert (length.errors, length.codes, length.atoms) == naive.codelength(X, atoms, codes, algebra)


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
    X, atoms = random_bits(0, 12, 300, 0.3), random_bits(1, n_atoms, 300, 0.2)
    X |= naive.product(random_bits(2, 12, n_atoms, 3 / n_atoms), atoms, algebra)
    codes = random_bits(3, 12, n_atoms, 1 / n_atoms)
    block = block_of(X, atoms, codes, algebra)
    code(block, coding_rule(coder, algebra))
    np.testing.assert_array_equal(factors(block)[1], naive.code(X, atoms, codes, coder, algebra))


def test_coding_of_heavy_atoms_counts_past_a_byte():
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
def test_skipping_what_cannot_change_changes_nothing(problem, algebra, coder, update, max_atoms):
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
def test_an_atom_is_rated_by_the_wrong_bits_it_would_take_away(problem, algebra, workers, seed):
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
    assert block.rate(BitMatrix.from_dense(offered).words.copy()).tolist() == expected


@given(factorisations(), ALGEBRAS)
def test_an_appended_atom_is_unused_and_the_rest_stays(problem, algebra):
    X, atoms, codes = problem
    block = block_of(X, atoms, codes, algebra)
    new = random_bits(5, 1, X.shape[1], 0.5)
    block.append(BitMatrix.from_dense(new).words)
    found_atoms, found_codes = factors(block)
    np.testing.assert_array_equal(found_atoms, np.vstack([atoms, new]))
    np.testing.assert_array_equal(found_codes, np.hstack([codes, np.zeros((len(X), 1), np.uint8)]))
    assert_consistent(block, X, algebra)
    code(block, coding_rule("greedy", algebra))
    np.testing.assert_array_equal(factors(block)[1], naive.code(X, found_atoms, found_codes, "greedy", algebra))


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
