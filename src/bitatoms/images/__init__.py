"""Binary pictures: remove noise and fill holes by atoms learned from the blocks of the picture itself."""

from __future__ import annotations

from .denoising import LITTLE_REPETITION, Denoised, denoise
from .inpainting import Inpainted, inpaint

__all__ = ["LITTLE_REPETITION", "Denoised", "Inpainted", "denoise", "inpaint"]
