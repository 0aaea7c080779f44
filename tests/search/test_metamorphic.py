"""What must not matter has no influence on any bit: how work is divided among threads, and values of unknown cells."""

import threading

import numpy as np
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
import naive
from support.chaos import KINDS, chaos
from support.results import assert_same_search, dense, every_algebra
from support.strategies import UNKNOWN, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")
LISTED = "fast xor", "a sample of rows", "5 atoms, fewest errors", "20 atoms, thorough"
OTHERS = "paper, 5 atoms by k-prox", "4 atoms, codelength", "costs of errors", "windows xor", "constraints"


@pytest.mark.parametrize("name", [*LISTED[::2], *OTHERS])
@pytest.mark.filterwarnings("ignore:.* were requested")
def test_values_of_unknown_cells_change_nothing(name):
    kind, seed = KINDS[name], len(name)
    X = kind.table[:90]
    mask = random_bits(seed, *X.shape, (0.05, 0.5)[seed % 2]) == 1
    other = X ^ (mask & (random_bits(seed + 1, *X.shape, 0.5) == 1))
    assert_same_search(kind.fit(np.ma.array(X, mask=mask)), kind.fit(other, mask=mask))


@pytest.mark.parametrize("name", [*LISTED, "unknown cells"])
def test_a_column_without_known_cells_changes_nothing_else(name):
    kind = KINDS[name]
    X = kind.table
    found, wider = kind.fit(X), kind.fit(np.hstack([X, np.full((len(X), 1), np.nan)]))
    assert wider.codes == found.codes
    np.testing.assert_array_equal(wider.atoms.to_dense()[:, :-1], found.atoms.to_dense())
    np.testing.assert_array_equal(wider.wrong, [*found.wrong, 0])
    assert (wider.codelength.errors, wider.codelength.codes) == (found.codelength.errors, found.codelength.codes)


@pytest.mark.parametrize("name", ["thorough or", "a sample of rows"])
def test_the_complement_of_a_table_has_the_same_atoms_and_the_other_bias(name):
    """Each column is a one in less than half of the rows. Codes of few rows differ, at other prices."""
    kind = KINDS[name]
    X = kind.table[:, kind.table.mean(axis=0) < 0.5]
    found, flipped = kind.fit(X), kind.fit(1 - X)
    assert (found.bias.any(), flipped.bias.all()) == (False, True)
    assert len(found.atoms) == 4
    assert flipped.atoms == found.atoms
    assert abs(flipped.wrong_bits - found.wrong_bits) <= 2


# Unknown cells are not counted.


HOW = [
    {"algebra": "xor"},
    {"algebra": "or", "search": "thorough"},
    {"algebra": "xor", "n_components": 20},
    {"algebra": "or", "n_components": 3, "objective": "codelength"},
    {"algebra": "xor", "search_rows": 100},
    {"algebra": "or", "search": "paper"},
    {"algebra": "or", "search": ba.PaperSearch(update="k-prox"), "n_components": 4, "init": "spread"},
]


@pytest.mark.parametrize("how", HOW)
def test_counts_and_codelength_are_those_of_the_known_cells(how):
    algebra = how["algebra"]
    table = ba.datasets.planted(150, 40, 4, algebra=algebra, noise=0.05, random_state=1).X
    table[random_bits(0, *table.shape, 0.2) == 1] = UNKNOWN
    X = np.where(table == UNKNOWN, np.nan, table)
    result = ba.factorize(X, random_state=0, **how)
    factors = *dense(result), algebra, result.bias
    np.testing.assert_array_equal(result.wrong, naive.errors(table, *factors).sum(axis=0))
    length = result.codelength
    assert (length.errors, length.codes, length.atoms) == naive.codelength(table, *factors)
    assert ba.codelength(X, result.atoms, result.codes, algebra=algebra, bias=result.bias) == length
    assert result.bits_without == ba.codelength(X).total
    np.testing.assert_array_equal(result.ones, (table == 1).sum(axis=0))


@every_algebra
def test_a_table_whose_cells_are_all_unknown_has_no_atoms(algebra):
    result = ba.factorize(np.full((20, 5), np.nan), algebra=algebra, random_state=0)
    assert result.atoms.n_rows == 0
    assert result.codelength.total == result.wrong_bits == 0


# The same seed gives the same bits and the same history, however the work is divided among threads.


@pytest.mark.parametrize(("number", "name"), [*enumerate((*KINDS, "windows or"))])
def test_sizes_and_order_of_jobs_change_neither_bits_nor_history(number, name):
    """The last one is a sparse table."""
    kind, is_sparse = KINDS[name], number == len(KINDS)
    X = kind.table & random_bits(3, *kind.table.shape, 0.3) if is_sparse else kind.table
    expected = kind.fit(X)
    for seed in sorted({3 * number + number % 3, 3 * number + 2}):
        rounds = []

        def record(row):
            assert threading.current_thread() is threading.main_thread()
            rounds.append(row)  # noqa: B023

        with chaos(seed) as n_jobs:
            found = kind.fit(csr_array(X) if is_sparse else X, n_jobs=n_jobs, callbacks=record)
        assert_same_search(found, expected)
        of_all_starts = len(found.codelengths) > 1 or "n_init" in kind.parameters  # the history is that of the best
        assert of_all_starts or tuple(rounds) == found.history[: len(rounds)]
