"""Arrays as text for the script of a page: bits and integers in base64, JSON that cannot end a script element."""

from __future__ import annotations

import base64
import json

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...sparse_bits import Bits, packed

_CHUNK_ROWS = 256  # of a sparse matrix that are packed together
_BITS_PER_BYTE = 7  # of a number; the eighth tells that another byte follows


def base64_bits(bits: Bits) -> str:
    """Return the rows of a matrix without unknown cells, each from a new byte, the first column in the lowest bit."""
    chunks = (packed(bits[start : start + _CHUNK_ROWS]).to_bytes() for start in range(0, bits.n_rows, _CHUNK_ROWS))
    return base64.b64encode(b"".join(chunks)).decode("ascii")


def base64_numbers(numbers: ArrayLike) -> str:
    """Return integers from 0 as variable-length bytes: seven bits each, the lowest first."""
    return base64.b64encode(_variable_length(np.asarray(numbers, np.int64).ravel()).tobytes()).decode("ascii")


def script_json(value: object) -> str:
    """Return JSON without any character that could end a script element."""
    return (
        json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )


def _variable_length(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the bytes of integers from 0, one number after the other."""
    lengths, rest = np.ones(len(numbers), np.int64), numbers >> _BITS_PER_BYTE
    while rest.any():
        lengths += rest > 0
        rest = rest >> _BITS_PER_BYTE
    starts = np.cumsum(lengths) - lengths
    encoded = np.empty(int(lengths.sum()), np.uint8)
    for place in range(int(lengths.max(initial=0))):
        own = lengths > place
        low = numbers[own] >> (_BITS_PER_BYTE * place) & 127
        encoded[starts[own] + place] = low | np.where(lengths[own] > place + 1, 128, 0)
    return encoded
