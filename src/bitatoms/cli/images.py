"""`bitatoms denoise` and `bitatoms inpaint`: pictures from and to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..bits import BitMatrix
from ..columns.table import Table
from ..errors import Parameter
from ..formatting import be, counted
from ..images import LITTLE_REPETITION, denoise, inpaint
from ..io.api import read
from ..io.errors import FileError
from .commands import OutputTable
from .console import Display, print_json, print_line, print_note
from .files import check_json_output, check_writable, read_with_status, table_format, write_table
from .options import Input
from .progress import show_status
from .streams import output_name

_LITTLE_BETTER = 0.5  # a note is printed unless predictions make less than this share of the baseline's mistakes


def denoise_file(data: Input, output: OutputTable, parameters: dict[str, Any], display: Display) -> None:
    """Denoise a picture, write it, and print what was estimated and changed."""
    _check_output(output, (data.path,), display)
    quiet = display.quiet or display.json
    picture = _read_picture(data, quiet)
    if picture.n_unknown:
        raise FileError(f"{data.name}: {_unknown_pixels(picture)}; fill the holes first with bitatoms inpaint")
    with show_status(f"Denoising {data.title}", quiet):
        result = denoise(picture.to_dense(), **parameters)
    write_table(Table(BitMatrix.from_dense(result.image)), *output)
    if display.json:
        print_json(
            {
                "height": picture.shape[0],
                "width": picture.shape[1],
                "noise": result.noise,
                "changed": result.n_changed,
                "repetition": result.repetition,
                "atoms": list(result.n_atoms),
            }
        )
    elif not quiet:
        height, width = picture.shape
        kind = "estimated" if parameters.get("noise") is None else "given"
        print_line(
            f"{output_name(output.path)}: {height} x {width} pixels, {result.n_changed} changed "
            f"({result.n_changed / (height * width):.2%}); {kind} noise {result.noise:.2%}"
        )
    if result.repetition < LITTLE_REPETITION and not display.quiet:
        print_note(
            f"{data.title} repeats itself little: its blocks shorten the description of its pixels by "
            f"{max(0.0, result.repetition):.1%}, so the result is hardly better than that of the nearest neighbours"
        )


def inpaint_file(
    data: Input, mask_path: Path, output: OutputTable, parameters: dict[str, Any], display: Display
) -> None:
    """Fill the holes of a picture, write it, and print how well known pixels were predicted."""
    _check_output(output, (data.path, mask_path), display)
    quiet = display.quiet or display.json
    picture, mask = _read_picture(data, quiet), read(mask_path).bits
    if mask.shape != picture.shape:
        sizes = (f"{height} x {width}" for height, width in (mask.shape, picture.shape))
        raise FileError(f"{mask_path}: the mask has {next(sizes)} pixels, but {data.title} has {next(sizes)}")
    if mask.n_unknown:
        raise FileError(f"{mask_path}: {_unknown_pixels(mask)}; write 1 where the picture has a hole, and 0 elsewhere")
    holes = mask.to_dense(bool)
    if picture.unknown is not None:
        holes |= picture.unknown.to_dense(bool)
    with show_status(f"Filling the holes of {data.title}", quiet):
        result = inpaint(picture.filled().to_dense(), holes, **parameters)
    write_table(Table(BitMatrix.from_dense(result.image)), *output)
    if display.json:
        print_json(
            {
                "height": picture.shape[0],
                "width": picture.shape[1],
                "filled": result.n_filled,
                "accuracy": result.accuracy,
                "baseline": result.baseline,
                "atoms": list(result.n_atoms),
            }
        )
    elif not quiet:
        height, width = picture.shape
        print_line(
            f"{output_name(output.path)}: {height} x {width} pixels, {result.n_filled} filled; of known pixels, hidden "
            f"as a test, {result.accuracy:.1%} were predicted"
        )
    if 1 - result.accuracy > _LITTLE_BETTER * (1 - result.baseline) and not display.quiet:
        print_note(
            f"{data.title} repeats itself little: {result.accuracy:.1%} of the hidden pixels were predicted, and "
            f"{result.baseline:.1%} of the known pixels have the more frequent color anyway"
        )


def _unknown_pixels(picture: BitMatrix) -> str:
    """Return how many pixels of a picture are unknown, in words."""
    return f"{counted(picture.n_unknown, 'pixel')} {be(picture.n_unknown)} unknown"


def _check_output(output: OutputTable, read: tuple[Path, ...], display: Display) -> None:
    """Check before long work that the picture can be written."""
    check_writable(output.path, read=read)
    table_format(*output)
    check_json_output(display.json, output.path)


def _read_picture(data: Input, quiet: bool) -> BitMatrix:
    """Read a picture, one line of pixels per row."""
    if data.reading.options["blocks"] is not None:
        raise FileError(f"{data.name}: the picture is divided into blocks by itself; omit ", Parameter("blocks"))
    picture = read_with_status(data, quiet).bits
    if 0 in picture.shape:
        raise FileError(f"{data.name}: the picture has no pixels")
    return picture
