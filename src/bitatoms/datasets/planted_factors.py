"""Planted factors: synthetic data with known atoms and codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..validation import as_generator, check_choice, check_fraction, check_int


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """Data with known factors, all as 0/1 arrays of uint8.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        ``clean`` with some bits flipped.
    atoms : ndarray of shape (n_components, n_features)
    codes : ndarray of shape (n_samples, n_components)
    clean : ndarray of shape (n_samples, n_features)
        The product of codes and atoms in the algebra.
    """

    X: np.ndarray
    atoms: np.ndarray
    codes: np.ndarray
    clean: np.ndarray


def planted(
    n_samples: int,
    n_features: int,
    n_components: int,
    *,
    algebra: str = "xor",
    atom_density: float = 0.15,
    code_density: float = 0.15,
    noise: float = 0.05,
    random_state: Any = None,
) -> Planted:
    """Generate data from random factors, and flip some of its bits.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Numbers of rows of X, of columns of X, and of atoms; each may be 0.
    algebra : {"xor", "or"}, default="xor"
        How the atoms that a sample uses are combined.
    atom_density, code_density : float, default=0.15
        Probability that a bit of the atoms, or of the codes, is 1.
    noise : float, default=0.05
        Probability that a bit of X is flipped, independently of the others.
    random_state : int, Generator, RandomState or None, default=None
        The same seed gives the same data.

    Returns
    -------
    Planted
        Has the attributes ``X``, ``atoms``, ``codes`` and ``clean``.

    Examples
    --------
    >>> from bitatoms.datasets import planted
    >>> data = planted(500, 200, 8, random_state=0)
    >>> data.X.shape, data.atoms.shape, data.codes.shape
    ((500, 200), (8, 200), (500, 8))
    >>> bool(((data.codes @ data.atoms) % 2 == data.clean).all())
    True
    """
    check_choice("algebra", algebra, ("xor", "or"))
    n_samples = check_int("n_samples", n_samples, 0)
    n_features = check_int("n_features", n_features, 0)
    n_components = check_int("n_components", n_components, 0)
    rng = as_generator(random_state)
    atoms = _random_bits(rng, check_fraction("atom_density", atom_density), n_components, n_features)
    codes = _random_bits(rng, check_fraction("code_density", code_density), n_samples, n_components)
    clean = np.empty((n_samples, n_features), dtype=np.uint8)
    for rows in _row_chunks(n_samples, n_features + n_components):
        # float32 uses BLAS and counts exactly up to 2**24 atoms
        uses = codes[rows].astype(np.float32) @ atoms.astype(np.float32)
        clean[rows] = uses % 2 if algebra == "xor" else uses > 0
    X = clean ^ _random_bits(rng, check_fraction("noise", noise), n_samples, n_features)
    return Planted(X=X, atoms=atoms, codes=codes, clean=clean)


def _row_chunks(n_rows: int, width: int) -> list[slice]:
    """Return slices of rows so small that one float per bit takes at most tens of megabytes."""
    step = max(1, (1 << 22) // max(1, width))
    return [slice(start, start + step) for start in range(0, n_rows, step)]


def _random_bits(rng: np.random.Generator, density: float, n_rows: int, n_cols: int) -> np.ndarray:
    """Return bits that are 1 with probability ``density``; drawn by rows, so that chunks do not affect the result."""
    bits = np.empty((n_rows, n_cols), dtype=np.uint8)
    for rows in _row_chunks(n_rows, n_cols):
        bits[rows] = rng.random(bits[rows].shape) < density
    return bits
