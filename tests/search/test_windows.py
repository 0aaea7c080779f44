"""Wide tables are searched by windows of columns: the result is one of the whole table, and a good one."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.engine.codelength import Codelength, string_bits
from bitatoms.search.monitor import cut_off
from bitatoms.search.states import State
from bitatoms.search.windows import driver as windows
from bitatoms.search.windows.driver import Window, joined
from support.clock import WorkClock, allowed
from support.faults import ctrl_c_when
from support.parameters import resolved
from support.plans import use_small_budget, use_windows
from support.results import assert_matches_oracle, bits_without_atoms, planted_in
from support.strategies import random_bits

N_BLOCKS, WIDTH = 4, 40


@pytest.fixture(autouse=True, scope="module")
def narrow_windows():
    """Tables of 100 columns count as wide, windows are as wide as a block of the table below, and no search follows."""
    with pytest.MonkeyPatch.context() as patch:
        use_windows(patch, min_features=100, width=WIDTH, max_cells=0)
        use_small_budget(patch)
        yield


@pytest.fixture(scope="module")
def blocks():
    """Blocks of columns, each with atoms and users of its own."""
    return [
        ba.datasets.planted(150, WIDTH, 3, atom_density=0.3, code_density=0.3, noise=0.02, random_state=seed)
        for seed in range(N_BLOCKS)
    ]


@pytest.fixture(scope="module")
def table(blocks):
    """The blocks side by side."""
    return np.hstack([block.X for block in blocks])


@pytest.mark.parametrize(("algebra", "search"), [("xor", "fast"), ("or", "thorough")])
def test_result_and_history(blocks, table, algebra, search):
    rounds = []
    result = ba.factorize(table, algebra=algebra, search=search, random_state=0, callbacks=rounds.append)
    assert_matches_oracle(result, table)
    assert result.converged
    assert tuple(rounds) == result.history
    window = "thorough window" if search == "thorough" else "window"
    assert [row.move for row in rounds] == ["no model", *[window] * 4, *["join"] * 3, "finish"]
    bits = [row.bits for row in rounds]
    assert bits == sorted(bits, reverse=True)
    assert (bits[0], bits[-1]) == (result.bits_without, result.codelength.total)
    assert bits[0] == bits_without_atoms(table)
    assert result.n_iter == sum(row.iterations for row in rounds) > 4
    assert ("thorough" in result.untried) == (search == "fast")
    atoms, codes = block_diag(*(block.atoms for block in blocks)), np.hstack([block.codes for block in blocks])
    planted_bits = ba.codelength(table, atoms, codes, algebra="xor").total
    assert algebra == "or" or result.codelength.total <= 1.001 * planted_bits


@pytest.fixture
def contexts(monkeypatch):
    """The contexts of searches of windows."""
    searched, found = windows.search_mdl, []
    monkeypatch.setattr(windows, "search_mdl", lambda one, **more: found.append(one) or searched(one, **more))
    return found


def test_a_table_of_few_cells_is_searched_as_a_whole_after_the_last_join(contexts, monkeypatch):
    """Atoms in all windows become one."""
    data = planted_in("or", 200, 160, 4, noise=0.05)
    for max_cells in (200 * 160 - 1, 200 * 160):
        contexts.clear()
        use_windows(monkeypatch, max_cells=max_cells)
        result = ba.factorize(data.X, algebra="or", random_state=0)
        assert (160 in {context.data.n_cols for context in contexts}) == (max_cells == 200 * 160)
    true = ba.codelength(data.X, data.atoms, data.codes, algebra="or").total
    assert (result.atoms.n_rows, result.codelength.total) == (4, pytest.approx(true, rel=1e-3))


def scattered(noise=0.02, seed=0):
    """Return a table with atoms of 60 columns, which are anywhere among columns of noise, and these atoms."""
    random = np.random.default_rng(seed)
    atoms, codes = np.zeros((3, 400), np.uint8), (random.random((300, 3)) < 0.25).astype(np.uint8)
    for atom, columns in zip(atoms, random.permutation(400)[:180].reshape(3, 60), strict=True):
        atom[columns] = 1
    return ((codes @ atoms > 0) ^ (random.random((300, 400)) < noise)).astype(np.uint8), atoms


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_atoms_of_scattered_columns_become_one(algebra):
    X, atoms = scattered()
    result = ba.factorize(X, algebra=algebra, random_state=0)
    assert_matches_oracle(result, X)
    assert "join" in {row.move for row in result.history}
    assert sorted(map(tuple, result.atoms.to_dense())) == sorted(map(tuple, atoms))
    bits = [row.bits for row in result.history]
    assert bits == sorted(bits, reverse=True)


@pytest.mark.parametrize("max_joined", [0, 1 << 22])
def test_windows_are_joined_while_they_have_few_cells(table, max_joined, monkeypatch):
    use_windows(monkeypatch, max_joined=max_joined)
    result = ba.factorize(table, algebra="or", random_state=0)
    assert [row.move for row in result.history].count("join") == (N_BLOCKS - 1) * (max_joined > 0)
    assert_matches_oracle(result, table)


def test_a_window_of_a_sample_is_compared_with_itself_without_atoms():
    """Atoms that save little save something for held-out rows, too: estimates for all rows are compared."""
    data = ba.datasets.planted(4000, 120, 4, atom_density=0.3, code_density=0.1, noise=0.1, random_state=0)
    result = ba.factorize(data.X, algebra="or", search_rows=1500, random_state=0)
    assert result.atoms.n_rows >= 4


@pytest.mark.parametrize(
    "limit",
    [
        *[{"n_components": 4}, {"max_components": 4}, {"max_atoms_per_sample": 2}],
        *[{"init": "samples"}, {"init": np.eye(100)}, {"search": "paper"}, {"search": "anytime"}],
    ],
)
def test_limits_that_concern_all_windows(limit):
    """Where rows or the table have a limit, or a start is given, the table is searched as a whole."""
    assert not resolved(**limit).is_wide(100)
    assert [resolved().is_wide(n_features) for n_features in (99, 100)] == [False, True]


@pytest.mark.parametrize(("interrupt_at", "again"), [(1, False), (7, False), (5, True)])
def test_an_interrupt_leaves_what_is_found(table, interrupt_at, again, monkeypatch):
    """Another one, while the atoms are sorted, leaves them unsorted."""
    press, stopped = ctrl_c_when(lambda row: row.round == interrupt_at), windows.stopped_result

    def interrupted(*given, **more):
        if again and given[3]:
            raise KeyboardInterrupt
        return stopped(*given, **more)

    monkeypatch.setattr(windows, "stopped_result", interrupted)
    with pytest.raises(ba.Interrupted) as raised:
        ba.factorize(table, algebra="or", random_state=0, n_jobs=2, callbacks=press)
    found = raised.value.result
    assert_matches_oracle(found, table)
    assert found.ended == "interrupted"
    assert (found.atoms.n_rows > 0) == (interrupt_at > 1)


@pytest.mark.parametrize("max_time", [1e-6, 5])
def test_max_time(table, max_time, contexts, monkeypatch):
    clock = WorkClock(monkeypatch)
    result = ba.factorize(table, algebra="or", random_state=0, max_time=max_time)
    assert_matches_oracle(result, table)
    assert result.ended == "max_time"
    assert clock.elapsed <= allowed(max_time)
    assert (result.atoms.n_rows > 0) == (max_time == 5)
    assert {context.workers.deadline for context in contexts} == {cut_off(1000.0, 1000.0 + max_time)}


def test_memory_that_runs_out(table, monkeypatch):
    searched, n_calls = windows.search_mdl, []

    def fails_later(context, **more):
        n_calls.append(1)
        if len(n_calls) > 3:
            raise MemoryError
        return searched(context, **more)

    monkeypatch.setattr(windows, "search_mdl", fails_later)
    result = ba.factorize(table, algebra="or", random_state=0)
    assert result.ended == "max_memory"
    assert_matches_oracle(result, table)
    assert result.atoms.n_rows > 0


# Windows that are joined: nothing is lost, and costs add up.


def window_of(columns, n_rows, n_atoms, seed, bias=False):
    """Return a window of which most columns are in no atom, with the codelength that its parts add up to."""
    m, random = len(columns), np.random.default_rng(seed)
    atoms = random_bits(seed, n_atoms, m, 0.2)
    atoms[:, random.permutation(m)[: m // 2]] = 0
    codes, wrong = random_bits(seed + 1, n_rows, n_atoms, 0.4), random.integers(0, n_rows // 2, m)
    signs = random_bits(seed + 2, 1, m, 0.1) * bias
    bits = [string_bits(n_rows, wrong), string_bits(n_rows, codes.sum(axis=0)), string_bits(m, atoms.sum(axis=1))]
    length = Codelength(*(int(part.sum()) for part in bits))
    state = State(length.total, *map(BitMatrix.from_dense, (atoms, codes, signs)), wrong, length)
    return Window(np.asarray(columns), state)


def columns_of(window):
    """Return what a window says of each of its columns."""
    best = window.best
    product = best.codes.to_dense().astype(int) @ best.atoms.to_dense() + best.bias.to_dense()
    rows = zip(product.T.tolist(), best.wrong.tolist(), strict=True)
    return dict(zip(window.columns.tolist(), rows, strict=True))


def test_joined_windows_have_the_columns_of_all():
    windows = [
        window_of(np.arange(start, start + 13), 70, n_atoms, start) for start, n_atoms in ((0, 2), (13, 0), (26, 65))
    ]
    window = joined(windows[::-1])
    assert window.columns.tolist() == [*range(39)]
    assert columns_of(window) == {column: of for each in windows for column, of in columns_of(each).items()}
    assert window.best.atoms.shape == (67, 39)
    assert window.best.cost == sum(each.best.cost for each in windows) == window.best.codelength.total
