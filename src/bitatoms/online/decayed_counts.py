"""DecayedCounts: the `Counts` of a stream, whose past rows are not kept and weigh less with time.

They are integers as long as nothing is forgotten. When atoms change, the counts are corrected, while the codes of past
rows stay as they were. The correction is exact for one bit of one atom per column, except for the votes on atoms that
share rows with it: which of those rows are wrong is unknown, and is estimated within the possible bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.counts import Counts
from ..kernels.structs import Covers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DecayedCounts:
    """The fields of `Counts`, over rows whose weight decays with time."""

    n_rows: float
    known: Floats
    uses: Floats
    wrong: Floats
    free: Floats
    bad: Floats
    pairs: Floats
    ones: Floats
    missed: Floats

    @classmethod
    def of(cls, counts: Counts, n_rows: float | None = None) -> DecayedCounts:
        """Return the counts of rows in memory, scaled to ``n_rows`` rows if that is given."""
        scale = 1.0 if n_rows is None else n_rows / max(1, counts.n_rows)
        return cls(*(scale * getattr(counts, field.name) for field in fields(cls)))

    def decayed(self, factor: float) -> DecayedCounts:
        """Return all counts multiplied by a factor."""
        return DecayedCounts(*(factor * getattr(self, field.name) for field in fields(self)))

    def plus(self, counts: Counts) -> DecayedCounts:
        """Return the sum with the counts of more rows."""
        return DecayedCounts(*(getattr(self, field.name) + getattr(counts, field.name) for field in fields(self)))

    def recoded(self, before: DecayedCounts, after: Counts) -> DecayedCounts:
        """Return the counts after some of the rows, with these counts before, were coded again."""
        changed = {
            field.name: getattr(self, field.name) + getattr(after, field.name) - getattr(before, field.name)
            for field in fields(self)
        }
        return DecayedCounts(**changed).within_bounds()

    def with_more_atoms(self, n_atoms: int) -> DecayedCounts:
        """Return the counts with more atoms, which no row uses."""
        wider = ((0, n_atoms), (0, 0))
        return replace(
            self,
            uses=np.pad(self.uses, (0, n_atoms)),
            free=np.pad(self.free, wider),
            bad=np.pad(self.bad, wider),
            pairs=np.pad(self.pairs, (0, n_atoms)),
        )

    def with_atoms(self, kept: NDArray[np.intp]) -> DecayedCounts:
        """Return the counts with these atoms, in their order; the others must be all zeros."""
        pairs = self.pairs[np.ix_(kept, kept)]
        return replace(self, uses=self.uses[kept], free=self.free[kept], bad=self.bad[kept], pairs=pairs)

    def flipped(self, atoms: BitMatrix, flips: NDArray[np.uint64], covers: Covers, bias: BitMatrix) -> DecayedCounts:
        """Return the counts after these bits of the atoms are flipped, while rows keep their codes."""
        where = np.argwhere(BitMatrix.from_words(flips.copy(), atoms.n_cols, check=False).to_dense(bool).T)
        if len(where) == 0:
            return self
        bits, bias_bits = atoms.to_dense(bool), bias.to_dense(bool)[0]
        shared = self.pairs + np.tril(self.pairs, -1).T
        np.fill_diagonal(shared, 0)
        after = replace(self, **{name: getattr(self, name).copy() for name in ("wrong", "free", "bad", "missed")})
        for i, k in where.tolist():
            free, bad = after.free[k, i], after.bad[k, i]
            after.wrong[i] += free - 2 * bad
            # Where no other atom decides the bit, rows in which a predicted zero is wrong are those that miss a one.
            after.missed[i] += -bad if bits[k, i] == bias_bits[i] else free - bad
            if not covers:
                _flip_xor(after, k, i, shared[k])
            elif bits[k, i]:
                _uncover_or(after, k, i, shared[k], bits[:, i])
            else:
                _cover_or(after, i, shared[k])
            after.bad[k, i] = free - bad
            bits[k, i] ^= True
        return after.within_bounds()

    def within_bounds(self) -> DecayedCounts:
        """Return the nearest counts that rows could have."""
        n = max(0.0, self.n_rows)
        uses = np.clip(self.uses, 0, n)
        pairs = np.tril(np.clip(self.pairs, 0, np.minimum(uses[:, np.newaxis], uses)))
        np.fill_diagonal(pairs, uses)
        known = np.clip(self.known, 0, n)
        wrong, ones = np.clip(self.wrong, 0, known), np.clip(self.ones, 0, known)
        free = np.clip(self.free, 0, np.minimum(uses[:, np.newaxis], known))
        bad = np.clip(self.bad, np.maximum(0, wrong - (known - free)), np.minimum(free, wrong))
        missed = np.clip(self.missed, np.maximum(0, wrong - (known - ones)), np.minimum(ones, wrong))
        return DecayedCounts(n, known, uses, wrong, free, bad, pairs, ones, missed)

    def rounded(self) -> Counts:
        """Return the counts rounded to integers."""
        integers = DecayedCounts(*(np.rint(getattr(self, field.name)) for field in fields(self))).within_bounds()
        arrays = {field.name: getattr(integers, field.name) for field in fields(integers)}
        n_rows = int(arrays.pop("n_rows"))
        return Counts(n_rows, **{name: array.astype(np.int64) for name, array in arrays.items()}, codes_changed=0)


def _flip_xor(counts: DecayedCounts, k: int, i: int, shared: Floats) -> None:
    """XOR: in the users of k, right and wrong are exchanged, also for other atoms that those rows use."""
    free, bad = counts.free[k, i], counts.bad[k, i]
    if not free:
        return
    shared = shared * (free / counts.uses[k])  # of these rows, about as many as of all users know the bit
    other_bad, other_free = counts.bad[:, i], counts.free[:, i]
    lower = np.maximum(0, np.maximum(shared + bad - free, shared + other_bad - other_free))
    upper = np.minimum(shared, np.minimum(bad, other_bad))
    both = np.minimum(np.maximum(shared * (bad / free), lower), upper)
    other_bad += shared - 2 * both


def _cover_or(counts: DecayedCounts, i: int, shared: Floats) -> None:
    """OR: where an atom now covers the bit, the other atoms of the row no longer decide it."""
    lost = np.divide(shared, counts.uses, out=np.zeros_like(shared), where=counts.uses > 0)
    counts.free[:, i] *= 1 - lost
    counts.bad[:, i] *= 1 - lost


def _uncover_or(counts: DecayedCounts, k: int, i: int, shared: Floats, bits: NDArray[np.bool_]) -> None:
    """OR: where only k covered the bit, the other atoms of the row without the bit now decide it.

    Where one other atom covered it too, that atom now decides it, but the number of such rows is unknown.
    """
    free, bad = counts.free[k, i], counts.bad[k, i]
    if not free or not counts.uses[k]:
        return
    gained = np.where(bits, 0, np.minimum(shared * (free / counts.uses[k]), counts.uses - counts.free[:, i]))
    counts.free[:, i] += gained
    counts.bad[:, i] += gained * ((free - bad) / free)
