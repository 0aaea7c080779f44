"""The anytime search: it makes states until the time is out, or until many of them in a row bring nothing.

In an *epoch*, new starts fill a population, which evolves until it gains nothing: states are recombined and perturbed.
The best state of each epoch becomes a champion. Epochs do not see each other's states, so that champions differ; the
champions evolve together, too. What starts, recombination and perturbation are depends on the objective
(`fixed_rank.RankBreeder` for the fewest errors, `mdl_breeder.MdlBreeder` for the codelength).

The states that an anytime search for the shortest codelength makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..bits import BitMatrix
from ..engine.block import Block, Change
from ..engine.coding import coding_rule
from .context import SearchContext
from .exchange import Population, refill, united
from .finish import finish
from .journal import NO_LOOP, Loop, Progress
from .mdl_search import best_start, from_given
from .monitor import CONVERGED, CostedState, SearchResult, StoppingRule
from .moves.sweep import fresh_sweep
from .plan import AnytimeTuning
from .rounds import MdlSearch


class Breeder(Protocol):
    """Makes states from starts, and from other states."""

    def new_population(self, champions: Population) -> Population:
        """Return states from new starts; there are champions from the second epoch on."""
        ...

    def evolve(self, population: Population) -> None:
        """Add states made from those of a population, until that gains nothing."""
        ...

    def finished(self, state: CostedState) -> CostedState:
        """Return what the last steps make of a state that is better than all before."""
        ...


def run_epochs(breeder: Breeder, stopping: StoppingRule, tuning: AnytimeTuning, loop: Loop = NO_LOOP) -> CostedState:
    """Run epochs until the search must stop, or until several of them in a row gain nothing; return the best state.

    The ``loop`` keeps the champions after each epoch.
    """
    champions, failures = Population(tuning.champions), 0
    if loop.resumed is not None:
        (failures,) = loop.resumed.numbers
        champions.resume(loop.resumed.states)
    while len(champions) == 0 or (failures < tuning.max_failed_epochs and not stopping.should_stop()):
        population = breeder.new_population(champions)
        breeder.evolve(population)
        gains = _add(breeder, champions, population.best)
        if len(champions) > 1 and not stopping.should_stop():
            together = Population(tuning.champions)
            together.resume(champions)
            breeder.evolve(together)
            gains |= _add(breeder, champions, together.best)
        failures = 0 if gains else failures + 1
        if champions.best.cost == 0:
            break
        loop.save(lambda: Progress(list(champions), (failures,)))  # noqa: B023
    return champions.best


def _add(breeder: Breeder, champions: Population, state: CostedState) -> bool:
    """Add a champion, finished if it is better than the others; return whether it is."""
    if len(champions) and state.cost >= champions.best.cost:
        return champions.add(state)
    champions.add(breeder.finished(state))
    return True


class MdlBreeder:
    """Starts, perturbs and recombines states of a search for the shortest codelength.

    Parameters
    ----------
    search : MdlSearch
    start : callable
        Returns the block of a new start, with rounds run from it.
    coder : str
        The coder of `transform`, which ends the best state of an epoch.
    tuning : AnytimeTuning
    """

    def __init__(self, search: MdlSearch, start: Callable[[], Block], coder: str, tuning: AnytimeTuning) -> None:
        self.search, self.start, self.coder, self.tuning = search, start, coder, tuning

    def new_population(self, champions: Population) -> Population:
        """Return the state of one start, which takes about as long as a fast search."""
        population = Population(self.tuning.champions)
        population.add(self.search.state_step(self._started))
        return population

    def _started(self) -> CostedState:
        """Return the state of a new start, thinned out and polished."""
        search = self.search
        block, improved = search.thin_out(self.start())
        search.polish(block, search.plan.by_beam or improved)
        return search.state_of(block)

    def evolve(self, population: Population) -> None:
        """Perturb the states of a population and recombine them, in turn, until that gains nothing."""
        search, failures = self.search, 0
        with search.context.journal.loop(search.scope) as loop:
            if loop.resumed is not None:
                (failures,) = loop.resumed.numbers
                population.resume(loop.resumed.states)
            while failures < self.tuning.max_failed_states and not search.should_stop():
                if len(population) > 1 and failures % 2:
                    ((one, other),) = population.pairs(1, search.random)
                    found = search.state_of(self._recombined(one, other))
                else:
                    states = list(population)
                    found = search.perturbed(states[int(search.random.integers(len(states)))])
                failures = 0 if population.add(found) else failures + 1
                loop.save(lambda: Progress(list(population), (failures,)))  # noqa: B023

    def finished(self, state: CostedState) -> CostedState:
        """Return what the coder of `transform` makes of a state."""
        search = self.search
        if search.should_stop():
            return state
        found = finish(search.context, SearchResult(search.block_of(state), CONVERGED), self.coder)
        return min(state, search.state_of(found.block), key=lambda state: state.cost)

    def _recombined(self, one: CostedState, other: CostedState) -> Block:
        """Return what rounds and polish make of a state with the atoms of two others."""
        search = self.search
        block = united(search.context, one, other)
        search.record(block, fresh_sweep(block, search.objective), "recombine")
        search.drop(block, every=True)
        block = search.run_rounds(block, search.tuning.perturb_rounds)
        search.polish(block, search.plan.by_beam, 1)
        return block


def breed_mdl(
    context: SearchContext,
    tuning: AnytimeTuning,
    coder: str,
    given: tuple[BitMatrix, BitMatrix | None] | None = None,
    first: Callable[[], Block] | None = None,
) -> SearchResult:
    """Search for the shortest codelength until the time is out or several epochs gain nothing.

    Parameters
    ----------
    context : SearchContext
    tuning : AnytimeTuning
    coder : str
        The coder of `transform`.
    given : pair (atoms, codes or None), optional
        From which every start is made.
    first : callable, optional
        Returns a block that takes the place of the first look of a start.
    """
    search, objective = MdlSearch(context), context.objective
    search.record(context.block(BitMatrix.zeros(0, context.data.n_cols)), Change(), "no model")

    def start() -> Block:
        if given is not None:
            return from_given(search, *given)
        return best_start(search, first and first())

    breeder = MdlBreeder(search, start, coder, tuning)
    with context.journal.loop(search.scope) as loop:
        best = run_epochs(breeder, search.stopping, tuning, loop)
    block = search.return_to(best)
    if context.plan.fewest and refill(context, block, coding_rule("greedy", objective.algebra, objective.max_atoms)):
        search.record(block, Change(), "grow")
    if context.holdout is not None:
        search.cost(block)
    return SearchResult(block, search.stopping.ended)
