"""The anytime search for the shortest codelength: epochs (`loop.py`) until the time is out, or until they gain nothing.

In an epoch, a complete search is a start, and its states are perturbed and recombined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from ..bits import BitMatrix
from ..engine.block import Block
from ..engine.coding import code_from_scratch
from .context import SearchContext
from .exchange import united
from .finish import finish
from .loop import Population, evolve, run_epochs
from .mdl_search import best_start, from_given, search_end
from .monitor import CONVERGED, SearchResult
from .moves.sweep import sweep
from .plan import AnytimeTuning
from .rounds import MdlSearch
from .states import State


def search_anytime(
    context: SearchContext,
    tuning: AnytimeTuning,
    coder: str,
    given: tuple[BitMatrix, BitMatrix | None] | None = None,
    first: Callable[[], Block] | None = None,
) -> SearchResult:
    """Search for the shortest codelength until the time is out or several epochs gain nothing.

    The ``coder`` of `transform` ends the best state of an epoch. Every start is made from the factors ``given``, if
    there are any. ``first`` returns a block that takes the place of the first look of a start.
    """
    resumed, context = context.resumed, replace(context, resumed=())
    search = MdlSearch(context)
    search.record(context.block(BitMatrix.zeros(0, context.data.n_cols)), "no model")
    champions = Population(tuning.champions, [search.state_of(context.block_of(state)) for state in resumed])
    search.keep(champions)

    def start() -> Population:
        """Return the state of one start, thinned out and polished, which takes about as long as a fast search."""
        block = from_given(search, *given) if given is not None else best_start(search, first and first())
        return Population(tuning.champions, [search.state_of(search.refined(block))])

    def finished(state: State) -> State:
        """Return what the coder of `transform` makes of a state."""
        if search.should_stop():
            return state
        found = finish(context, SearchResult(context.block_of(state), CONVERGED), coder)
        return min(state, search.state_of(found.block), key=lambda state: state.cost)

    def evolve_all(population: Population) -> None:
        """Perturb the states of a population and recombine them, in turn, until that gains nothing."""
        numbers = count()

        def make_children(_: int) -> list[State]:
            recombines = next(numbers) % 2 == 1
            if recombines and len(population) > 1:
                return [recombine(search, *population.pairs(1, search.random)[0])]
            states = list(population)
            return search.perturb(states[int(search.random.integers(len(states)))])

        evolve(population, make_children, search.stopping, max_failures=tuning.max_failed_states, group=1)

    best = run_epochs(champions, start, evolve_all, finished, search.stopping, max_failures=tuning.max_failed_epochs)
    return search_end(search, search.go_back(best))


def recombine(search: MdlSearch, one: State, other: State) -> State:
    """Return what rounds and polish make of a state with the atoms of two others."""
    block = united(search.context, one, other)
    search.record(block, "recombine", sweep(block, search.objective, code_from_scratch))
    search.drop(block, every=True)
    block = search.run_rounds(block, search.tuning.perturb_rounds)
    search.polish(block, search.plan.by_beam, 1)
    return search.state_of(block)
