"""Rows coded without some of the atoms, and trials of that: as if an atom had a price at which no row uses it.

A trial of an atom codes its users without it, and ends early if it is clear that this costs more than it is worth. On
the host, a kernel makes trials one after the other, in each thread. A device makes some at once.
"""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import coding as cpu_coding
from ..kernels.cpu import removal
from ..kernels.cpu.removal import DOUBT, GOES_ON, MORE_ROWS, ROUNDING, USELESS
from ..kernels.gpu import coding as gpu_coding
from ..kernels.structs import (
    REFUSED,
    CodingRule,
    CodingScratch,
    Prices,
    RemovalCosts,
    RemovalCounts,
    RowArrays,
    coding_scratch,
)
from ..parallel import MAX_CHUNK_NS
from .device_rows import DeviceRows
from .host_rows import HostRows, apart
from .row_state import Words

_FIRST_ROWS = 16  # users coded first in a trial
_MIN_AT_ONCE, _MAX_AT_ONCE = 8, 512  # trials that a device makes at once,
_MAX_CELLS = 1 << 21  # and columns and atoms that it counts for them


class _Work(NamedTuple):
    """What a thread needs for itself: prices, which it changes, and work arrays."""

    prices: Prices
    row: RowArrays
    counts: RemovalCounts
    listed: NDArray[np.intp]
    scratch: CodingScratch


class HostRemoval:
    """Codes rows without atoms, in the memory of the host."""

    _max_call_ns = MAX_CHUNK_NS  # of the kernel, so that Ctrl-C takes effect soon

    def __init__(self, rows: HostRows, atoms: Words, rule: CodingRule) -> None:
        assert rule.prices is not None
        self._rows, self._rule, self._row_cost, self._prices = rows, rule, rows.code_cost(), rule.prices
        self._tables = rows.priced(atoms, rule.prices)
        self._work: dict[int, _Work] = {}  # by thread

    def first_useless(
        self, tried: NDArray[np.intp], worth: NDArray[np.int64], costs: RemovalCosts
    ) -> tuple[int, RemovalCounts | None]:
        """Return the index of the first of these atoms without which all costs no more, and what changes without it.

        ``worth`` is what each atom costs, apart from errors and uses of others. If all atoms are useful, return their
        number and None.
        """
        first, found = np.array([len(tried)]), {}
        n_users = self._rows.uses()[tried]
        most_users = int(n_users.max(initial=0))
        rows_per_call = 1 + int(self._max_call_ns / self._row_cost)

        def find(start: int, stop: int) -> None:
            work, progress = self._work_of_thread(most_users), np.array([start, 0, 0])
            how = self._rows._read, self._tables, self._rule._replace(prices=work.prices), costs
            own = progress, work.row, work.counts, work.listed, work.scratch
            ended = GOES_ON
            while ended == GOES_ON:
                self._rows.workers.check_deadline()
                ended = removal.try_without(*how, tried, worth, stop, _FIRST_ROWS, rows_per_call, first, *own)
            if ended == USELESS:
                found[int(progress[0])] = RemovalCounts(*(counts.copy() for counts in work.counts))

        n_coded = float(np.minimum(n_users, _FIRST_ROWS * MORE_ROWS).mean()) if len(tried) else 0.0
        self._rows.workers.map_rows(find, len(tried), n_coded * self._row_cost, 1)
        index = min(found, default=len(tried))
        return index, found.get(index)

    def code_without(self, k: int) -> None:
        """Code the users of atom k without it, which cannot be used from now on."""
        for prices in (self._prices, *(work.prices for work in self._work.values())):
            prices.uses[k] = REFUSED
        rows = self._rows
        (users,) = _ones(rows._read.users[k : k + 1], rows.n_rows)

        def code(start: int, stop: int) -> None:
            own = users[slice(*np.searchsorted(users, (start, stop)))]
            scratch = coding_scratch(rows._read, self._tables)
            cpu_coding.code_at_prices(rows.arrays, self._tables, self._rule, own, False, scratch)

        rows.map(code, self._row_cost * len(users) / max(1, rows.n_rows))

    def _work_of_thread(self, most_users: int) -> _Work:
        """Return the prices and work arrays of this thread, allocated once."""
        work = self._work.get(threading.get_ident())
        if work is None or len(work.listed) < most_users:
            rows = self._rows._read
            row = RowArrays(*(np.zeros((min(1, len(array)), *array.shape[1:]), array.dtype) for array in rows))
            n_added = self._rows.n_features if self._prices.own_costs() else 0
            sizes = self._rows.n_features, n_added, self._rows.n_atoms
            work = _Work(
                self._prices._replace(uses=self._prices.uses.copy()),
                row._replace(users=np.zeros((self._rows.n_atoms, 1), np.uint64)),
                RemovalCounts(*(np.zeros(size, np.int64) for size in sizes)),
                np.empty(most_users, np.intp),
                coding_scratch(rows, self._tables),
            )
            self._work[threading.get_ident()] = work
        return work


