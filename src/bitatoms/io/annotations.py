"""Annotations as JSON: how the files that bitatoms writes store what is known about rows and columns."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..columns.annotations import Annotations, Labels, Values
from ..system.memory import memory_limit

_CODES = np.dtype("<i4")
_KINDS = ("text", "nullable", "categories", "ordered")


def encode_annotations(annotations: Annotations | None) -> dict[str, Any] | None:
    """Return annotations as a JSON value: numbers are compressed bytes in base 64, text a list and its codes."""
    if annotations is None:
        return None
    return {name: _encode(annotations.values_of(name)) for name in annotations}


def decode_annotations(stored: Any, n: int, axis: str) -> Annotations | None:
    """Return the annotations of ``n`` rows or columns; raise ValueError if they are malformed."""
    if stored is None:
        return None
    if not isinstance(stored, dict):
        raise ValueError(f"its {axis} annotations are malformed")
    try:
        n_bytes = n * sum(_type_of(values).itemsize for values in stored.values())
        if n_bytes > memory_limit():  # a few bytes can decompress to thousands
            raise ValueError(f"they claim to take {n_bytes / 2**30:.1f} GiB")
        return Annotations({name: _decode(values, n) for name, values in stored.items()}, n)
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        raise ValueError(f"its {axis} annotations are malformed: {' '.join(str(error).split())[:80]}") from error


def _encode(values: Values) -> dict[str, Any]:
    """Return the values of a field as a JSON value."""
    if isinstance(values, Labels):
        flag = values.is_ordered if values.is_categorical else values.is_nullable
        coded: dict[str, Any] = {
            "type": _KINDS[2 * values.is_categorical + flag],
            "categories": list(values.categories),
        }
        if values.category_type:
            coded["category_type"] = values.category_type
        return coded | {"codes": _encode_array(values.codes)}
    encoded = {"type": values.dtype.newbyteorder("<").str, "values": _encode_array(np.ma.getdata(values))}
    if isinstance(values, np.ma.MaskedArray):
        encoded["missing"] = _encode_array(np.packbits(np.ma.getmaskarray(values)))
    return encoded


def _encode_array(values: NDArray[Any]) -> str:
    """Return numbers as text."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return base64.b64encode(zlib.compress(little.tobytes(), 4)).decode("ascii")


def _type_of(stored: Any) -> np.dtype[Any]:
    """Return the type of the numbers of a field; that of its codes, if it is text."""
    kind = stored["type"]
    if kind in _KINDS:
        return _CODES
    dtype = np.dtype(str(kind))
    if dtype.kind not in "biuf":
        raise ValueError(f"values of type {dtype}")
    return dtype


def _decode(stored: dict[str, Any], n: int) -> Values:
    """Return the values of a field."""
    if stored["type"] in _KINDS:
        return _decode_text(stored, n)
    values = _decode_array(stored["values"], _type_of(stored), n)
    if "missing" not in stored:
        return values
    missing = _decode_array(stored["missing"], np.dtype(np.uint8), -(-n // 8))
    return np.ma.MaskedArray(values, np.unpackbits(missing, count=n).astype(bool))


def _decode_text(stored: dict[str, Any], n: int) -> Labels:
    """Return text or categories."""
    kind, categories = _KINDS.index(stored["type"]), stored["categories"]
    if not isinstance(categories, list) or not all(isinstance(name, str) for name in categories):
        raise ValueError("a category is not text")
    if len(set(categories)) < len(categories):
        raise ValueError("two categories are the same")
    codes = _decode_array(stored["codes"], _CODES, n)
    if n and not -1 <= codes.min() <= codes.max() < len(categories):
        raise ValueError("a code has no category")
    category_type = stored.get("category_type", "")
    labels = Labels(codes, tuple(categories), kind >= 2, kind == 3, category_type, kind == 1)
    if category_type:
        _type_of({"type": category_type})
        typed = labels.typed_categories()  # raises ValueError if they are not numbers
        if kind < 2 or len(np.unique(typed)) < len(categories):
            raise ValueError("its categories are not numbers that differ")
    return labels


def _decode_array(text: str, dtype: np.dtype[Any], n: int) -> NDArray[Any]:
    """Return ``n`` numbers; no more bytes are decompressed than they take."""
    size = n * dtype.itemsize
    decompressor = zlib.decompressobj()
    data = decompressor.decompress(base64.b64decode(text, validate=True), size + 1)
    if len(data) != size:
        raise ValueError(f"there are {len(data)} bytes; expected {size}")
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
