"""Codes of rows where the cost of a cell depends on its column, its value and the value that the code predicts.

The cheapest code of a row, and averages of what its codes predict, each code weighted by 2^-bits: over all codes, or
over sampled ones.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..jit import inline, kernel
from ..views import view
from .words import fill, next_state, random_bits

_IMPOSSIBLE = 1000.0  # bits; the exponential of more may overflow
_NEGLIGIBLE = 40.0  # bits above the best code; codes that take more have no influence on a float
_MAX_BITS = 60.0  # of evidence for an atom
_NO_EVIDENCE = -60.0  # bits; an atom that has even less is not used
_TO_UNIT_INTERVAL = 2.0**-53
_LOG_2 = math.log(2.0)


class CellCosts(NamedTuple):
    """Costs of cells and of uses of atoms, as integers."""

    cells: Any  # (3, 2, m) int64: of a cell with value 0, 1 or 2 (unknown) where 0 or 1 is predicted, in each column
    uses: Any  # (2, p) int64: of an atom that a row does not use, and of one that it uses


class AtomOnes(NamedTuple):
    """The columns in which each atom has a one: ``columns[starts[k] : starts[k + 1]]``."""

    starts: Any  # (p + 1,) int64
    columns: Any  # (ones,) int64


class CellScratch(NamedTuple):
    """Work arrays for a row."""

    depth: Any  # (m,) int64: how many used atoms have a one in each column
    flips: Any  # (m,) int64: by how much the cost rises if the prediction of each cell flips


class HiddenScratch(NamedTuple):
    """Work arrays for the cells of a row that are hidden in turn."""

    depth: Any  # (m,) int64: how many used atoms have a one in each column
    saved: Any  # (m,) int64: by how much an atom lowers the cost of each of its cells
    sums: Any  # (m,) int64: the same of all its cells of a variable, at the first column of the variable


class Sampling(NamedTuple):
    """How codes are sampled."""

    skipped: Any  # the first sweeps over the atoms, which do not count
    kept: Any  # sweeps that count


@inline
def _product(depth, covers):
    """Return the product in a column in which this many used atoms have a one."""
    return depth & 1 if not covers else min(depth, 1)


@inline
def _start_row(cells, codes, j, atoms, bias, covers, costs, scratch):
    """Fill the work arrays for row j; return its cost and the number of atoms that it uses."""
    depth, flips = scratch
    fill(depth, 0)
    cost, n_used = 0, 0
    for k in range(codes.shape[1]):
        cost += costs.uses[codes[j, k], k]
        if codes[j, k]:
            n_used += 1
            for at in range(atoms.starts[k], atoms.starts[k + 1]):
                depth[atoms.columns[at]] += 1
    for i in range(depth.shape[0]):
        predicted, value = bias[i] ^ _product(depth[i], covers), cells[j, i]
        cost += costs.cells[value, predicted, i]
        flips[i] = costs.cells[value, 1 - predicted, i] - costs.cells[value, predicted, i]
    return cost, n_used


@inline
def _toggle_cost(used, k, atoms, covers, costs, scratch):
    """Return by how much the cost rises if atom k is toggled."""
    rise = costs.uses[1 - used, k] - costs.uses[used, k]
    for at in range(atoms.starts[k], atoms.starts[k + 1]):
        i = atoms.columns[at]
        if not covers or scratch.depth[i] == used:  # under OR, no other used atom has the column
            rise += scratch.flips[i]
    return rise


@inline
def _toggle(used, k, atoms, covers, scratch):
    """Toggle atom k in the work arrays."""
    for at in range(atoms.starts[k], atoms.starts[k + 1]):
        i = atoms.columns[at]
        if not covers or scratch.depth[i] == used:
            scratch.flips[i] = -scratch.flips[i]
        scratch.depth[i] += 1 - 2 * used


@kernel
def shorten_codes(cells, codes, atoms, bias, covers, max_atoms, costs, scratch, out):
    """Toggle the atom that lowers the cost of a row most, until none does; out[j] = cost of row j.

    ``cells`` (n, m) are 0, 1 or 2 (unknown), ``codes`` (n, p) are changed in place. A row that uses ``max_atoms`` atoms
    can only drop atoms. With ``max_atoms`` = -1 no code changes.
    """
    cells, codes, atoms, bias, costs, scratch, out = view((cells, codes, atoms, bias, costs, scratch, out))
    for j in range(cells.shape[0]):
        cost, n_used = _start_row(cells, codes, j, atoms, bias, covers, costs, scratch)
        while max_atoms >= 0:
            lowest, best = 0, -1
            for k in range(codes.shape[1]):
                used = codes[j, k]
                if used or n_used < max_atoms:
                    rise = _toggle_cost(used, k, atoms, covers, costs, scratch)
                    if rise < lowest:
                        lowest, best = rise, k
            if best < 0:
                break
            used = codes[j, best]
            _toggle(used, best, atoms, covers, scratch)
            codes[j, best] = 1 - used
            n_used += 1 - 2 * used
            cost += lowest
        out[j] = cost


@inline
def _uniform(state):
    """Return the random number of a state, between 0 and 1."""
    return float(random_bits(state) >> np.uint64(11)) * _TO_UNIT_INTERVAL


@inline
def _seed(cells, j):
    """Return a state that depends only on the cells of row j, so that it does not depend on chunks and threads."""
    state = np.uint64(cells.shape[1])
    for i in range(cells.shape[1]):
        state = random_bits(next_state(state ^ np.uint64(cells[j, i])))
    return state


@inline
def _add_predictions(weight, bias, covers, scratch, ones):
    """Add the weight of the current code to the cells that it predicts to be one."""
    for i in range(ones.shape[0]):
        if bias[i] ^ _product(scratch.depth[i], covers):
            ones[i] += weight


@kernel
def average_all_codes(cells, codes, atoms, bias, covers, max_atoms, costs, unit, scratch, out):
    """out[j, i] = probability that cell i of row j is predicted to be one, over all codes of at most max_atoms atoms.

    ``cells`` (n, m) are 0, 1 or 2 (unknown). ``codes`` (n, p) are zeros, and are changed. A code has the weight
    2^(-cost / unit).
    """
    cells, codes, atoms, bias, costs, unit, scratch, out = view((cells, codes, atoms, bias, costs, unit, scratch, out))
    n_codes = np.int64(1) << np.int64(codes.shape[1])
    for j in range(cells.shape[0]):
        fill(out[j], 0.0)
        lowest, total = np.int64(0), 0.0
        for is_second in range(2):  # the first round finds the lowest cost
            fill(codes[j], 0)
            cost, n_used = _start_row(cells, codes, j, atoms, bias, covers, costs, scratch)
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
                cost += _toggle_cost(used, k, atoms, covers, costs, scratch)
                _toggle(used, k, atoms, covers, scratch)
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
    cells, codes, atoms, bias, costs, unit, sampling, scratch, out = view(
        (cells, codes, atoms, bias, costs, unit, sampling, scratch, out)
    )
    n_atoms = codes.shape[1]
    for j in range(cells.shape[0]):
        fill(out[j], 0.0)
        state = _seed(cells, j)
        _, n_used = _start_row(cells, codes, j, atoms, bias, covers, costs, scratch)
        for sweep in range(sampling.skipped + sampling.kept):
            for k in range(n_atoms):
                used = np.int64(codes[j, k])
                rise = _toggle_cost(used, k, atoms, covers, costs, scratch)
                state = next_state(state)
                fits = n_used + 1 - 2 * used <= max_atoms
                if fits and _uniform(state) < 1.0 / (1.0 + math.exp(_LOG_2 * min(rise / unit, _IMPOSSIBLE))):
                    _toggle(used, k, atoms, covers, scratch)
                    codes[j, k] = 1 - used
                    n_used += 1 - 2 * used
                    used, rise = 1 - used, -rise
                state = next_state(state)
                other = np.int64(_uniform(state) * n_atoms)
                other_used = np.int64(codes[j, other])
                if other == k or n_used + 2 - 2 * used - 2 * other_used > max_atoms:
                    continue
                _toggle(used, k, atoms, covers, scratch)
                rise += _toggle_cost(other_used, other, atoms, covers, costs, scratch)
                state = next_state(state)
                if rise <= 0 or _uniform(state) < math.exp(-_LOG_2 * rise / unit):
                    _toggle(other_used, other, atoms, covers, scratch)
                    codes[j, k], codes[j, other] = 1 - used, 1 - other_used
                    n_used += 2 - 2 * used - 2 * other_used
                else:
                    _toggle(1 - used, k, atoms, covers, scratch)
            if sweep >= sampling.skipped:
                _add_predictions(1.0 / sampling.kept, bias, covers, scratch, out[j])


@inline
def _weigh_atom(cells, j, k, atoms, bias, covers, costs, used, first, scratch):
    """Fill the work arrays with what atom k saves in row j; return how much it saves in all its cells together."""
    total = 0
    for at in range(atoms.starts[k], atoms.starts[k + 1]):
        i = atoms.columns[at]
        without = bias[i] ^ _product(scratch.depth[i] - used, covers)
        with_atom = 1 - bias[i] if covers else 1 - without
        saved = costs.cells[cells[j, i], without, i] - costs.cells[cells[j, i], with_atom, i]
        scratch.saved[i] = saved
        scratch.sums[first[i]] = 0
        total += saved
    for at in range(atoms.starts[k], atoms.starts[k + 1]):
        i = atoms.columns[at]
        scratch.sums[first[i]] += scratch.saved[i]
    return total


@inline
def _evidence_of_parts(codes, j, k, i, atoms, parts, covers, costs, first, unit, scratch):
    """Return the bits of evidence for atom k, its variable of column i hidden, from its parts in the code of row j.

    Where the atom is used, each of them may be used or not.
    """
    evidence = 0.0
    for at in range(parts.starts[k], parts.starts[k + 1]):
        part = parts.columns[at]
        if codes[j, part] == 0:
            continue
        dropped = costs.uses[1, part] - costs.uses[0, part]  # what it saves to drop the part
        if not covers:  # what the atom changes in these columns, it then does not
            for own in range(atoms.starts[part], atoms.starts[part + 1]):
                if first[atoms.columns[own]] != first[i]:
                    dropped -= scratch.saved[atoms.columns[own]]
        bits = dropped / unit
        evidence += max(bits, 0.0) + math.log1p(math.exp(-_LOG_2 * abs(bits))) / _LOG_2
    return evidence


@kernel
def hide_cells(cells, codes, atoms, parts, bias, covers, costs, first, unit, scratch, out):
    """out[j, i] = product over atoms with a one in column i of what is known of their use if cell i of row j is hidden.

    Under OR it is the probability that none of them is used; under XOR, the probability that an even number of them is,
    less that an odd number is. An atom is used with a probability that follows from the other cells of its columns, the
    other atoms of the code, and its uses. ``first`` is the first column of the variable of each column: cells of a
    variable are hidden together. ``parts`` lists for each atom those whose columns it has, too.
    """
    cells, codes, atoms, parts, bias, costs, first, scratch, out = view(
        (cells, codes, atoms, parts, bias, costs, first, scratch, out)
    )
    for j in range(cells.shape[0]):
        fill(out[j], 1.0)
        fill(scratch.depth, 0)
        for k in range(codes.shape[1]):
            if codes[j, k]:
                for at in range(atoms.starts[k], atoms.starts[k + 1]):
                    scratch.depth[atoms.columns[at]] += 1
        for k in range(codes.shape[1]):
            total = _weigh_atom(cells, j, k, atoms, bias, covers, costs, np.int64(codes[j, k]), first, scratch)
            total += costs.uses[0, k] - costs.uses[1, k]
            has_parts = False
            for at in range(parts.starts[k], parts.starts[k + 1]):
                has_parts |= codes[j, parts.columns[at]] != 0
            for at in range(atoms.starts[k], atoms.starts[k + 1]):
                i = atoms.columns[at]
                evidence = (total - scratch.sums[first[i]]) / unit
                if has_parts:
                    evidence += _evidence_of_parts(codes, j, k, i, atoms, parts, covers, costs, first, unit, scratch)
                if evidence > _NO_EVIDENCE:
                    odds = math.exp(_LOG_2 * min(evidence, _MAX_BITS))
                    out[j, i] *= (1.0 if covers else 1.0 - odds) / (1.0 + odds)
