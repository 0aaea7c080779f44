"""The counts of a stream whose rows are gone: what `Counts` are to rows at hand, with older rows fading.

They are whole numbers as long as nothing is forgotten. When atoms change, the counts are corrected for it, while the
codes that the rows had stay what they were. That is exact for one bit of one atom in a column, but for the votes on
atoms that share rows with it: which of those rows are wrong is not known, and is estimated within what is possible.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.counts import Counts
from ..kernels.structs import Covers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DecayedCounts:
    """The fields of `Counts`, of rows that count the less the longer ago they came."""

    n_rows: float
    uses: Floats
    wrong: Floats
    free: Floats
    bad: Floats
    pairs: Floats
    ones: Floats
    missed: Floats

    @classmethod
    def of(cls, counts: Counts, n_rows: float | None = None) -> DecayedCounts:
        """Those of rows at hand, which may stand for more than they are."""
        times = 1.0 if n_rows is None else n_rows / max(1, counts.n_rows)
        return cls(*(times * getattr(counts, field.name) for field in fields(cls)))

    def faded(self, share: float) -> DecayedCounts:
        """All of them, counting only so much as they did."""
        return DecayedCounts(*(share * getattr(self, field.name) for field in fields(self)))

    def plus(self, counts: Counts) -> DecayedCounts:
        """With those of more rows."""
        return DecayedCounts(*(getattr(self, field.name) + getattr(counts, field.name) for field in fields(self)))

    def coded_again(self, before: DecayedCounts, after: Counts) -> DecayedCounts:
        """After rows among them were coded again, with other counts than before; they may have faded since."""
        changed = {
            field.name: getattr(self, field.name) + getattr(after, field.name) - getattr(before, field.name)
            for field in fields(self)
        }
        return DecayedCounts(**changed).within_bounds()

    def with_more_atoms(self, n_atoms: int) -> DecayedCounts:
        """With so many more atoms, which no row uses."""
        wider = ((0, n_atoms), (0, 0))
        return replace(
            self,
            uses=np.pad(self.uses, (0, n_atoms)),
            free=np.pad(self.free, wider),
            bad=np.pad(self.bad, wider),
            pairs=np.pad(self.pairs, (0, n_atoms)),
        )

    def with_atoms(self, kept: NDArray[np.intp]) -> DecayedCounts:
        """With these of the atoms, in their order, where the others are all zeros."""
        pairs = self.pairs[np.ix_(kept, kept)]
        return replace(self, uses=self.uses[kept], free=self.free[kept], bad=self.bad[kept], pairs=pairs)

    def flipped(self, atoms: BitMatrix, flips: NDArray[np.uint64], covers: Covers, bias: BitMatrix) -> DecayedCounts:
        """After these bits of the atoms were flipped, while the rows kept their codes."""
        where = np.argwhere(BitMatrix.from_words(flips.copy(), atoms.n_cols, check=False).to_dense(bool).T)
        if len(where) == 0:
            return self
        bits, turned = atoms.to_dense(bool), bias.to_dense(bool)[0]
        shared = self.pairs + np.tril(self.pairs, -1).T
        np.fill_diagonal(shared, 0)
        after = replace(self, **{name: getattr(self, name).copy() for name in ("wrong", "free", "bad", "missed")})
        for i, k in where.tolist():
            free, bad = after.free[k, i], after.bad[k, i]
            after.wrong[i] += free - 2 * bad
            # Where no other atom has a say, the rows in which a zero is wrong are those that miss a one.
            after.missed[i] += -bad if bits[k, i] == turned[i] else free - bad
            if not covers:
                _turn(after, k, i, shared[k])
            elif bits[k, i]:
                _uncover(after, k, i, shared[k], bits[:, i])
            else:
                _cover(after, i, shared[k])
            after.bad[k, i] = free - bad
            bits[k, i] ^= True
        return after.within_bounds()

    def within_bounds(self) -> DecayedCounts:
        """The nearest counts that rows could have."""
        n = max(0.0, self.n_rows)
        uses = np.clip(self.uses, 0, n)
        pairs = np.tril(np.clip(self.pairs, 0, np.minimum(uses[:, np.newaxis], uses)))
        np.fill_diagonal(pairs, uses)
        wrong, ones = np.clip(self.wrong, 0, n), np.clip(self.ones, 0, n)
        free = np.clip(self.free, 0, uses[:, np.newaxis])
        bad = np.clip(self.bad, np.maximum(0, wrong - (n - free)), np.minimum(free, wrong))
        missed = np.clip(self.missed, np.maximum(0, wrong - (n - ones)), np.minimum(ones, wrong))
        return DecayedCounts(n, uses, wrong, free, bad, pairs, ones, missed)

    def whole(self) -> Counts:
        """Rounded to whole numbers."""
        rounded = DecayedCounts(*(np.rint(getattr(self, field.name)) for field in fields(self))).within_bounds()
        arrays = {field.name: getattr(rounded, field.name) for field in fields(rounded)}
        n_rows = int(arrays.pop("n_rows"))
        return Counts(n_rows, **{name: array.astype(np.int64) for name, array in arrays.items()}, codes_changed=0)


def _turn(counts: DecayedCounts, k: int, i: int, shared: Floats) -> None:
    """XOR: right and wrong change places in the users of k, whoever else uses those."""
    free, bad = counts.free[k, i], counts.bad[k, i]
    others, theirs = counts.bad[:, i], counts.uses
    least = np.maximum(0, np.maximum(shared + bad - free, shared + others - theirs))
    most = np.minimum(shared, np.minimum(bad, others))
    both = np.minimum(np.maximum(shared * (bad / free if free else 0), least), most)
    others += shared - 2 * both


def _cover(counts: DecayedCounts, i: int, shared: Floats) -> None:
    """OR: where an atom now covers the bit, the others that its row uses have no say any more."""
    lost = np.divide(shared, counts.uses, out=np.zeros_like(shared), where=counts.uses > 0)
    counts.free[:, i] *= 1 - lost
    counts.bad[:, i] *= 1 - lost


def _uncover(counts: DecayedCounts, k: int, i: int, shared: Floats, bits: NDArray[np.bool_]) -> None:
    """OR: where only k covered the bit, others that a row uses and that leave it open now have a say; and where
    another covered it as well, that one may, but who knows in how many rows."""
    free, bad = counts.free[k, i], counts.bad[k, i]
    if not free or not counts.uses[k]:
        return
    gained = np.where(bits, 0, np.minimum(shared * (free / counts.uses[k]), counts.uses - counts.free[:, i]))
    counts.free[:, i] += gained
    counts.bad[:, i] += gained * ((free - bad) / free)
