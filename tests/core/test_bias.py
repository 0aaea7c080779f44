"""The bias takes the columns that are wrong in more than half of the rows: counts against a pass with that bias."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from bitatoms.bits import BitMatrix
from bitatoms.core.bias import flip_bias, flip_counts, mostly_wrong, settle_bias, settle_counts
from bitatoms.core.block import Block
from bitatoms.core.objective import Objective
from bitatoms.core.row_pass import count
from bitatoms.online.decayed_counts import DecayedCounts
from bitatoms.parallel import Workers
from support.blocks import ALGEBRAS, bits_of
from support.sources import assert_same_counts
from support.strategies import SEEDS, priced_factorisations, random_bits

NOT_OF_CODES = dict.fromkeys(("complete", "lacking", "atom_known", "rows_hash"))  # counts that no code changes


def block_of(problem, algebra, bias):
    """Return a block with this bias."""
    X, atoms, codes, _ = problem
    factors = map(bits_of, (X, atoms, codes))
    return Block(*factors, algebra == "or", Workers(), bias)


@given(priced_factorisations(), ALGEBRAS, SEEDS)
def test_counts_with_a_flipped_bias_are_those_of_the_same_codes_with_that_bias(problem, algebra, seed):
    bias, flips = (random_bits(seed + i, 1, problem[0].shape[1], 0.5) for i in range(2))
    blocks = [block_of(problem, algebra, BitMatrix.from_dense(each)) for each in (bias, bias ^ flips)]
    counts, expected = (replace(count(block, block.data()), **NOT_OF_CODES) for block in blocks)
    assert flip_bias(blocks[0].bias, flips[0] == 1) == blocks[1].bias
    assert_same_counts(flip_counts(counts, flips[0] == 1), expected)
    assert_same_counts(flip_counts(DecayedCounts.of(counts), flips[0] == 1).rounded(), expected)


@given(priced_factorisations(), ALGEBRAS, SEEDS)
def test_a_settled_bias_leaves_no_column_wrong_in_more_than_half_of_the_rows(problem, algebra, seed):
    n_cols = problem[0].shape[1]
    block = block_of(problem, algebra, BitMatrix.from_dense(random_bits(seed, 1, n_cols, 0.3)))
    settled, wrong = settle_bias(block.n_known, block.wrong(), block.bias)
    with_settled = block_of(problem, algebra, settled)
    np.testing.assert_array_equal(with_settled.wrong(), wrong)
    assert not mostly_wrong(block.n_known, wrong).any()
    counts = replace(count(block, block.data()), **NOT_OF_CODES)
    assert settle_counts(block.bias, counts, False) == (block.bias, counts)
    bias, counts = settle_counts(block.bias, counts, True)
    assert bias == settled
    assert_same_counts(counts, replace(count(with_settled, with_settled.data()), **NOT_OF_CODES))
    objective = Objective(True, algebra)
    assert objective.cost(block) == objective.cost(with_settled) == with_settled.codelength(wrong).total
    assert block.codelength(wrong, settled) == with_settled.codelength(wrong)


@pytest.mark.parametrize(("wrong", "expected"), [([2, 0], [0, 0]), ([3, 4], [1, 1])])
def test_half_of_the_rows_is_not_most_of_them(wrong, expected):
    bias, _ = settle_bias(4, np.array(wrong), BitMatrix.zeros(1, 2))
    assert bias.to_dense()[0].tolist() == expected
