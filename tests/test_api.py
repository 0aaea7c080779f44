"""The public functions: correct results, the same bits for any type of table, and what is logged and interrupted."""

import logging
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import naive
from bitatoms import BitMatrix, Interrupted, PaperSearch, codelength, factorize, proximus
from bitatoms.columns.table import Table
from bitatoms.datasets import planted
from bitatoms.search.starts import initial
from bitatoms.search.starts import rank as rank_starts
from support.parameters import nested
from support.results import ALGEBRAS, assert_matches_oracle, assert_same_search
from support.strategies import ALL_KNOWN, SEEDS, factorisations, matrices, random_bits

PAPER = {"search": "paper"}


pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def table():
    return planted(200, 65, 5, noise=0.05, atom_density=0.3, random_state=0).X


def parts(length):
    return length.errors, length.codes, length.atoms


# --- codelength of any factorisation


@given(factorisations(unknown=ALL_KNOWN), st.sampled_from(ALGEBRAS), st.sampled_from((None, 0.0, 0.3, 1.0)), SEEDS)
def test_codelength_agrees_with_the_oracle(problem, algebra, bias_density, seed):
    X, atoms, codes = problem
    bias = None if bias_density is None else random_bits(seed, 1, X.shape[1], bias_density)[0]
    expected = naive.codelength(X, atoms, codes, algebra, bias)
    found = codelength(X, atoms, codes, bias, algebra)
    assert parts(found) == expected
    assert found.total == sum(expected)


# --- the same bits


def test_seeds_of_every_type(table):
    def found(random_state, **how):
        return factorize(table, 3, **nested(random_state=random_state, **how))

    def from_the_module():
        np.random.set_state(state)  # noqa: NPY002 - scikit-learn takes the module for a seed too
        return found(np.random)

    assert_same_search(found(np.random.default_rng(7)), found(np.int64(7)))
    assert_same_search(*(found(np.random.RandomState(7)) for _ in range(2)))
    first, second, other = (found(seed, n_init=2, **PAPER) for seed in (5, 5, 6))
    assert_same_search(first, second)
    assert first.atoms != other.atoms
    state = np.random.get_state()  # noqa: NPY002
    assert_same_search(from_the_module(), from_the_module())
    np.random.set_state(state)  # noqa: NPY002
    random = np.random.default_rng(7)
    assert found(random, **PAPER).atoms != found(random, **PAPER).atoms  # a generator advances


def test_the_global_random_state_is_not_used(table):
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    for search in ("paper", "fast"):
        factorize(table, 3, algebra="xor", search=search, init="spread")
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_binarize(table):
    numbers = table * 0.4 + random_bits(0, *table.shape, 0.5) * 0.2
    expected, found = (factorize(X, 4, **nested(binarize=0.3, random_state=0, **PAPER)) for X in (table, numbers))
    assert_same_search(found, expected)


# --- small and empty tables


@settings(max_examples=25)
@given(
    matrices(),
    st.one_of(st.integers(1, 4), st.just("mdl")),
    st.sampled_from(("xor", "or", "auto")),
    st.sampled_from(("greedy", "bmp", "exact")),
    st.sampled_from(("mob", "k-prox")),
    st.sampled_from((None, 1, 2)),
    SEEDS,
)
def test_results_agree_with_the_oracle_on_any_table(X, n_components, algebra, coder, update, most, seed):
    how = {"algebra": algebra, "coder": coder, "update": update, "start_components": 1, "max_components": 6}
    how["max_atoms_per_sample"] = most
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of fewer rows than atoms
        result = factorize(X, n_components, **nested(**how, **PAPER, random_state=seed))
    assert_matches_oracle(result, X)
    assert not result.bias.any()
    assert result.converged
    assert most is None or result.codes.row_weights().max(initial=0) <= most


# --- what comes back


