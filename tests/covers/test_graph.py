"""The graph of ones that fit into one role: its vertices, reductions and covers by cliques; codes from below; sets."""

import random
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix
from bitatoms.covers.cells import compatible, essential_cells, role_of
from bitatoms.covers.coding import code_from_below
from bitatoms.covers.graph import (
    Graph,
    _filled,
    _grown_cliques,
    components,
    cover_by_cliques,
    independent_vertices,
    reduce_graph,
)
from bitatoms.covers.masks import Weights, full, indices, masks_of_rows, rows_of_masks, transposed
from bitatoms.covers.problem import Problem
from support.strategies import SEEDS, matrices, random_bits

small = matrices(st.integers(1, 9), st.sampled_from((1, 5, 9, 64, 65)))


def never():
    return False


class Stop:
    """Asks to stop once it was asked some times, and counts how often it was asked after that."""

    def __init__(self, n_asked):
        self.n_left, self.n_late = n_asked, 0

    def __call__(self):
        if self.n_left:
            self.n_left -= 1
            return False
        self.n_late += 1
        return True


def random_graph(seed, n, density):
    bits = random_bits(seed, n, n, density).astype(bool)
    return Graph(masks_of_rows(np.triu(bits, 1) | np.triu(bits, 1).T | np.eye(n, dtype=bool)))


def is_clique(graph, mask):
    return all(graph.near[one] >> other & 1 for one, other in combinations(indices(mask), 2))


def fewest_cliques(graph):
    """Return the fewest cliques that cover a small graph: vertices are numbered cliques, in all ways."""
    n = len(graph)
    return min(
        (
            max(labels) + 1
            for labels in product(range(n), repeat=n)
            if all(graph.near[i] >> j & 1 for i, j in combinations(range(n), 2) if labels[i] == labels[j])
            and all(label <= max((0, *(labels[:i]))) + 1 for i, label in enumerate(labels))
        ),
        default=0,
    )


@given(X=small, seed=SEEDS)
def test_essential_cells_are_those_that_no_other_one_implies_and_roles_of_their_cliques_cover_all_ones(X, seed):
    problem = Problem.from_bits(BitMatrix.from_dense(X))
    rows = rows_of_masks(problem.rows, len(problem.columns))
    ones = list(zip(*np.nonzero(rows), strict=True))

    def implies(one, other):
        (row, column), (wider_row, wider_column) = one, other
        within = not (rows[row] & ~rows[wider_row]).any()
        return one != other and within and not (rows[:, column] & ~rows[:, wider_column]).any()

    cells = essential_cells(problem, never)
    found = list(zip(cells.rows.tolist(), cells.columns.tolist(), strict=True))
    assert found == [cell for cell in ones if not any(implies(other, cell) for other in ones)]
    graph = compatible(problem, cells)
    for (i, one), (j, other) in product(enumerate(found), repeat=2):
        assert bool(graph.near[i] >> j & 1) == naive.fit_into_one_role(rows, one, other)
    cliques = cover_by_cliques(graph, random.Random(seed), 50, never).cliques
    roles = [role_of(problem, cells, clique) for clique in cliques]
    covered = naive.product(problem.codes(roles).to_dense(), problem.atoms(roles).to_dense(), "or")
    assert (covered == X).all()


@given(seed=SEEDS, n=st.integers(1, 5), density=st.sampled_from((0.1, 0.4, 0.7, 1.0)))
def test_small_graphs_are_covered_by_the_fewest_cliques(seed, n, density):
    graph = random_graph(seed, n, density)
    found = cover_by_cliques(graph, random.Random(seed), 200, never)
    assert len(found.cliques) == fewest_cliques(graph)


@given(
    seed=SEEDS, n=st.sampled_from((6, 30, 70)), density=st.sampled_from((0.1, 0.5, 0.8)),
    n_asked=st.sampled_from((0, 1, 5, 20, 60, 10**9)),
)  # fmt: skip
def test_cliques_cover_each_vertex_and_independent_vertices_are_not_adjacent(seed, n, density, n_asked):
    """Also if the search is stopped."""
    graph, stop = random_graph(seed, n, density), Stop(n_asked)
    found = cover_by_cliques(graph, random.Random(seed), 100, stop)
    assert {vertex for clique in found.cliques for vertex in indices(clique)} == set(range(n))
    assert all(is_clique(graph, clique) for clique in found.cliques)
    assert not any(graph.near[i] >> j & 1 for i, j in combinations(indices(found.independent), 2))
    assert found.independent.bit_count() <= len(found.cliques)
    assert stop.n_late < 5 * n  # a few times for each component


