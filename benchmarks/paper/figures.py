"""Figures: a PNG image and the table of numbers behind it, for HTML pages and for separate files."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitatoms.html.png import Colour, encode_png, png_data_uri
from bitatoms.html.tables import DataTable
from bitatoms.html.text import escape
from bitatoms.system.libraries import missing_library

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (4.4, 3.2)  # small enough that labels stay readable on a phone
_DPI = 100  # CSS pixels per inch
_PIXEL_RATIO = 2  # image pixels per CSS pixel, for high-density screens
_MAX_ROWS_SHOWN = 150  # longer tables are only written as CSV


@dataclass(frozen=True, eq=False)
class Figure:
    """An image, and the table of numbers behind it."""

    name: str  # of its files: NAME.png and NAME.csv
    title: str
    alt: str  # alternative text
    png: bytes
    size: tuple[int, int]  # height and width in CSS pixels, where there is room
    table: DataTable | None = None
    pixelated: bool = False

    def files(self) -> dict[str, bytes]:
        """Return the contents of its files by relative path."""
        contents = {f"figures/{self.name}.png": self.png}
        if self.table is not None:
            contents[f"figures/{self.name}.csv"] = self.table.to_csv().encode("utf-8", "replace")
        return contents

    def to_html(self) -> str:
        """Return a figure element with the image, its title and its folded table."""
        height, width = self.size
        css_class = "" if self.pixelated else ' class="fine"'
        image = (
            f'<img src="{png_data_uri(self.png)}" width="{width}" height="{height}"{css_class} '
            f'alt="{escape(self.alt)}">'
        )
        details = ""
        if self.table is not None and len(tuple(self.table.rows)) <= _MAX_ROWS_SHOWN:
            details = f"<details><summary>The numbers</summary>{self.table.to_html(self.title)}</details>"
        elif self.table is not None:
            details = f' <span class="note">(numbers: {self.name}.csv)</span>'
        return f'<figure id="{self.name}">{image}<figcaption>{escape(self.title)}{details}</figcaption></figure>'


def check_matplotlib() -> None:
    """Raise MissingLibrary if matplotlib is not installed; called before long computations."""
    if find_spec("matplotlib") is None:
        raise missing_library("figures need", "matplotlib")


def plot_figure(
    name: str,
    title: str,
    alt: str,
    draw: Callable[[Axes], object],
    table: DataTable | None = None,
    inches: tuple[float, float] = _INCHES,
) -> Figure:
    """Return a figure drawn by matplotlib; ``inches`` are its width and height."""
    check_matplotlib()
    from matplotlib.figure import Figure as MatplotlibFigure

    figure = MatplotlibFigure(figsize=inches, layout="constrained")
    draw(figure.subplots())
    buffer = io.BytesIO()
    # without a date or version in the metadata, equal figures have equal bytes
    figure.savefig(buffer, format="png", dpi=_PIXEL_RATIO * _DPI, metadata={"Software": None})
    width, height = (round(_DPI * side) for side in inches)
    return Figure(name, title, alt, buffer.getvalue(), (height, width), table)


def pixel_figure(
    name: str,
    title: str,
    alt: str,
    pixels: NDArray[np.uint8],
    palette: Sequence[Colour],
    scale: int = 1,
    table: DataTable | None = None,
    pixelated: bool = True,
) -> Figure:
    """Return a figure of pixels, given as indices into the palette and enlarged ``scale`` times."""
    enlarged = pixels.repeat(scale, axis=0).repeat(scale, axis=1)
    height, width = enlarged.shape
    return Figure(name, title, alt, encode_png(enlarged, palette), (height, width), table, pixelated)
