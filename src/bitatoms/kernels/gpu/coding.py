"""Code rows on a device: the functions of ``kernels/cpu/coding.py``, for all rows at once.

Rows are `RowArrays` of arrays of the device, atoms are `AtomTables`. The bits are those of the processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..structs import Prices, RowArrays, Rule
from .device import WARP, Device
from .products import MAX_FACTOR, MAX_SUM, rows_at_a_time, unpacked

REFUSED = 1 << 27  # a price at which no row uses an atom
_VARIANTS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # atoms per thread for which kernels are compiled


class AtomTables(NamedTuple):
    """The atoms on a device, and tables by which rows are coded with them."""

    words: Any  # (p, words)
    weights: Any  # (lanes,) int32: at prices
    overlaps: Any  # (p, lanes) int32: bits that two atoms share, at prices, doubled under XOR
    columns: Any  # (m, lanes / 32) uint32: the atoms that have each feature
    n_atoms: int
    prices: Prices | None  # on the device
    shared: Any = None  # (m, lanes) float16: the price of each feature that an atom has; None if sums may not be exact

    @property
    def gains(self) -> int:
        """The number of atoms per thread."""
        return int(self.columns.shape[1])


def atom_tables(
    device: Device, words: NDArray[np.uint64], n_features: int, covers: bool, prices: Prices | None = None
) -> AtomTables:
    """Return the tables of atoms for coding at these prices, or at one price for all."""
    n_atoms = len(words)
    n_gains = _gains(n_atoms)
    padded = np.zeros((WARP * n_gains, n_features), np.uint8)
    padded[:n_atoms] = np.unpackbits(words.view(np.uint8), axis=1, count=n_features, bitorder="little")
    columns = np.packbits(np.ascontiguousarray(padded.T), axis=1, bitorder="little").view(np.uint32)
    bits = np.ones(n_features, np.int32) if prices is None else prices.bits
    added = bits if prices is None or not prices.own_costs() else prices.added
    dense = device.asarray(padded).astype(np.int32)
    overlaps = (dense[:n_atoms] * device.asarray(bits)) @ dense.T
    if not covers:
        overlaps *= 2
    on_device = None
    if prices is not None:
        uses = np.zeros(WARP * n_gains, np.int32)
        uses[:n_atoms] = prices.uses[:n_atoms]
        on_device = _on_device(device, prices._replace(uses=uses))
    weights = dense @ device.asarray(added)
    shared = None
    if added is bits and bits.max(initial=0) <= MAX_FACTOR and 2 * int(bits.sum(dtype=np.int64)) < MAX_SUM:
        shared = device.xp.zeros((-(-n_features // 8) * 8, len(dense)), np.float16)
        shared[:n_features] = (dense * device.asarray(bits)).T
    return AtomTables(device.asarray(words), weights, overlaps, device.asarray(columns), n_atoms, on_device, shared)


def code_rows(
    device: Device, rows: RowArrays, atoms: AtomTables, rule: Rule, stale_only: bool = False, indices: Any = None
) -> tuple[int, int]:
    """Code rows from their codes: all, those with these indices, or the stale ones.

    Return the numbers of changed code and error bits. ``users`` is left as it is.
    """
    changes = device.xp.zeros(2, np.uint64)
    if indices is not None:
        _launch(device, "code_rows", len(indices), rows, atoms, rule, indices, None, np.int64(len(indices)), changes)
    else:
        for part, shares in _with_shares(device, rows, atoms, rule):
            n, stale = len(part.errors), part.stale if stale_only else None
            _launch(device, "code_rows", n, part, atoms, rule, None, stale, np.int64(n), changes, shares=shares)
    codes, errors = device.to_host(changes).tolist()
    return codes, errors


def _with_shares(device: Device, rows: RowArrays, atoms: AtomTables, rule: Rule) -> Iterator[tuple[RowArrays, Any]]:
    """Yield chunks of rows, with what each atom shares with each row of them: the part of gains that is a product.

    It is None where it may not be exact, or where different errors have different prices.
    """
    if atoms.shared is None:
        yield rows, None
        return
    n, n_features = rows.errors.shape[0], len(atoms.columns)
    size = rows_at_a_time(device, n_features + 2 * WARP * atoms.gains)
    for start in range(0, n, size):
        part = RowArrays(*(array if array is None else array[start : start + size] for array in rows))
        fixed = part.covered if rule.covers else part.unknown if len(part.unknown) else None
        yield part, device.matmul(unpacked(device, part.errors, n_features, fixed, doubled=True), atoms.shared)


def code_without(
    device: Device,
    rows: RowArrays,
    atoms: AtomTables,
    rule: Rule,
    tested: NDArray[np.intp],
    tests: NDArray[np.intp],
    indices: NDArray[np.intp],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return by how much errors, added ones and uses change if rows are coded without an atom; see the processor's."""
    xp, n_features = device.xp, len(atoms.columns)
    wrong, uses = xp.zeros((len(tested), n_features), np.int64), xp.zeros((len(tested), atoms.n_atoms), np.int64)
    added = xp.zeros_like(wrong) if _has_own_costs(atoms) else None
    lists = (device.asarray(array.astype(np.int64)) for array in (indices, tests, tested))
    n = len(indices)
    _launch(device, "code_without", n, rows, atoms, rule, *lists, np.int64(n), np.int32(n_features), wrong, added, uses)
    none = np.zeros((0, n_features), np.int64)
    return device.to_host(wrong), none if added is None else device.to_host(added), device.to_host(uses)


