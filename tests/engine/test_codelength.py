"""Codelength: exact agreement with the formula of the paper."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix, Codelength
from bitatoms.engine.codelength import STRINGS, AtomCode, codelength_from_counts, string_bits
from bitatoms.sparse_bits import SparseBits
from support.strategies import factorisations

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")


def ln_factorial(k):
    """ln k! to about 40 digits, by Stirling's series for large k."""
    shift = max(k, 1000)
    inverse = 1 / Decimal(shift)
    series = inverse / 12 - inverse**3 / 360 + inverse**5 / 1260 - inverse**7 / 1680 + inverse**9 / 1188
    series -= inverse**11 * 691 / 360360
    value = (shift + Decimal("0.5")) * Decimal(shift).ln() - shift + (2 * PI).ln() / 2 + series
    return value - sum(Decimal(j).ln() for j in range(k + 1, shift + 1))


def exact_log2_binomial(n, r):
    """log2 C(n, r) to far more digits than a float has."""
    with localcontext() as context:
        context.prec = 60
        return (ln_factorial(n) - ln_factorial(r) - ln_factorial(n - r)) / Decimal(2).ln()


# --- one string


@pytest.mark.parametrize("length", [*range(40), 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 1000, 1024])
def test_short_strings_are_exact(length):
    expected = [naive.string_bits(length, ones) for ones in range(length + 1)]
    bits = string_bits(length, np.arange(length + 1))
    assert bits.dtype == np.int64
    assert bits.tolist() == expected


@pytest.mark.parametrize("power", [4, 10, 16, 17, 19, 20, 21, 24, 25, 29, 31, 39, 40])
def test_powers_of_two_are_not_rounded_up(power):
    length = 2**power
    assert string_bits(length, [0, 1, length - 1, length]).tolist() == [power, 2 * power, 2 * power, power]
    assert string_bits(length + 1, [1]).tolist() == [2 * power + 2]


@pytest.mark.parametrize("length", [3 * 10**6, 10**9, 10**12, 10**14])
def test_huge_strings_are_within_one_bit(length):
    for ones in (1, 2, 15, 16, 17, 1000, length // 10**3, length // 7, length // 2 - 1, length // 2, length - 5):
        exact = exact_log2_binomial(length, ones)
        bits = int(string_bits(length, ones)) - (length - 1).bit_length()
        assert abs(bits - math.ceil(exact)) <= 1
        assert -0.51 < bits - exact < 1.51
    assert string_bits(length, [0, length]).tolist() == [(length - 1).bit_length()] * 2


def test_shapes_and_types_of_counts():
    for length in (9, 70_000):
        assert string_bits(length, 3).shape == ()
        assert string_bits(length, []).shape == (0,)
        assert string_bits(length, [[1, 2], [3, 4]]).shape == (2, 2)
        expected = string_bits(length, [1, 9])
        for dtype in (np.uint8, np.int32, np.uint64, np.int64):
            np.testing.assert_array_equal(string_bits(length, np.array([1, 9], dtype)), expected)


def test_writing_to_a_result_does_not_change_the_cache():
    string_bits(9, np.arange(10))[:] = 0
    assert string_bits(9, 4) == naive.string_bits(9, 4)


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), min_size=1, max_size=9))
def test_strings_of_different_lengths(pairs):
    lengths, ones = np.array([(max(pair), min(pair)) for pair in pairs]).T
    expected = [naive.string_bits(n, r) for n, r in zip(lengths.tolist(), ones.tolist(), strict=True)]
    assert string_bits(lengths, ones).tolist() == expected
    assert [int(string_bits(n, r)) for n, r in zip(lengths, ones, strict=True)] == expected


# --- stretches


@given(factorisations(), st.randoms(use_true_random=False))
def test_stretches_equal_the_definition(triple, random):
    atoms, m = triple[1], triple[1].shape[1]
    order = random.sample(range(m), m)
    code, packed = AtomCode(np.argsort(order)), BitMatrix.from_dense(atoms)
    expected = [naive.stretch_bits(atom, order) for atom in atoms]
    for bits in (packed, SparseBits.from_bits(packed)):
        assert code.bits_of(bits).tolist() == expected
    for atom, first, last, span in zip(atoms, *code.ends(packed), code.spans(packed), strict=True):
        ones = np.flatnonzero(atom[order])
        assert (first, last) == ((ones[0], ones[-1]) if len(ones) else (np.iinfo(np.int64).max, -1))
        assert span == (ones[-1] - ones[0] + 1 if len(ones) else 0)
    assert STRINGS.spans(packed) is None
    assert STRINGS.bits_of(packed).tolist() == [naive.string_bits(m, int(atom.sum())) for atom in atoms]


# --- a factorization


@given(factorisations(), st.sampled_from(["xor", "or"]), st.data())
def test_codelength_from_counts_equals_the_definition(triple, algebra, data):
    X, atoms, codes = triple
    bias = data.draw(st.sampled_from([None, np.zeros(X.shape[1], np.uint8), np.arange(X.shape[1]) % 3 == 0]))
    wrong = naive.errors(X, atoms, codes, algebra, bias)
    found = codelength_from_counts(
        *X.shape,
        wrong=BitMatrix.from_dense(wrong).column_weights(),
        uses=BitMatrix.from_dense(codes).column_weights(),
        atom_weights=BitMatrix.from_dense(atoms).row_weights(),
        bias_weight=0 if bias is None else int(np.sum(bias)),
        n_known=naive.known(X).sum(axis=0, dtype=np.int64),
    )
    expected = naive.codelength(X, atoms, codes, algebra, bias)
    assert (found.errors, found.codes, found.atoms) == expected
    assert found.total == sum(expected)
    assert all(type(part) is int for part in (found.errors, found.codes, found.atoms, found.total))


def test_repr_and_str():
    bits = Codelength(errors=1200, codes=300, atoms=34)
    assert bits.total == 1534
    assert repr(bits) == "Codelength(errors=1200, codes=300, atoms=34)"
    assert str(bits) == "1534 bits (errors 1200 + codes 300 + atoms 34)"
    with pytest.raises(AttributeError):
        bits.errors = 0
