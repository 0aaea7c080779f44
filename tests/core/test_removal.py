"""Atoms removed from the codes of a block: their users do without them, and trials leave no trace."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

import naive
from bitatoms.core.removal import AtomRemoval
from bitatoms.parallel import Workers
from support.blocks import ALGEBRAS, WORKERS, assert_consistent, block_of, factors, priced_rule
from support.strategies import SEEDS, factorisations, priced_factorisations


@settings(max_examples=30)
@given(priced_factorisations(), ALGEBRAS, WORKERS)
def test_changes_are_those_of_a_removal_and_leave_the_block_as_it_is(problem, algebra, workers):
    X, atoms, codes, prices = problem
    assume(len(atoms))
    block = block_of(X, atoms, codes, algebra, workers)
    removal = AtomRemoval(block, priced_rule(algebra, prices))
    wrong, uses = block.wrong(), block.uses()
    all_atoms = np.arange(len(atoms))
    more_wrong, _, more_uses = removal.changes(all_atoms, removal.users_of(all_atoms))
    assert_consistent(block, X, algebra)
    np.testing.assert_array_equal(factors(block)[1], codes)
    for k in all_atoms:
        block = block_of(X, atoms, codes, algebra, workers)
        AtomRemoval(block, priced_rule(algebra, prices)).remove(k)
        recoded = factors(block)[1]
        assert_consistent(block, X, algebra)
        assert not recoded[:, k].any()
        np.testing.assert_array_equal(recoded[codes[:, k] == 0], codes[codes[:, k] == 0])
        np.testing.assert_array_equal(more_wrong[k], block.wrong() - wrong)
        np.testing.assert_array_equal(more_uses[k], block.uses() - uses)


@settings(max_examples=20)
@given(priced_factorisations(), ALGEBRAS, WORKERS)
def test_changes_of_parts_of_the_users_add_up(problem, algebra, workers):
    X, atoms, codes, prices = problem
    assume(len(atoms))
    removal = AtomRemoval(block_of(X, atoms, codes, algebra, workers), priced_rule(algebra, prices))
    all_atoms = np.arange(len(atoms))
    users = removal.users_of(all_atoms)
    parts = [removal.changes(all_atoms, [rows[part] for rows in users]) for part in (slice(2), slice(2, None))]
    for whole, first, rest in zip(removal.changes(all_atoms, users), *parts, strict=True):
        np.testing.assert_array_equal(whole, first + rest)


@pytest.mark.parametrize("n_users", [0, 1, 2, 3, 16, 17, 64, 1000])
def test_users_are_each_listed_once_the_first_ones_from_all_parts(n_users):
    X = np.ones((1000, 3), np.uint8)
    codes = (np.arange(1000) < n_users).astype(np.uint8)[:, np.newaxis]
    block = block_of(X, np.ones((1, 3), np.uint8), codes, "xor")
    removal = AtomRemoval(block, priced_rule("xor", (np.ones(3, int), np.ones(1, int))))
    (users,) = removal.users_of(np.array([0]))
    np.testing.assert_array_equal(np.sort(users), np.arange(n_users))
    if n_users >= 64:
        first = np.sort(users[:16])
        assert np.diff(first, prepend=0, append=n_users).max() <= n_users / 4


@given(factorisations(), SEEDS)
def test_users_of_several_atoms_are_those_of_each(problem, seed):
    X, atoms, codes = problem
    removal = AtomRemoval(
        block_of(X, atoms, codes, "xor"), priced_rule("xor", (np.ones(X.shape[1], int), np.ones(len(atoms), int)))
    )
    some = np.random.default_rng(seed).permutation(len(atoms))[: len(atoms) // 2 + 1]
    for k, users in zip(some, removal.users_of(some), strict=True):
        np.testing.assert_array_equal(users, removal.users_of(np.array([k]))[0])
        np.testing.assert_array_equal(np.sort(users), np.flatnonzero(codes[:, k]))


@pytest.mark.parametrize("workers", [Workers(), Workers(2, 64)])
def test_rows_cannot_use_a_removed_atom_again_but_one_that_was_only_tried(workers):
    """Rows with both halves use their sum where it is an atom, and the halves where it is not."""
    for algebra in ("xor", "or"):
        halves = np.kron(np.eye(2, dtype=np.uint8), np.ones((1, 20), np.uint8))
        atoms = np.vstack([halves, halves.any(axis=0)]).astype(np.uint8)
        codes = np.repeat([[1, 0, 0], [0, 0, 1]], 70, axis=0).astype(np.uint8)
        X = naive.product(codes, atoms, algebra)
        block = block_of(X, atoms, codes, algebra, workers)
        removal = AtomRemoval(block, priced_rule(algebra, (np.full(40, 10), np.full(3, 5))))
        sums = np.array([2])
        assert removal.changes(np.array([0]), removal.users_of(np.array([0]))).uses.tolist() == [[-70, 0, 0]]
        assert removal.changes(sums, removal.users_of(sums)).uses.tolist() == [[70, 70, -70]]
        removal.remove(0)
        without_sums = removal.changes(sums, removal.users_of(sums)).uses
        assert without_sums.tolist() == [[0, 70, -70]]  # one half is gone
        removal.remove(2)
        assert factors(block)[1].tolist() == np.repeat([[0, 0, 0], [0, 1, 0]], 70, axis=0).tolist()
