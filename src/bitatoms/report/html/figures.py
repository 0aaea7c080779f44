"""Figures: a picture as PNG with the numbers that it shows, for a page and for files of their own."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .png import Colour, encoded
from .tables import DataTable
from .text import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (4.4, 3.2)  # small, so that its letters can still be read on a phone
_DENSITY = 100  # pixels of a page to an inch
_UNFOLDED = 150  # rows of a table that a page still shows
_FINER = 2  # pixels of the file to one of the page, for sharp screens


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture, and the numbers behind it."""

    name: str  # of its files: NAME.png and NAME.csv
    title: str
    says: str  # what is to be seen in it, for who does not see it
    png: bytes
    size: tuple[int, int]  # height and width on the page, where there is room
    numbers: DataTable | None = None
    pixelated: bool = False

    def files(self) -> dict[str, bytes]:
        """What is written of it, by the names of files."""
        found = {f"figures/{self.name}.png": self.png}
        if self.numbers is not None:
            found[f"figures/{self.name}.csv"] = self.numbers.to_csv().encode("utf-8", "replace")
        return found

    def to_html(self) -> str:
        """The picture with its title, and its numbers to unfold."""
        height, width = self.size
        source = "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")
        fine = "" if self.pixelated else ' class="fine"'
        image = f'<img src="{source}" width="{width}" height="{height}"{fine} alt="{text(self.says)}">'
        unfolded = ""
        if self.numbers is not None and len(self.numbers.rows) <= _UNFOLDED:
            table = self.numbers.to_html(self.title)
            unfolded = f"<details><summary>The numbers</summary>{table}</details>"
        elif self.numbers is not None:
            unfolded = f' <span class="note">(numbers: {self.name}.csv)</span>'
        return f'<figure id="{self.name}">{image}<figcaption>{text(self.title)}{unfolded}</figcaption></figure>'


def check_drawing() -> None:
    """Before long work: refuse where there is nothing to draw with."""
    if find_spec("matplotlib") is None:
        raise ImportError('figures are drawn with matplotlib; get it with pip install "bitatoms[plot]"')


def drawn(
    name: str,
    title: str,
    says: str,
    draw: Callable[[Axes], object],
    numbers: DataTable | None = None,
    inches: tuple[float, float] = _INCHES,
) -> Figure:
    """A figure that matplotlib draws; ``inches`` are its width and height."""
    check_drawing()
    from matplotlib.figure import Figure as Sheet

    sheet = Sheet(figsize=inches, layout="constrained")
    draw(sheet.subplots())
    made = io.BytesIO()
    # no date and no version in the file: the same figure is the same bytes
    sheet.savefig(made, format="png", dpi=_FINER * _DENSITY, metadata={"Software": None})
    width, height = (round(_DENSITY * side) for side in inches)
    return Figure(name, title, says, made.getvalue(), (height, width), numbers)


def pixels(
    name: str,
    title: str,
    says: str,
    picture: NDArray[np.uint8],
    palette: Sequence[Colour],
    times: int = 1,
    numbers: DataTable | None = None,
    pixelated: bool = True,
) -> Figure:
    """A figure of pixels that are places in a palette, each enlarged so many times."""
    enlarged = picture.repeat(times, axis=0).repeat(times, axis=1)
    height, width = enlarged.shape
    return Figure(name, title, says, encoded(enlarged, palette), (height, width), numbers, pixelated)
