"""The oracles themselves, on cases small enough to see through."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from strategies import factorisations, matrices

ALGEBRAS = ("xor", "or")
small = factorisations(n_rows=st.integers(0, 6), n_cols=st.integers(1, 7), n_atoms=st.integers(0, 4))


def total(X, atoms, codes, algebra):
    return int(naive.errors(X, atoms, codes, algebra).sum())


def bits(*rows):
    return np.array([[int(bit) for bit in row] for row in rows], np.uint8)


def test_products_by_hand():
    atoms, codes = bits("1100", "0110"), bits("00", "10", "11")
    assert naive.product(codes, atoms, "xor").tolist() == bits("0000", "1100", "1010").tolist()
    assert naive.product(codes, atoms, "or").tolist() == bits("0000", "1100", "1110").tolist()


def test_the_two_rules_differ_where_they_should():
    x, atoms, none = bits("111100")[0], bits("111110", "110000"), [0, 0]
    assert naive.code_row(x, atoms, none, "greedy", "xor").tolist() == [1, 0]  # gain 3 against 2
    assert naive.code_row(x, atoms, none, "bmp", "xor").tolist() == [0, 1]  # 2/2 against 3/5, and then nothing gains
    assert naive.code_row(x, atoms, none, "greedy", "xor", residual_limit=4).tolist() == none
    assert naive.code_row(x, bits("1000", "0100").repeat(2, 1)[:, :6], none, "greedy", "or", max_atoms=1).tolist() == [
        1,
        0,
    ]


def test_a_vote_by_hand():
    X, atoms, codes = bits("110", "100", "011"), bits("001"), bits("1", "1", "0")
    assert naive.mob_sweep(X, atoms, codes, "xor").tolist() == bits("100").tolist()  # a tie gives 0
    covered = naive.mob_sweep(X, bits("001", "111"), bits("11", "11", "00"), "or")
    assert covered[0].tolist() == [0, 0, 1]  # the other atom covers every bit: no voter, so it stays


@pytest.mark.parametrize("algebra", ALGEBRAS)
@given(triple=small)
def test_no_step_raises_the_error(algebra, triple):
    X, atoms, codes = triple
    before = total(X, atoms, codes, algebra)
    greedy = naive.code(X, atoms, codes, "greedy", algebra)
    assert total(X, atoms, greedy, algebra) <= before
    assert total(X, atoms, naive.code(X, atoms, codes, "bmp", algebra), algebra) <= before
    exact = naive.exact_code(X, atoms, codes, algebra)
    assert total(X, atoms, exact, algebra) <= total(X, atoms, greedy, algebra)
    voted = naive.mob_sweep(X, atoms, codes, algebra)
    assert total(X, voted, codes, algebra) <= before
    assert total(X, naive.exact_atoms(X, atoms, codes, algebra), codes, algebra) <= total(X, voted, codes, algebra)
    assert total(X, *naive.kprox_sweep(X, atoms, codes, algebra), algebra) <= before


@given(matrices(n_rows=st.integers(0, 6), n_cols=st.integers(1, 7)), st.integers(0, 127))
def test_proximus_ends_at_a_local_optimum(E, number):
    users, atom = naive.rank_one(E, [number >> i & 1 for i in range(E.shape[1])])
    assert naive.proximus_is_local_optimum(E, users, atom)
