"""Vectors of lanes: the gains of all atoms equal sums by definition, compiled here, for every division of lanes."""

from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest

from bitatoms.kernels import jit
from bitatoms.kernels.cpu.dictionary import add_overlaps, add_prices
from bitatoms.kernels.structs import MAX_PRICE
from bitatoms.kernels.views import view
from support.blocks import bits_of
from support.strategies import random_bits

LANES = [16, 32, 48, 112, 128, 240, 272]


class Prices(NamedTuple):
    """A row of prices for each feature, or none and the atoms that have it."""

    slices: np.ndarray
    column_starts: np.ndarray
    column_atoms: np.ndarray


@pytest.fixture(scope="module")
def kernels():
    """Return kernels that only add to gains, for all rows."""
    with mock.patch.object(jit, "CACHE_FOLDER", None):  # compile them, instead of loading them

        @jit.kernel
        def overlaps(words, factor, slices, listed, gains):
            words, slices, listed, gains = view((words, slices, listed, gains))
            for j in range(words.shape[0]):
                add_overlaps(words, j, factor, slices, listed, gains[j])

        @jit.kernel
        def priced_overlaps(words, factor, atoms, prices, listed, gains):
            words, atoms, prices, listed, gains = view((words, atoms, prices, listed, gains))
            for j in range(words.shape[0]):
                add_prices(words, j, factor, atoms, prices, listed, gains[j])

    return overlaps, priced_overlaps


def rows_and_gains(n_cols, lanes):
    """Return rows, of which the first has all ones and the second none, and gains to add to."""
    rows = random_bits(lanes, 5, n_cols, 0.5)
    rows[:2] = [[1], [0]]
    return rows, np.random.default_rng(lanes).integers(-9, 9, (5, lanes)).astype(np.int32)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("n_cols", [8, 65, 600])
def test_overlaps_are_counted(kernels, n_cols, lanes):
    """Counters of a byte are full after 31 bytes of ones."""
    rows, gains = rows_and_gains(n_cols, lanes)
    atoms = random_bits(n_cols, lanes, n_cols, 0.8)
    slices = np.packbits(atoms, axis=1, bitorder="little").T.copy()
    expected = gains + 2 * rows.astype(int) @ atoms.T
    kernels[0](bits_of(rows).words, 2, slices, np.empty(len(slices) + 1, np.int64), gains)
    np.testing.assert_array_equal(gains, expected)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("n_cols", [8, 65, 600])
def test_prices_are_added(kernels, n_cols, lanes):
    """By rows of prices, of which few fit into 16 bits at their highest, and by the atoms that have a feature."""
    rows, gains = rows_and_gains(n_cols, lanes)
    prices = np.random.default_rng(n_cols).integers(MAX_PRICE - 9, MAX_PRICE + 1, n_cols)
    atoms, none = random_bits(n_cols, lanes, n_cols, 0.8), np.empty(0, np.int64)
    by_row = Prices((atoms * prices).T.astype(np.uint8).copy(), none, none)
    listed = bits_of(atoms).T.to_sparse()
    of_columns = listed.indptr.astype(np.int64), listed.indices.astype(np.int64)
    by_column = Prices(np.empty((0, lanes), np.uint8), *of_columns)
    for given in (by_row, by_column):
        found = gains.copy()
        kernels[1](bits_of(rows).words, -1, given, prices, np.empty(n_cols + 1, np.int64), found)
        np.testing.assert_array_equal(found, gains - rows.astype(int) @ (atoms * prices).T)
