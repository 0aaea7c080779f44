"""Options that fits of all kinds share: who processes the rows, what is logged, the seed; columns of new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .parameters import Options, option
from .validation import check_seed, check_threshold

Absent = Literal["auto", "refuse", "zero", "unknown"]
DeviceChoice = Literal["cpu", "cuda", "auto"]


@dataclass(frozen=True, kw_only=True)
class RunOptions(Options):
    """How a fit runs, and the two parameters that every fit has: the threshold and the seed."""

    n_jobs: int | None = option(
        None,
        "Number of threads; -1 uses all processors.",
        "None is 1. The result does not depend on it.",
        check=lambda name, value: value,  # checked where threads are counted
        option="jobs",
        is_run_setting=True,
    )
    device: DeviceChoice = option(
        "cpu",
        "Where rows are processed: cpu, cuda (an NVIDIA GPU) or auto; the result has the same bits on every device.",
        '"cuda" needs a CUDA device and CuPy (``pip install "bitatoms[cuda12]"`` or ``"bitatoms[cuda13]"``). "auto" is '
        "a CUDA device if there is one and the table is large enough to gain: at least 2**27 cells, or not in memory. "
        "Otherwise it is the CPU, and the log states why. See docs/tutorials/gpu.md.",
        option="device",
        is_run_setting=True,
    )
    verbose: int = option(
        0,
        'Log progress and results to standard error, with the logger "bitatoms".',
        "1 logs notable improvements, 2 every move.",
        check=lambda name, value: value,  # True and False are levels, too
        is_run_setting=True,
    )
    binarize: float | None = option(
        None,
        "Threshold: values above it become 1, all others 0.",
        "Without it, all values must be 0 or 1.",
        check=lambda name, value: check_threshold(value),
        option="binarize",
    )
    random_state: Any = option(
        None,
        "Random seed; the same seed gives bit-identical results.",
        check=check_seed,
        type="int, Generator, RandomState or None, default=None",
        option="seed",
    )


@dataclass(frozen=True, kw_only=True)
class NewRowOptions(Options):
    """How tables of new rows are matched to a model."""

    absent: Absent = option(
        "auto",
        "Columns of the model that a table of new rows lacks: an error, 0, or unknown cells.",
        '"auto" is "unknown" for genotypes, expression data (AnnData) and encoded tables (`bitatoms.encode`), and '
        'otherwise "refuse". In lists of items '
        "(transactions), absent items are always 0. See docs/reference/files.md.",
        option="absent",
    )
