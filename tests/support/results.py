"""Results of searches, checked against the oracles; parameters that many tests of searches run with."""

import numpy as np
import pytest

import naive
from bitatoms.datasets import planted
from support.strategies import random_bits

ALGEBRAS = ("xor", "or")
SEARCHES = ("fast", "thorough")
every_search = pytest.mark.parametrize("search", SEARCHES)
every_algebra = pytest.mark.parametrize("algebra", ALGEBRAS)
# The number of atoms is searched, or given; by either objective; up to 16 atoms and above.
GOALS = [("mdl", "auto"), (5, "errors"), (20, "errors"), (5, "codelength"), (20, "codelength")]
# All pairs of goal, search and algebra.
FITS = {
    f"{algebra} {search} {n_components} {objective}": {
        "n_components": n_components,
        "objective": objective,
        "search": search,
        "algebra": algebra,
        "random_state": 0,
    }
    for number, (n_components, objective) in enumerate(GOALS)
    for search, algebra in zip(SEARCHES, ALGEBRAS if number % 2 else ALGEBRAS[::-1], strict=True)
}
every_fit = pytest.mark.parametrize("how", FITS.values(), ids=FITS)

AWKWARD = {
    "a row": random_bits(0, 1, 70, 0.4),
    "a column": random_bits(1, 70, 1, 0.4),
    "a cell": np.ones((1, 1), np.uint8),
    "zeros": np.zeros((65, 20), np.uint8),
    "ones": np.ones((65, 20), np.uint8),
    "identity": np.eye(70, dtype=np.uint8),
    "complement": 1 - np.eye(70, dtype=np.uint8),
    "triangle": np.tril(np.ones((65, 65), np.uint8)),
    "equal rows": np.repeat(random_bits(2, 4, 30, 0.4), 40, axis=0),
    "equal columns": np.repeat(random_bits(3, 150, 6, 0.4), 12, axis=1),
    "no rows": np.zeros((0, 5), np.uint8),
}


def planted_in(algebra, n=600, m=60, p=6, noise=0.02, seed=0):
    """Return data planted in this algebra, with atoms that a search can find."""
    density = (0.2, 0.25) if algebra == "or" else (0.3, 0.3)
    return planted(
        n, m, p, algebra=algebra, atom_density=density[0], code_density=density[1], noise=noise, random_state=seed
    )


def dense(result):
    """Return the factors as dense arrays."""
    return result.atoms.to_dense(), result.codes.to_dense()


def bits_without_atoms(X):
    """Return the codelength of a table without any atom, by the oracle."""
    return sum(naive.string_bits(len(X), int(column.sum())) for column in X.T)


def bits_of_bias_alone(X):
    """Return the codelength of a table without any atom, with a bias that takes the columns of mostly ones."""
    factors = np.zeros((0, X.shape[1]), np.uint8), np.zeros((len(X), 0), np.uint8), "xor"
    return sum(naive.codelength(X, *factors, naive.settled_bias(X, *factors, np.zeros(X.shape[1], np.uint8))))


def assert_matches_oracle(result, X, order=None):
    """Assert that codelength, errors and reconstruction are those that the oracles compute from the factors.

    ``order`` is that of the columns, if atoms are described by stretches.
    """
    factors = *dense(result), result.algebra, result.bias
    length, expected = result.codelength, naive.codelength(X, *factors, order)
    assert (length.errors, length.codes, length.atoms) == expected
    assert length.total == sum(expected)
    wrong = naive.errors(X, *factors)
    np.testing.assert_array_equal(result.wrong, wrong.sum(axis=0))
    assert result.wrong_bits == wrong.sum()
    np.testing.assert_array_equal(result.reconstruct().to_dense(), X ^ wrong)


def assert_same_search(first, second):
    """Assert that two searches gave the same result and history, apart from the seconds they took."""
    assert first.atoms == second.atoms
    assert first.codes == second.codes
    assert first.codelength == second.codelength
    np.testing.assert_array_equal(first.bias, second.bias)
    np.testing.assert_array_equal(first.wrong, second.wrong)
    assert (first.algebra, first.ended, first.codelengths) == (second.algebra, second.ended, second.codelengths)
    assert [row[:-1] for row in first.history] == [row[:-1] for row in second.history]


def atom_in_two_parts(n_rows):
    """Return a table of two atoms under OR, with atoms and codes in which one of them is in two parts; and both atoms.

    The other atom covers what the larger part lacks, in the rows that do not use the smaller part.
    """
    whole, other = np.zeros((2, 1, 70), np.uint8)
    whole[0, :30], other[0, 20:50] = 1, 1
    uses = np.random.default_rng(0).random((n_rows, 2)) < 0.5
    joined = np.vstack([whole, other])
    large, small = whole.copy(), whole.copy()
    large[0, 20:], small[0, :10] = 0, 0
    codes = np.column_stack([uses[:, 0], uses[:, 1], uses[:, 0] & ~uses[:, 1]]).astype(np.uint8)
    return naive.product(uses.astype(np.uint8), joined, "or"), np.vstack([large, other, small]), codes, joined
