"""Sets as integers, against sets of Python: small ones, and ones that NumPy lists."""

import random

import pytest

from bitatoms.covers.masks import indices, transposed


@pytest.mark.parametrize("n", [0, 1, 40, 41, 63, 64, 65, 300])
def test_indices_and_transposed_sets(n):
    rng = random.Random(n)
    sets = [set(rng.sample(range(300), size)) for size in (n, n // 2, 0)]
    masks = [sum(1 << element for element in each) for each in sets]
    assert [list(indices(mask)) for mask in masks] == [sorted(each) for each in sets]
    having = [sum(1 << number for number, each in enumerate(sets) if element in each) for element in range(300)]
    assert transposed(masks, 300) == having
