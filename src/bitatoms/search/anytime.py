"""The anytime search: it makes states until the time is out, or until many of them in a row bring nothing.

In an *epoch*, new starts fill a population, which evolves until it gains nothing: states are recombined and perturbed.
The best state of each epoch becomes a champion. Epochs do not see each other's states, so that champions differ; the
champions evolve together, too. What starts, recombination and perturbation are depends on the objective
(`fixed_rank.RankBreeder` for the fewest errors, `mdl_breeder.MdlBreeder` for the codelength).
"""

from __future__ import annotations

from typing import Protocol

from .journal import NO_LOOP, Loop, Progress
from .plan import AnytimeTuning
from .population import CostedState, Population
from .stopping import StoppingRule


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
