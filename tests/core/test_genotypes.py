import numpy as np
from hypothesis import given

import naive
from bitatoms.bits import BitMatrix
from bitatoms.core.genotypes import nearest_genotypes
from support.strategies import SEEDS, matrices


@given(matrices(), SEEDS)
def test_nearest_genotypes_change_the_bit_that_is_wrong_more_often(X, seed):
    pairs = np.arange(X.shape[1] // 2 * 2, dtype=np.intp).reshape(-1, 2)
    wrong = np.random.default_rng(seed).integers(0, 3, X.shape[1])
    expected, n_changed = naive.nearest_genotypes(X, pairs, wrong)
    made, n = nearest_genotypes(BitMatrix.from_dense(X), pairs, wrong)
    assert n == n_changed
    np.testing.assert_array_equal(made.to_dense(), expected)
