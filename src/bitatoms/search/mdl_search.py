"""The search for the shortest codelength: from the best of several starts, rounds until they gain nothing, and more.

Starts are many rows of the table, bases from linear algebra under XOR, and non-negative factorizations under OR. What
follows is in `rounds.py`. A thorough search goes on from what a fast one finds: children of its states are perturbed
and recombined (`loop.py`). An anytime search repeats thorough ones, until the time is out or they gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain, count, product

import numpy as np

from ..bits import BitMatrix
from ..engine.block import Block, Change
from ..engine.coding import code, code_from_scratch, coding_rule
from ..engine.update import update_together
from .context import SearchContext
from .exchange import refill, united
from .finish import finish, shortened
from .loop import Population, evolve, run_epochs
from .monitor import CONVERGED, SearchResult
from .moves.merge import merge
from .moves.sweep import fewest_errors_sweep, sweep
from .rounds import MdlSearch, Step
from .starts.initial import samples, spread
from .starts.linear import is_promising, linear_starts
from .starts.nmf import nmf_starts
from .states import State


def search_mdl(
    context: SearchContext,
    given: tuple[BitMatrix, BitMatrix | None] | None = None,
    first: Callable[[], SearchResult] | None = None,
    coder: str | None = None,
) -> SearchResult:
    """Search for the shortest codelength, from the factors given or from the best of several starts.

    Parameters
    ----------
    context : SearchContext
    given : pair (atoms, codes or None), optional
        The only start.
    first : callable, optional
        Search for a start that takes the place of the first look. If it ends early, this search ends at once.
    coder : str, optional
        The coder of `transform`, with which states are finished; None to leave them as they are.
    """
    plan, search = context.plan, MdlSearch(context)
    first_found = [] if first is None else [first()]  # before anything else, for the first epoch
    search.record(context.block(BitMatrix.zeros(0, context.data.n_cols)), "no model")
    champions = Population(plan.population)

    def start() -> Population:
        """Return the state that a fast search finds and, for a thorough one, those of further starts."""
        found = first_found.pop() if first_found else first and first()
        if given is not None:
            state = search.state_of(from_given(search, *given))
        elif found is not None and found.ended != CONVERGED:
            search.stopping.stop(found.ended)
            state = search.state_of(found.block)
        else:
            state = best_start(search, found and found.block)
        population = Population(plan.population, [finished(state) if plan.children else state])
        if given is None and plan.more_starts and not search.should_stop():
            no_bias = BitMatrix.zeros(1, context.data.n_cols)
            sizes = set(_sizes(search, plan.more_starts)) - set(_sizes(search, plan.starts))
            more = [partial(_spread_start, n_atoms=size, bias=no_bias, max_rounds=None) for size in sorted(sizes)]
            for each in chain(*search.steps(more)):
                population.add(each)
        search.keep(champions)
        return population

    def finished(state: State) -> State:
        """Return a state after the last sweeps, without what costs more than it saves."""
        if coder is None or search.should_stop():
            return state
        block = shortened(context, finish(context, context.block_of(state), coder))
        return min(state, search.state_of(block), key=lambda state: state.cost)

    def evolve_all(population: Population, are_champions: bool) -> None:
        """Perturb the states of a population and recombine them, in turn, until that gains nothing."""
        evolve(
            population,
            partial(children, search, population, count()),
            search.stopping,
            max_failures=plan.children,
            max_children=None if are_champions else plan.children,
        )

    best = run_epochs(champions, start, evolve_all, finished, search.stopping, max_failures=plan.max_failed_epochs)
    return search_end(search, search.go_back(best))


def children(search: MdlSearch, population: Population, numbers: count[int], n_children: int) -> list[State]:
    """Return children of the states of a population: of one that is perturbed, or of two that are recombined."""
    steps: list[Step] = []
    for number in (next(numbers) for _ in range(n_children)):
        if len(population) > 1 and number % 2:
            ((one, other),) = population.pairs(1, search.random)
            steps.append(partial(_recombined, one=one, other=other))
        else:
            states = list(population)
            steps.append(partial(_perturbed, state=states[int(search.random.integers(len(states)))]))
    return [*chain(*search.steps(steps))]


def _perturbed(search: MdlSearch, state: State) -> list[State]:
    """Drop some atoms of a state at random and run rounds from there; return the state after that."""
    block = search.context.block_of(state)
    dropped = search.random.random(block.n_atoms) < search.tuning.perturbed_share
    if dropped.any():
        block.discard(dropped)
    search.record(block, "perturb", sweep(block, search.objective, code_from_scratch))
    return [search.improved(block)]


def _recombined(search: MdlSearch, one: State, other: State) -> list[State]:
    """Unite the atoms of two states, drop those that save nothing, and run rounds from there."""
    block = united(search.context, one, other)
    search.record(block, "recombine", sweep(block, search.objective, code_from_scratch))
    search.drop(block, every=True)
    return [search.improved(block)]


def search_end(search: MdlSearch, block: Block) -> SearchResult:
    """Return the last state of a search, with as many atoms as were asked for."""
    context, objective = search.context, search.objective
    rule = coding_rule("greedy", objective.algebra, objective.max_atoms)
    if context.plan.fewest and refill(context, block, rule):
        search.record(block, "grow", Change())
    if context.holdout is not None:
        context.cost(block)
    return SearchResult(block, search.stopping.ended)


def go_on(context: SearchContext, state: State, max_rounds: int) -> SearchResult:
    """Merge atoms of a state, and run rounds from there."""
    search = MdlSearch(context)
    block = context.block_of(state)
    search.record(block, "start")
    while merge(block, search.objective):
        search.record(block, "merge")
    block = search.run_rounds(block, max_rounds)
    return SearchResult(block, search.stopping.ended)


def best_start(search: MdlSearch, first: Block | None = None) -> State:
    """Run one cycle from each start, also with a bias if that may help; continue the best to the end.

    A search that was killed starts from the states that it had saved.
    """
    resumed = search.take_resumed()
    if resumed:
        ordinary, solved = resumed, []
    else:
        is_start = search.allows("first look") or first is not None
        first_states = partial(_first_states, first=first, is_start=is_start)
        (ordinary,) = search.steps([first_states])
        del first, first_states  # a block takes memory
        starts = _spread_starts(search) if not ordinary or not search.should_stop() else []
        linear_states = partial(_linear_states, look=ordinary[0] if ordinary else None)
        linear, *spread_states, nmf = search.steps([linear_states, *starts, _nmf_states])
        ordinary += chain(*spread_states)
        if not (ordinary or linear):  # the time was up before there was a state
            (ordinary,) = search.steps(starts[:1])
        (from_nmf,) = search.steps([partial(_nmf_cycle, states=nmf, others=ordinary)])
        solved = linear + from_nmf
    finalists = _finalists(ordinary, solved, search.tuning.close)
    search.keep(finalists)
    if len(finalists) > 1:  # which kind is better shows late
        again = chain(*search.steps([partial(_one_more_cycle, state=state) for state in finalists]))
        finalists = [min(again, key=lambda state: state.cost)]
    block = search.continued(finalists[0])
    if search.plan.by_beam and not search.plan.children:  # otherwise children are swept by beam
        search.sweep_by_beam(block)
    return search.extended(block)


def _one_more_cycle(search: MdlSearch, state: State) -> list[State]:
    """Run one cycle from a state."""
    return [search.state_of(search.continued(state, search.tuning.cycle_rounds))]


def from_given(search: MdlSearch, atoms: BitMatrix, codes: BitMatrix | None) -> Block:
    """Run rounds from the atoms, or atoms and codes, that the user passed."""
    block = search.context.block(atoms, codes)
    if codes is None:
        search.run_flat_sweeps(block)
    else:
        search.record(block, "start")
    return search.run_rounds(block)


def _first_look(search: MdlSearch) -> Block:
    """Return a usable state at once: random rows as atoms, and a few sweeps."""
    atoms = samples(search.data, min(search.tuning.first_look_atoms, search.data.n_rows // 2), search.random)
    block = search.context.block(atoms)
    rule = search.objective.errors_only().rule(block)._replace(swaps=False)  # no kernels that only this would need
    for _ in range(2):
        if not search.should_stop():
            search.record(block, "first look", code(block, rule) + update_together(block))
    for swaps in (False, True, True):
        if not search.should_stop():
            search.record(block, "first look", sweep(block, search.objective, swaps=swaps))
    return block


def _first_states(search: MdlSearch, first: Block | None, is_start: bool) -> list[State]:
    """Run one cycle from a block or, without one, from the first look, if this is a start or the time is up."""
    block = first or _first_look(search)
    if not is_start and not search.should_stop():
        return []
    return [search.state_of(search.run_rounds(block, search.tuning.cycle_rounds))]


def _finalists(ordinary: list[State], solved: list[State], close: float) -> list[State]:
    """Return the best state of each kind: from rows, and from linear algebra or a factorization.

    If one is far better, return it alone.
    """
    best = [min(kind, key=lambda state: state.cost) for kind in (ordinary, solved) if kind]
    least = min(state.cost for state in best)
    return [state for state in best if state.cost <= close * least]


def _nmf_states(search: MdlSearch) -> list[State]:
    """Run a round from each of a few non-negative factorizations, under OR."""
    states: list[State] = []
    if search.objective.algebra != "or" or not search.allows("nmf"):
        return states
    context = replace(search.context, random=search.extra_random)
    for n_atoms in search.tuning.nmf_ranks:
        if search.should_stop() or 2 * n_atoms > min(search.data.shape):
            break
        for atoms in nmf_starts(context, n_atoms, search.tuning.nmf):
            block = search.context.block(atoms)
            search.run_flat_sweeps(block)
            states.append(search.state_of(search.run_rounds(block, 1)))
    return states


def _nmf_cycle(search: MdlSearch, states: list[State], others: list[State]) -> list[State]:
    """Run one cycle from the best of the states of factorizations, unless others are far better."""
    best = min(states, key=lambda state: state.cost, default=None)
    if best is None or best.cost > search.tuning.close * min(state.cost for state in others):
        return []
    block = search.run_rounds(search.context.block_of(best), search.tuning.cycle_rounds)
    return [search.state_of(block)]


def _linear_states(search: MdlSearch, look: State | None) -> list[State]:
    """Run one cycle from each start that linear algebra finds, under XOR, unless the first look is far better."""
    states: list[State] = []
    if search.objective.algebra != "xor" or not search.allows("linear"):
        return states
    if search.objective.max_atoms is not None:  # a basis of which rows use few is found late
        return states
    context, budget = replace(search.context, random=search.extra_random), search.tuning.linear
    for atoms in linear_starts(context, budget):
        if search.should_stop():
            break
        if not is_promising(context, atoms, look, budget):
            continue
        block = search.context.block(atoms)
        search.record(block, "start")
        for _ in range(search.tuning.flat_sweeps):
            search.record(block, "flat sweep", fewest_errors_sweep(block, search.objective, search.extra_random))
        search.change_basis(block, budget.sum_patience, budget.max_sum_patience)
        states.append(search.state_of(search.run_rounds(block, search.tuning.cycle_rounds)))
    return states


def _candidate_biases(search: MdlSearch) -> list[BitMatrix]:
    """Return the biases to try: the features that most rows have, and all features if most of the table is ones."""
    share = search.data.column_weights() / np.maximum(1, search.data.n_known)
    if not search.objective.has_bias or not search.allows("bias") or not (share > search.tuning.bias_share).any():
        return []
    majority = BitMatrix.from_dense(share[np.newaxis] > 0.5)
    all_ones = BitMatrix.from_dense(np.ones((1, search.data.n_cols), np.uint8))
    return [majority, all_ones] if share.mean() > 0.5 and majority != all_ones else [majority]


def _spread_starts(search: MdlSearch) -> list[Step]:
    """Return the starts from atoms spread over the data, in all sizes of the plan and with each bias."""
    sizes = _sizes(search, search.plan.starts)
    if search.objective.algebra == "or" and not search.is_sparse and len(sizes) > 1:
        sizes = [size for size in sizes if size]  # factorizations take the place of the start without atoms
    biases = [BitMatrix.zeros(1, search.data.n_cols), *_candidate_biases(search)]
    starts = product(biases, sizes)
    cycle = partial(_spread_start, max_rounds=search.tuning.cycle_rounds)
    return [partial(cycle, n_atoms=size, bias=bias) for bias, size in starts]


def _sizes(search: MdlSearch, sizes: tuple[int, ...]) -> list[int]:
    """Return different numbers of atoms to start from, fewer where there are few rows."""
    most = search.data.n_rows // search.tuning.min_rows_per_atom
    return list(dict.fromkeys(min(size, most) for size in sizes))


def _spread_start(search: MdlSearch, n_atoms: int, bias: BitMatrix, max_rounds: int | None) -> list[State]:
    """Run rounds from atoms spread over the data, at most this many."""
    shifted = search.data ^ bias if bias.count() else search.data
    n_rows = min(search.data.n_rows, search.tuning.rows_per_start_atom * n_atoms)
    if n_rows < search.data.n_rows:
        shifted = shifted[np.sort(search.random.choice(search.data.n_rows, n_rows, replace=False))]
    covers = search.context.greedy_rule.covers
    atoms = spread(shifted, n_atoms, covers, search.random, search.context.workers)
    block = search.context.block(atoms, None, bias)
    search.run_flat_sweeps(block)
    return [search.state_of(search.run_rounds(block, max_rounds))]
