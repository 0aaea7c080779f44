"""Initial atoms by linear algebra: they span the planted ones, and any table is searched without an error."""

from dataclasses import replace

import numpy as np
import pytest

import naive
from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.engine.objective import Objective
from bitatoms.parallel import Workers
from bitatoms.search.plan import LinearBudget
from bitatoms.search.rounds import MdlSearch
from bitatoms.search.starts.linear import is_promising, linear_starts
from support.contexts import search_context
from support.results import AWKWARD
from support.strategies import random_bits


def starts(X, seed=0, workers=Workers(), **budget):  # noqa: B008 - frozen
    """Return the atoms of all starts."""
    context = search_context(X, Objective(True, "xor"), workers=workers, seed=seed)
    found = [atoms.to_dense() for atoms in linear_starts(context, replace(LinearBudget(), **budget))]
    for atoms in found:
        assert atoms.shape[1] == X.shape[1]
        assert 0 < len(atoms) <= 0.75 * min(X.shape)
    return found


def table(n_atoms=10, noise=0.05, seed=0, shape=(300, 100), atom_density=0.5):
    return planted(
        *shape, n_atoms, atom_density=atom_density, code_density=0.3, noise=noise, random_state=seed
    )  # fmt: skip


def test_starts_span_the_planted_atoms_for_any_threads_and_chunks():
    data = table()
    found = starts(data.X)
    assert len(found) == 2  # from rows, and from columns
    for one, other in zip(found, starts(data.X, workers=Workers(3, 64)), strict=True):
        np.testing.assert_array_equal(one, other)
    for atoms in found:
        assert naive.is_spanned(data.atoms, atoms).all()
        assert len(atoms) <= 20


@pytest.mark.parametrize("n_atoms", [1, 40, 70])
def test_without_noise_the_start_is_a_basis_of_the_planted_space(n_atoms):
    """One is enough: a basis of columns would have the same products."""
    data = table(n_atoms, noise=0.0)
    (atoms,) = starts(data.X)
    assert naive.rank(atoms) == len(atoms) == naive.rank(data.X)
    assert naive.is_spanned(data.X, atoms).all()


def test_starts_of_a_part_of_the_table_span_the_atoms_of_all_of_it():
    """Rows and columns are drawn; the other columns follow by coding."""
    data = table(6, shape=(400, 200))
    found = starts(data.X, max_rows=250, max_cols=80)
    assert len(found) == 2
    for atoms in found:
        near = [naive.is_spanned(data.atoms[:, part], atoms[:, part]).all() for part in np.split(np.arange(200), 4)]
        assert sum(near) >= 3  # in columns that are not drawn, a bit may be wrong
    exact = table(6, noise=0.0, shape=(400, 200))
    (atoms,) = starts(exact.X, max_rows=250, max_cols=80)
    assert naive.is_spanned(exact.atoms, atoms).all()


def test_a_few_unknown_cells_do_not_matter():
    data = table(6, noise=0.02)
    X = data.X.copy()
    X[random_bits(1, *X.shape, 0.03) == 1] = 2
    for atoms in starts(X):
        assert naive.is_spanned(data.atoms, atoms).all()


def test_more_atoms_than_rows_can_be_coded_with_are_no_start():
    X = table(130, noise=0.0, shape=(200, 200)).X
    assert naive.rank(X) == 130
    assert starts(X) == []
    assert len(starts(table(128, noise=0.0, shape=(200, 200)).X)) == 1


def test_atoms_are_judged_by_what_some_rows_cost_in_the_first_look():
    data, budget = table(10, shape=(600, 100)), LinearBudget()
    context = search_context(data.X, Objective(True, "xor"))
    atoms, others = BitMatrix.from_dense(data.atoms), BitMatrix.from_dense(random_bits(8, 10, 100, 0.5))
    looks = [context.block(atoms[:k], BitMatrix.from_dense(data.codes[:, :k])) for k in (5, 10)]
    few, every = map(MdlSearch(context).state_of, looks)
    assert all(is_promising(context, atoms, look, budget) for look in (None, few, every))
    assert not is_promising(context, others, every, budget)


TABLES = AWKWARD | {
    "noise": random_bits(0, 200, 100, 0.5),
    "few columns": random_bits(2, 100, 3, 0.5),
    "wide noise": random_bits(3, 60, 600, 0.5),
    "mostly unknown": random_bits(4, 100, 60, 0.5) + 2 * random_bits(5, 100, 60, 0.9),
}
WITH_STRUCTURE = {"ones", "equal rows", "equal columns"}


@pytest.mark.parametrize("name", TABLES)
def test_tables_without_structure_have_no_start(name):
    X = TABLES[name]
    found = starts(X)
    assert all(naive.is_spanned(atoms, X).all() for atoms in found)
    assert bool(found) == (name in WITH_STRUCTURE)
    assert name != "ones" or [atoms.tolist() for atoms in found] == [[[1] * 20]]
