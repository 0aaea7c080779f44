"""Block: the rows that a search works on, in memory, with the operations that algorithms use."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import words
from ..kernels.gpu.coding import words_per_row
from ..kernels.gpu.device import max_shared_words
from ..kernels.structs import CodingRule, Prices
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed
from .codelength import STRINGS, AtomCode, Codelength
from .device_rows import DeviceRows
from .host_rows import HostRows, atom_tables, row_weights
from .removal import DeviceRemoval, HostRemoval
from .row_state import ALL, Changes, RowIndex, Words

__all__ = ["Block", "BlockState", "Change", "CountedRows", "Words", "coded", "reconstruct"]

_logger = logging.getLogger(__name__)

_ROW_COPIES, _CODE_COPIES = 10, 6  # of rows and codes, for which a device must have memory


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


class CountedRows(NamedTuple):
    """Further rows of a table, with at most one feature each: they use no atom, and only their ones are counted."""

    n_rows: int = 0
    ones: NDArray[np.int64] | int = 0  # (m,): rows that have each feature


class BlockState(NamedTuple):
    """The factors of a block, to restore it from."""

    atoms: Words
    codes: Any  # in the memory of the rows, or of the host


class Block:
    """Samples, their codes and errors, and the atoms they are coded with.

    A block is the mutable state of learning. Its operations keep ``errors = data + bias + codes * atoms`` (sums are
    XOR, the product is in the algebra), and track which rows and atoms are *stale*, so that nothing is recomputed that
    cannot have changed. Unknown cells are never wrong.

    Its ``rows`` are `HostRows`, or `DeviceRows` if they are in the memory of a device. What changes their arrays, or
    the atoms in ``_atoms``, is in this package.

    Parameters
    ----------
    data : BitMatrix of shape (n, m)
    atoms : BitMatrix of shape (p, m)
    codes : BitMatrix of shape (n, p), optional
        The codes to start from; without them no atom is used.
    covers : bool
        True for the OR algebra.
    workers : Workers
    bias : BitMatrix of shape (1, m), optional
    counted : CountedRows, optional
        Further rows of the table, which are only counted.
    """

    rows: HostRows | DeviceRows

    def __init__(
        self,
        data: BitMatrix,
        atoms: BitMatrix,
        codes: BitMatrix | None,
        covers: bool,
        workers: Workers,
        bias: BitMatrix | None = None,
        counted: CountedRows | None = None,
    ) -> None:
        self.n_features = data.n_cols
        self.covers = covers
        self.workers = workers
        self.bias = BitMatrix.zeros(1, data.n_cols) if bias is None else bias
        self.counted = counted or CountedRows()
        self.unknown, self.n_known = data.unknown, data.n_known
        # The errors of the rows that are only counted, and those of them that are added ones.
        self._base_wrong: NDArray[np.int64] | int = 0
        self._base_added: NDArray[np.int64] | int = 0
        if counted is not None:
            is_set, (n_counted, ones) = self.bias.to_dense(bool)[0], counted
            self._base_wrong, self._base_added = (np.where(is_set, n_counted - ones, other) for other in (ones, 0))
            self.n_known = data.n_known + n_counted
        if codes is None:
            codes = BitMatrix.zeros(data.n_rows, atoms.n_rows)
        assert codes.shape == (data.n_rows, atoms.n_rows)  # kernels do not check
        self._atoms = atom_tables(atoms.words.copy(), self.n_features, covers)
        kind = DeviceRows if _fits_on_device(data, codes, workers) else HostRows
        self.rows = kind(data, self.bias, self._atoms.words, codes, self.covers, workers)

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def n_samples(self) -> int:
        """Number of rows, with those that are only counted."""
        return self.n_rows + self.counted.n_rows

    @property
    def n_atoms(self) -> int:
        return len(self._atoms.words)

    # Factors and errors, as copies.

    def atoms(self) -> BitMatrix:
        """Return the atoms."""
        return BitMatrix.from_words(self._atoms.words.copy(), self.n_features, check=False)

    def codes(self) -> BitMatrix:
        """Return the codes."""
        return self.rows.codes()

    def factors(self) -> tuple[BitMatrix, BitMatrix]:
        """Return the atoms and the codes."""
        return self.atoms(), self.codes()

    def errors(self) -> BitMatrix:
        """Return the wrong bits of each row, with the unknown cells of the data."""
        return BitMatrix.from_words(self.rows.errors(), self.n_features, False, self.unknown)

    def data(self, rows: RowIndex = ALL) -> BitMatrix:
        """Return the samples themselves, or those with these indices."""
        unknown = None if self.unknown is None else self.unknown[rows]
        return BitMatrix.from_words(self.targets(rows), self.n_features, False, unknown) ^ self.bias

    def targets(self, rows: RowIndex = ALL) -> Words:
        """Return the samples less the bias, which the products of codes and atoms should equal."""
        return self.rows.to_host(self.rows.targets(self._atoms.words, rows))

    def with_factors(self, atoms: BitMatrix, codes: BitMatrix, bias: BitMatrix | None = None) -> Block:
        """Return a block of the same data with other atoms and codes, and with the same bias or another one."""
        bias = self.bias if bias is None else bias
        return Block(self.data(), atoms, codes, self.covers, self.workers, bias, self.counted)

    def with_users(self, min_users: int) -> Block:
        """Return the block without the atoms that fewer rows use; rows keep their other atoms."""
        is_kept = self.uses() >= min_users
        return self if is_kept.all() else self.with_atoms(np.flatnonzero(is_kept))

    def with_atoms(self, kept: NDArray[np.intp]) -> Block:
        """Return a block with these atoms only, used by the same rows."""
        atoms, codes = self.factors()
        return self.with_factors(atoms[kept], codes.T[kept].T)

    def sample(self, rows: NDArray[np.intp]) -> Block:
        """Return a block of some of the rows, with the same atoms, their codes and the same bias."""
        codes = self.rows.codes(rows)
        return Block(self.data(rows), self.atoms(), codes, self.covers, self.workers, self.bias)

    # Counts, which add up over chunks of rows.

    def uses(self) -> NDArray[np.int64]:
        """Return how many rows use each atom."""
        return self.rows.uses()

    def in_use(self) -> NDArray[np.bool_]:
        """Return which atoms are used by some row and are not all zeros."""
        return (self.uses() > 0) & (self.weights() > 0)

    def wrong(self) -> NDArray[np.int64]:
        """Return in how many rows each bit is wrong."""
        return self.rows.wrong() + self._base_wrong

    def added(self) -> NDArray[np.int64]:
        """Return in how many rows each feature is zero but predicted to be one, under OR."""
        return self.rows.added(self.bias) + self._base_added

    def missed(self, data: BitMatrix) -> NDArray[np.int64]:
        """Return in how many rows each feature is one but predicted to be zero; ``data`` is that of the block."""
        return self.rows.missed(data, self._atoms.words, self.bias) + (self._base_wrong - self._base_added)

    def ones(self, data: BitMatrix) -> NDArray[np.int64]:
        """Return how many rows have each feature; ``data`` is that of the block."""
        return self.rows.ones(data, self._atoms.words, self.bias) + self.counted.ones

    def row_costs(self, prices: Prices) -> NDArray[np.int64]:
        """Return the cost of each row at these prices: its errors and its uses of atoms."""
        return self.rows.to_host(self.rows.row_costs(prices))

    def codelength(
        self, wrong: NDArray[np.int64], bias: BitMatrix | None = None, code: AtomCode = STRINGS
    ) -> Codelength:
        """Return the codelength of the data; ``wrong`` is what `wrong` returns, or the errors with another bias."""
        n_bias_ones = (self.bias if bias is None else bias).count()
        return code.codelength(self.n_samples, wrong, self.uses(), self.atoms(), n_bias_ones, self.n_known)

    def votes(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the votes on the atoms first..last: for each bit, how many users of the atom have it free, that is
        known and decided by no other atom in their row, and in how many of these it is wrong."""
        return self.rows.votes(self._atoms, first, last)

    def removal(self, rule: CodingRule) -> HostRemoval | DeviceRemoval:
        """Return what codes rows without some of the atoms; the prices of their uses are changed."""
        rule = rule._replace(residual_limit=-1)  # every row must do without the atom
        if isinstance(self.rows, DeviceRows):
            return DeviceRemoval(self.rows, self._atoms.words, rule)
        return HostRemoval(self.rows, self._atoms.words, rule)

    def weights(self) -> NDArray[np.int64]:
        """Return how many ones each atom has."""
        return row_weights(self._atoms.words)

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
        return Change(errors=self.rows.follow_flips(self._atoms.words, flips, flipping))

    def append(self, atoms: Words) -> None:
        """Append atoms, used by no row."""
        old = self._atoms
        self.rows.append_atoms(len(atoms))
        self._atoms = atom_tables(np.vstack([old.words, atoms]), self.n_features, self.covers)
        self._atoms.overlaps[: len(old.words), : old.overlaps.shape[1]] = old.overlaps
        self._atoms.stale[: len(old.words)] = old.stale
        self._atoms.changed[: len(old.words)] = old.changed

    def append_row_as_atom(self, row: int) -> None:
        """Append an atom equal to this row, less the bias, and let the row use it alone."""
        rows = np.array([row])
        self.append(self.targets(rows))
        code = BitMatrix.from_dense(np.arange(self.n_atoms)[np.newaxis] == self.n_atoms - 1).words.copy()
        self.rows.put_rows(self._atoms.words, rows, code, np.zeros_like(self._atoms.words[:1]))
        self.mark_stale()

    def change_basis(self, atoms: Words, users: Words) -> None:
        """Replace atoms and their users by others with the same product: the errors do not change. XOR only."""
        self._atoms.words[:] = atoms
        self.rows.set_users(users)
        self.mark_stale()

    def discard(self, dropped: NDArray[np.bool_]) -> None:
        """Remove these atoms, also from the codes."""
        self.flip(np.where(dropped[:, np.newaxis], self._atoms.words, np.uint64(0)))
        self.rows.keep_atoms(np.flatnonzero(~dropped))
        self._atoms = atom_tables(self._atoms.words[~dropped], self.n_features, self.covers)

    def save(self) -> BlockState:
        """Return the state, to restore it later."""
        return BlockState(self._atoms.words.copy(), self.rows.save()[0])

    def restore(self, state: BlockState) -> None:
        """Restore a state that has the current number of atoms."""
        before = self._atoms.words.copy()
        self._atoms.words[:] = state.atoms
        self.rows.set_codes(before, self._atoms.words, state.codes)
        self.mark_stale()

    def move_to_host(self) -> HostRows:
        """Return the rows in the memory of the host, where they are moved for operations that no device has."""
        if isinstance(self.rows, DeviceRows):
            self.rows = HostRows(self.data(), self.bias, self._atoms.words, self.codes(), self.covers, self.workers)
            self.mark_stale()  # the tables of the host are not those of these atoms
        return self.rows

    def mark_stale(self) -> None:
        """Mark every row and atom as stale, after a change that does not track them."""
        self.rows.arrays.stale[:] = 1
        self._atoms.stale[:] = 1
        self._atoms.changed[:] = 1


