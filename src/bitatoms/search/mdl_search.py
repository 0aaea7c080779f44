"""The search for the shortest codelength: from the best of several starts, rounds until they gain nothing, and more.

Starts are many rows of the table, bases from linear algebra under XOR, and non-negative factorizations under OR. What
follows is in `rounds.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, product

import numpy as np

from ..bits import BitMatrix
from ..engine.block import Block, Change
from ..engine.coding import code, coding_rule
from ..engine.update import update_together
from .context import SearchContext
from .exchange import refill
from .monitor import CONVERGED, SearchResult
from .moves.merge import merge
from .moves.sweep import fewest_errors_sweep, sweep
from .plan import FixedRankBudget
from .rounds import MdlSearch, Step
from .starts.initial import samples, spread
from .starts.linear import is_promising, linear_starts
from .starts.nmf import nmf_starts
from .states import State


def search_mdl(
    context: SearchContext,
    given: tuple[BitMatrix, BitMatrix | None] | None = None,
    first: SearchResult | None = None,
) -> SearchResult:
    """Search for the shortest codelength, from the factors given or from the best of several starts.

    Parameters
    ----------
    context : SearchContext
    given : pair (atoms, codes or None), optional
        The only start.
    first : SearchResult, optional
        A start that takes the place of the first look. If it ended early, this search ends at once.
    """
    plan = context.plan
    search = MdlSearch(context)
    block = context.block(BitMatrix.zeros(0, context.data.n_cols))
    search.record(block, "no model")
    if first is not None and first.ended != CONVERGED:
        search.stopping.stop(first.ended)
    if not search.should_stop():
        if given is None:
            block = best_start(search, first and first.block)
        else:
            block = search.refined(from_given(search, *given))
    if plan.perturbations and search.allows("perturb") and not search.should_stop():
        block = search.go_back(search.perturb_often(search.state_of(block), plan.perturbations))
    return search_end(search, block)


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


def best_start(search: MdlSearch, first: Block | None = None) -> Block:
    """Run one cycle from each start, also with a bias if that may help; continue the best to the end.

    A search that was killed starts from the states that it had saved.
    """
    if search.context.resumed:
        ordinary, solved = [search.state_of(search.context.block_of(state)) for state in search.context.resumed], []
    else:
        only_empty = search.regrows and search.data.n_rows >= search.tuning.min_explained_rows
        is_start = (search.plan.from_look and not only_empty) or first is not None
        first_states = partial(_first_states, first=first, is_start=is_start)
        (ordinary,) = search.steps([first_states])
        (linear,) = search.steps([partial(_linear_states, look=ordinary[0] if ordinary else None)])
        del first, first_states  # a block takes memory
        solved = linear
        if not ordinary or not search.should_stop():
            starts = [] if _explains(search, linear, ordinary) else _spread_starts(search, only_empty)
            nmf_states = partial(_nmf_states, is_tried=not linear and not only_empty)
            *spread_states, nmf = search.steps([*starts, nmf_states])
            ordinary += chain(*spread_states)
            (from_nmf,) = search.steps([partial(_nmf_cycle, states=nmf, others=ordinary)])
            solved = linear + from_nmf
    finalists = _finalists(search, ordinary, solved)
    search.keep(finalists)
    continued = [*chain(*search.steps([partial(MdlSearch.continued, state=state) for state in finalists]))]
    if search.objective.algebra == "or":  # under XOR, a refined state can be far better
        limit = search.tuning.refined_max_cost * min(state.cost for state in continued)
        continued = [state for state in continued if state.cost <= limit]
    search.keep(continued)
    refined = chain(*search.steps([partial(_refined, state=state) for state in continued]))
    best = min(refined, key=lambda state: state.cost)
    block = search.go_back(best)
    return search.regrow(block) if search.regrows and search.allows("regrow") else block


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


def _finalists(search: MdlSearch, ordinary: list[State], solved: list[State]) -> list[State]:
    """Return the states to continue: the best ones, and others that are close, because which is better shows late.

    Under OR, these are all that are close; under XOR, where going on takes longer, the best that linear algebra found.
    The best ordinary one may be further behind.
    """
    ranked = sorted(ordinary + solved, key=lambda state: state.cost)
    least, n_kept = ranked[0].cost, search.plan.finalists
    kept = ranked[:n_kept]
    if search.objective.algebra == "or":
        kept += [state for state in ranked[n_kept:] if state.cost <= search.tuning.close * least]
    for kind, close in ((solved, search.tuning.close), (ordinary, search.tuning.ordinary_close)):
        best = min(kind, key=lambda state: state.cost, default=None)
        if best is not None and best.cost <= close * least and not any(state is best for state in kept):
            kept.append(best)
    return kept


def _refined(search: MdlSearch, state: State) -> list[State]:
    """Thin out the atoms of a state, and polish them."""
    return [search.state_of(search.refined(search.context.block_of(state)))]


def _nmf_states(search: MdlSearch, is_tried: bool) -> list[State]:
    """Run a round from each of a few non-negative factorizations, under OR."""
    states: list[State] = []
    is_tried &= not search.plan.only_starts and search.objective.algebra == "or" and search.allows("nmf")
    if not is_tried:
        return states
    objective = search.objective.errors_only()
    for n_atoms in search.tuning.nmf_ranks:
        if search.should_stop() or 2 * n_atoms > min(search.data.shape):
            break
        plan = replace(search.plan, fewest=n_atoms, fixed_rank=FixedRankBudget(nmf=search.tuning.nmf))
        context = replace(search.context, objective=objective, plan=plan, random=search.extra_random)
        for atoms in nmf_starts(context):
            block = search.context.block(atoms)
            search.run_flat_sweeps(block)
            states.append(search.state_of(search.run_rounds(block, 1)))
    return states


def _nmf_cycle(search: MdlSearch, states: list[State], others: list[State]) -> list[State]:
    """Run one cycle from the best of the states of factorizations, unless others are far better."""
    best = min(states, key=lambda state: state.cost, default=None)
    if best is None or best.cost > search.tuning.ordinary_close * min(state.cost for state in others):
        return []
    block = search.run_rounds(search.context.block_of(best), search.tuning.cycle_rounds)
    return [search.state_of(block)]


def _linear_states(search: MdlSearch, look: State | None) -> list[State]:
    """Run one cycle from each start that linear algebra finds, under XOR, unless the first look is far better."""
    states: list[State] = []
    if search.plan.only_starts or search.objective.algebra != "xor" or not search.allows("linear"):
        return states
    if search.objective.max_atoms is not None:  # a basis of which rows use few is found late
        return states
    context = replace(search.context, random=search.extra_random)
    for atoms in linear_starts(context, search.tuning.linear):
        if search.should_stop():
            break
        if not is_promising(context, atoms, look, search.tuning.linear):
            continue
        block = search.context.block(atoms)
        search.record(block, "start")
        search.record(block, "flat sweep", fewest_errors_sweep(block, search.objective, search.extra_random))
        search.change_basis(block, search.tuning.linear.sum_patience)
        states.append(search.state_of(search.run_rounds(block, search.tuning.cycle_rounds)))
    return states


def _explains(search: MdlSearch, linear: list[State], others: list[State]) -> bool:
    """Whether linear algebra found so much more than the first look that other starts, of many rows, waste time."""
    if search.data.n_rows < search.tuning.min_explained_rows:
        return False
    least = min((state.cost for state in others), default=search.cost_without_atoms)
    return any(state.cost < search.tuning.explained_share * least for state in linear)


def _candidate_biases(search: MdlSearch) -> list[BitMatrix]:
    """Return the biases to try: the features that most rows have, and all features if most of the table is ones."""
    share = search.data.column_weights() / np.maximum(1, search.data.n_known)
    if not search.objective.has_bias or not search.allows("bias") or not (share > search.tuning.bias_share).any():
        return []
    majority = BitMatrix.from_dense(share[np.newaxis] > 0.5)
    all_ones = BitMatrix.from_dense(np.ones((1, search.data.n_cols), np.uint8))
    return [majority, all_ones] if share.mean() > 0.5 and majority != all_ones else [majority]


def _spread_starts(search: MdlSearch, only_empty: bool) -> list[Step]:
    """Return the starts from atoms spread over the data, in all sizes of the plan and with each bias."""
    sizes = list(dict.fromkeys(min(size, search.data.n_rows // 2) for size in search.plan.starts))
    biases = [BitMatrix.zeros(1, search.data.n_cols), *_candidate_biases(search)]
    starts = product(biases, [0] if only_empty else sizes)
    return [partial(_spread_start, n_atoms=size, bias=bias) for bias, size in starts]


def _spread_start(search: MdlSearch, n_atoms: int, bias: BitMatrix) -> list[State]:
    """Run one cycle from atoms spread over the data."""
    shifted = search.data ^ bias if bias.count() else search.data
    n_rows = min(search.data.n_rows, search.tuning.rows_per_start_atom * n_atoms)
    if n_rows < search.data.n_rows:
        shifted = shifted[np.sort(search.random.choice(search.data.n_rows, n_rows, replace=False))]
    covers = search.context.greedy_rule.covers
    atoms = spread(shifted, n_atoms, covers, search.random, search.context.workers)
    block = search.context.block(atoms, None, bias)
    search.run_flat_sweeps(block)
    return [search.state_of(search.run_rounds(block, search.tuning.cycle_rounds))]
