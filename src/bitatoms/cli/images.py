"""`bitatoms denoise` and `bitatoms inpaint`: pictures from and to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Parameter
from ..formatting import be, counted
from ..images.options import BlockOptions, DenoiseOptions
from ..io.errors import FileError
from . import options
from .output import Display, print_note, print_result, show_status
from .paths import Input, OutputTable

if TYPE_CHECKING:
    from ..bits import BitMatrix

_PICTURE = "The picture; - means standard input."
_LITTLE_BETTER = 0.5  # a note is printed unless predictions make less than this share of the baseline's mistakes


@options.command(
    "bitatoms denoise scan.pbm -o clean.pbm",
    "bitatoms denoise scan.png --binarize 127 -o clean.png",
    "bitatoms denoise scan.tif --noise 0.02 --block-sizes 8 -o clean.tif",
)
def denoise(
    data: Input = options.table(_PICTURE),
    output: OutputTable = options.table_output(options.output_path(default=None, required=True)),
    how: DenoiseOptions = options.declared_options(DenoiseOptions),
    shown: Display = options.display(),
) -> None:
    """Remove noise from a black-and-white picture, by atoms learned from its own blocks.

    The noise flips pixels, each with the same probability, which is estimated. This works best on pictures that repeat
    themselves, such as halftones and text. A gray picture needs a threshold (--binarize).
    """
    from .. import images

    pixels = _read_picture(data, shown.is_silent)
    if pixels.n_unknown:
        raise FileError(f"{data.name}: {_unknown_pixels(pixels)}; fill the holes first with bitatoms inpaint")
    with show_status(f"Denoising {data.title}", shown.is_silent):
        result = images.denoise(pixels.to_dense(), **how.get_params())
    values = {"noise": result.noise, "changed": result.n_changed, "repetition": result.repetition}
    kind, n_pixels = "estimated" if how.noise is None else "given", result.image.size
    changed = f"{result.n_changed} changed ({result.n_changed / n_pixels:.2%}); {kind} noise {result.noise:.2%}"
    _write(result, output, values, changed, shown)
    if result.repetition < images.LITTLE_REPETITION and not shown.quiet:
        print_note(
            f"{data.title} repeats itself little: its blocks shorten the description of its pixels by "
            f"{max(0.0, result.repetition):.1%}, so the result is hardly better than that of the nearest neighbours"
        )


@options.command(
    "bitatoms inpaint scratched.pbm --mask scratches.pbm -o whole.pbm",
    "bitatoms inpaint scratched.png --mask scratches.png -o whole.png",
)
def inpaint(
    data: Input = options.table(_PICTURE),
    mask: Path = options.input_file(
        "--mask", "A picture of the same size: black where a pixel is unknown.", required=True
    ),
    output: OutputTable = options.table_output(options.output_path(default=None, required=True)),
    how: BlockOptions = options.declared_options(BlockOptions),
    shown: Display = options.display(),
) -> None:
    """Fill the holes of a black-and-white picture, by atoms learned from its known pixels.

    Known pixels do not change. This works best on pictures that repeat themselves, such as halftones and text.
    """
    from .. import images
    from ..io.api import read

    pixels, unknown = _read_picture(data, shown.is_silent), read(mask).bits
    if unknown.shape != pixels.shape:
        sizes = (f"{height} x {width}" for height, width in (unknown.shape, pixels.shape))
        raise FileError(f"{mask}: the mask has {next(sizes)} pixels, but {data.title} has {next(sizes)}")
    if unknown.n_unknown:
        raise FileError(f"{mask}: {_unknown_pixels(unknown)}; write 1 where the picture has a hole, and 0 elsewhere")
    holes = unknown.to_dense(bool)
    if pixels.unknown is not None:
        holes |= pixels.unknown.to_dense(bool)
    with show_status(f"Filling the holes of {data.title}", shown.is_silent):
        result = images.inpaint(pixels.filled().to_dense(), holes, **how.get_params())
    values = {"filled": result.n_filled, "accuracy": result.accuracy, "baseline": result.baseline}
    filled = f"{result.n_filled} filled; of known pixels, hidden as a test, {result.accuracy:.1%} were predicted"
    _write(result, output, values, filled, shown)
    if 1 - result.accuracy > _LITTLE_BETTER * (1 - result.baseline) and not shown.quiet:
        print_note(
            f"{data.title} repeats itself little: {result.accuracy:.1%} of the hidden pixels were predicted, and "
            f"{result.baseline:.1%} of the known pixels have the more frequent color anyway"
        )


def _write(result: Any, output: OutputTable, values: dict[str, Any], line: str, shown: Display) -> None:
    """Write a picture, and print what was changed."""
    from ..bits import BitMatrix
    from ..columns.table import Table
    from .files import write_table

    write_table(Table(BitMatrix.from_dense(result.image)), output)
    height, width = result.image.shape
    values = {"height": height, "width": width, **values, "atoms": list(result.n_atoms)}
    print_result(values, shown, f"{output.name}: {height} x {width} pixels, {line}")


def _unknown_pixels(pixels: BitMatrix) -> str:
    """Return how many pixels of a picture are unknown, in words."""
    return f"{counted(pixels.n_unknown, 'pixel')} {be(pixels.n_unknown)} unknown"


def _read_picture(data: Input, quiet: bool) -> BitMatrix:
    """Read a picture, one line of pixels per row."""
    from .files import read_table

    if data.options.blocks is not None:
        raise FileError(f"{data.name}: the picture is divided into blocks by itself; omit ", Parameter("blocks"))
    pixels = read_table(data, quiet).bits
    if 0 in pixels.shape:
        raise FileError(f"{data.name}: the picture has no pixels")
    return pixels
