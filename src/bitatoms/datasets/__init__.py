"""Data sets: planted factors, pictures, and synthetic market baskets, customers, access rights and genotypes."""

from __future__ import annotations

from .access_rights import permissions
from .market_baskets import baskets
from .mnist_digits import mnist
from .pictures import cut_blocks, digits, dither, halftone, stitch_blocks
from .planted_factors import Planted, planted
from .shop_customers import customers
from .synthetic_genotypes import genotypes

__all__ = [
    "Planted",
    "baskets",
    "customers",
    "cut_blocks",
    "digits",
    "dither",
    "genotypes",
    "halftone",
    "mnist",
    "permissions",
    "planted",
    "stitch_blocks",
]