def offer_atoms(device: Device, rows: RowArrays, atoms: AtomTables, rule: Rule) -> Any:
    """Return the atoms each of which would gain, added to a row alone: packed, one row for each row."""
    offers, start = device.xp.zeros((len(rows.errors), 2 * -(-atoms.gains // 2)), np.uint32), 0
    for part, shares in _with_shares(device, rows, atoms, rule):
        n = len(part.errors)
        found = device.xp.empty((n, atoms.gains), np.uint32)
        _launch(device, "offer_atoms", n, part, atoms, rule, np.int64(n), found, shares=shares)
        offers[start : start + n, : atoms.gains] = found
        start += n
    return device.xp.ascontiguousarray(offers.view(np.uint64)[:, : -(-atoms.n_atoms // 64)])


def rate_atoms(device: Device, rows: RowArrays, atoms: AtomTables, rule: Rule) -> NDArray[np.int64]:
    """Return how many errors each atom, used where it gains, would remove."""
    totals = device.xp.zeros(atoms.n_atoms, np.int64)
    for part, shares in _with_shares(device, rows, atoms, rule):
        n = len(part.errors)
        _launch(device, "rate_atoms", n, part, atoms, rule, np.int64(n), totals, shares=shares)
    return device.to_host(totals)


def find_nearest(device: Device, rows: RowArrays, patterns: AtomTables, rule: Rule) -> Any:
    """Return the lowest pattern that, alone, lowers the cost of each row most, or -1; on the device."""
    nearest, start = device.xp.empty(len(rows.errors), np.int64), 0
    for part, shares in _with_shares(device, rows, patterns, rule):
        n = len(part.errors)
        _launch(device, "find_nearest", n, part, patterns, rule, np.int64(n), nearest[start:], shares=shares)
        start += n
    return nearest


def price_rows(device: Device, rows: RowArrays, prices: Prices, covers: bool) -> Any:
    """Return the cost of each row: of its errors and of the atoms it uses; on the device."""
    n, m = len(rows.errors), len(prices.bits)
    tables = AtomTables(None, None, None, device.xp.empty((m, 1), np.uint32), 0, _on_device(device, prices))
    costs = device.xp.empty(n, np.int64)
    _launch(device, "price_rows", n, rows, tables, Rule(covers or None, None, 0, 0, prices), np.int64(n), costs)
    return costs


def words_per_row(n_words: int, n_code_words: int) -> int:
    """Return the most words that a warp needs to code a row."""
    return 6 * n_words + 2 * n_code_words


def macros_of(rows: RowArrays, atoms: AtomTables, rule: Rule) -> dict[str, int]:
    """Return the macros of the variant of a kernel."""
    return {
        "GAINS": atoms.gains,
        "COVERS": int(bool(rule.covers)),
        "UNKNOWN": int(len(rows.unknown) > 0),
        "PRICED": int(atoms.prices is not None),
        "OWN_COSTS": int(_has_own_costs(atoms)),
        "BY_RATIO": int(bool(rule.by_ratio)),
        "REFUSED": REFUSED,
    }


def state_arguments(rows: RowArrays, atoms: AtomTables, rule: Rule, shares: Any = None) -> tuple[Any, ...]:
    """Return the arguments by which kernels get rows, atoms and the rule."""
    bits = uses = added = mean = forbidden = None
    if atoms.prices is not None:
        bits, uses = atoms.prices.bits, atoms.prices.uses
        if _has_own_costs(atoms):
            added, mean = atoms.prices.added, atoms.prices.mean
            forbidden = atoms.prices.forbidden if len(atoms.prices.forbidden) else None
    masks = (rows.covered, rows.twice) if rule.covers else (None, None)
    return (
        rows.errors, rows.codes, *masks, rows.unknown if len(rows.unknown) else None, np.int32(rows.errors.shape[1]),
        np.int32(rows.codes.shape[1]), atoms.words, atoms.weights, atoms.overlaps, atoms.columns,
        np.int32(atoms.n_atoms), shares, bits, uses, added, mean, forbidden, np.int64(rule.max_atoms),
        np.int64(rule.residual_limit), np.int32(rule.swaps),
    )  # fmt: skip


def _launch(
    device: Device,
    kernel: str,
    n_warps: int,
    rows: RowArrays,
    atoms: AtomTables,
    rule: Rule,
    *arguments: Any,
    shares: Any = None,
) -> None:
    shared = 8 * words_per_row(rows.errors.shape[1], rows.codes.shape[1])
    given = *state_arguments(rows, atoms, rule, shares), *arguments
    device.launch("coding.cu", kernel, n_warps, *given, shared=shared, **macros_of(rows, atoms, rule))


def _has_own_costs(atoms: AtomTables) -> bool:
    return atoms.prices is not None and len(atoms.prices.added) > 0


def _on_device(device: Device, prices: Prices) -> Prices:
    return Prices(*(device.asarray(array) for array in prices))


def _gains(n_atoms: int) -> int:
    """Return the number of atoms per thread: one of few, so that few variants of kernels are compiled."""
    needed = max(1, -(-n_atoms // WARP))
    return next((variant for variant in _VARIANTS if variant >= needed), -(-needed // 128) * 128)
