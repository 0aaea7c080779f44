"""The check of a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..datasets.pictures import as_2d, as_bits


def as_picture(name: str, value: Any) -> NDArray[np.bool_]:
    """Return a picture of 0 and 1 with at least one pixel as bools, or raise."""
    picture = as_bits(name, as_2d(name, value)).astype(bool)
    if not picture.size:
        raise ValueError(f"{name} has shape {picture.shape}, and so no pixels")
    return picture
