"""Code rows on a device: the functions of ``kernels/cpu`` that code rows, for all rows at once.

They leave ``users`` as it is. Rows are `RowArrays` of arrays of the device, atoms are `AtomTables`. The bits are those
of the processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..structs import REFUSED, CodingRule, ColumnDraw, Prices, RowArrays
from .device import WARP, Device, warps_per_block
from .rows import MAX_FACTOR, MAX_SUM, masks, or_none, rows_at_a_time, unpacked

MAX_EXACT_ATOMS = 16  # for which all codes are tried
_MAX_WARPS = 1 << 14  # of beams at a time: as many as the largest devices run
_WORK_BYTES = 1 << 30  # for the partial codes of all warps, at most
_ROWS_PER_LAUNCH = 1 << 19
_MAX_NARROW = 1 << 30  # scores up to this are computed with 32 bits
_ENTRIES = (1, 2, 4, 8)  # candidates per thread for which kernels are compiled
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

    @property
    def has_own_costs(self) -> bool:
        """Whether missed and added ones have prices of their own."""
        return self.prices is not None and self.prices.own_costs()


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
    device: Device, rows: RowArrays, atoms: AtomTables, rule: CodingRule, stale_only: bool = False, indices: Any = None
) -> tuple[int, int]:
    """Code rows from their codes: all, those with these indices, or the stale ones.

    Return the numbers of changed code and error bits.
    """
    changes = device.xp.zeros(2, np.uint64)
    if indices is not None:
        n = len(indices)
        _launch(device, "code_rows", n, rows, atoms, rule, indices, None, np.int64(n), changes)
    else:
        for _, n, part, shares in _with_shares(device, rows, atoms, rule):
            stale = part.stale if stale_only else None
            _launch(device, "code_rows", n, part, atoms, rule, None, stale, np.int64(n), changes, shares=shares)
    return _changed_bits(device, changes)


def _changed_bits(device: Device, changes: Any) -> tuple[int, int]:
    """Return the numbers of code and error bits that a kernel counted."""
    codes, errors = device.to_host(changes).tolist()
    return codes, errors


def _with_shares(
    device: Device, rows: RowArrays, atoms: AtomTables, rule: CodingRule
) -> Iterator[tuple[int, int, RowArrays, Any]]:
    """Yield chunks of rows: the first row, their number, the rows, and what each atom shares with each of them.

    The last, the part of gains that is a product, is None where it may not be exact, or where different errors have
    different prices.
    """
    n, n_features = rows.errors.shape[0], len(atoms.columns)
    if atoms.shared is None:
        yield 0, n, rows, None
        return
    size = rows_at_a_time(device, n_features + 2 * WARP * atoms.gains)
    for start in range(0, n, size):
        part = RowArrays(*(array if array is None else array[start : start + size] for array in rows))
        fixed = part.covered if rule.covers else or_none(part.unknown)
        shares = device.matmul(unpacked(device, part.errors, n_features, fixed, doubled=True), atoms.shared)
        yield start, len(part.errors), part, shares


def code_without(
    device: Device,
    rows: RowArrays,
    atoms: AtomTables,
    rule: CodingRule,
    tested: NDArray[np.intp],
    tests: NDArray[np.intp],
    indices: NDArray[np.intp],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return by how much errors, added ones and uses change if rows are coded without an atom; see the processor's."""
    xp, n_features = device.xp, len(atoms.columns)
    wrong, uses = xp.zeros((len(tested), n_features), np.int64), xp.zeros((len(tested), atoms.n_atoms), np.int64)
    added = xp.zeros_like(wrong) if atoms.has_own_costs else None
    lists = (device.asarray(array.astype(np.int64)) for array in (indices, tests, tested))
    n = len(indices)
    _launch(device, "code_without", n, rows, atoms, rule, *lists, np.int64(n), np.int32(n_features), wrong, added, uses)
    none = np.zeros((0, n_features), np.int64)
    return device.to_host(wrong), none if added is None else device.to_host(added), device.to_host(uses)


