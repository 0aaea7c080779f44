"""Trials of a fixed number of atoms: drop some, grow others in their place, and keep what leaves fewer errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..kernels.cpu import exchange
from ..kernels.structs import AtomArrays, CodingRule, ExactScratch, TrialPlan, coding_scratch, vote_scratch
from ..parallel import MAX_CHUNK_NS
from .block import Block
from .host_rows import HostRows, transposed
from .row_state import Words

_CHANGED_ROWS = ("errors", "codes", "users", "covered", "twice", "stale")  # arrays that a trial changes


class Tried(NamedTuple):
    """The best state of some trials, its errors, and how many trials were made."""

    block: Block
    wrong: int
    n_trials: int


def trial_operations(data: BitMatrix, n_atoms: int, covers: bool, exactly: bool) -> int:
    """Return about how many operations a trial takes: it codes rows, atom by atom, and counts votes, one by one.

    An operation takes about half a nanosecond. Under OR, a one costs more, because what other atoms cover is counted
    as well.
    """
    n, m = data.shape
    operations = 20_000 + n * (300 + 8 * n_atoms) + (20 if covers else 10) * data.count()
    if exactly:
        operations += 4 * (n * data.words.shape[1] * 2**n_atoms + m * (n + n_atoms * 2**n_atoms))
    return operations


def run_trials(
    block: Block,
    rule: CodingRule,
    plan: TrialPlan,
    pool: Words,
    seed: int,
    exactly: bool,
    should_stop: Callable[[], bool] = lambda: False,
) -> Tried:
    """Replace atoms at random, trial after trial, and return the best state; ``block`` is left in the last one.

    Parameters
    ----------
    block : Block
    rule : CodingRule
        How rows are coded, without prices.
    plan : TrialPlan
    pool : ndarray of shape (any number, words)
        Atoms that may take the place of a dropped one, as atoms grown from the errors do.
    seed : int
    exactly : bool
        Take exhaustive steps: the best of all codes, the best of all columns. For few atoms.
    should_stop : callable
        Whether to end early. The best state depends on when it ends, and on nothing else.
    """
    rows = block.move_to_host()
    block.mark_stale()
    wrong = int(block.wrong().sum())
    now = rows.arrays, block._atoms
    after = (
        now[0]._replace(**{name: getattr(now[0], name).copy() for name in _CHANGED_ROWS}),
        AtomArrays(*(array.copy() for array in block._atoms)),
    )
    best, counts = (block._atoms.words.copy(), now[0].codes.copy()), np.array([wrong, wrong], np.int64)
    random = np.array([seed], np.uint64)
    candidates = np.empty((exchange.MAX_CANDIDATES + 1, rows.n_words), np.uint64)
    scratches = coding_scratch(*now), vote_scratch(now[0]), _exact_scratch(rows, block._atoms.words, exactly)
    n_per_call = 1 + int(MAX_CHUNK_NS / trial_operations(block.data(), block.n_atoms, block.covers, exactly))
    pool = pool.copy()  # writable like the empty pool: kernels are compiled separately for arrays that are not
    n_trials = 0
    while n_trials < plan.n_trials and counts[1] > 0 and not should_stop():
        block.workers.check_deadline()
        last = min(n_trials + n_per_call, plan.n_trials)
        exchange.run_trials(now, after, best, rule, pool, plan, n_trials, last, random, counts, candidates, *scratches)
        n_trials = last
    block.mark_stale()
    atoms, codes = (
        BitMatrix.from_words(words, n_cols, check=False)
        for words, n_cols in zip(best, (block.n_features, block.n_atoms), strict=True)
    )
    return Tried(block.with_factors(atoms, codes), int(counts[1]), n_trials)


def _exact_scratch(rows: HostRows, atoms: Words, exactly: bool) -> ExactScratch:
    """Allocate the arrays for exhaustive steps, empty ones if no such steps are taken."""
    if not exactly:
        none, no_counts = np.empty((0, 0), np.uint64), np.empty(0, np.int32)
        return ExactScratch(none, none, none, none, none, none, no_counts, no_counts)
    n_words, n_atoms, n_low = rows.n_words, rows.n_atoms, (rows.n_atoms + 1) // 2
    data, unknown = rows.targets(atoms), rows.arrays.unknown
    return ExactScratch(
        data=data,
        columns=transposed(data, rows.n_features),
        unknown=transposed(unknown, rows.n_features) if len(unknown) else np.empty((0, 0), np.uint64),
        low=np.empty((n_words, 1 << n_low), np.uint64),
        low_rows=np.empty((1 << n_low, n_words), np.uint64),
        high=np.empty((1 << (n_atoms - n_low), n_words), np.uint64),
        distances=np.empty(1 << n_low, np.int32),
        scores=np.empty(1 << n_atoms, np.int32),
    )
