"""Forward selection: true codelengths, the best round kept, patience, and where it starts and stops."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms
import naive
from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.engine.block import Block
from bitatoms.engine.coding import coding_rule
from bitatoms.engine.objective import Objective
from bitatoms.parallel import Workers
from bitatoms.search import paper as module
from bitatoms.search.monitor import SearchMonitor
from bitatoms.search.paper import LearningMethod, forward_selection
from support.parameters import nested
from support.strategies import SEEDS, matrices, random_bits


def factorize(X, n_components="mdl", **how):
    """Return what the published search finds."""
    return bitatoms.factorize(X, n_components, **nested(search="paper", **how))


METHODS = st.sampled_from(
    [
        (algebra, coder, update)
        for algebra in ("xor", "or")
        for coder, update in (("bmp", "mob"), ("greedy", "mob"), ("greedy", "k-prox"), ("exact", "exact"))
    ]
)


class Recorder(SearchMonitor):
    """A monitor that keeps the factors of every round."""

    def record(self, block, *round_):
        self.kept = [*getattr(self, "kept", []), tuple(factor.to_dense() for factor in block.factors())]
        return super().record(block, *round_)


def select(X, n_start, how, limits, seed, max_atoms=None):
    """Return the monitor of a forward selection from some rows of X, and why it ended."""
    algebra, coder, update = how
    data = BitMatrix.from_dense(X)
    monitor = Recorder(Objective(True, "xor"))
    method = LearningMethod(coder, update, coding_rule(coder, algebra, max_atoms), 1000)
    block = Block(data, data[:n_start], None, algebra == "or", Workers())
    ended = forward_selection(block, method, *limits, monitor, np.random.default_rng(seed))
    return monitor, ended


def failures(history):
    """How many rounds in a row have not shortened the codelength, after each round but the first."""
    shortest, row_of_failures, counts = history[0].bits, 0, []
    for row in history[1:]:
        row_of_failures = 0 if row.bits < shortest else row_of_failures + 1
        shortest = min(shortest, row.bits)
        counts.append(row_of_failures)
    return counts


def nothing_left(X, atoms, codes, algebra, max_atoms):
    """Whether no error is left that one more atom could fix, in a row that may use one more."""
    wrong = naive.errors(X, atoms, codes, algebra)[codes.sum(axis=1) != max_atoms]
    return not (wrong if algebra == "xor" else wrong & X[codes.sum(axis=1) != max_atoms]).any()


@settings(max_examples=25)
@given(
    matrices(st.sampled_from((0, 1, 17, 65))),
    st.integers(0, 3),
    METHODS,
    st.integers(1, 3),
    st.sampled_from((None, 1)),
    SEEDS,
)
def test_every_round_matches_the_oracle_and_the_best_is_kept(X, n_start, how, patience, max_atoms, seed):
    monitor, ended = select(X, n_start, how, (patience, 8), seed, max_atoms)
    assert ended == "converged"
    assert max_atoms is None or all((codes.sum(axis=1) <= max_atoms).all() for _, codes in monitor.kept)
    for row, (atoms, codes) in zip(monitor.history, monitor.kept, strict=True):
        parts = naive.codelength(X, atoms, codes, how[0])
        assert (row.bits_errors, row.bits_codes, row.bits_atoms) == parts
        assert row.bits == sum(parts)
        assert row.wrong_bits == naive.errors(X, atoms, codes, how[0]).sum()
        assert row.atoms == len(atoms)
    assert [row.atoms for row in monitor.history] == [
        min(n_start, len(X)) + extra for extra in range(len(monitor.history))
    ]
    best = int(np.argmin([row.bits for row in monitor.history]))  # the first of equals
    for found, expected in zip((monitor.best.atoms, monitor.best.codes), monitor.kept[best], strict=True):
        np.testing.assert_array_equal(found.to_dense(), expected)
    assert monitor.best.codelength.total == monitor.history[best].bits
    counts = failures(monitor.history)
    assert all(count < patience for count in counts[:-1])
    is_done = nothing_left(X, *monitor.kept[-1], how[0], max_atoms)
    assert patience in counts[-1:] or monitor.history[-1].atoms >= 8 or is_done


def test_a_round_that_is_as_short_as_the_shortest_is_a_failure(monkeypatch):
    bits, monitor = iter([9, 8, 7, 7, 7, 1]), SimpleNamespace(history=[], stop_reason=None, should_stop=lambda: False)

    def learn(*block, **how):
        monitor.history.append(SimpleNamespace(bits=next(bits)))
        return "converged"

    monkeypatch.setattr(module, "learn", learn)
    monkeypatch.setattr(module, "append_rank_one", lambda *block: True)
    block, method = SimpleNamespace(n_atoms=0), SimpleNamespace(rule=None)
    forward_selection(block, method, 2, None, monitor, None)
    assert [row.bits for row in monitor.history] == [9, 8, 7, 7, 7]


@pytest.fixture(scope="module")
def table():
    """Planted atoms in so much noise that the codelength has several valleys."""
    return planted(300, 65, 6, noise=0.05, atom_density=0.3, code_density=0.3, random_state=0).X


@pytest.mark.parametrize(
    ("coder", "start", "most", "last"),
    [("bmp", 0, 9, 9), ("bmp", 9, 9, 9), ("exact", 0, 0, 0), ("exact", 15, None, 16)],
)
def test_without_patience_selection_continues_to_max_components(coder, start, most, last):
    """Exact coding ends it at 16 atoms."""
    how = {"coder": coder, "start_components": start, "max_components": most, "random_state": 0}
    result = factorize(random_bits(0, 60, 30, 0.5), patience=50 if most is None else None, **how)
    assert [row.atoms for row in result.history] == list(range(start, last + 1))
    assert result.converged


def test_selection_starts_from_16_or_start_components_atoms(table):
    def first(**how):
        return factorize(table, random_state=0, **how).history[0].atoms

    from_nothing = factorize(table, start_components=0, patience=2, max_iter=1, random_state=0)
    assert (from_nothing.history[0].atoms, from_nothing.history[0].wrong_bits) == (0, table.sum())
    assert (from_nothing.converged, {row.iterations for row in from_nothing.history}) == (False, {1})
    assert first() == 16
    assert first(start_components=4) == 4
    assert first(max_components=5) == 5
    assert first(coder="exact", max_components=3) == 1
