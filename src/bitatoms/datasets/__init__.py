"""Data to try things on: planted factors, pictures, and made-up baskets and genotypes with names."""

from __future__ import annotations

from .factors import Planted, planted
from .handwriting import mnist
from .haplotypes import genotypes
from .market import baskets
from .pictures import cut_blocks, digits, dither, halftone, stitch_blocks

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
