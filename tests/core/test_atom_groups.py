"""Groups of atoms that share no columns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix
from bitatoms.core.atom_groups import atom_groups
from bitatoms.sparse_bits import SparseBits
from support.strategies import SEEDS, random_bits


@given(st.sampled_from((0, 1, 7, 40)), st.sampled_from((1, 65, 130)), st.sampled_from((0.0, 0.01, 0.05)), SEEDS)
def test_groups_are_the_connected_atoms_and_columns(n_atoms, n_cols, density, seed):
    atoms = random_bits(seed, n_atoms, n_cols, density)
    packed = BitMatrix.from_dense(atoms)
    wanted = sorted(naive.connected_columns(atoms))
    for bits in (packed, SparseBits.from_bits(packed)):
        groups = atom_groups(bits, 1)
        assert sorted(columns.tolist() for _, columns in groups) == wanted
        for own, columns in groups:
            assert (np.diff(own) > 0).all()
            np.testing.assert_array_equal(np.flatnonzero(atoms[own].any(axis=0)), columns)
        if wanted:
            assert sorted(np.concatenate([own for own, _ in groups]).tolist()) == list(range(n_atoms))


@given(st.sampled_from((1, 10, 1000)), SEEDS)
def test_small_groups_are_put_together(width, seed):
    atoms = random_bits(seed, 40, 200, 0.01)
    sizes = [len(columns) for columns in naive.connected_columns(atoms)]
    groups = atom_groups(BitMatrix.from_dense(atoms), width)
    assert sum(len(columns) for _, columns in groups) == sum(sizes)
    assert all(len(columns) < width + max(sizes) for _, columns in groups)
    assert len(groups) <= min(len(sizes), -(-sum(sizes) // width))
