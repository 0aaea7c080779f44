"""Annotations as JSON: how the files that bitatoms writes store what is known about rows and columns."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..annotations import Annotations, Labels, Values

_MAX_FIELDS = 10_000


def encode_annotations(annotations: Annotations | None) -> dict[str, Any] | None:
    """Return annotations as a JSON value: numbers are compressed bytes in base 64, text a list and its codes."""
    if annotations is None:
        return None
    return {name: _encode(annotations.values_of(name)) for name in annotations}


def decode_annotations(stored: Any, n: int, axis: str) -> Annotations | None:
    """Return the annotations of ``n`` rows or columns; raise ValueError if they are malformed."""
    if stored is None:
        return None
    if not isinstance(stored, dict) or len(stored) > _MAX_FIELDS:
        raise ValueError(f"its {axis} annotations are malformed")
    try:
        return Annotations({name: _decode(values, n) for name, values in stored.items()}, n)
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        raise ValueError(f"its {axis} annotations are malformed: {' '.join(str(error).split())[:80]}") from error


def _encode(values: Values) -> dict[str, Any]:
    """Return the values of a field as a JSON value."""
    if isinstance(values, Labels):
        kind = ("text", "categories", "ordered")[values.is_categorical + (values.is_categorical and values.is_ordered)]
        return {"type": kind, "categories": list(values.categories), "codes": _encode_array(values.codes)}
    encoded = {"type": values.dtype.newbyteorder("<").str, "values": _encode_array(np.ma.getdata(values))}
    if isinstance(values, np.ma.MaskedArray):
        encoded["missing"] = _encode_array(np.packbits(np.ma.getmaskarray(values)))
    return encoded


def _encode_array(values: NDArray[Any]) -> str:
    """Return numbers as text."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return base64.b64encode(zlib.compress(little.tobytes(), 4)).decode("ascii")


def _decode(stored: dict[str, Any], n: int) -> Values:
    """Return the values of a field."""
    kind = stored["type"]
    if kind in ("text", "categories", "ordered"):
        categories = tuple(stored["categories"])
        codes = _decode_array(stored["codes"], np.dtype("<i4"), n)
        if not all(isinstance(name, str) for name in categories):
            raise ValueError("a category is not text")
        if n and not -1 <= codes.min() <= codes.max() < len(categories):
            raise ValueError("a code has no category")
        return Labels(codes, categories, kind != "text", kind == "ordered")
    dtype = np.dtype(str(kind))
    if dtype.kind not in "biuf":
        raise ValueError(f"values of type {dtype}")
    values = _decode_array(stored["values"], dtype, n)
    if "missing" not in stored:
        return values
    missing = _decode_array(stored["missing"], np.dtype(np.uint8), -(-n // 8))
    return np.ma.MaskedArray(values, np.unpackbits(missing, count=n).astype(bool))


def _decode_array(text: str, dtype: np.dtype[Any], n: int) -> NDArray[Any]:
    """Return ``n`` numbers; no more bytes are decompressed than they take."""
    size = n * dtype.itemsize
    decompressor = zlib.decompressobj()
    data = decompressor.decompress(base64.b64decode(text, validate=True), size + 1)
    if len(data) != size:
        raise ValueError(f"there are {len(data)} bytes; expected {size}")
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
