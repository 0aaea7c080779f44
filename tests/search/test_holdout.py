"""Rows held out of a search: the split, the cost that they estimate, and the atoms that they justify."""

import math

import numpy as np
import pytest

import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.objective import Objective
from bitatoms.parallel import Workers
from bitatoms.search.holdout import HoldOut, split_rows
from support.blocks import block_of
from support.results import every_algebra
from support.strategies import random_bits


@pytest.mark.parametrize(("n_rows", "n_held_out"), [(2, 1), (9, 1), (17, 1), (18, 2), (900, 100)])
def test_one_of_nine_rows_is_held_out(n_rows, n_held_out):
    drawn = np.random.default_rng(0).permutation(n_rows)
    searched, held_out = split_rows(drawn)
    np.testing.assert_array_equal(held_out, np.sort(drawn[:n_held_out]))
    np.testing.assert_array_equal(searched, np.sort(drawn[n_held_out:]))


@every_algebra
def test_the_cost_is_that_of_all_rows_at_the_frequencies_of_the_block(algebra):
    """In the block, all rows use atoms as the held-out rows do, but some of their bits are wrong."""
    atoms = np.zeros((3, 65), np.uint8)
    atoms[0, :20], atoms[1, 20:45], atoms[2, 45:60] = 1, 1, 1
    codes, unseen = random_bits(0, 400, 3, 0.4), random_bits(1, 50, 3, 0.4)
    X, rows = codes @ atoms, unseen @ atoms
    X[:30, 3] ^= 1
    rows[:2, 64] ^= 1
    block = block_of(X, atoms, codes, algebra)
    cost = HoldOut(BitMatrix.from_dense(rows), 10_000, Workers()).cost(block, Objective(True, algebra, share=0.04))

    def bits(ones, ones_of_block):
        share = (ones_of_block + 0.5) / 401
        return -(ones * math.log2(share) + (50 - ones) * math.log2(1 - share))

    wrong, wrong_in_block = (rows ^ unseen @ atoms).sum(axis=0), (X ^ codes @ atoms).sum(axis=0)
    of_rows = sum(map(bits, wrong, wrong_in_block)) + sum(map(bits, unseen.sum(axis=0), codes.sum(axis=0)))
    of_atoms = sum(naive.string_bits(65, int(ones)) + math.ceil(math.log2(10_000)) for ones in atoms.sum(axis=1))
    assert cost == round(10_000 / 50 * of_rows) + of_atoms


@every_algebra
def test_held_out_rows_justify_an_atom_that_saves_more_than_their_share_of_its_cost(algebra):
    atoms = np.zeros((2, 64), np.uint8)
    atoms[0, :3], atoms[1, 32:] = 1, 1
    codes = np.zeros((1000, 2), np.uint8)
    codes[:5] = 1
    block, objective = block_of(codes @ atoms, atoms, codes, algebra), Objective(True, algebra)
    rows = np.zeros((200, 64), np.uint8)
    rows[0] = atoms[0]  # saves 24 bits; the atom takes 22 bits, and its use 8 to state how many there are and 8 more
    for n_all, expected in ((200, False), (100_000, True)):
        saves = HoldOut(BitMatrix.from_dense(rows), n_all, Workers()).saves(block, objective)
        assert saves.tolist() == [expected, False]
