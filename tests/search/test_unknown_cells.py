"""Searches of tables with unknown cells: what they find, and that unknown cells decide nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms import factorize, proximus
from bitatoms.bits import BitMatrix
from support.blocks import bits_of, table_of
from support.strategies import SEEDS, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

HOW = {
    "fast": {},
    "thorough": {"search": "thorough"},
    "few atoms": {"n_components": 3},
    "many atoms": {"n_components": 20},
    "fewest errors": {"n_components": 3, "objective": "errors"},
    "sample": {"search_rows": 100},
    "forward selection": {"search": "paper"},
    "mob": {"search": "paper", "n_components": 4, "init": "greedy"},
    "k-prox": {"search": "paper", "n_components": 4, "update": "k-prox", "init": "spread"},
}
both_algebras = pytest.mark.parametrize("algebra", ["xor", "or"])


def hidden(X, share, seed=0):
    """Return the table with this share of the cells as NaN, and which these are."""
    mask = random_bits(seed, *X.shape, share) == 1
    return np.where(mask, np.nan, X), mask


def assert_same(found, expected):
    assert found.atoms == expected.atoms
    assert found.codes == expected.codes
    assert found.codelength == expected.codelength
    np.testing.assert_array_equal(found.bias, expected.bias)


@both_algebras
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_planted_atoms_are_found_and_predict_hidden_cells(algebra, share):
    planted = ba.datasets.planted(300, 120, 5, algebra=algebra, noise=0.05, random_state=0)
    X, mask = hidden(planted.X, share)
    result = factorize(X, algebra=algebra, random_state=0)
    assert {bytes(atom) for atom in result.atoms.to_dense()} == {bytes(atom) for atom in np.uint8(planted.atoms)}
    assert (result.reconstruct().to_dense() != planted.clean)[mask].mean() < 0.01
    np.testing.assert_array_equal(result.known, (~mask).sum(axis=0))


@both_algebras
@pytest.mark.parametrize("how", HOW)
def test_counts_and_codelength_are_those_of_the_known_cells(algebra, how):
    X, _ = hidden(ba.datasets.planted(260, 40, 4, algebra=algebra, noise=0.05, random_state=1).X, 0.2)
    result = factorize(X, **{"algebra": algebra, "random_state": 0, **HOW[how]})
    atoms, codes = result.atoms.to_dense(), result.codes.to_dense()
    table = table_of(BitMatrix.from_any(X, missing="unknown"))
    wrong = naive.errors(table, atoms, codes, algebra, result.bias)
    np.testing.assert_array_equal(result.wrong, wrong.sum(axis=0))
    length = result.codelength
    assert (length.errors, length.codes, length.atoms) == naive.codelength(table, atoms, codes, algebra, result.bias)
    assert ba.codelength(X, atoms, codes, algebra=algebra, bias=result.bias) == length
    assert result.bits_without == ba.codelength(X).total
    np.testing.assert_array_equal(result.ones, (table == 1).sum(axis=0))


@both_algebras
@pytest.mark.parametrize("how", ["fast", "few atoms", "sample"])
def test_results_do_not_depend_on_threads(algebra, how):
    X, _ = hidden(ba.datasets.planted(260, 70, 4, algebra=algebra, noise=0.05, random_state=2).X, 0.3)
    results = [factorize(X, **{"algebra": algebra, "random_state": 0, "n_jobs": n, **HOW[how]}) for n in (1, 2)]
    assert_same(*results)


@pytest.mark.filterwarnings("ignore:.* were requested")
@settings(max_examples=10)
@given(SEEDS, st.sampled_from(("xor", "or")), st.sampled_from(sorted(HOW)), st.sampled_from((0.05, 0.5, 1.0)))
def test_values_of_unknown_cells_change_nothing(seed, algebra, how, share):
    n_atoms = np.random.default_rng(seed).integers(1, 5)
    X = ba.datasets.planted(70, 20, n_atoms, algebra=algebra, noise=0.1, random_state=seed).X
    mask = random_bits(seed, *X.shape, share) == 1
    other = X ^ (mask & (random_bits(seed + 1, *X.shape, 0.5) == 1))
    call = {"algebra": algebra, "random_state": seed, **HOW[how]}
    assert_same(*(factorize(np.ma.array(table, mask=mask), **call) for table in (X, other)))


@both_algebras
def test_a_table_whose_cells_are_all_unknown_has_no_atoms(algebra):
    result = factorize(np.full((20, 5), np.nan), algebra=algebra, random_state=0)
    assert result.atoms.n_rows == 0
    assert result.codelength.total == result.wrong_bits == 0


def test_unknown_columns_cost_nothing():
    X = ba.datasets.planted(200, 30, 3, noise=0.05, random_state=0).X.astype(float)
    wider = np.hstack([X, np.full((200, 3), np.nan)])
    assert factorize(wider, random_state=0).codelength.errors == factorize(X, random_state=0).codelength.errors


def test_proximus_counts_known_differences():
    X = np.array([[1, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1], [2, 2, 2, 2]], np.uint8)
    result = proximus(bits_of(X), random_state=0)
    assert result.wrong_bits == 0
    assert result.atoms.n_rows == 2
    assert result.codes.row_weights().tolist() == [1, 1, 1, 1, 0]