def bits_saved(X, result):
    """Return how much longer the description is without each atom."""
    atoms, codes = result.atoms.to_dense(), result.codes.to_dense()
    without = ((np.delete(atoms, k, axis=0), np.delete(codes, k, axis=1)) for k in range(len(atoms)))
    found = [sum(naive.codelength(X, *factors, result.algebra, result.bias)) for factors in without]
    return [bits - result.codelength.total for bits in found]


@given(factorisations(unknown=ALL_KNOWN, n_atoms=st.integers(1, 6)), st.sampled_from(ALGEBRAS))
def test_atoms_are_sorted_by_bits_saved_and_odd_ones_are_counted(problem, algebra):
    X, atoms, codes = problem
    result = factorize(X, len(atoms), **nested(init=(atoms, codes), algebra=algebra, max_iter=1, **PAPER))
    saved = bits_saved(X, result)
    assert saved == sorted(saved, reverse=True)
    rows = list(map(tuple, result.atoms.to_dense().tolist()))
    filled = [row for row in rows if any(row)]
    assert result.n_unused == sum(not column.any() for column in result.codes.to_dense().T)
    assert result.n_zero == len(rows) - len(filled)
    assert result.n_duplicate == len(filled) - len(set(filled))


@pytest.mark.parametrize(("search", "n_components"), [("paper", 4), ("paper", "mdl"), ("fast", "mdl")])
def test_the_best_of_several_starts_is_kept(table, search, n_components):
    rows, cost = [], (lambda row: row.bits) if n_components == "mdl" else (lambda row: row.wrong_bits)
    search = PaperSearch(start_components=1, patience=2) if search == "paper" else search
    how = {"algebra": "xor", "search": search, "random_state": 0}
    result = factorize(table, n_components, n_init=6, callbacks=rows.append, **how)
    starts = [index for index, row in enumerate(rows) if row.round == 1]
    ends = [rows[stop - 1] for stop in (*starts[1:], len(rows))]
    assert search == "fast" or len({cost(end) for end in ends}) > 1
    assert len(ends) == 6
    assert result.history[-1] == min(ends, key=cost)
    assert (result.wrong_bits if n_components == 4 else result.codelength.total) == min(map(cost, rows))


def test_samples_with_few_wrong_bits_are_not_coded():
    X = np.zeros((3, 9), np.uint8)
    X[0, :3] = X[1, :4] = 1
    result = factorize(X, 2, init=X[:2], search=PaperSearch(residual_limit=3))
    assert result.codes.row_weights().tolist() == [0, 1, 0]


# --- Ctrl-C


def interrupt_at_call(at_call):
    calls = []

    def callback(row):
        calls.append(row)
        if len(calls) == at_call:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize(("module", "start", "how"), [(initial, "samples", PAPER), (rank_starts, "greedy", {})])
def test_interrupt_before_the_first_round_returns_nothing(monkeypatch, table, module, start, how):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, start, interrupted)
    with pytest.raises(Interrupted) as caught:
        factorize(table, 4, **nested(random_state=0, **how))
    assert caught.value.result is None


# --- what is told on the way


@pytest.mark.parametrize(("search", "n_components"), [("paper", "mdl"), ("fast", 4), ("thorough", "mdl")])
def test_verbose_logs_each_round_and_restores_the_logger(table, capsys, search, n_components, monkeypatch):
    """Once, also where the root logger has a handler."""
    logger = logging.getLogger("bitatoms")
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler()])
    before = list(logger.handlers), logger.level
    result = factorize(table, n_components, algebra="xor", search=search, verbose=2, random_state=0)
    lines = capsys.readouterr().err.splitlines()
    rounds = [
        f"xor, start 1, round {row.round}, {row.move}: {row.atoms} atoms, {row.bits} bits, {row.wrong_bits} bits wrong"
        for row in result.history
    ]
    told = "".join(f"[bitatoms] {message}\n" for message in (*rounds, result.summary()))
    assert lines == told.splitlines()
    with pytest.raises(Interrupted):
        factorize(
            table, n_components, algebra="xor", search=search, verbose=1, callbacks=interrupt_at_call(1), random_state=0
        )
    assert (list(logger.handlers), logger.level) == before


