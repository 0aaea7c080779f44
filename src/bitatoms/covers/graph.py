"""Graphs whose vertices are covered by few cliques: reductions that lose nothing, and a search for what they leave.

Independent vertices, no two of them adjacent, are in different cliques. Their number is a lower bound.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .masks import full, indices, rows_of_masks, union

_DRAWN = 8  # vertices of which the one with the fewest neighbours among the chosen takes their place
_RESTARTS = 10  # other independent vertices from which cliques are grown


@dataclass(frozen=True)
class Graph:
    """A graph: the closed neighbourhood of each vertex, a set with the vertex and those adjacent to it."""

    near: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.near)


class Reduced(NamedTuple):
    """What reductions leave of a graph."""

    kept: int  # vertices
    removed: tuple[tuple[int, int], ...]  # vertices in the order of removal, each with one whose cliques can have it


class CliqueCover(NamedTuple):
    """Cliques that cover all vertices, and vertices no two of which are adjacent."""

    cliques: list[int]
    independent: int


def reduce_graph(graph: Graph, should_stop: Callable[[], bool]) -> Reduced:
    """Remove vertices that every clique with some other vertex can have, until there are none.

    A vertex whose neighbours are all adjacent to each other ends without neighbours: its clique is in a best cover.
    """
    kept = waiting = full(len(graph))
    removed = []
    while waiting and not should_stop():
        vertex = (waiting & -waiting).bit_length() - 1
        waiting ^= 1 << vertex
        around = graph.near[vertex] & kept
        for other in indices(around & ~(1 << vertex)):
            if around & ~graph.near[other] == 0:
                kept &= ~(1 << other)
                around &= ~(1 << other)
                removed.append((other, vertex))
                waiting |= graph.near[other]
        waiting &= kept & ~(1 << vertex)
    return Reduced(kept, tuple(removed))


def components(graph: Graph, kept: int) -> list[int]:
    """Return the connected components of some vertices, the one with the smallest vertex first."""
    found = []
    while kept:
        component = frontier = kept & -kept
        while frontier:
            frontier = union(graph.near[vertex] for vertex in indices(frontier)) & kept & ~component
            component |= frontier
        found.append(component)
        kept &= ~component
    return found


def cover_by_cliques(graph: Graph, rng: random.Random, effort: int, should_stop: Callable[[], bool]) -> CliqueCover:
    """Return few cliques that cover a graph, and many independent vertices; ``effort`` is a number of steps.

    The cover is complete if ``should_stop`` ends the search early: vertices that were not reached are cliques alone.
    """
    kept, removed = reduce_graph(graph, should_stop)
    cliques: list[int] = []
    independent = 0
    for component in components(graph, kept):
        found, chosen = _cover_component(graph, component, rng, effort, should_stop)
        cliques += found
        independent |= chosen
    for vertex, host in reversed(removed):
        index = next(index for index, clique in enumerate(cliques) if clique >> host & 1)
        cliques[index] |= 1 << vertex
    return CliqueCover(cliques, independent)


def _cover_component(
    graph: Graph, component: int, rng: random.Random, effort: int, should_stop: Callable[[], bool]
) -> CliqueCover:
    """Return few cliques that cover connected vertices, and many independent ones."""
    chosen = independent_vertices(graph, component, component.bit_count(), rng, effort, should_stop)
    found = _grown_cliques(graph, component, chosen, rng, should_stop)
    for _ in range(_RESTARTS):
        if len(found) == chosen.bit_count() or should_stop():
            return CliqueCover(found, chosen)
        other = independent_vertices(graph, component, len(found), rng, effort // _RESTARTS, should_stop)
        found = min(found, _grown_cliques(graph, component, other, rng, should_stop), key=len)
        chosen = max(chosen, other, key=int.bit_count)
    while len(found) > chosen.bit_count() and (fewer := _with_fewer(graph, found, rng, effort, should_stop)):
        found = fewer
    return CliqueCover(found, chosen)


def independent_vertices(
    graph: Graph, component: int, upper_bound: int, rng: random.Random, effort: int, should_stop: Callable[[], bool]
) -> int:
    """Return many vertices no two of which are adjacent.

    Those with the fewest neighbours are chosen first. Then a vertex takes the place of its neighbours, and others are
    added where there is room, as long as their number does not fall.
    """
    chosen = _filled(graph, 0, component, should_stop)
    vertices = list(indices(component))
    for _ in range(effort):
        if chosen.bit_count() >= upper_bound or should_stop():
            break
        drawn = [vertex for vertex in rng.choices(vertices, k=_DRAWN) if not chosen >> vertex & 1]
        if not drawn:
            continue
        vertex = min(drawn, key=lambda each: (graph.near[each] & chosen).bit_count())
        rest = chosen & ~graph.near[vertex] | 1 << vertex
        # Only vertices near those that left can have room.
        around = union(graph.near[each] for each in indices(chosen & ~rest))
        changed = _filled(graph, rest, around & component, should_stop)
        if changed.bit_count() >= chosen.bit_count():
            chosen = changed
    return chosen


def _filled(graph: Graph, chosen: int, candidates: int, should_stop: Callable[[], bool]) -> int:
    """Return independent vertices with others of the candidates added, those with the fewest neighbours first."""
    open_ = candidates & ~union(graph.near[vertex] for vertex in indices(chosen))
    while open_ and not should_stop():
        vertex = min(indices(open_), key=lambda each: (graph.near[each] & open_).bit_count())
        chosen |= 1 << vertex
        open_ &= ~graph.near[vertex]
    return chosen


def _grown_cliques(
    graph: Graph, vertices: int, seeds: int, rng: random.Random, should_stop: Callable[[], bool]
) -> list[int]:
    """Return cliques that cover some vertices, grown from independent vertices (DSATUR).

    The vertex that fits into the fewest cliques is next. It goes where the fewest other vertices lose their place, and
    starts a clique if it fits nowhere. Vertices that are left when ``should_stop`` ends this are cliques alone.
    """
    cliques = [1 << seed for seed in indices(seeds)]
    room = [graph.near[seed] for seed in indices(seeds)]  # vertices that fit into each clique
    open_ = vertices & ~seeds
    names = np.array(list(indices(vertices)), np.intp)
    n_fitting = rows_of_masks(room, len(graph))[:, names].sum(axis=0, dtype=np.float64)
    n_fitting[rows_of_masks([seeds], len(graph))[0, names]] = np.inf
    ties = np.array([rng.random() for _ in names])
    while open_ and not should_stop():
        index = int((n_fitting + ties).argmin())
        vertex = int(names[index])
        near, bit = graph.near[vertex], 1 << vertex
        open_ ^= bit
        n_fitting[index] = np.inf
        losses = [
            ((fitting & ~near & open_).bit_count(), number) for number, fitting in enumerate(room) if fitting & bit
        ]
        if losses:
            number = min(losses)[1]
            lost = room[number] & ~near
            cliques[number] |= bit
            room[number] &= near
            n_fitting -= rows_of_masks([lost], len(graph))[0, names]
        else:
            cliques.append(bit)
            room.append(near)
            n_fitting += rows_of_masks([near], len(graph))[0, names]
    return cliques + [1 << vertex for vertex in indices(open_)]


def _with_fewer(
    graph: Graph, cliques: Sequence[int], rng: random.Random, effort: int, should_stop: Callable[[], bool]
) -> list[int] | None:
    """Return one clique less that cover the same vertices, or None: tabu search over partial covers.

    The vertices of a dropped clique are put into others, one at a time; vertices of that clique that are not adjacent
    leave it and wait. The vertex that expels the fewest moves first, and one that left may not return at once.

    I. Bloechliger, N. Zufferey, "A graph coloring heuristic using partial solutions and a reactive tabu scheme",
    Computers & Operations Research 35(3), 2008.
    """
    vertices = np.array(list(indices(union(cliques))), np.intp)
    near = rows_of_masks([graph.near[vertex] for vertex in vertices], len(graph))[:, vertices]
    apart = (~near).astype(np.float32)  # floats are multiplied much faster, and these are small integers
    members = rows_of_masks(cliques, len(graph))[:, vertices]
    dropped = int(members.sum(axis=1).argmin())
    members = np.delete(members, dropped, axis=0)
    waiting = np.logical_not(members.any(axis=0))
    conflicts = apart @ members.T.astype(np.float32)  # vertices x cliques: members that are not adjacent
    tabu_until = np.zeros(conflicts.shape, np.int64)
    fewest = int(waiting.sum())
    for step in range(effort):
        if not len(members) or should_stop():
            return None
        candidates = np.flatnonzero(waiting)
        if not len(candidates):
            return [sum(1 << int(vertex) for vertex in vertices[clique]) for clique in members]
        cost = conflicts[candidates] - 1
        allowed = (tabu_until[candidates] <= step) | (len(candidates) + cost < fewest)
        if not allowed.any():
            continue
        cost = np.where(allowed, cost, np.inf)
        rows, into = np.nonzero(cost == cost.min())
        pick = rng.randrange(len(rows))
        vertex, clique = int(candidates[rows[pick]]), int(into[pick])
        leaving = np.flatnonzero(members[clique] & ~near[vertex])
        members[clique, leaving], waiting[leaving] = False, True
        members[clique, vertex], waiting[vertex] = True, False
        conflicts[:, clique] += apart[vertex] - apart[leaving].sum(axis=0)
        tabu_until[leaving, clique] = step + int(0.6 * len(candidates)) + rng.randrange(10)
        fewest = min(fewest, int(waiting.sum()))
    return None
