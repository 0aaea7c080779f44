"""Limits on the atoms that are learned: their ones, the rows that use them, features kept apart or together.

A search does not know of them. What it finds is divided into atoms within the limits (`AtomLimits.pieces`), and votes
on the bits of atoms are taken only as far as the limits allow (`AtomLimits.projected`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, Parameter
from ..formatting import listed_names
from ..sparse_bits import Bits, toggled

FeatureSets = tuple[tuple[int, ...], ...]  # by index; before `in_columns` also by name
Columns = NDArray[np.intp]


@dataclass(frozen=True)
class AtomLimits:
    """What an atom must fulfil.

    ``apart`` and ``together`` are sets of features by name or index, after `in_columns` by index: an atom has at most
    one feature of a set of ``apart``, and all or none of a set of ``together``.
    """

    max_features: int | None = None
    min_samples: int | None = None  # rows that use an atom
    apart: FeatureSets = ()
    together: FeatureSets = ()

    def __bool__(self) -> bool:
        """Whether there is any limit."""
        return self != AtomLimits()

    @property
    def of_features(self) -> bool:
        """Whether there is a limit on the features of an atom."""
        return self.max_features is not None or bool(self.apart or self.together)

    def in_columns(self, n_features: int, names: Sequence[str] | None) -> AtomLimits:
        """Return the limits with features by index, after checking that they do not contradict each other."""
        index = None if names is None else {name: i for i, name in enumerate(names)}
        apart = tuple(_columns("apart", each, n_features, index) for each in self.apart)
        together = _merged([_columns("together", each, n_features, index) for each in self.together])
        for group in together:
            listed = listed_names((_shown(i, names) for i in group), 4, str)
            if self.max_features is not None and len(group) > self.max_features:
                raise InputError(
                    Parameter("together"), f" has {len(group)} features that belong together ({listed}), more than ",
                    Parameter("max_features_per_atom", self.max_features), "; no atom could have them",
                )  # fmt: skip
            for each in apart:
                if len(both := [_shown(i, names) for i in group if i in each]) > 1:
                    raise InputError(
                        f"{both[0]} and {both[1]} are in a set of ", Parameter("apart"), " and belong together by ",
                        Parameter("together"), "; no atom could have them",
                    )  # fmt: skip
        return replace(self, apart=apart, together=together)

    def of_share(self, share: float) -> AtomLimits:
        """Return the limits for a sample with this share of the rows."""
        if self.min_samples is None or share >= 1:
            return self
        return replace(self, min_samples=max(1, round(self.min_samples * share)))

    def allows(self, atoms: Bits) -> NDArray[np.bool_]:
        """Return which atoms are within the limits on their features."""
        allowed = np.ones(atoms.n_rows, np.bool_)
        if self.max_features is not None:
            allowed &= atoms.row_weights() <= self.max_features
        for columns in self._apart:
            allowed &= atoms.take_columns(columns).row_weights() <= 1
        for columns in self._together:
            n_ones = atoms.take_columns(columns).row_weights()
            allowed &= (n_ones == 0) | (n_ones == len(columns))
        return allowed

    def has_enough_users(self, uses: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which atoms are used by enough rows."""
        return uses >= (self.min_samples or 0)

    def pieces(self, features: Columns, counts: NDArray[np.integer], n_users: int) -> list[Columns]:
        """Divide an atom into atoms within the limits.

        Parameters
        ----------
        features : array of indices
            Of the atom.
        counts : array of shape (n_features,)
            In how many rows that use the atom each feature is one.
        n_users : int
            The number of these rows.

        Returns
        -------
        list of arrays of indices
            First pieces that share no feature and together have those of the atom; more frequent features come first.
            Then the same pieces with as many other features of the atom as the limits allow. Features that belong
            together are all in a piece if most of their cells are ones, and left out otherwise.
        """
        units = self._units(features, counts, n_users)
        disjoint, left = [], units
        while left:
            piece, left = self._filled((), left)
            disjoint.append(piece)
        larger = [self._filled(piece, [unit for unit in units if unit[0] not in piece])[0] for piece in disjoint]
        different = dict.fromkeys(tuple(sorted(piece)) for piece in (*disjoint, *larger))
        return [np.array(piece, np.intp) for piece in different]

    def projected(self, before: Bits, after: Bits, first: int = 0) -> Bits:
        """Return updated atoms without the changes that the limits do not allow, from the index ``first`` on.

        Those before are within the limits.
        """
        changed = first + np.flatnonzero(~self.allows(after[first:])) if self.of_features else np.zeros(0, np.intp)
        rows, columns = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
        for i in changed:
            old, new = (atoms[i : i + 1].to_dense(bool)[0] for atoms in (before, after))
            restored = np.flatnonzero(new != self._restored(old, new))
            rows.append(np.full(len(restored), i))
            columns.append(restored)
        return toggled(after, np.concatenate(rows), np.concatenate(columns)) if len(changed) else after

    def _restored(self, old: NDArray[np.bool_], new: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return an atom with only those changes that are allowed: features that belong together change together, and
        if the atom has too many or those that exclude each other then, it gets no more features."""
        new = new.copy()
        for group in self._together:
            if new[group].any() != new[group].all():
                new[group] = old[group]
        too_many = self.max_features is not None and np.count_nonzero(new) > self.max_features
        return new & old if too_many or any(np.count_nonzero(new[each]) > 1 for each in self._apart) else new

    @cached_property
    def _apart(self) -> list[Columns]:
        return [np.array(each, np.intp) for each in self.apart]

    @cached_property
    def _together(self) -> list[Columns]:
        return [np.array(each, np.intp) for each in self.together]

    @cached_property
    def _sets_of(self) -> dict[int, list[int]]:
        """The numbers of the sets of ``apart`` that have a feature, by feature."""
        sets: dict[int, list[int]] = {}
        for number, each in enumerate(self._apart):
            for i in each.tolist():
                sets.setdefault(i, []).append(number)
        return sets

    def _units(self, features: Columns, counts: NDArray[np.integer], n_users: int) -> list[tuple[int, ...]]:
        """Return the features of an atom, those that belong together as one; the most frequent ones come first."""
        single = features
        units: list[tuple[int, ...]] = []
        for group in self._together:
            if np.isin(group, features).any():
                single = np.setdiff1d(single, group)
                if 2 * int(counts[group].sum()) > n_users * len(group):
                    units.append(tuple(group.tolist()))
        units += [(i,) for i in single.tolist()]
        return sorted(units, key=lambda unit: (-float(counts[list(unit)].mean()), unit))

    def _filled(
        self, piece: tuple[int, ...], units: Iterable[tuple[int, ...]]
    ) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        """Return a piece with as many of these units as the limits allow, in their order, and the others."""
        taken = {number for i in piece for number in self._sets_of.get(i, ())}
        left = []
        for unit in units:
            sets = {number for i in unit for number in self._sets_of.get(i, ())}
            fits = self.max_features is None or len(piece) + len(unit) <= self.max_features
            if fits and not sets & taken:
                piece, taken = piece + unit, taken | sets
            else:
                left.append(unit)
        return piece, left


def _columns(
    name: str, features: Sequence[int | str], n_features: int, index: dict[str, int] | None
) -> tuple[int, ...]:
    """Return the indices of features by name or index, in increasing order."""
    columns = []
    for feature in features:
        if isinstance(feature, str):
            if index is None:
                raise InputError(Parameter(name), f" names {feature!r}, but the columns have no names; pass indices")
            if feature not in index:
                raise InputError(Parameter(name), f" names {feature!r}, which is not a column of the table")
            columns.append(index[feature])
        elif not -n_features <= feature < n_features:
            raise InputError(Parameter(name), f" has the index {feature}, but the table has {n_features} columns")
        else:
            columns.append(feature % n_features)
    return tuple(sorted(set(columns)))


def _merged(sets: Iterable[tuple[int, ...]]) -> FeatureSets:
    """Return sets that share no feature: those that do are one."""
    merged: list[set[int]] = []
    for each in sets:
        own = set(each).union(*(other for other in merged if other & set(each)))
        merged = [other for other in merged if not other & own] + [own]
    return tuple(sorted(tuple(sorted(each)) for each in merged))


def _shown(column: int | str, names: Sequence[str] | None) -> str:
    """Return a feature as it appears in messages."""
    return f"feature {column}" if names is None or isinstance(column, str) else repr(names[column])
