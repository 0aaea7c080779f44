"""A given number of atoms with the fewest wrong bits: drop a few atoms, grow others in their place, again and again.

It starts from the best of atoms grown one after the other and atoms found all together, as numbers. Each trial settles
by a few steps of coding and update, exact ones where there are very few atoms. One that ends a little worse is accepted
too, less and less so, which leads out of dead ends. At the end come the coders that take longer: the best of all codes
and columns for up to 16 atoms, swaps and fresh starts above. Trials see at most a sample of the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.atoms import update_together
from ..core.block import Block, Change
from ..core.coding import MOST_EXACT_ATOMS, code, code_afresh, code_by_beam, coding_rule
from ..core.exact import code_exactly, update_exactly
from ..core.objective import Objective
from ..kernels.cpu import coding, words
from ..kernels.structs import Rule
from ..parallel import Workers
from .initial import greedy, samples
from .learning import SearchMonitor
from .moves.sweep import sweep
from .nmf_start import nmf_starts
from .proximus import append_rank_one

_EXACT_TRIALS = 8  # up to so many atoms every trial takes exact steps
_EXACT_STEPS, _GREEDY_STEPS = 2, 5  # at most so many steps settle a trial
_SEEDS = 32  # a new atom grows from the best of so many rows
_SLACK = 0.01  # by this share of the wrong bits a trial may be worse, at first
_TRIALS = 500
_NANOSECONDS = 1.5e9  # about what the trials may take, all together, at the rates measured on one core
_SAMPLE = 4000  # rows that trials see
_UNTIL_SETTLED = 1000
_MOST_LOOKED_AT = 4 * 10**9  # words, to find rows that are like others: some seconds


def search_fixed_rank(
    data: BitMatrix,
    given: tuple[BitMatrix, BitMatrix | None] | None,
    n_atoms: int,
    objective: Objective,
    effort: int,
    max_trials: int,
    monitor: SearchMonitor,
    workers: Workers,
    random: np.random.Generator,
) -> Block:
    """The state with the fewest wrong bits that is found, from the atoms given or the best of several starts."""
    rule = coding_rule("greedy", objective.algebra, objective.max_atoms, objective.residual_limit)
    some, seen = data, None  # what trials see
    if data.n_rows > _SAMPLE:
        seen = np.sort(random.choice(data.n_rows, _SAMPLE, replace=False))
        some, like = data[seen], _most_like(data, seen, workers)
    if given is None:
        block, change = _best_start(some, n_atoms, rule, effort, monitor, workers, random)
        if seen is not None:
            atoms, codes = block.factors()
            block, change = _settled(data, atoms, codes[like], rule, workers)
    else:
        block, change = _settled(data, *given, rule, workers)
    refill(block, rule, n_atoms, random)
    monitor.record(block, change, 1, "start")
    if block.n_atoms == n_atoms > 0 and block.wrong().any():
        if seen is None:
            block = _try(block, rule, effort, max_trials, monitor, random, telling=True)
        else:
            atoms, codes = block.factors()
            tried, _ = _settled(some, atoms, codes[seen], rule, workers)
            tried = _try(tried, rule, effort, max_trials, monitor, random, telling=False)
            atoms, codes = tried.factors()
            block, change = _settled(data, atoms, codes[like], rule, workers)
            monitor.record(block, change, 1, "trial")
    _finish(block, objective, rule, effort > 1, monitor)
    if refill(block, rule, n_atoms, random):
        monitor.record(block, Change(), 0, "grow")
    return block


def _best_start(
    data: BitMatrix,
    n_atoms: int,
    rule: Rule,
    effort: int,
    monitor: SearchMonitor,
    workers: Workers,
    random: np.random.Generator,
) -> tuple[Block, Change]:
    """The state with the fewest wrong bits from atoms grown one after the other, or from numbers all together."""
    best = _settled(data, greedy(data, n_atoms, rule.covers, random, workers), None, rule, workers)
    if rule.max_atoms < n_atoms:  # rows soon have no room for what grows
        best = _better(best, _settled(data, samples(data, n_atoms, random), None, rule, workers))
    if best[0].wrong().any():
        for atoms in nmf_starts(data, n_atoms, rule, effort, monitor.is_cut, random, workers):
            best = _better(best, _settled(data, atoms, None, rule, workers))
    return best


def _settled(
    data: BitMatrix, atoms: BitMatrix, codes: BitMatrix | None, rule: Rule, workers: Workers
) -> tuple[Block, Change]:
    """The state that these atoms, and maybe codes, settle in, and what changed on the way."""
    block = Block(data, atoms, codes, rule.covers, workers)
    return block, _settle(block, rule, _UNTIL_SETTLED)


def _most_like(data: BitMatrix, seen: NDArray[np.intp], workers: Workers) -> NDArray[np.intp]:
    """For each row of the data the place, among the rows seen, of itself or of the one that differs in fewest bits.

    A search leads rows to codes that, under XOR, are often not found from nothing: rows not seen start from those.
    """
    like = np.zeros(data.n_rows, np.intp)
    like[seen] = np.arange(len(seen))
    unseen = np.setdiff1d(np.arange(data.n_rows), seen)
    work = len(unseen) * len(seen) * data.words.shape[1]
    every = max(1, -(-work // _MOST_LOOKED_AT))  # where rows are many and wide, fewer are tried
    some = data.words[seen[::every]]

    def look(start: int, stop: int) -> None:
        table, distances = np.vstack([some, some[:1]]), np.empty(len(some) + 1, np.int64)
        for row in unseen[start:stop]:
            table[-1] = data.words[row]
            words.hamming(table, len(some), distances)
            like[row] = every * distances[:-1].argmin()

    workers.map_rows(look, len(unseen), 2.0 * some.size)
    return like


def _better(first: tuple[Block, Change], second: tuple[Block, Change]) -> tuple[Block, Change]:
    """The state with fewer wrong bits; the first on a tie."""
    return second if second[0].wrong().sum() < first[0].wrong().sum() else first


def refill(block: Block, rule: Rule, n_atoms: int, random: np.random.Generator) -> int:
    """Put atoms grown from what is wrong in the place of those that serve no row, until there are n_atoms; returns how
    many, fewer than are missing where nothing is wrong any more."""
    _discard_idle(block)
    before = block.n_atoms
    while block.n_atoms < n_atoms and append_rank_one(block, rule, random, _SEEDS):
        if not block.rows.users[-1].any():
            _discard_idle(block)
            break
    while block.n_atoms < n_atoms and block.wrong().any():
        _append_worst_row(block)
        _discard_idle(block)
    return block.n_atoms - before


def _discard_idle(block: Block) -> None:
    """Take out the atoms that serve no row."""
    idle = ~block.serving()
    if idle.any():
        block.discard(idle)


def _append_worst_row(block: Block) -> None:
    """Make an atom of the row that has most wrong bits, which alone it uses then: for where no row may take one more
    atom, or under OR has too many bits already."""
    row = np.bitwise_count(block.rows.errors).sum(axis=1).argmax(keepdims=True)
    block.append(block.data().words[row] ^ block.bias.words)
    code = np.zeros((1, block.rows.codes.shape[1]), np.uint64)
    code[0, -1] = np.uint64(1) << np.uint64((block.n_atoms - 1) & 63)
    coding.put_back(block.rows, block.atoms, row, code, np.zeros_like(block.rows.errors[row]), block.covers)
    block.forget_clean()


def _n_trials(n_rows: int, n_features: int, n_atoms: int) -> int:
    """As many trials as take about _NANOSECONDS, by what a step was measured to cost."""
    words = -(-n_features // 64)
    cost = 1e6 + n_rows * (700 + 350 * words) * max(1.0, n_atoms / 16)
    if n_atoms <= _EXACT_TRIALS:
        codes = 1 << n_atoms
        cost += _EXACT_STEPS * (n_rows * words * codes + n_features * (n_rows + n_atoms * codes))
    return max(1, min(_TRIALS, int(_NANOSECONDS / cost)))


def _try(
    block: Block,
    rule: Rule,
    effort: int,
    max_trials: int,
    monitor: SearchMonitor,
    random: np.random.Generator,
    telling: bool,
) -> Block:
    """Drop atoms and grow others, again and again; the best state met."""
    n_atoms = block.n_atoms
    most_dropped = min(n_atoms, max(2, n_atoms // 16))
    n_trials = effort * _n_trials(block.n_rows, block.n_features, n_atoms)
    now = least = int(block.wrong().sum())
    best = block
    for trial in range(n_trials):
        if trial == max_trials:
            monitor.cut_by = "max_iter"
        if least == 0 or monitor.is_cut():
            break
        dropped = np.zeros(n_atoms, bool)
        dropped[random.choice(n_atoms, int(random.integers(1, most_dropped + 1)), replace=False)] = True
        other = block.with_factors(*block.factors())
        other.discard(dropped)
        code(other, rule)
        while other.n_atoms < n_atoms and append_rank_one(other, rule, random, _SEEDS):
            pass
        change = _settle(other, rule, _EXACT_STEPS if n_atoms <= _EXACT_TRIALS else _GREEDY_STEPS)
        wrong = int(other.wrong().sum())
        if other.n_atoms == n_atoms and wrong <= now * (1 + _SLACK * (1 - trial / n_trials)):
            block, now = other, wrong
        if wrong < least:
            best, least = other, wrong
            if telling:
                monitor.record(other, change, 1, "trial")
    return best


def _settle(block: Block, rule: Rule, most: int, exactly: bool | None = None) -> Change:
    """Take steps until one changes nothing, or so many; exact ones with very few atoms, or as said."""
    if exactly is None:
        exactly = block.n_atoms <= _EXACT_TRIALS
    total = Change()
    for _ in range(most):
        if exactly:
            change = code_exactly(block, rule) + update_exactly(block)
        else:
            change = code(block, rule) + update_together(block)
        total += change
        if not change:
            break
    return total


def _finish(block: Block, objective: Objective, rule: Rule, by_beam: bool, monitor: SearchMonitor) -> None:
    """The coders that take longer, until they change nothing."""
    if block.n_atoms <= MOST_EXACT_ATOMS:
        monitor.record(block, _settle(block, rule, _UNTIL_SETTLED, exactly=True), 1, "exact")
        return
    before = None
    while before != (before := objective.cost(block)) and not monitor.is_cut():
        monitor.record(block, sweep(block, objective, code_by_beam if by_beam else code_afresh), 1, "recode")
        monitor.record(block, sweep(block, objective), 1, "code")