def test_steps_ask_whether_to_stop():
    problem = Problem.from_bits(BitMatrix.from_dense(random_bits(0, 40, 30, 0.1)))
    stop = Stop(20)
    assert len(essential_cells(problem, stop).rows) == 0
    assert stop.n_late <= 2
    assert len(essential_cells(problem, Stop(50)).rows) < len(essential_cells(problem, never).rows)
    graph = random_graph(0, 40, 0.1)
    assert _filled(graph, 0, full(40), Stop(3)).bit_count() == 3
    # No exchange of vertices, which would draw random ones, after a stop or with as many vertices as there can be.
    assert independent_vertices(graph, full(40), 40, None, 10, Stop(3)).bit_count() == 3
    filled = _filled(graph, 0, full(40), never)
    assert independent_vertices(graph, full(40), filled.bit_count(), None, 10, never) == filled
    assert len(_grown_cliques(graph, full(40), 0, random.Random(0), Stop(0))) == 40


def test_a_search_for_fewer_cliques_improves_on_growing_them():
    """Six planted cliques of five vertices, with other edges at random."""
    from bitatoms.covers.graph import _with_fewer

    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(6), 5))
    near = (group[:, None] == group) | np.triu(rng.random((30, 30)) < 0.2) | np.triu(rng.random((30, 30)) < 0.2).T
    near |= near.T
    graph = Graph(masks_of_rows(near))
    cliques = [1 << vertex for vertex in range(30)]
    while (fewer := _with_fewer(graph, cliques, random.Random(0), 500, never)) is not None:
        cliques = fewer
    assert len(cliques) <= 6
    assert all(is_clique(graph, clique) for clique in cliques)


@given(seed=SEEDS)
def test_reductions_keep_the_fewest_cliques(seed):
    graph = random_graph(seed, 5, 0.5)
    kept, removed = reduce_graph(graph, never)
    assert sorted([*indices(kept), *(vertex for vertex, _ in removed)]) == list(range(5))
    names = list(indices(kept))
    rest = Graph(tuple(sum(1 << i for i, name in enumerate(names) if graph.near[v] >> name & 1) for v in names))
    assert fewest_cliques(rest) == fewest_cliques(graph)
    assert sum(components(graph, kept)) == kept


@given(weights=st.lists(st.integers(0, 1000), max_size=70), seed=SEEDS)
def test_the_weight_of_a_set_is_that_of_its_elements(weights, seed):
    mask = random.Random(seed).getrandbits(len(weights)) if weights else 0
    assert Weights(weights).of(mask) == sum(weights[index] for index in indices(mask))


# --- codes from below: only atoms within a row, as few as cover the most


@given(seed=SEEDS, m=st.sampled_from((1, 7, 64, 65)), p=st.integers(0, 9), density=st.sampled_from((0.1, 0.4, 0.8)))
def test_rows_use_the_fewest_atoms_within_them(seed, m, p, density):
    atoms = random_bits(seed, p, m, density / 2)
    X = naive.product(random_bits(seed + 1, 9, p, 0.5), atoms, "or") | random_bits(seed + 2, 9, m, 0.1)
    X[0] = 1  # atoms that overlap: those that have most of what is left are often more than the fewest
    codes = code_from_below(BitMatrix.from_dense(X), BitMatrix.from_dense(atoms)).to_dense()
    covered = naive.product(codes, atoms, "or")
    assert not (covered & ~X & 1).any()
    for x, code, row in zip(X, codes, covered, strict=True):
        assert (row.sum(), code.sum()) == naive.fewest_atoms_from_below(x, atoms)


# --- sets as integers: small ones, and ones that NumPy lists


@pytest.mark.parametrize("n", [0, 1, 40, 41, 63, 64, 65, 300])
def test_indices_and_transposed_sets(n):
    rng = random.Random(n)
    sets = [set(rng.sample(range(300), size)) for size in (n, n // 2, 0)]
    masks = [sum(1 << element for element in each) for each in sets]
    assert [list(indices(mask)) for mask in masks] == [sorted(each) for each in sets]
    having = [sum(1 << number for number, each in enumerate(sets) if element in each) for element in range(300)]
    assert transposed(masks, 300) == having
