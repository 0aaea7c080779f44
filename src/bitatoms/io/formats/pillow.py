"""PNG and TIFF images, by Pillow; one line of pixels or one block of pixels per row. 1 is black, as in PBM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...bits import BitMatrix
from ...columns.table import Picture, Table
from ...datasets import cut_blocks
from ...errors import Parameter
from ...validation import check_pair
from ..options import ReadOptions
from ..stream import RowChunk, Source, TableStream
from .pbm import picture_lines, picture_shape

_BYTES_PER_PIXEL = 8  # while pixels are converted
_GRAY = {"1": 1, "L": 255, "I;16": 65535, "I;16B": 65535, "I": 65535}  # modes without color, and their white


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open an image as lines of pixels, or as blocks."""
    with _opened(source) as image:
        width, height = image.size
        if options.blocks is not None:
            tall, wide = check_pair("blocks", options.blocks, least=1)
            source.check_size(-(-height // tall) * -(-width // wide), tall * wide)
        source.check_memory(_BYTES_PER_PIXEL * height * width, f"{height} x {width} pixels")
        pixels = _black(source, image, options.binarize)
    if options.blocks is None:
        return TableStream(width, iter([RowChunk(BitMatrix.from_dense(pixels))]))
    blocks = BitMatrix.from_dense(cut_blocks(pixels, (tall, wide)))
    return TableStream(tall * wide, iter([RowChunk(blocks)]), picture=Picture((tall, wide), (height, width)))


@contextmanager
def _opened(source: Source) -> Iterator[Any]:
    """Open an image that has one page, after a check that its file is complete."""
    kind = (source.format.upper(),)
    with source.catch_library_errors():
        try:
            with Image.open(source.path, formats=kind) as image:
                image.verify()
            with Image.open(source.path, formats=kind) as image:
                n_pages = getattr(image, "n_frames", 1)
                if n_pages > 1:
                    raise source.error(f"the file contains {n_pages} images; split it into one file per image")
                yield image
        except UserWarning as warning:  # where warnings are errors: Pillow warns about corrupt metadata
            raise source.error(f"corrupt: {' '.join(str(warning).split())}") from warning


def _black(source: Source, image: Any, threshold: float | None) -> NDArray[np.bool_]:
    """Return which pixels are black: those that are, or those darker than a threshold."""
    if image.mode == "P" or "transparency" in image.info:
        image = image.convert("RGBA")
    if image.mode in ("LA", "RGBA", "La", "RGBa", "PA") and image.getchannel("A").getextrema()[0] < 255:
        raise source.error("the image has transparent pixels; put it on a white background first")
    if image.mode == "F":
        raise source.error("the pixels of the image are floating-point numbers; convert them to 8 or 16 bits")
    if image.mode not in _GRAY:
        image = image.convert("L")
    white = _GRAY[image.mode]
    ink = white - np.asarray(image).astype(np.int64)
    if threshold is not None:
        return ink > threshold
    gray = (ink != 0) & (ink != white)
    if gray.any():
        row, column = np.unravel_index(int(gray.argmax()), gray.shape)
        raise source.error(
            f"this is a gray or color image (first: {ink[row, column]} of {white} at row {row}, column {column}, where "
            f"0 is white and {white} black); pass ",
            Parameter("binarize", white // 2),
            " to make black what is darker than that",
        )
    return ink == white


def write(table: Table, path: Path, format: str) -> None:
    """Write a black-and-white image: the image that the blocks were cut from, or one line of pixels per row."""
    height, width = picture_shape(table, path)
    pixels = np.concatenate([lines.to_dense(bool) for lines in picture_lines(table)])
    assert pixels.shape == (height, width)
    image = Image.fromarray(~pixels).convert("1")
    image.save(path, format.upper(), **({"compression": "group4"} if format == "tiff" else {"optimize": True}))
