"""Atoms learned from the overlapping blocks of a picture, for several block sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..api import factorize
from ..errors import InputError, Parameter
from ..model.model import Model
from .blocks import BlockGrid
from .options import BlockOptions

_SEARCH_ROWS = 1 << 14  # blocks to search: overlapping ones are alike


class BlockModel(NamedTuple):
    """The atoms of the blocks of one size."""

    model: Model
    grid: BlockGrid
    unit: float  # what a wrong pixel costs on average: the unit of the evidence


def learn_blocks(
    picture: NDArray[np.bool_],
    unknown: NDArray[np.bool_] | None,
    options: BlockOptions,
    random: np.random.Generator,
) -> list[BlockModel]:
    """Learn the atoms of the blocks of each size."""
    sizes, stride = options.block_sizes, options.stride
    if stride > min(sizes):
        raise InputError(
            Parameter("stride"), f"={stride} leaves gaps between blocks of size {min(sizes)}; pass at most {min(sizes)}"
        )
    seconds = None if options.max_time is None else options.max_time / len(sizes)
    models = []
    for size in sizes:
        height, width = (min(size, length) for length in picture.shape)
        grid = BlockGrid(picture.shape, (height, width), stride)
        found = factorize(
            grid.cut(picture, unknown),
            algebra=options.algebra,
            search=options.search,
            search_rows=_SEARCH_ROWS,
            max_time=seconds,
            n_jobs=options.n_jobs,
            device=options.device,
            random_state=random,
        )
        # A beam would find slightly shorter codes, but take too long: each block is coded for each of its pixels.
        model = Model.from_factorization(replace(found, coder="mdl"))
        prices: Any = model.rule.prices
        models.append(BlockModel(model, grid, float(prices.bits.mean())))
    return models
