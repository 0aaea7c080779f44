"""Concepts as starting atoms: equal to the naive algorithm, also with unknown cells."""

from itertools import islice

import numpy as np
import pytest

import naive
from bitatoms.search.concept_start import concepts
from support.blocks import bits_of, unpacked
from support.strategies import UNKNOWN, random_bits


@pytest.mark.parametrize("seed", range(4))
def test_unknown_cells_may_lie_within_a_concept_and_need_not_be_covered(seed):
    X = random_bits(seed, 12, 9, 0.5)
    X[random_bits(seed + 9, 12, 9, 0.2) == 1] = UNKNOWN
    wanted = naive.concepts(X, 4)
    found = [
        (concept.rows.tolist(), np.flatnonzero(unpacked(concept.columns[np.newaxis], 9)[0]).tolist())
        for concept in islice(concepts(bits_of(X)), 4)
    ]
    assert found == wanted
    assert any((X[np.ix_(*map(list, concept))] == UNKNOWN).any() for concept in wanted)


def test_a_table_without_ones_has_no_concepts():
    assert list(concepts(bits_of(np.full((3, 4), UNKNOWN, np.uint8)))) == []
