"""`code_from_below`: few of given atoms that cover what they can of each row, and add nothing."""

from __future__ import annotations

import numpy as np

from ..bits import BitMatrix
from .masks import indices, masks_of_rows, rows_of_masks, union

_MAX_BRANCHES = 2000  # per distinct row, after which the fewest atoms found so far are used


def code_from_below(data: BitMatrix, atoms: BitMatrix) -> BitMatrix:
    """Return which atoms each row uses: only those all of whose ones it has, and few that cover the most ones."""
    distinct, index = np.unique(data.words, axis=0, return_inverse=True)
    rows = masks_of_rows(BitMatrix.from_words(distinct, data.n_cols, check=False).to_dense(bool))
    masks = masks_of_rows(atoms.to_dense(bool))
    codes = [_fewest([(mask, number) for number, mask in enumerate(masks) if mask and not mask & ~row]) for row in rows]
    return BitMatrix.from_dense(rows_of_masks(codes, atoms.n_rows)[index.reshape(-1)])


def _fewest(contained: list[tuple[int, int]]) -> int:
    """Return the fewest of the atoms whose union is that of all: by branch and bound, the best found at the limit."""
    # Of equal atoms, and of atoms within others, one is enough. The largest come first, ties in their order.
    contained = sorted(contained, key=lambda each: -each[0].bit_count())
    kept: list[tuple[int, int]] = []
    for mask, number in contained:
        if not any(mask & ~larger == 0 for larger, _ in kept):
            kept.append((mask, number))
    target = union(mask for mask, _ in kept)
    best = union(1 << number for _, number in kept)
    largest = kept[0][0].bit_count() if kept else 1
    branches, n_left = [(target, 0)], _MAX_BRANCHES
    while branches and n_left:
        n_left -= 1
        left, chosen = branches.pop()
        if not left:
            best = min(best, chosen, key=int.bit_count)
            continue
        if chosen.bit_count() + -(-left.bit_count() // largest) >= best.bit_count():
            continue
        # Some atom must cover the column that the fewest have.
        options = min(
            ([each for each in kept if each[0] >> column & 1] for column in indices(left)),
            key=len,
        )
        options.sort(key=lambda each: (each[0] & left).bit_count())
        branches += [(left & ~mask, chosen | 1 << number) for mask, number in options]  # the last one comes first
    return best
