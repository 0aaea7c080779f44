"""Data to try things on: planted factors, pictures, and made-up baskets and genotypes with names."""

from __future__ import annotations

from .haplotypes import genotypes
from .mnist_digits import mnist
from .pictures import cut_blocks, digits, dither, halftone, stitch_blocks
from .planted_factors import Planted, planted
from .retail import baskets

__all__ = [
    "Planted",
    "baskets",
    "cut_blocks",
    "digits",
    "dither",
    "genotypes",
    "halftone",
    "mnist",
    "planted",
    "stitch_blocks",
]
