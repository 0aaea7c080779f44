"""The anytime search: it makes states until the time is out, or until many of them in a row bring nothing.

In an *epoch*, new starts fill a population, which evolves until it gains nothing: states are recombined and perturbed.
The best state of each epoch becomes a champion. Epochs do not see each other's states, so that champions differ; the
champions evolve together, too. What starts, recombination and perturbation are depends on the objective: they are here
for the codelength, and in `fixed_rank.py` for the fewest errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..bits import BitMatrix
from ..engine.block import Block
from ..engine.coding import code_from_scratch
from .context import SearchContext
from .exchange import united
from .finish import finish
from .mdl_search import best_start, from_given, search_end
from .monitor import CONVERGED, SearchResult, StoppingRule
from .moves.sweep import sweep
from .plan import AnytimeTuning
from .rounds import MdlSearch
from .states import Population, State


def run_epochs(
    champions: Population,
    start: Callable[[], Population],
    evolve: Callable[[Population], None],
    finished: Callable[[State], State],
    tuning: AnytimeTuning,
    stopping: StoppingRule,
) -> State:
    """Run epochs until the search must stop, or until several of them in a row gain nothing; return the best state.

    ``start`` returns states from new starts, and ``evolve`` adds states made from those of a population until that
    gains nothing. ``finished`` returns what the last steps make of a state that is better than all before.
    """
    failures = 0
    while len(champions) == 0 or (failures < tuning.max_failed_epochs and not stopping.should_stop()):
        population = start()
        evolve(population)
        gains = _add(champions, population.best, finished)
        if len(champions) > 1 and not stopping.should_stop():
            together = Population(tuning.champions, champions)
            evolve(together)
            gains |= _add(champions, together.best, finished)
        failures = 0 if gains else failures + 1
        if champions.best.cost == 0:
            break
    return champions.best


def _add(champions: Population, state: State, finished: Callable[[State], State]) -> bool:
    """Add a champion, finished if it is better than the others; return whether it is."""
    if len(champions) and state.cost >= champions.best.cost:
        return champions.add(state)
    champions.add(finished(state))
    return True


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

    def evolve(population: Population) -> None:
        """Perturb the states of a population and recombine them, in turn, until that gains nothing."""
        failures = 0
        while failures < tuning.max_failed_states and not search.should_stop():
            if len(population) > 1 and failures % 2:
                ((one, other),) = population.pairs(1, search.random)
                found = recombine(search, one, other)
            else:
                states = list(population)
                (found,) = search.perturb(states[int(search.random.integers(len(states)))])
            failures = 0 if population.add(found) else failures + 1

    best = run_epochs(champions, start, evolve, finished, tuning, search.stopping)
    return search_end(search, search.go_back(best))


def recombine(search: MdlSearch, one: State, other: State) -> State:
    """Return what rounds and polish make of a state with the atoms of two others."""
    block = united(search.context, one, other)
    search.record(block, "recombine", sweep(block, search.objective, code_from_scratch))
    search.drop(block, every=True)
    block = search.run_rounds(block, search.tuning.perturb_rounds)
    search.polish(block, search.plan.by_beam, 1)
    return search.state_of(block)