def offer_atoms(device: Device, rows: RowArrays, atoms: AtomTables, rule: CodingRule) -> Any:
    """Return the atoms each of which would gain, added to a row alone: packed, one row for each row."""
    offers = device.xp.zeros((len(rows.errors), 2 * -(-atoms.gains // 2)), np.uint32)
    for start, n, part, shares in _with_shares(device, rows, atoms, rule):
        found = device.xp.empty((n, atoms.gains), np.uint32)
        _launch(device, "offer_atoms", n, part, atoms, rule, np.int64(n), found, shares=shares)
        offers[start : start + n, : atoms.gains] = found
    return device.xp.ascontiguousarray(offers.view(np.uint64)[:, : -(-atoms.n_atoms // 64)])


def rate_atoms(device: Device, rows: RowArrays, atoms: AtomTables, rule: CodingRule) -> NDArray[np.int64]:
    """Return how many errors each atom, used where it gains, would remove."""
    totals = device.xp.zeros(atoms.n_atoms, np.int64)
    for _, n, part, shares in _with_shares(device, rows, atoms, rule):
        _launch(device, "rate_atoms", n, part, atoms, rule, np.int64(n), totals, shares=shares)
    return device.to_host(totals)


def find_nearest(device: Device, rows: RowArrays, patterns: AtomTables, rule: CodingRule) -> Any:
    """Return the lowest pattern that, alone, lowers the cost of each row most, or -1; on the device."""
    nearest = device.xp.empty(len(rows.errors), np.int64)
    for start, n, part, shares in _with_shares(device, rows, patterns, rule):
        _launch(device, "find_nearest", n, part, patterns, rule, np.int64(n), nearest[start:], shares=shares)
    return nearest


def price_rows(device: Device, rows: RowArrays, prices: Prices, covers: bool) -> Any:
    """Return the cost of each row: of its errors and of the atoms it uses; on the device."""
    n, m = len(rows.errors), len(prices.bits)
    tables = AtomTables(None, None, None, device.xp.empty((m, 1), np.uint32), 0, _on_device(device, prices))
    costs = device.xp.empty(n, np.int64)
    _launch(device, "price_rows", n, rows, tables, CodingRule(covers, False, 0, 0, prices), np.int64(n), costs)
    return costs


def words_per_row(n_words: int, n_code_words: int) -> int:
    """Return the most words that a warp needs to code a row."""
    return 6 * n_words + 2 * n_code_words


def macros(
    covers: bool, unknown: bool, priced: bool, gains: int = 1, own_costs: bool = False, by_ratio: bool = False
) -> dict[str, int]:
    """Return the macros of the variant of a kernel that codes rows, with ``gains`` atoms per thread."""
    flags = {"COVERS": covers, "UNKNOWN": unknown, "PRICED": priced, "OWN_COSTS": own_costs, "BY_RATIO": by_ratio}
    return {"GAINS": gains, "REFUSED": REFUSED} | {name: int(flag) for name, flag in flags.items()}


def _macros_of(rows: RowArrays, atoms: AtomTables, rule: CodingRule) -> dict[str, int]:
    """Return the macros of the variant of a kernel."""
    priced, own_costs = atoms.prices is not None, atoms.has_own_costs
    return macros(rule.covers, len(rows.unknown) > 0, priced, atoms.gains, own_costs, rule.by_ratio)


def _state_arguments(rows: RowArrays, atoms: AtomTables, rule: CodingRule, shares: Any = None) -> tuple[Any, ...]:
    """Return the arguments by which kernels get rows, atoms and the rule."""
    bits = uses = added = mean = forbidden = None
    if atoms.prices is not None:
        bits, uses = atoms.prices.bits, atoms.prices.uses
        if atoms.has_own_costs:
            added, mean = atoms.prices.added, atoms.prices.mean
            forbidden = or_none(atoms.prices.forbidden)
    return (
        rows.errors, rows.codes, *masks(rows), or_none(rows.unknown), np.int32(rows.errors.shape[1]),
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
    rule: CodingRule,
    *arguments: Any,
    shares: Any = None,
) -> None:
    shared = 8 * words_per_row(rows.errors.shape[1], rows.codes.shape[1])
    given = *_state_arguments(rows, atoms, rule, shares), *arguments
    device.launch("coding.cu", kernel, n_warps, *given, shared=shared, **_macros_of(rows, atoms, rule))


def _on_device(device: Device, prices: Prices) -> Prices:
    return Prices(*(device.asarray(array) for array in prices))


def _gains(n_atoms: int) -> int:
    """Return the number of atoms per thread: one of few, so that few variants of kernels are compiled."""
    needed = max(1, -(-n_atoms // WARP))
    return next((variant for variant in _VARIANTS if variant >= needed), -(-needed // 128) * 128)


def beam_rows(
    device: Device, rows: RowArrays, atoms: AtomTables, rule: CodingRule, fingerprints: Any, width: int, patience: int
) -> tuple[int, int]:
    """Beam-code the stale rows under XOR, and keep a new code where it costs less than the current one.

    ``fingerprints`` are those of the atoms. A row is done after ``patience`` levels without a better code. Return the
    numbers of changed code and error bits. ``stale`` is left as it is.
    """
    xp = device.xp
    n_words, n_code_words = rows.errors.shape[1], rows.codes.shape[1]
    indices = xp.flatnonzero(rows.stale)
    changes = xp.zeros(2, np.uint64)
    shared = 8 * (4 * n_words + 2 * n_code_words + 2 * width + (width + 1) // 2)
    n_work = 2 * width * (WARP // 2 * atoms.gains + n_words + n_code_words)
    n_warps = _n_warps(len(indices), 8 * n_work, device.free_bytes(), warps_per_block(shared))
    work = xp.empty(n_warps * n_work, np.uint64)
    for start in range(0, len(indices), _ROWS_PER_LAUNCH):
        some = indices[start : start + _ROWS_PER_LAUNCH]
        given = some, np.int64(len(some)), fingerprints, np.int32(width), np.int32(patience), work, changes
        arguments, variant = _state_arguments(rows, atoms, rule), _macros_of(rows, atoms, rule)
        variant |= {"ENTRIES": _entries(width), "WIDE_SCORES": int(_largest_score(rule) > _MAX_NARROW)}
        device.launch("beam.cu", "beam_rows", n_warps, *arguments, *given, shared=shared, **variant)
        device.to_host(changes)  # wait: Ctrl-C takes effect between launches
    return _changed_bits(device, changes)


def _n_warps(n_rows: int, bytes_per_warp: int, free_bytes: int, per_block: int) -> int:
    """Return how many warps to start: a multiple of those in a block, each with its work memory."""
    n_fitting = min(_WORK_BYTES, free_bytes // 4) // bytes_per_warp
    n_blocks = -(-min(n_rows, n_fitting, _MAX_WARPS) // per_block)
    return per_block * (max(1, n_blocks) if n_rows else 0)


def _largest_score(rule: CodingRule) -> int:
    """Return the most that codes of a row can differ in cost."""
    assert rule.prices is not None
    return int(rule.prices.bits.sum(dtype=np.int64)) + int(rule.prices.uses.sum(dtype=np.int64))


def _entries(width: int) -> int:
    """Return the number of candidates per thread: one of few, so that few variants of the kernel are compiled."""
    needed = -(-width // WARP)
    return next((variant for variant in _ENTRIES if variant >= needed), -(-needed // 8) * 8)


def code_rows_exactly(device: Device, rows: RowArrays, atom_words: Any, rule: CodingRule) -> tuple[int, int]:
    """Set each stale row to the best of all codes; return the numbers of changed code and error bits.

    There are at most `MAX_EXACT_ATOMS` atoms. Rows are not stale afterwards.
    """
    xp, covers, atom_words = device.xp, bool(rule.covers), device.asarray(atom_words)
    (n, n_words), n_atoms = rows.errors.shape, len(atom_words)
    assert n_atoms <= MAX_EXACT_ATOMS
    half = (n_atoms + 1) // 2
    low, high = _products(xp, atom_words[:half], covers), _products(xp, atom_words[half:], covers)
    within = _products(xp, atom_words[:half], True)[:, -1].copy()
    changes = xp.zeros(2, np.uint64)
    device.launch(
        "exact.cu", "code_rows_exactly", n, rows.errors, rows.codes, *masks(rows),
        or_none(rows.unknown), np.int32(n_words), atom_words, np.int32(n_atoms), low, high,
        within, np.int32(low.shape[1]), np.int32(high.shape[1]), np.int64(rule.max_atoms),
        np.int64(rule.residual_limit), rows.stale, np.int64(n), changes, shared=8 * (6 * n_words + 1),
        **macros(covers, len(rows.unknown) > 0, priced=False),
    )  # fmt: skip
    return _changed_bits(device, changes)


def _products(xp: Any, atom_words: Any, covers: bool) -> Any:
    """Return the products of all codes and these atoms: (words, codes)."""
    products = xp.zeros((atom_words.shape[1], 1), np.uint64)
    for atom in atom_words:
        rest = products | atom[:, None] if covers else products ^ atom[:, None]
        products = xp.concatenate([products, rest], axis=1)
    return xp.ascontiguousarray(products)


def code_from_columns(
    device: Device, rows: RowArrays, targets: Any, rule: CodingRule, draws: list[ColumnDraw], slack: int
) -> None:
    """Code all rows from the columns of each draw, in order, and keep a code that costs less than the current one.

    ``targets`` are the rows less the bias, on the device; the draws are of the same atoms. Codes with over ``slack``
    more errors than the current one are passed over. ``stale`` is left as it is.
    """
    assert rule.prices is not None
    n, n_words = rows.errors.shape
    n_code_words, rank = rows.codes.shape[1], len(draws[0].pivots)  # the rank is that of the atoms
    tables = (
        [draw.pivots for draw in draws], [draw.reduced.T for draw in draws], [draw.sums.T for draw in draws],
        [draw.products for draw in draws], [draw.codes for draw in draws],
    )  # fmt: skip
    stacked = (device.asarray(np.ascontiguousarray(np.stack(table))) for table in tables)
    device.launch(
        "information_sets.cu", "code_from_columns", n, rows.errors, rows.codes,
        or_none(rows.unknown), np.int32(n_words), np.int32(n_code_words), targets,
        device.asarray(rule.prices.bits), device.asarray(rule.prices.uses), np.int64(rule.max_atoms),
        *stacked, np.int32(rank), np.int32(len(draws)), np.int32(slack),
        np.int64(n), shared=8 * (5 * n_words + 2 * n_code_words + 2 * -(-rank // WARP)),
        **macros(False, len(rows.unknown) > 0, priced=True),
    )  # fmt: skip
