"""Average what the codes of a row predict, each code weighted by 2^-bits: over all codes, or over sampled ones."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..jit import inline, kernel
from .cell_costs import start_row, toggle, toggle_cost

_IMPOSSIBLE = 1000.0  # bits; the exponential of more may overflow
_NEGLIGIBLE = 40.0  # bits above the best code; codes that take more have no influence on a float
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11))
_TO_UNIT_INTERVAL = 2.0**-53
_LOG_2 = math.log(2.0)


class Sampling(NamedTuple):
    """How codes are sampled."""

    skipped: Any  # the first sweeps over the atoms, which do not count
    kept: Any  # sweeps that count


@inline
def _next(state):
    """Return the next state of a generator of random bits (SplitMix64)."""
    return state + _MIX[0]


@inline
def _bits_of(state):
    """Return the 64 random bits of a state."""
    mixed = (state ^ (state >> _SHIFTS[0])) * _MIX[1]
    mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _MIX[2]
    return mixed ^ (mixed >> _SHIFTS[2])


@inline
def _uniform(state):
    """Return the random number of a state, between 0 and 1."""
    return float(_bits_of(state) >> _SHIFTS[3]) * _TO_UNIT_INTERVAL


@inline
def _seed(cells, j):
    """Return a state that depends only on the cells of row j, so that it does not depend on chunks and threads."""
    state = np.uint64(cells.shape[1])
    for i in range(cells.shape[1]):
        state = _bits_of(_next(state ^ np.uint64(cells[j, i])))
    return state


@inline
def _add_predictions(weight, bias, covers, scratch, ones):
    """Add the weight of the current code to the cells that it predicts to be one."""
    for i in range(ones.shape[0]):
        depth = scratch.depth[i]
        product = depth & 1 if covers is None else min(depth, 1)
        if bias[i] ^ product:
            ones[i] += weight


@kernel
def average_all_codes(cells, codes, atoms, bias, covers, max_atoms, costs, unit, scratch, out):
    """out[j, i] = probability that cell i of row j is predicted to be one, over all codes of at most max_atoms atoms.

    ``cells`` (n, m) are 0, 1 or 2 (unknown). ``codes`` (n, p) are zeros, and are changed. A code has the weight
    2^(-cost / unit).
    """
    n_codes = np.int64(1) << np.int64(codes.shape[1])
    for j in range(cells.shape[0]):
        out[j] = 0.0
        lowest, total = np.int64(0), 0.0
        for is_second in range(2):  # the first round finds the lowest cost
            for k in range(codes.shape[1]):
                codes[j, k] = 0
            cost, n_used = start_row(cells, codes, j, atoms, bias, covers, costs, scratch)
            lowest = lowest if is_second else cost
            for index in range(1, n_codes + 1):
                if n_used <= max_atoms:
                    if not is_second:
                        lowest = min(lowest, cost)
                    elif cost - lowest < _NEGLIGIBLE * unit:
                        weight = math.exp(-_LOG_2 * (cost - lowest) / unit)
                        total += weight
                        _add_predictions(weight, bias, covers, scratch, out[j])
                if index == n_codes:
                    break
                k = 0  # the order of a Gray code: the next code differs in one atom
                while not (index >> k) & 1:
                    k += 1
                used = codes[j, k]
                cost += toggle_cost(used, k, atoms, covers, costs, scratch)
                toggle(used, k, atoms, covers, scratch)
                codes[j, k] = 1 - used
                n_used += 1 - 2 * used
        for i in range(out.shape[1]):
            out[j, i] /= total


@kernel
def average_sampled_codes(cells, codes, atoms, bias, covers, max_atoms, costs, unit, sampling, scratch, out):
    """out[j, i] = share of sampled codes that predict cell i of row j to be one, by Gibbs sampling.

    As `average_all_codes`, but ``codes`` are those to start from. In each sweep, every atom is drawn given the others,
    and toggling it together with a random atom is tried, which swaps one atom for another.
    """
    n_atoms = codes.shape[1]
    for j in range(cells.shape[0]):
        out[j] = 0.0
        state = _seed(cells, j)
        _, n_used = start_row(cells, codes, j, atoms, bias, covers, costs, scratch)
        for sweep in range(sampling.skipped + sampling.kept):
            for k in range(n_atoms):
                used = np.int64(codes[j, k])
                rise = toggle_cost(used, k, atoms, covers, costs, scratch)
                state = _next(state)
                fits = n_used + 1 - 2 * used <= max_atoms
                if fits and _uniform(state) < 1.0 / (1.0 + math.exp(_LOG_2 * min(rise / unit, _IMPOSSIBLE))):
                    toggle(used, k, atoms, covers, scratch)
                    codes[j, k] = 1 - used
                    n_used += 1 - 2 * used
                    used, rise = 1 - used, -rise
                state = _next(state)
                other = np.int64(_uniform(state) * n_atoms)
                other_used = np.int64(codes[j, other])
                if other == k or n_used + 2 - 2 * used - 2 * other_used > max_atoms:
                    continue
                toggle(used, k, atoms, covers, scratch)
                rise += toggle_cost(other_used, other, atoms, covers, costs, scratch)
                state = _next(state)
                if rise <= 0 or _uniform(state) < math.exp(-_LOG_2 * rise / unit):
                    toggle(other_used, other, atoms, covers, scratch)
                    codes[j, k], codes[j, other] = 1 - used, 1 - other_used
                    n_used += 2 - 2 * used - 2 * other_used
                else:
                    toggle(1 - used, k, atoms, covers, scratch)
            if sweep >= sampling.skipped:
                _add_predictions(1.0 / sampling.kept, bias, covers, scratch, out[j])
