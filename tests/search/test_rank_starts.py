"""Starting atoms of the search for a fixed number of atoms: distinct rows or columns, and concepts."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix
from bitatoms.search.plan import NmfBudget
from bitatoms.search.starts.rank import atoms_without_errors, concepts, start_atoms
from support.blocks import bits_of, unpacked
from support.contexts import search_context
from support.parameters import resolved
from support.strategies import UNKNOWN, matrices, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


def n_distinct(rows):
    """Return the number of distinct rows that are not all zeros."""
    return len({row.tobytes() for row in rows if row.any()})


@pytest.mark.parametrize(("algebra", "work", "n_others"), [("or", 57_600, 3), ("or", 57_599, 2), ("xor", 57_600, 2)])
def test_centres_of_groups_of_rows_are_the_last_start_of_a_table_too_wide_for_nmf(algebra, work, n_others):
    """After grown atoms, concepts if their work, 18 * 40 * 40 * 2 here, is allowed, and columns."""
    centres, params = random_bits(0, 2, 40, 0.5), resolved(2, algebra=algebra)
    budget = replace(params.plan.fixed_rank, nmf=NmfBudget(operations=0), max_concept_work=work)
    X, plan = np.repeat(centres, 9, axis=0) | np.eye(18, 40, dtype=np.uint8), replace(params.plan, fixed_rank=budget)
    *others, last = start_atoms(search_context(X, params.objective(algebra), plan))
    assert len(others) == n_others
    assert sorted(last.to_dense().tolist()) == sorted(centres.tolist())


@settings(max_examples=60)
@given(matrices(), st.integers(0, 30), st.integers(1, 30))
def test_distinct_rows_or_columns_are_found_if_they_are_few_enough(X, n_atoms, max_uses):
    n_rows, n_columns = n_distinct(X), n_distinct(np.ascontiguousarray(X.T))
    wanted = min(n_rows, n_columns) if n_columns <= max_uses else n_rows
    found = atoms_without_errors(BitMatrix.from_dense(X), n_atoms, max_uses)
    assert (found is None) == (wanted > n_atoms)
    if found is not None:
        atoms = found.to_dense()
        codes = np.array([[not (atom & ~row & 1).any() for atom in atoms] for row in X], np.uint8).reshape(
            len(X), wanted
        )
        assert found.n_rows == wanted
        assert not naive.errors(X, atoms, codes, "or").any()


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
