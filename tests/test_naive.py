"""The oracles of naive.py, on cases small enough to check by hand."""

import numpy as np

import naive

ALGEBRAS = ("xor", "or")


def bits(*rows):
    return np.array([[int(bit) for bit in row] for row in rows], np.uint8)


def test_products_by_hand():
    atoms, codes = bits("1100", "0110"), bits("00", "10", "11")
    assert naive.product(codes, atoms, "xor").tolist() == bits("0000", "1100", "1010").tolist()
    assert naive.product(codes, atoms, "or").tolist() == bits("0000", "1100", "1110").tolist()


def test_greedy_and_bmp_by_hand():
    x, atoms, none = bits("111100")[0], bits("111110", "110000"), [0, 0]
    assert naive.code_row(x, atoms, none, "greedy", "xor").tolist() == [1, 0]  # gain 3 against 2
    assert naive.code_row(x, atoms, none, "bmp", "xor").tolist() == [0, 1]  # 2/2 against 3/5, and then nothing gains
    assert naive.code_row(x, atoms, none, "greedy", "xor", residual_limit=4).tolist() == none
    atoms = bits("1000", "0100").repeat(2, 1)[:, :6]
    assert naive.code_row(x, atoms, none, "greedy", "or", max_atoms=1).tolist() == [1, 0]


def test_a_vote_by_hand():
    X, atoms, codes = bits("110", "100", "011"), bits("001"), bits("1", "1", "0")
    assert naive.mob_sweep(X, atoms, codes, "xor").tolist() == bits("100").tolist()  # a tie gives 0
    covered = naive.mob_sweep(X, bits("001", "111"), bits("11", "11", "00"), "or")
    assert covered[0].tolist() == [0, 0, 1]  # the other atom covers every bit: no voter, so it stays


def test_a_swap_by_hand():
    """Three bits are wrong with the first atom, two with the second; no single toggle reduces the cost."""
    x, atoms = bits("111100")[0], bits("110010", "111111")
    prices, code = (np.ones(6, int), np.ones(2, int)), np.array([1, 0], np.uint8)
    for algebra in ALGEBRAS:
        assert naive.costs_after(x, atoms, code, algebra, prices).tolist() == [4, 4 if algebra == "or" else 5]
        assert naive.swapped(x, atoms, code, algebra, prices).tolist() == [0, 1]
        assert naive.priced_code_row(x, atoms, code, algebra, prices, swaps=False).tolist() == [1, 0]
        assert naive.priced_code_row(x, atoms, code, algebra, prices, max_atoms=1).tolist() == [0, 1]
        assert naive.swapped(x, atoms, 1 - code, algebra, prices) is None


def test_a_beam_by_hand():
    """No single atom reduces the cost, but two together encode the row exactly."""
    x, atoms = bits("111000")[0], bits("110110", "001110", "000001")
    prices = np.ones(6, int), np.zeros(3, int)
    assert naive.priced_code_row(x, atoms, np.zeros(3), "xor", prices).tolist() == [0, 0, 0]
    assert naive.beam_row(x, atoms, prices, 4, 2).tolist() == [1, 1, 0]
    assert naive.beam_row(x, atoms, prices, 4, 2, max_atoms=1).tolist() == [0, 0, 0]
    without_gain = prices[0], np.array([2, 1, 0])
    assert naive.beam_row(x, atoms, without_gain, 4, 2).tolist() == [0, 0, 0]


def test_an_update_together_by_hand():
    """Every user votes for the bit in both atoms; if both had it, rows with both would lack it."""
    X, codes = bits("1", "1", "1"), bits("11", "11", "10")
    assert naive.update_together(X, bits("0", "0"), codes, "xor").tolist() == [[1], [0]]
    assert naive.update_together(X, bits("0", "0"), codes, "or").tolist() == [[1], [0]]
    # Without shared rows the updates are independent; a tie gives 0.
    apart = bits("10", "01", "01")
    assert naive.update_together(X, bits("0", "0"), apart, "xor").tolist() == [[1], [1]]
    assert naive.update_together(bits("1", "1", "0"), bits("1", "1"), apart, "xor").tolist() == [[1], [0]]
