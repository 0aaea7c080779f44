"""Bit-sliced counters: counter i of a word is stored in bit i of several *planes*; plane b has the value 2**b.

Rows of bits are added for 64 columns and eight rows at a time, by carry-save adders.
"""

from __future__ import annotations

import numpy as np

from ..jit import inline
from .words import NONE, ONE


@inline
def add3(a, b, c):
    """Return sum and carry of three bits, for 64 columns."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@inline
def add_bits(planes, plane, w, carry):
    """Add a carry to the counters of word w, starting with this plane."""
    while carry != NONE:
        held = planes[plane, w]
        planes[plane, w] = held ^ carry
        carry &= held
        plane += 1


@inline
def add_eight(words, a, b, c, d, e, f, g, h, planes):
    """Add eight rows to the counters."""
    for w in range(words.shape[1]):
        ones, two_a = add3(planes[0, w], words[a, w], words[b, w])
        ones, two_b = add3(ones, words[c, w], words[d, w])
        twos, four_a = add3(planes[1, w], two_a, two_b)
        ones, two_a = add3(ones, words[e, w], words[f, w])
        ones, two_b = add3(ones, words[g, w], words[h, w])
        twos, four_b = add3(twos, two_a, two_b)
        fours, carry = add3(planes[2, w], four_a, four_b)
        planes[0, w] = ones
        planes[1, w] = twos
        planes[2, w] = fours
        add_bits(planes, 3, w, carry)


@inline
def add_one(words, i, planes):
    """Add row i to the counters."""
    for w in range(words.shape[1]):
        add_bits(planes, 0, w, words[i, w])


@inline
def clear(planes, count):
    """Clear the planes needed for counts up to ``count``, and one more; return their number."""
    n_planes = 3
    while count >> (n_planes - 1):
        n_planes += 1
    for b in range(n_planes):
        for w in range(planes.shape[1]):
            planes[b, w] = NONE
    return n_planes


@inline
def read(planes, n_planes, out):
    """out[i] = value of counter i, for all i in out."""
    for w in range(planes.shape[1]):
        first = 64 * w
        last = min(first + 64, out.shape[0])
        for i in range(first, last):
            out[i] = 0
        for b in range(n_planes):
            plane = planes[b, w]
            if plane != NONE:
                for i in range(first, last):
                    out[i] += out.dtype.type(((plane >> np.uint64(i - first)) & ONE) << np.uint64(b))
