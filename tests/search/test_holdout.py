"""Rows held out of a search: the split."""

import numpy as np
import pytest

from bitatoms.search.holdout import split_rows


@pytest.mark.parametrize(("n_rows", "n_held_out"), [(2, 1), (9, 1), (17, 1), (18, 2), (900, 100)])
def test_one_of_nine_rows_is_held_out(n_rows, n_held_out):
    drawn = np.random.default_rng(0).permutation(n_rows)
    searched, held_out = split_rows(drawn)
    np.testing.assert_array_equal(held_out, np.sort(drawn[:n_held_out]))
    np.testing.assert_array_equal(searched, np.sort(drawn[n_held_out:]))