def _fits_on_device(data: BitMatrix, codes: BitMatrix, workers: Workers) -> bool:
    """Return whether there is a device, and the rows are many and fit into its memory."""
    device, (n_rows, n_words), n_code_words = workers.device, data.words.shape, codes.words.shape[1]
    if device is None or n_rows < device.min_rows:
        return False
    n_bytes = n_rows * 8 * (_ROW_COPIES * n_words + _CODE_COPIES * n_code_words)
    if words_per_row(n_words, n_code_words) <= max_shared_words() and n_bytes <= device.free_bytes() // 2:
        return True
    _logger.info("%d rows are processed on the CPU: they do not fit into the memory of %s", n_rows, device.name)
    return False


def reconstruct(codes: BitMatrix, atoms: Bits, bias: NDArray[np.uint8], algebra: str) -> BitMatrix:
    """Return the bias plus the product of codes and atoms, in the algebra."""
    if isinstance(atoms, SparseBits):
        used = np.flatnonzero(codes.column_weights())
        codes, atoms = codes.take_columns(used), atoms[used]
    product = np.repeat(BitMatrix.from_dense(bias[np.newaxis]).words, codes.n_rows, axis=0)
    row = np.empty(product.shape[1], np.uint64)
    factors = codes.words, packed(atoms).words
    words.add_product(*factors, algebra == "or", product[:0], 0, codes.n_rows, row, product)
    return BitMatrix.from_words(product, atoms.n_cols, check=False)


def coded(changes: Changes) -> Change:
    """Return what coding changed, from the numbers of codes and errors changed."""
    codes, errors = changes
    return Change(codes=codes, errors=errors)
