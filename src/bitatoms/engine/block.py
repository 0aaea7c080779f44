"""Block: the rows that a search works on, in memory, with the operations that algorithms use."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import packing, words
from ..kernels.gpu.coding import words_per_row
from ..kernels.gpu.device import Device, max_shared_words
from ..kernels.structs import AtomArrays, Covers, Prices, RowArrays, Rule, VoteScratch, covering, vote_scratch
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed
from .codelength import Codelength, codelength_from_counts, spans
from .device_kernels import DeviceKernels
from .host_kernels import HostKernels, read_only

_logger = logging.getLogger(__name__)

Words = NDArray[np.uint64]
RowIndex = slice | NDArray[np.intp]
_ALL = slice(None)
_LANES = 16  # atoms coded at a time
_ROW_COPIES, _CODE_COPIES = 10, 6  # of rows and codes, for which a device must have memory
_MAX_INT16_FEATURES = 32767  # gains of rows up to this wide fit in 16 bits


@dataclass(frozen=True)
class Change:
    """The numbers of bits that a step changed."""

    codes: int = 0
    atoms: int = 0
    errors: int = 0

    def __add__(self, other: Change) -> Change:
        return Change(self.codes + other.codes, self.atoms + other.atoms, self.errors + other.errors)

    def __bool__(self) -> bool:
        return bool(self.codes or self.atoms or self.errors)


class Rest(NamedTuple):
    """The other rows of a table, with at most one feature each: they use no atom, and only their ones are counted."""

    n_rows: int
    ones: NDArray[np.int64]  # (m,): rows that have each feature


class Chunk(NamedTuple):
    """Some of the rows of a block, from this one on, as a block of their own."""

    start: int
    block: Block


class BlockState(NamedTuple):
    """The factors of a block, to restore it from."""

    atoms: Words
    codes: Any  # in the memory of the rows, or of the host


class Block:
    """Samples, their codes and errors, and the atoms they are coded with.

    A block is the mutable state of learning. Its operations keep ``errors = data + bias + codes * atoms`` (sums are
    XOR, the product is in the algebra), and track which rows and atoms are *stale*, so that nothing is recomputed that
    cannot have changed. Unknown cells are never wrong.

    Its ``kernels`` process the rows: `HostKernels`, or `DeviceKernels` if the rows are in the memory of a device. The
    arrays ``_rows`` and ``_atoms`` belong to the block, its kernels and its friends in this package: `engine.coding`,
    `engine.information_sets`, `engine.remembered`, `engine.update`, and `engine.exchange`. Nothing else reads or
    writes them. Counts of the rows are kept until somebody gets ``_rows``, and may change them; what only reads them
    may get ``_read_rows`` instead.

    Parameters
    ----------
    data : BitMatrix of shape (n, m)
    atoms : BitMatrix of shape (p, m)
    codes : BitMatrix of shape (n, p), optional
        The codes to start from; without them no atom is used.
    covers : bool or None
        True for the OR algebra.
    workers : Workers
    bias : BitMatrix of shape (1, m), optional
    rest : Rest, optional
        Further rows of the table, which are only counted.
    """

    # The counts of the rows, None if they may have changed.
    _wrong: NDArray[np.int64] | None
    _uses: NDArray[np.int64] | None

    def __init__(
        self,
        data: BitMatrix,
        atoms: BitMatrix,
        codes: BitMatrix | None,
        covers: bool | None,
        workers: Workers,
        bias: BitMatrix | None = None,
        rest: Rest | None = None,
    ) -> None:
        n, n_words = data.words.shape
        self.n_features = data.n_cols
        self.rest = rest
        self.unknown, self.n_known = data.unknown, data.n_known + (rest.n_rows if rest else 0)
        self.covers: Covers = True if covers else None
        self.workers = workers
        self.bias = BitMatrix.zeros(1, data.n_cols) if bias is None else bias
        if codes is None:
            codes = BitMatrix.zeros(n, atoms.n_rows)
        assert codes.shape == (n, atoms.n_rows)  # kernels do not check
        self._scratches: dict[int, VoteScratch] = {}
        self._atoms = self.atom_tables(atoms.words.copy())
        self._device = _device_for(self, n)
        array, asarray, xp = self.kernels.array, self.kernels.asarray, self.kernels.xp
        masks = xp.zeros((n if covers else 0, n_words), np.uint64)
        errors = self.kernels.read_only(data.words) ^ asarray(self.bias.words)
        unknown = array(self.kernels.read_only(data.unknown_words))
        if data.unknown is not None:
            errors &= ~unknown
        self._rows = RowArrays(
            errors=errors,
            codes=(own_codes := array(codes.words)),
            users=self.kernels.transposed(own_codes, atoms.n_rows),
            covered=masks,
            twice=masks.copy(),
            unknown=unknown,
            stale=xp.ones(n, np.uint8),
        )
        self.add_product(self._rows.errors)
        self.recompute_cover()

    @property
    def kernels(self) -> HostKernels | DeviceKernels:
        """What processes the rows, where they are; made anew, because a cycle of references would keep them."""
        return HostKernels(self) if self._device is None else DeviceKernels(self, self._device)

    @property
    def _rows(self) -> RowArrays:
        """The state of the rows, to change it: get it anew for every change, or counts in between are kept too long."""
        self._wrong = self._uses = None
        return self._read_rows

    @_rows.setter
    def _rows(self, rows: RowArrays) -> None:
        self._wrong = self._uses = None
        self._read_rows = rows

    def atom_tables(self, atoms: Words) -> AtomArrays:
        """Return tables for these atoms, not filled in yet."""
        p = len(atoms)
        lanes = lanes_of(p)
        gains = np.int16 if not self.covers and self.n_features <= _MAX_INT16_FEATURES else np.int32
        return AtomArrays(
            words=atoms,
            weights=np.zeros(lanes, np.int32),
            slices=np.zeros((-(-self.n_features // 8), lanes), np.uint8),
            overlaps=np.zeros((p, lanes), gains),
            stale=np.ones(p, np.uint8),
            changed=np.ones(p, np.uint8),
        )

    def add_product(self, out: Any, rows: RowIndex = _ALL) -> None:
        """Add the product of codes and atoms in place, which turns data into errors and errors into data.

        ``out`` has all rows of the block, or those with these indices.
        """
        codes, unknown = self._read_rows.codes[rows], self._read_rows.unknown
        self.kernels.add_product(codes, unknown[rows] if len(unknown) else unknown, out)

    def recompute_cover(self) -> None:
        """Recompute which bits are covered once and twice, from codes and atoms."""
        if self.covers:
            self.kernels.cover()

    def map_rows(self, task: Any, row_cost: float) -> list[Any]:
        """Run a task on chunks of rows by all threads, and return its results in order."""
        return self.workers.map_rows(task, self.n_rows, row_cost)

    @property
    def n_rows(self) -> int:
        return len(self._read_rows.errors)

    @property
    def n_samples(self) -> int:
        """Number of rows, with those that are only counted."""
        return self.n_rows + (self.rest.n_rows if self.rest else 0)

    @property
    def n_atoms(self) -> int:
        return len(self._atoms.words)

    @property
    def n_words(self) -> int:
        """Words per row of data."""
        return int(self._read_rows.errors.shape[1])

    # Factors and errors, as copies.

    def atoms(self) -> BitMatrix:
        """Return the atoms."""
        return BitMatrix.from_words(self._atoms.words.copy(), self.n_features, check=False)

    def codes(self) -> BitMatrix:
        """Return the codes."""
        return BitMatrix.from_words(self.kernels.copy_to_host(self._read_rows.codes), self.n_atoms, check=False)

    def factors(self) -> tuple[BitMatrix, BitMatrix]:
        """Return the atoms and the codes."""
        return self.atoms(), self.codes()

    def users(self, atoms: RowIndex = _ALL) -> Words:
        """Return the rows that use each atom, or those with these indices, packed: the codes transposed."""
        return self.kernels.copy_to_host(self._read_rows.users[atoms])

    def errors(self) -> BitMatrix:
        """Return the wrong bits of each row, with the unknown cells of the data."""
        return BitMatrix.from_words(
            self.kernels.copy_to_host(self._read_rows.errors), self.n_features, False, self.unknown
        )

    def data(self, rows: RowIndex = _ALL) -> BitMatrix:
        """Return the samples themselves, or those with these indices."""
        unknown = None if self.unknown is None else self.unknown[rows]
        return BitMatrix.from_words(self.targets(rows), self.n_features, False, unknown) ^ self.bias

    def targets(self, rows: RowIndex = _ALL) -> Words:
        """Return the samples less the bias, which the products of codes and atoms should equal."""
        return self.kernels.to_host(self._targets(rows))

    def _targets(self, rows: RowIndex = _ALL) -> Any:
        """Return the same as an array in the memory of the rows."""
        words = self._read_rows.errors[rows].copy()
        self.add_product(words, rows)
        return words

    def with_factors(self, atoms: BitMatrix, codes: BitMatrix, bias: BitMatrix | None = None) -> Block:
        """Return a block of the same data with other atoms and codes, and with the same bias or another one."""
        bias = self.bias if bias is None else bias
        return Block(self.data(), atoms, codes, self.covers, self.workers, bias, self.rest)

    def sample(self, rows: NDArray[np.intp]) -> Block:
        """Return a block of some of the rows, with the same atoms, their codes and the same bias."""
        codes = BitMatrix.from_words(self.kernels.to_host(self._read_rows.codes[rows]), self.n_atoms, check=False)
        return Block(self.data(rows), self.atoms(), codes, self.covers, self.workers, self.bias)

    # Counts, which add up over chunks of rows.

    def uses(self) -> NDArray[np.int64]:
        """Return how many rows use each atom."""
        if self._uses is None:
            self._uses = self.kernels.uses()
        return self._uses.copy()

    def in_use(self) -> NDArray[np.bool_]:
        """Return which atoms are used by some row and are not all zeros."""
        return (self.uses() > 0) & (self.weights() > 0)

    def wrong(self) -> NDArray[np.int64]:
        """Return in how many rows each bit is wrong."""
        if self._wrong is None:
            self._wrong = self._count_wrong()
        return self._wrong.copy()

    def _count_wrong(self) -> NDArray[np.int64]:
        counts = self.kernels.column_weights(self._read_rows.errors)
        if self.rest is None:
            return counts
        n_rows, ones = self.rest
        return counts + np.where(self.bias.to_dense(bool)[0], n_rows - ones, ones)

    def added(self) -> NDArray[np.int64]:
        """Return in how many rows each feature is zero but predicted to be one, under OR."""
        predicted = self._read_rows.covered ^ self.kernels.asarray(self.bias.words)
        added = self.kernels.column_weights(self._read_rows.errors & predicted)
        if self.rest is None:
            return added
        return added + np.where(self.bias.to_dense(bool)[0], self.rest.n_rows - self.rest.ones, 0)

    def row_costs(self, prices: Prices) -> NDArray[np.int64]:
        """Return the cost of each row at these prices: its errors and its uses of atoms."""
        return self.kernels.to_host(self.kernels.row_costs(prices))

    def missed(self, data: BitMatrix) -> NDArray[np.int64]:
        """Return in how many rows each feature is one but predicted to be zero; ``data`` is that of the block."""
        counts = self.kernels.column_weights(self.kernels.words_of(data) & self._read_rows.errors)
        return counts if self.rest is None else counts + np.where(self.bias.to_dense(bool)[0], 0, self.rest.ones)

    def count_changed_codes(self, before: BitMatrix | None) -> int:
        """Return in how many bits the codes differ from others, or from none."""
        if before is None:
            return int(self.uses().sum())
        return self.kernels.count_differences(self.kernels.asarray(before.words), self._read_rows.codes)

    # Errors that one more atom could fix: under OR those that no atom covers.

    def fixable_errors(self, rows: NDArray[np.intp]) -> Words:
        """Return the fixable errors of these rows."""
        errors = self._read_rows.errors[rows]
        return self.kernels.to_host(errors & ~self._read_rows.covered[rows] if self.covers else errors)

    def rows_fixable_at(self, features: NDArray[np.intp]) -> Words:
        """Return the rows in which each of these features is a fixable error: bits of shape (features, rows)."""
        index, shift = features >> 6, self.kernels.asarray((features & 63).astype(np.uint64))
        columns = self._read_rows.errors[:, index]
        if self.covers:
            columns &= ~self._read_rows.covered[:, index]
        bits = (columns >> shift & np.uint64(1)).T.astype(np.uint8)
        return BitMatrix.from_dense(self.kernels.to_host(bits)).words.copy()

    def fixable_rows(self, rule: Rule) -> NDArray[np.intp]:
        """Return the indices of rows that have a fixable error and may use one more atom."""
        return np.flatnonzero(self.kernels.improvable(rule))

    def errors_fixed_by(self, atoms: Words) -> NDArray[np.int64]:
        """Return how many errors each candidate would fix as an additional atom, used where it helps."""
        return self.kernels.errors_fixed_by(atoms)

    def codelength(
        self,
        wrong: NDArray[np.int64],
        bias: BitMatrix | None = None,
        n_features: int | None = None,
        ranks: NDArray[np.int64] | None = None,
    ) -> Codelength:
        """Return the codelength of the data; ``wrong`` is what `wrong` returns, or the errors with another bias.

        ``n_features`` is the number of columns of the table, if the data is a window of them. ``ranks`` are those of
        the columns in their order, where atoms are described by stretches.
        """
        bias = self.bias if bias is None else bias
        shape = self.n_samples, n_features or self.n_features
        weights, atom_spans = self.weights(), spans(self.atoms(), ranks) if ranks is not None else None
        return codelength_from_counts(*shape, wrong, self.uses(), weights, bias.count(), self.n_known, atom_spans)

    def votes(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the votes on the atoms first..last: for each bit, how many users of the atom have it free, that is
        known and decided by no other atom in their row, and in how many of these it is wrong."""
        return self.kernels.votes(first, last)

    def votes_of(self, users: Words) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the votes on new atoms without ones, each with these rows as its users."""
        return self.kernels.votes_of(users)

    def pairs(self) -> NDArray[np.int32]:
        """Return how many rows use both of two atoms, below and on the diagonal."""
        return self.kernels.pairs()

    def weights(self) -> NDArray[np.int64]:
        """Return how many ones each atom has."""
        counts = np.empty(self.n_atoms, np.int64)
        packing.row_weights(read_only(self._atoms.words), counts)
        return counts

    # Changes of atoms and codes.

    def flip(self, flips: Words) -> Change:
        """Flip these bits of the atoms."""
        changed = np.asarray(flips.any(axis=1))
        if not changed.any():
            return Change()
        self._atoms.words[:] ^= flips
        self._atoms.changed[:] |= changed
        self._atoms.stale[:] = 1
        flipping = BitMatrix.from_dense(changed[np.newaxis]).words[0].copy()
        return Change(errors=self.kernels.follow_flips(flips, flipping))

    def append(self, atoms: Words) -> None:
        """Append atoms, used by no row."""
        old, codes, xp = self._atoms, self._rows.codes, self.kernels.xp
        n_words = -(-(len(old.words) + len(atoms)) // 64)
        if n_words > codes.shape[1]:
            codes = xp.hstack([codes, xp.zeros((self.n_rows, n_words - codes.shape[1]), np.uint64)])
        no_users = xp.zeros((len(atoms), self._rows.users.shape[1]), np.uint64)
        self._rows = self._rows._replace(codes=codes, users=xp.vstack([self._rows.users, no_users]))
        self._scratches.clear()
        self._atoms = self.atom_tables(np.vstack([old.words, atoms]))
        self._atoms.overlaps[: len(old.words), : old.overlaps.shape[1]] = old.overlaps
        self._atoms.stale[: len(old.words)] = old.stale
        self._atoms.changed[: len(old.words)] = old.changed

    def append_row_as_atom(self, row: int) -> None:
        """Append an atom equal to this row, less the bias, and let the row use it alone."""
        rows = np.array([row])
        self.append(self.targets(rows))
        code = np.zeros((1, self._rows.codes.shape[1]), np.uint64)
        code[0, -1] = np.uint64(1) << np.uint64((self.n_atoms - 1) & 63)
        asarray = self.kernels.asarray
        self.kernels.restore_rows(asarray(rows), asarray(code), asarray(np.zeros((1, self.n_words), np.uint64)))
        self.mark_stale()

    def change_basis(self, atoms: Words, users: Words) -> None:
        """Replace atoms and their users by others with the same product: the errors do not change. XOR only."""
        self._atoms.words[:] = atoms
        self._rows.users[:] = self.kernels.asarray(users)
        self._rows.codes[:] = self.kernels.transposed(self._rows.users, self.n_rows)
        self.mark_stale()

    def discard(self, dropped: NDArray[np.bool_]) -> None:
        """Remove these atoms, also from the codes."""
        self.flip(np.where(dropped[:, np.newaxis], self._atoms.words, np.uint64(0)))
        users = self._rows.users[np.flatnonzero(~dropped)]
        self._rows = self._rows._replace(users=users, codes=self.kernels.transposed(users, self.n_rows))
        self._scratches.clear()
        self._atoms = self.atom_tables(self._atoms.words[~dropped])

    def save(self) -> BlockState:
        """Return the state, to restore it later."""
        return BlockState(self._atoms.words.copy(), self._read_rows.codes.copy())

    def restore(self, state: BlockState) -> None:
        """Restore a state that has the current number of atoms."""
        self.add_product(self._rows.errors)
        self._atoms.words[:] = state.atoms
        self._set_codes(self.kernels.asarray(state.codes))

    def _set_codes(self, codes: Any) -> None:
        """Set the codes of rows whose errors are those without any atom."""
        self._rows.codes[:] = codes
        self.add_product(self._rows.errors)
        self._rows = self._rows._replace(users=self.kernels.transposed(self._rows.codes, self.n_atoms))
        self.recompute_cover()
        self.mark_stale()

    def set_codes(self, codes: Any) -> None:
        """Set the codes of all rows: an array in the memory of the rows."""
        self.add_product(self._rows.errors)
        self._set_codes(codes)

    def take_codes(self, rows: NDArray[np.intp], sample: Block) -> None:
        """Take the codes that a `sample` of these rows has now."""
        codes, errors = (sample.kernels.to_host(words) for words in (sample._rows.codes, sample._rows.errors))
        asarray = self.kernels.asarray
        self.kernels.restore_rows(asarray(rows), asarray(codes), asarray(errors))

    def uncoded_chunks(self, n_rows: int) -> Iterator[Chunk]:
        """Yield the rows in chunks of at least this many, as blocks without codes, in the same memory."""
        n_rows = max(n_rows, self.kernels.min_chunk_rows)
        for start in range(0, self.n_rows, n_rows):
            yield Chunk(start, self._uncoded(slice(start, start + n_rows)))

    def _uncoded(self, rows: slice) -> Block:
        """Return a block of some rows without codes, in the same memory."""
        chunk, xp = copy(self), self.kernels.xp
        errors, unknown = self._targets(rows), self._read_rows.unknown[rows].copy()
        chunk.unknown = None if self.unknown is None else self.unknown[rows]
        n_unknown = 0 if chunk.unknown is None else chunk.unknown.column_weights()
        chunk.n_known = np.full(self.n_features, len(errors), np.int64) - n_unknown
        chunk.rest, chunk._scratches = None, {}
        chunk._atoms = chunk.atom_tables(self._atoms.words.copy())
        n, (n_code_words, n_masked) = len(errors), (self._read_rows.codes.shape[1], len(errors) if self.covers else 0)
        covered = unknown.copy() if n_masked and len(unknown) else xp.zeros((n_masked, self.n_words), np.uint64)
        chunk._rows = RowArrays(
            errors=errors,
            codes=xp.zeros((n, n_code_words), np.uint64),
            users=xp.zeros((self.n_atoms, -(-n // 64)), np.uint64),
            covered=covered,
            twice=covered.copy(),
            unknown=unknown,
            stale=xp.ones(n, np.uint8),
        )
        return chunk

    def move_to_host(self) -> None:
        """Move the rows to the memory of the host, for operations that no device has."""
        if self._device is not None:
            self._rows = self.rows_on_host()
            self._device = None
            self.mark_stale()  # the tables of the host are not those of these atoms

    def rows_on_host(self) -> RowArrays:
        """Return the state of the rows in the memory of the host: to read it."""
        return self._read_rows if self._device is None else RowArrays(*map(self.kernels.to_host, self._read_rows))

    # For the operations on a block.

    def mark_stale(self) -> None:
        """Mark every row and atom as stale, after a change that does not track them."""
        self._rows.stale[:] = 1
        self._atoms.stale[:] = 1
        self._atoms.changed[:] = 1

    def vote_scratch(self, start: int) -> VoteScratch:
        """Return the scratch for votes of the chunk of rows from ``start`` on, allocated once: a vote is short."""
        if start not in self._scratches:
            self._scratches[start] = vote_scratch(self._read_rows)
        return self._scratches[start]

    def vote_cost(self, n_users: int) -> float:
        """Return about how many nanoseconds per row of the block a vote of these users takes."""
        return (10.0 + 4.0 * self.n_words) * n_users / max(1, self.n_rows)


def _device_for(block: Block, n_rows: int) -> Device | None:
    """Return the device for the rows of a block, if there is one, and they are many and fit; otherwise None."""
    device = block.workers.device
    if device is None or n_rows < device.min_rows:
        return None
    n_words, n_code_words = block._atoms.words.shape[1], -(-block.n_atoms // 64)
    n_bytes = n_rows * 8 * (_ROW_COPIES * n_words + _CODE_COPIES * n_code_words)
    if words_per_row(n_words, n_code_words) <= max_shared_words() and n_bytes <= device.free_bytes() // 2:
        return device
    _logger.info("%d rows are processed on the CPU: they do not fit into the memory of %s", n_rows, device.name)
    return None


def reconstruct(codes: BitMatrix, atoms: Bits, bias: NDArray[np.uint8], algebra: str) -> BitMatrix:
    """Return the bias plus the product of codes and atoms, in the algebra."""
    if isinstance(atoms, SparseBits):
        used = np.flatnonzero(codes.column_weights())
        codes, atoms = codes.take_columns(used), atoms[used]
    product = np.repeat(BitMatrix.from_dense(bias[np.newaxis]).words, codes.n_rows, axis=0)
    # Copies: numba would compile the kernel again for read-only arrays.
    row = np.empty(product.shape[1], np.uint64)
    factors = codes.words.copy(), packed(atoms).words.copy()
    words.add_product(*factors, covering(algebra), product[:0], 0, codes.n_rows, row, product)
    return BitMatrix.from_words(product, atoms.n_cols, check=False)


def lanes_of(n_atoms: int) -> int:
    """Return the number of atoms, padded to a multiple of those coded at a time."""
    return -(-n_atoms // _LANES) * _LANES


def coded(changes: tuple[int, int]) -> Change:
    """Return what coding changed, from the numbers of codes and errors changed."""
    codes, errors = changes
    return Change(codes=codes, errors=errors)


def changed(block: Block, codes: Any, errors: Any) -> Change:
    """Return the number of bits in which a block differs from earlier codes and errors."""
    rows, count = block._read_rows, block.kernels.count_differences
    return Change(codes=count(codes, rows.codes), errors=count(errors, rows.errors))
