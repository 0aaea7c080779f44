"""Concepts as starting atoms: equal to the naive algorithm, also with unknown cells."""

from itertools import islice

import numpy as np
import pytest

import naive
from bitatoms.search.concept_start import concepts
from support.blocks import bits_of, unpacked
from support.strategies import UNKNOWN, random_bits


def first_concepts(X, n_concepts):
    """Return the rows and the columns of the first concepts."""
    found = islice(concepts(bits_of(X)), n_concepts)
    return [
        (rows.tolist(), np.flatnonzero(unpacked(columns[np.newaxis], X.shape[1])).tolist()) for rows, columns in found
    ]


@pytest.mark.parametrize("seed", range(4))
def test_unknown_cells_may_lie_within_a_concept_and_need_not_be_covered(seed):
    X = random_bits(seed, 12, 9, 0.5)
    X[random_bits(seed + 9, 12, 9, 0.2) == 1] = UNKNOWN
    wanted = naive.concepts(X, 4)
    assert first_concepts(X, 4) == wanted
    assert any((X[np.ix_(*map(list, concept))] == UNKNOWN).any() for concept in wanted)


def test_a_concept_may_be_one_cell():
    assert first_concepts(np.eye(3, dtype=np.uint8), 9) == [([k], [k]) for k in range(3)]


def test_a_table_without_ones_has_no_concepts():
    assert first_concepts(np.full((3, 4), UNKNOWN, np.uint8), 9) == []