class DeviceRemoval:
    """Codes rows without atoms, on a device."""

    def __init__(self, rows: DeviceRows, atoms: Words, rule: CodingRule) -> None:
        assert rule.prices is not None
        self._rows, self._rule, self._tables = rows, rule, rows.priced(atoms, rule.prices)

    def first_useless(
        self, tried: NDArray[np.intp], worth: NDArray[np.int64], costs: RemovalCosts
    ) -> tuple[int, RemovalCounts | None]:
        """Return the same as `HostRemoval.first_useless`, by trials of some atoms at once."""
        n_kept, n_at_once = 0, _MIN_AT_ONCE
        while n_kept < len(tried):
            some = tried[n_kept : n_kept + min(n_at_once, self._most_at_once(tried[n_kept:], costs))]
            n_useful, counts = self._try(some, worth[n_kept : n_kept + len(some)], costs)
            n_kept += n_useful
            if counts is not None:
                return n_kept, counts
            n_at_once *= 2
        return n_kept, None

    def _most_at_once(self, tried: NDArray[np.intp], costs: RemovalCosts) -> int:
        """Return how many atoms may be tried at once: counts and the indices of their users take memory."""
        most = min(_MAX_AT_ONCE, _MAX_CELLS // (self._rows.n_features + self._rows.n_atoms))
        n_users = np.cumsum(costs.uses[tried[:most]])
        return max(1, int(np.searchsorted(n_users, self._rows.n_rows, side="right")))

    def _try(
        self, tried: NDArray[np.intp], worth: NDArray[np.int64], costs: RemovalCosts
    ) -> tuple[int, RemovalCounts | None]:
        """Return how many of these atoms are useful, up to the first one that is useless, and what it changes."""
        n_kept, useless = len(tried), None
        left, n_users = np.arange(n_kept), costs.uses[tried]
        users = [apart(own) for own in _ones(self._rows.users(tried), self._rows.n_rows)]
        n_coded, n_wanted, counts = 0, _FIRST_ROWS, None
        while len(left):
            some = [users[i][n_coded:n_wanted] for i in left.tolist()]
            tests = np.repeat(np.arange(len(left)), [len(each) for each in some])
            how = self._rows.device, self._rows._read, self._tables, self._rule
            more = gpu_coding.code_without(*how, tried[left], tests, np.concatenate(some))
            counts = RemovalCounts(*(more if counts is None else map(np.add, counts, more)))
            is_done = n_users[left] <= n_wanted
            share = n_wanted / np.maximum(1, n_users[left]) * (1 + DOUBT / math.sqrt(n_wanted))
            fails = increase(costs, tried[left], counts) > np.where(is_done, 1, np.minimum(1, share)) * worth[left]
            is_useless = is_done & ~fails
            if is_useless.any():
                first = int(is_useless.argmax())
                n_kept, useless = int(left[first]), RemovalCounts(*(each[first : first + 1].ravel() for each in counts))
            goes_on = ~is_done & ~fails & (left < n_kept)
            left, counts = left[goes_on], RemovalCounts(*(each[goes_on[: len(each)]] for each in counts))
            n_coded, n_wanted = n_wanted, MORE_ROWS * n_wanted
        return n_kept, useless

    def code_without(self, k: int) -> None:
        """Code the users of atom k without it, which cannot be used from now on."""
        (users,) = _ones(self._rows.users(np.array([k])), self._rows.n_rows)
        self._tables.prices.uses[k] = REFUSED
        self._rows._code(self._tables, self._rule, indices=self._rows.asarray(users))


def increase(costs: RemovalCosts, tried: NDArray[np.intp], counts: RemovalCounts) -> NDArray[np.int64]:
    """Return by how much errors, and uses of other atoms, cost more after the changes without each of these atoms.

    It is what the kernel computes, to the bit.
    """
    errors = _error_bits(costs, costs.wrong + counts.wrong) - _error_bits(costs, costs.wrong)
    if len(costs.missed):
        errors += (counts.wrong - counts.added) * costs.missed + counts.added * costs.added
    total: NDArray[np.int64] = errors.sum(axis=1)
    if len(costs.logs):
        lengths = np.full(len(costs.uses), costs.n_rows)
        uses = _string_bits(costs.logs, lengths, costs.uses + counts.uses)
        uses -= _string_bits(costs.logs, lengths, costs.uses)
        uses[np.arange(len(tried)), tried] = 0
        total += uses.sum(axis=1)
    return total


def _error_bits(costs: RemovalCosts, wrong: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cost of the errors of each column, without what is the same for all numbers of them."""
    if not len(costs.logs):
        return wrong.copy()
    few = wrong if costs.has_bias else np.minimum(wrong, costs.known // 3)
    return _string_bits(costs.logs, costs.known, few) + (wrong - few)


def _string_bits(logs: NDArray[np.float64], lengths: NDArray[np.int64], ones: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bits of strings with these numbers of ones that depend on the number."""
    return np.ceil(logs[lengths] - logs[ones] - logs[lengths - ones] - ROUNDING).astype(np.int64)


def _ones(words: Words, n_bits: int) -> list[NDArray[np.intp]]:
    """Return the indices of the ones of each of these packed rows."""
    sparse = BitMatrix.from_words(words, n_bits, check=False).to_sparse()
    return np.split(sparse.indices.astype(np.int64), sparse.indptr[1:-1])
