"""Sets of indices as Python integers, one bit per index: fast for hundreds to thousands of elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

_MAX_KNOWN = 1 << 17  # sets whose weights are kept
_MAX_STEPS = 40  # elements that are found one at a time, each by operations on the whole set


def indices(mask: int) -> Iterator[int]:
    """Yield the elements of a set, the smallest first."""
    if mask.bit_count() > _MAX_STEPS:
        yield from np.flatnonzero(rows_of_masks([mask], mask.bit_length())[0]).tolist()
        return
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def union(masks: Iterable[int]) -> int:
    """Return the union of sets."""
    united = 0
    for mask in masks:
        united |= mask
    return united


def full(n: int) -> int:
    """Return the set of 0, 1, ..., n - 1."""
    return (1 << n) - 1


def mask_of(members: NDArray[np.bool_]) -> int:
    """Return the set of the indices of True."""
    return int.from_bytes(np.packbits(members, bitorder="little").tobytes(), "little")


def masks_of_rows(dense: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the set of the columns of the ones of each row."""
    packed = np.packbits(np.ascontiguousarray(dense), axis=1, bitorder="little")
    return tuple(int.from_bytes(row.tobytes(), "little") for row in packed)


def rows_of_masks(masks: Sequence[int], n: int) -> NDArray[np.bool_]:
    """Return sets of indices below ``n`` as rows of booleans."""
    n_bytes = -(-n // 8)
    packed = np.frombuffer(b"".join(mask.to_bytes(n_bytes, "little") for mask in masks), np.uint8)
    return np.unpackbits(packed.reshape(len(masks), n_bytes), axis=1, count=n, bitorder="little").astype(bool)


def transposed(masks: Sequence[int], n: int) -> list[int]:
    """Return for each index below ``n`` which of the sets have it."""
    return list(masks_of_rows(rows_of_masks(masks, n).T))


class Weights:
    """Weights of elements; the weight of a set is that of its elements together."""

    def __init__(self, weights: Sequence[int]) -> None:
        self.each = tuple(map(int, weights))
        values = np.asarray(weights, np.int64)
        n_planes = int(values.max(initial=0)).bit_length()
        self._planes = tuple(mask_of((values >> power & 1).astype(bool)) for power in range(n_planes))
        self._known: dict[int, int] = {}  # a search asks for the same sets again and again

    def __len__(self) -> int:
        return len(self.each)

    def of(self, mask: int) -> int:
        """Return the weight of a set."""
        weight = self._known.get(mask)
        if weight is None:
            weight = 0
            for power, plane in enumerate(self._planes):
                weight += (mask & plane).bit_count() << power
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[mask] = weight
        return weight
