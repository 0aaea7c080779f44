"""Hypothesis strategies for awkward 0/1 matrices and factorizations."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

ROWS = st.sampled_from((0, 1, 2, 3, 5, 17, 63, 64, 65, 130))
COLUMNS = st.sampled_from((1, 2, 7, 8, 9, 31, 63, 64, 65, 128, 130))
ATOMS = st.integers(0, 6)
DENSITIES = st.sampled_from((0.0, 0.02, 0.2, 0.5, 0.8, 1.0))
SEEDS = st.integers(0, 2**32 - 1)


def random_bits(seed, n_rows, n_cols, density):
    """Return a 0/1 matrix of about this density."""
    return (np.random.default_rng(seed).random((n_rows, n_cols)) < density).astype(np.uint8)


@st.composite
def matrices(draw, n_rows=ROWS, n_cols=COLUMNS):
    """Draw matrices of awkward sizes: no rows, all zeros, all ones, duplicate rows, or random."""
    bits = random_bits(draw(SEEDS), draw(n_rows), draw(n_cols), draw(DENSITIES))
    if len(bits) > 1 and draw(st.booleans()):
        distinct = draw(st.integers(1, len(bits)))
        bits = bits[np.arange(len(bits)) % distinct]
    return bits


UNKNOWN = 2  # an unknown cell
SHARES = st.sampled_from((0.0, 0.0, 0.1, 0.5, 1.0))  # of unknown cells


@st.composite
def factorisations(draw, n_rows=ROWS, n_cols=COLUMNS, n_atoms=ATOMS, unknown=SHARES):
    """Draw triples (X, atoms, codes), related or not; atoms may be zero, equal, or unused; cells of X UNKNOWN."""
    n, m, p = draw(n_rows), draw(n_cols), draw(n_atoms)
    seed = draw(SEEDS)
    atoms = random_bits(seed, p, m, draw(DENSITIES))
    codes = random_bits(seed + 1, n, p, draw(DENSITIES))
    if p > 1 and draw(st.booleans()):
        atoms[draw(st.integers(0, p - 1))] = atoms[draw(st.integers(0, p - 1))]
    if p and draw(st.booleans()):
        codes[:, draw(st.integers(0, p - 1))] = 0
    X = (codes.astype(np.int64) @ atoms % 2).astype(np.uint8)
    X ^= random_bits(seed + 2, n, m, draw(DENSITIES))
    if draw(st.booleans()):
        codes ^= random_bits(seed + 3, n, p, 0.3)
    X[random_bits(seed + 4, n, m, draw(unknown)) == 1] = UNKNOWN
    return X, atoms, codes


ALL_KNOWN = st.just(0.0)


def random_prices(seed, n_features, n_atoms, most=(255, 300)):
    """Return prices of errors, from 1 to the first maximum, and of uses, from 0 to the second."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, most[0] + 1, n_features), rng.integers(0, most[1] + 1, n_atoms)


@st.composite
def priced_factorisations(draw, **sizes):
    """Draw factorizations with prices: all equal, small with many ties, or as large as allowed."""
    X, atoms, codes = draw(factorisations(**sizes))
    most = draw(st.sampled_from(((1, 0), (1, 2), (3, 5), (255, 300), (255, 20000))))
    bits, uses = random_prices(draw(SEEDS), X.shape[1], len(atoms), most)
    if draw(st.booleans()):
        bits[:] = most[0]
    return X, atoms, codes, (bits, uses)


def planted(seed, n_rows, n_cols, n_atoms, algebra):
    """Return a triple (X, atoms, codes) of any size: row 0 has no errors, one atom is zero, one occurs twice."""
    atoms = random_bits(seed, n_atoms, n_cols, 0.25)
    atoms[n_atoms // 2] = 0
    atoms[-1] = atoms[0]
    codes = random_bits(seed + 1, n_rows, n_atoms, min(0.5, 4 / n_atoms))
    sums = codes.astype(np.int64) @ atoms
    X = (sums % 2 if algebra == "xor" else sums > 0).astype(np.uint8)
    X[1:] ^= random_bits(seed + 2, n_rows - 1, n_cols, 0.1)
    codes[1:] ^= random_bits(seed + 3, n_rows - 1, n_atoms, min(0.3, 2 / n_atoms))
    return X, atoms, codes


def heterogeneous_rows(seed, n, m, density=0.03):
    """A sparse table without structure: some rows, and some columns, have far more ones than others."""
    random = np.random.default_rng(seed)
    odds = np.outer(np.exp(1.2 * random.normal(size=n)), np.arange(1, m + 1) ** -0.7)
    odds *= density / odds.mean()
    return (random.random((n, m)) < odds / (1 + odds)).astype(np.uint8)
