"""Binary pictures: remove noise and fill holes by atoms learned from the blocks of the picture itself.

Names are imported when they are first used, so that the options of the command line are there quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .denoising import LITTLE_REPETITION, Denoised, denoise
    from .inpainting import Inpainted, inpaint

_INPAINTING = ("Inpainted", "inpaint")
__all__ = ["LITTLE_REPETITION", "Denoised", "Inpainted", "denoise", "inpaint"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{'inpainting' if name in _INPAINTING else 'denoising'}", __name__), name)
