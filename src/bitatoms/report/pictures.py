"""Rows, atoms and counts of features as pictures, where a row is one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..datasets import stitch_blocks
from .findings import Findings, Row
from .html.png import Colour, data_uri
from .html.text import shortened, text

INK: Colour = (28, 27, 25)
PAPER: Colour = (250, 249, 246)
FADED: Colour = (188, 185, 178)  # ones that are right, behind those that are not
MISSED: Colour = (213, 94, 0)
INVENTED: Colour = (91, 63, 196)
PLAIN = (PAPER, INK)  # zeros, ones
WRONG = (PAPER, FADED, MISSED, INVENTED)  # zeros and ones that are right, and what is not

_SHADES = 16
_MOST_PIXELS = 4_000_000  # of a whole picture that is shown before and after
_DETAIL = (96, 144)  # height and width of the part that is shown enlarged


def picture(pixels: NDArray[np.uint8], palette: tuple[Colour, ...], says: str, side: int) -> str:
    """An img, each pixel enlarged a whole number of times so that it is about ``side`` wide or high.

    Large pictures are made smaller, but are no smaller than twice that.
    """
    height, width = pixels.shape
    longest = max(height, width)
    times = max(1, side // longest) if longest <= 2 * side else 2 * side / longest
    size = f'width="{max(1, round(width * times))}" height="{max(1, round(height * times))}"'
    fine = ' class="fine"' if times < 1 else ""
    return f'<img src="{data_uri(pixels, palette)}" {size}{fine} alt="{text(says)}">'


def tile(bits: NDArray, shape: tuple[int, int], says: str, side: int) -> str:
    """A row or an atom."""
    return picture(bits.astype(np.uint8).reshape(shape), PLAIN, says, side)


def marked(data: NDArray[np.bool_], made: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Places in the palette of `WRONG`: right zeros, right ones, missed, invented."""
    return np.where(data == made, data, np.where(data, 2, 3)).astype(np.uint8)


def before_and_after(row: Row, shape: tuple[int, int], side: int) -> str:
    """A row, what the atoms make of it, and where the two differ."""
    called = shortened(row.name)
    wrong = picture(marked(row.data, row.made).reshape(shape), WRONG, f"{called}: what is wrong", side)
    shown = (
        (tile(row.data, shape, f"{called} as it is", side), "before"),
        (tile(row.made, shape, f"{called} as its patterns make it", side), "after"),
        (wrong, "wrong"),
    )
    return "".join(f"<figure>{image}<figcaption>{says}</figcaption></figure>" for image, says in shown)


def heat(counts: NDArray[np.int64], shape: tuple[int, int], colour: Colour, says: str, side: int) -> str:
    """Counts of features, from paper for none to the colour for the most."""
    steps = np.linspace(0, 1, _SHADES)[:, np.newaxis]
    ramp = np.rint(np.array(PAPER) * (1 - steps) + np.array(colour) * steps).astype(int)
    most = max(1, int(counts.max(initial=0)))
    shades = -(-counts * (_SHADES - 1) // most)  # rounded up, so that what is there is seen
    palette = tuple((int(red), int(green), int(blue)) for red, green, blue in ramp)
    return picture(shades.astype(np.uint8).reshape(shape), palette, says, side)


def whole_picture(found: Findings) -> str:
    """The picture that the rows are blocks of, before and after; or why it is left out."""
    picture_of = found.table.picture
    if picture_of is None or picture_of.whole is None:
        return ""
    height, width = picture_of.whole
    if height * width > _MOST_PIXELS:
        return f'<p class="note">The whole picture, {width:,} × {height:,} pixels, is too large to be shown here.</p>'
    if not height * width:
        return ""
    data = stitch_blocks(found.table.bits, picture_of.whole, picture_of.tile)
    made = stitch_blocks(found.table.bits ^ found.errors, picture_of.whole, picture_of.tile)
    wrong = marked(data.astype(np.bool_), made.astype(np.bool_))
    both = _panel(data, PLAIN, "before") + _panel(made, PLAIN, "after")
    tall, wide = (min(size, most) for size, most in zip((height, width), _DETAIL, strict=True))
    top, left = (height - tall) // 2, (width - wide) // 2
    middle = np.s_[top : top + tall, left : left + wide]
    detail = "".join(
        _panel(pixels[middle], palette, says)
        for pixels, palette, says in (
            (data, PLAIN, "before"),
            (made, PLAIN, "after"),
            (wrong, WRONG, "wrong"),
        )
    )
    return (
        f'<div class="whole">{both}</div>'
        f'<p class="note">Its middle, enlarged. {KEY}</p><div class="whole detail">{detail}</div>'
    )


KEY = (
    '<span class="key"><i class="missed"></i>missed: a one that the patterns do not have</span> '
    '<span class="key"><i class="invented"></i>invented: a one that only the patterns have</span>'
)


def _panel(pixels: NDArray[np.uint8], palette: tuple[Colour, ...], says: str) -> str:
    """A large picture that takes the width it gets."""
    image = picture(pixels, palette, f"the picture, {says}", max(pixels.shape))
    return f"<figure>{image}<figcaption>{says}</figcaption></figure>"
