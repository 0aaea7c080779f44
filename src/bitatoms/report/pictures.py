"""Rows, atoms and counts per feature drawn as images, for tables whose rows are pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..datasets import stitch_blocks
from ..html.png import Colour, encode_png, png_data_uri
from ..html.text import class_attribute, escape, truncated
from .data import ReportData, ReportRow

INK: Colour = (28, 27, 25)
PAPER: Colour = (250, 249, 246)
FADED: Colour = (188, 185, 178)  # correct ones, behind the wrong pixels
MISSED: Colour = (213, 94, 0)
INVENTED: Colour = (91, 63, 196)
BITS_PALETTE = (PAPER, INK)  # zeros, ones
ERRORS_PALETTE = (PAPER, FADED, MISSED, INVENTED)  # correct zeros, correct ones, missed, invented
LEGEND = (
    '<span class="key"><i class="missed"></i>missed: a one that the patterns do not have</span> '
    '<span class="key"><i class="invented"></i>invented: a one that only the patterns have</span>'
)

_N_SHADES = 16
MAX_PIXELS = 4_000_000  # of a picture that is shown before and after coding
_DETAIL = (96, 144)  # height and width of the part that is shown enlarged


def image_html(pixels: NDArray[np.uint8], palette: tuple[Colour, ...], alt: str, side: int) -> str:
    """Return an img element, small pictures enlarged by an integer factor to about ``side`` CSS pixels.

    Large pictures are reduced to twice that.
    """
    height, width = pixels.shape
    longest = max(height, width)
    scale = max(1, side // longest) if longest <= 2 * side else 2 * side / longest
    size = f'width="{max(1, round(width * scale))}" height="{max(1, round(height * scale))}"'
    fine = class_attribute("fine" if scale < 1 else "")
    return f'<img src="{png_data_uri(encode_png(pixels, palette))}" {size}{fine} alt="{escape(alt)}">'


def bits_image(bits: NDArray, shape: tuple[int, int], alt: str, side: int) -> str:
    """Return the image of a row or an atom."""
    return image_html(bits.astype(np.uint8).reshape(shape), BITS_PALETTE, alt, side)


def mark_errors(
    data: NDArray[np.bool_], reconstruction: NDArray[np.bool_], unknown: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    """Return indices into `ERRORS_PALETTE`; unknown cells are as in the reconstruction."""
    return np.where(unknown | (data == reconstruction), reconstruction, np.where(data, 2, 3)).astype(np.uint8)


def figure_html(image: str, caption: str) -> str:
    """Return a figure."""
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def before_and_after(row: ReportRow, shape: tuple[int, int], side: int) -> str:
    """Return a row, its reconstruction, and the difference of the two."""
    name = truncated(row.name)
    errors = mark_errors(row.data, row.reconstruction, row.unknown).reshape(shape)
    return (
        figure_html(bits_image(row.data, shape, f"{name}: data", side), "before")
        + figure_html(bits_image(row.reconstruction, shape, f"{name}: reconstruction", side), "after")
        + figure_html(image_html(errors, ERRORS_PALETTE, f"{name}: wrong cells", side), "wrong")
    )


def heat_map(counts: NDArray[np.int64], shape: tuple[int, int], colour: Colour, alt: str, side: int) -> str:
    """Return counts per feature as shades, from paper for none to the colour for the maximum."""
    weights = np.linspace(0, 1, _N_SHADES)[:, np.newaxis]
    ramp = np.rint(np.array(PAPER) * (1 - weights) + np.array(colour) * weights).astype(int)
    maximum = max(1, int(counts.max(initial=0)))
    shades = -(-counts * (_N_SHADES - 1) // maximum)  # rounded up, so that every count above 0 is visible
    palette = tuple((int(red), int(green), int(blue)) for red, green, blue in ramp)
    return image_html(shades.astype(np.uint8).reshape(shape), palette, alt, side)


def full_picture(data: ReportData, max_pixels: int = MAX_PIXELS) -> str:
    """Return the picture that the rows are blocks of, before and after coding; or a note that it is too large."""
    picture = data.table.picture
    if picture is None or picture.whole is None:
        return ""
    height, width = picture.whole
    if height * width > max_pixels:
        return f'<p class="note">The picture, {width:,} × {height:,} pixels, is too large to be shown here.</p>'
    bits = data.table.bits
    mask = BitMatrix.zeros(*bits.shape) if bits.unknown is None else bits.unknown
    before, after, unknown = (
        stitch_blocks(blocks, picture.whole, picture.tile)
        for blocks in (bits.filled(), data.model.reconstruct(data.codes), mask)
    )
    errors = mark_errors(*(pixels.astype(np.bool_) for pixels in (before, after, unknown)))
    full = _panel(before, BITS_PALETTE, "before") + _panel(after, BITS_PALETTE, "after")
    detail_height, detail_width = (min(size, limit) for size, limit in zip((height, width), _DETAIL, strict=True))
    top, left = (height - detail_height) // 2, (width - detail_width) // 2
    centre = np.s_[top : top + detail_height, left : left + detail_width]
    detail = (
        _panel(before[centre], BITS_PALETTE, "before")
        + _panel(after[centre], BITS_PALETTE, "after")
        + _panel(errors[centre], ERRORS_PALETTE, "wrong")
    )
    return (
        f'<div class="whole">{full}</div>'
        f'<p class="note">The centre, enlarged. {LEGEND}</p><div class="whole detail">{detail}</div>'
    )


def _panel(pixels: NDArray[np.uint8], palette: tuple[Colour, ...], caption: str) -> str:
    """Return a large picture that takes the available width."""
    return figure_html(image_html(pixels, palette, f"the picture, {caption}", max(pixels.shape)), caption)
