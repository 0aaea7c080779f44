"""Codes from below: only atoms within a row, as few as cover the most."""

from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix
from bitatoms.covers.coding import code_from_below
from support.strategies import SEEDS, random_bits


@given(seed=SEEDS, m=st.sampled_from((1, 7, 64, 65)), p=st.integers(0, 9), density=st.sampled_from((0.1, 0.4, 0.8)))
def test_rows_use_the_fewest_atoms_within_them(seed, m, p, density):
    atoms = random_bits(seed, p, m, density / 2)
    X = naive.product(random_bits(seed + 1, 9, p, 0.5), atoms, "or") | random_bits(seed + 2, 9, m, 0.1)
    X[0] = 1  # atoms that overlap: those that have most of what is left are often more than the fewest
    codes = code_from_below(BitMatrix.from_dense(X), BitMatrix.from_dense(atoms)).to_dense()
    covered = naive.product(codes, atoms, "or")
    assert not (covered & ~X & 1).any()
    for x, code, row in zip(X, codes, covered, strict=True):
        assert (row.sum(), code.sum()) == naive.fewest_atoms_from_below(x, atoms)
