"""Options of `denoise` and `inpaint`: the blocks of a picture, and how atoms are learned from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, Parameter
from ..parameters import Options, declared_in, option
from ..run_options import DeviceChoice, RunOptions
from ..search.options import Algebra, Search, SearchOptions
from ..validation import check_int, check_noise


def _check_sizes(name: str, value: Any) -> tuple[int, ...]:
    """Return one size or several as a tuple of integers of at least 2."""
    sizes = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if not sizes:
        raise InputError(Parameter(name), " is empty; pass at least one size, such as 8")
    return tuple(check_int(name, size, 2) for size in sizes)


@dataclass(frozen=True, kw_only=True)
class BlockOptions(Options):
    """Parameters of `bitatoms.inpaint`."""

    algebra: Algebra = declared_in(SearchOptions, "algebra")
    search: Search = declared_in(SearchOptions, "search")
    max_time: float | None = declared_in(
        SearchOptions,
        "max_time",
        help="Number of seconds after which the search for atoms ends, for all block sizes together.",
        details="Coding the blocks then takes about as long as a search without a limit. The result depends on the "
        "speed of the machine.",
    )
    block_sizes: Sequence[int] = option(
        (6, 8),
        "Heights of the square blocks in pixels; the atoms of all sizes are used together.",
        "More sizes take more time.",
        check=_check_sizes,
        type="int or sequence of int, default=(6, 8)",
        option="block-sizes",
        is_common=True,
    )
    stride: int = option(
        2,
        "Blocks begin every this many pixels; 1 takes four times as long as 2.",
        minimum=1,
        option="stride",
    )
    n_jobs: int | None = declared_in(RunOptions, "n_jobs")
    device: DeviceChoice = declared_in(RunOptions, "device")
    random_state: Any = declared_in(RunOptions, "random_state")


@dataclass(frozen=True, kw_only=True)
class DenoiseOptions(BlockOptions):
    """Parameters of `bitatoms.denoise`: those of the blocks, and the noise."""

    noise: float | None = option(
        None,
        "Probability that a pixel was flipped, below 0.5; estimated by default.",
        check=lambda name, value: None if value is None else check_noise(name, value),
        option="noise",
        is_common=True,
    )