def test_each_round_is_logged_once_and_nothing_is_printed_without_verbose(table, capsys, caplog):
    with caplog.at_level(logging.DEBUG, logger="bitatoms"):
        result = factorize(table, 4, algebra="xor", random_state=0)
    assert len(caplog.records) == len(result.history) + 1
    assert caplog.records[-1].getMessage() == result.summary()
    proximus(table, random_state=0)
    assert capsys.readouterr() == ("", "")


def test_verbose_1_logs_improvements(table, capsys):
    result = factorize(table, verbose=1, algebra="xor", random_state=0)
    lines = capsys.readouterr().err.splitlines()
    bits = [int(line.split(" atoms, ")[1].split()[0]) for line in lines if ", round " in line]
    assert 1 < len(bits) < len(result.history) / 2
    assert bits == sorted(bits, reverse=True)
    assert lines[-1] in result.summary()


@pytest.mark.parametrize("how", [{"n_components": 4, **PAPER}, {}])
def test_a_second_interrupt_loses_only_the_order_of_atoms(table, monkeypatch, how):
    def impatient(*_):
        raise KeyboardInterrupt

    expected = factorize(table, **nested(**how, random_state=0, max_iter=2))
    monkeypatch.setattr("bitatoms.search.finish.savings", impatient)
    with pytest.raises(Interrupted) as caught:
        factorize(table, **nested(**how, random_state=0, max_iter=2))
    assert sorted(caught.value.result.atoms.to_dense().tolist()) == sorted(expected.atoms.to_dense().tolist())
    assert caught.value.result.codelength == expected.codelength
    assert caught.value.result.ended == "interrupted"


HIDDEN = np.random.default_rng(1).random((60, 70)) < 0.2
PLANTED = planted(60, 70, 2, code_density=0.4, noise=0.02, random_state=0).X
SEVENS = np.where(HIDDEN, 7, PLANTED)


@pytest.fixture(scope="module")
def incomplete():
    """Return the factorization of the planted table with NaN in the hidden cells."""
    return factorize(np.where(HIDDEN, np.nan, PLANTED), 2, algebra="xor", random_state=0)


def assert_same_cells_are_unknown(incomplete, X, mask):
    result = factorize(X, 2, mask=mask, algebra="xor", random_state=0)
    assert_same_search(result, incomplete)
    np.testing.assert_array_equal(result.known, incomplete.known)


@pytest.mark.parametrize(
    "mask", [HIDDEN, HIDDEN.tolist(), BitMatrix.from_dense(HIDDEN), csr_array(HIDDEN), pd.DataFrame(HIDDEN)]
)
def test_cells_of_the_mask_are_unknown_whatever_they_contain(incomplete, mask):
    other = PLANTED ^ HIDDEN
    for X in (PLANTED, other, SEVENS, np.where(HIDDEN, -np.inf, PLANTED), csr_array(SEVENS), pd.DataFrame(SEVENS)):
        assert_same_cells_are_unknown(incomplete, X, mask)
    for X in (BitMatrix.from_dense(other), Table.from_any(other)):
        assert_same_cells_are_unknown(incomplete, X, mask)


def test_a_mask_adds_to_missing_values(incomplete):
    first = HIDDEN & (np.arange(60) < 30)[:, np.newaxis]
    X = np.where(first, np.nan, PLANTED)
    for table in (X, np.ma.masked_array(PLANTED, first), BitMatrix.from_any(X, missing="unknown")):
        assert_same_cells_are_unknown(incomplete, table, HIDDEN & ~first)
    assert_same_cells_are_unknown(incomplete, np.where(HIDDEN, np.nan, PLANTED), np.ma.nomask)
