"""Coding at prices, from the codes there are and from nothing, bit for bit against the oracles."""

import numpy as np
import pytest

import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.block import Block
from bitatoms.core.coding import CODERS, code, coding_rule, pursue
from bitatoms.core.objective import unit_prices
from bitatoms.parallel import Workers
from support.blocks import block_of, factors, priced_rule
from support.strategies import random_bits


@pytest.mark.parametrize("algebra", ["xor", "or"])
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


def test_pursuit_goes_by_the_gains_at_the_beginning():
    """After the first atom, the third would fix two errors; but the second was ahead of it, and no longer gains."""
    x = np.array([[1, 1, 1, 1, 1, 0, 0, 1, 1]], np.uint8)
    atoms = np.array([[1, 1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1]], np.uint8)
    block = block_of(x, atoms, np.zeros((1, 3), np.uint8), "xor")
    pursue(block, coding_rule("bmp", "xor"))
    assert factors(block)[1].tolist() == [[1, 0, 0]]
    code(block, coding_rule("bmp", "xor"))
    assert factors(block)[1].tolist() == [[1, 0, 1]]


@pytest.mark.parametrize("seed", range(2))
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
