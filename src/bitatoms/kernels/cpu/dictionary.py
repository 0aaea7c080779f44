"""Tables for coding that are derived from the atoms: weights, byte slices, overlaps."""

from __future__ import annotations

import numpy as np

from ..jit import kernel, popcount
from .simd import add_prices


@kernel
def slice_atoms(atoms, weights, slices):
    """weights[l] = number of ones in atom l; slices[b, l] = byte b of atom l."""
    for k in range(atoms.shape[0]):
        ones = 0
        for w in range(atoms.shape[1]):
            ones += np.intp(popcount(atoms[k, w]))
        weights[k] = ones
        for b in range(slices.shape[0]):
            slices[b, k] = np.uint8(atoms[k, b >> 3] >> np.uint64((b & 7) << 3))


@kernel
def overlap_atoms(atoms, changed, factor, overlaps):
    """overlaps[k, l] = factor * (number of ones that atoms k and l share), where k or l has changed."""
    for k in range(atoms.shape[0]):
        for i in range(k + 1):
            if changed[k] or changed[i]:
                shared = 0
                for w in range(atoms.shape[1]):
                    shared += np.intp(popcount(atoms[k, w] & atoms[i, w]))
                overlaps[k, i] = factor * shared
                overlaps[i, k] = factor * shared


@kernel
def price_atoms(atoms, bits, factor, listed, priced):
    """Compute the tables of the atoms for coding with these prices of errors.

    slices[i, l] = price of bit i if atom l has it, else 0, unless atoms are listed by column;
    weights[l] = sum of these for atom l;
    overlaps[k, l] = factor * (sum of the prices of the ones that atoms k and l share).
    """
    for i in range(priced.slices.shape[0]):
        price, shift = np.uint8(bits[i]), np.uint8(i & 7)
        for k in range(priced.slices.shape[1]):
            priced.slices[i, k] = price * ((atoms.slices[i >> 3, k] >> shift) & np.uint8(1))
    for k in range(atoms.words.shape[0]):
        overlaps = priced.overlaps[k]
        for i in range(overlaps.shape[0]):
            overlaps[i] = 0
        add_prices(atoms.words, k, factor, priced, bits, listed, overlaps)
        priced.weights[k] = overlaps[k] // factor
