"""Wide tables are searched by windows of columns: the result is one of the whole table, and a good one."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import bitatoms as ba
from bitatoms.search import windows
from bitatoms.search.column_groups import runs_of_regions
from bitatoms.search.params import resolve
from bitatoms.search.stopping import cut_off
from support.clock import WorkClock, allowed
from support.faults import ctrl_c_when
from support.plans import use_small_budget, use_windows
from support.results import assert_matches_oracle, bits_without_atoms, planted_in

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


def test_a_table_of_few_cells_is_searched_as_a_whole_after_the_last_join(monkeypatch):
    """Atoms in all windows become one."""
    data, searched, widths = planted_in("or", 200, 160, 4, noise=0.05), windows.search_mdl, []

    def recorded(context, **more):
        widths.append(context.data.n_cols)
        return searched(context, **more)

    monkeypatch.setattr(windows, "search_mdl", recorded)
    for max_cells in (200 * 160 - 1, 200 * 160):
        widths.clear()
        use_windows(monkeypatch, max_cells=max_cells)
        result = ba.factorize(data.X, algebra="or", random_state=0)
        assert (160 in widths) == (max_cells == 200 * 160)
    true = ba.codelength(data.X, data.atoms, data.codes, algebra="or").total
    assert (result.atoms.n_rows, result.codelength.total) == (4, pytest.approx(true, rel=1e-3))


def scattered(noise=0.02, seed=0):
    """Return a table with atoms of 60 columns, which are anywhere among columns of noise, and these atoms."""
    random = np.random.default_rng(seed)
    atoms, codes = np.zeros((3, 400), np.uint8), (random.random((300, 3)) < 0.25).astype(np.uint8)
    for atom, columns in zip(atoms, random.permutation(400)[:180].reshape(3, 60), strict=True):
        atom[columns] = 1
    return ((codes @ atoms > 0) ^ (random.random((300, 400)) < noise)).astype(np.uint8), atoms


def moves_of(result):
    return [row.move for row in result.history]


@pytest.mark.parametrize(
    ("algebra", "only"), [("xor", "_neighbours"), ("or", "_neighbours"), ("or", "_related"), ("xor", None)]
)
def test_atoms_of_scattered_columns_become_one(algebra, only, monkeypatch):
    """Whether windows are joined because their columns are alike, because the same rows use their atoms, or both."""
    X, atoms = scattered()
    for way in {"_neighbours", "_related"} - {only or "_neighbours", only or "_related"}:
        monkeypatch.setattr(windows.WindowSearch, way, lambda self: [])
    sizes, going_on = [], windows.WindowSearch._going_on

    def seen(self, window, context):
        sizes.append(len(window.columns))
        return going_on(self, window, context)

    monkeypatch.setattr(windows.WindowSearch, "_going_on", seen)
    result = ba.factorize(X, algebra=algebra, random_state=0)
    assert_matches_oracle(result, X)
    assert "join" in moves_of(result)
    assert sorted(map(tuple, result.atoms.to_dense())) == sorted(map(tuple, atoms))
    bits = [row.bits for row in result.history]
    assert bits == sorted(bits, reverse=True)
    assert 0 < max(sizes) <= 200  # windows without atoms are not joined


@pytest.mark.parametrize(
    ("groups", "has_order"), [([[0, 1], [2, 3, 4]], True), ([[0, 2], [1, 3, 4]], False), ([[0, 1, 4], [2, 3]], False)]
)
def test_windows_without_atoms_are_joined_if_columns_are_in_order(groups, has_order, monkeypatch):
    use_windows(monkeypatch, min_features=5, width=3)
    monkeypatch.setattr(windows, "column_groups", lambda *table: [np.array(columns) for columns in groups])
    result = ba.factorize(np.random.default_rng(0).integers(2, size=(40, 5)), algebra="or", random_state=0)
    assert moves_of(result) == ["no model", "window", "window", *["join"] * has_order, "finish"]


def test_a_window_of_a_sample_is_compared_with_itself_without_atoms():
    """Atoms that save little save something for held-out rows, too: estimates for all rows are compared."""
    data = ba.datasets.planted(4000, 120, 4, atom_density=0.3, code_density=0.1, noise=0.1, random_state=0)
    result = ba.factorize(data.X, algebra="or", search_rows=1500, random_state=0)
    assert result.atoms.n_rows >= 4


@pytest.mark.parametrize(
    "limit",
    [
        *[{"n_components": 4}, {"max_components": 4}, {"max_atoms_per_sample": 2}, {"residual_limit": 3}],
        *[{"init": "samples"}, {"init": np.eye(100)}, {"search": "paper"}, {"search": "anytime"}],
    ],
)
def test_limits_that_concern_all_windows(limit):
    """Where rows or the table have a limit, or a start is given, the table is searched as a whole."""
    assert not windows.is_wide(100, resolve(**limit))
    assert [windows.is_wide(n_features, resolve()) for n_features in (99, 100)] == [False, True]


@pytest.mark.parametrize("stop_at", [1, 6])
def test_a_callback_ends_it(table, stop_at):
    result = ba.factorize(table, algebra="or", random_state=0, callbacks=[lambda row: row.round == stop_at])
    assert result.ended == "callback"
    assert len(result.history) == stop_at + 1  # what is found by then is put together
    assert_matches_oracle(result, table)


@pytest.mark.parametrize("interrupt_at", [1, 7])
def test_an_interrupt_leaves_what_is_found(table, interrupt_at):
    press = ctrl_c_when(lambda row: row.round == interrupt_at)
    with pytest.raises(ba.Interrupted) as raised:
        ba.factorize(table, algebra="or", random_state=0, n_jobs=2, callbacks=press)
    found = raised.value.result
    assert_matches_oracle(found, table)
    assert found.ended == "interrupted"
    assert (found.atoms.n_rows > 0) == (interrupt_at > 1)


def test_another_interrupt_leaves_what_is_found_unsorted(table, monkeypatch):
    stopped = windows.stopped_result

    def interrupted(*given, **more):
        if given[3]:
            raise KeyboardInterrupt
        return stopped(*given, **more)

    monkeypatch.setattr(windows, "stopped_result", interrupted)
    with pytest.raises(ba.Interrupted) as raised:
        ba.factorize(table, algebra="or", random_state=0, callbacks=ctrl_c_when(lambda row: row.round == 5))
    assert raised.value.result.atoms.n_rows > 0
    assert_matches_oracle(raised.value.result, table)


@pytest.mark.parametrize("max_time", [1e-6, 5])
def test_max_time(table, max_time, monkeypatch):
    clock, searched, deadlines = WorkClock(monkeypatch), windows.search_mdl, set()

    def recorded(context, **more):
        deadlines.add(context.workers.deadline)
        return searched(context, **more)

    monkeypatch.setattr(windows, "search_mdl", recorded)
    result = ba.factorize(table, algebra="or", random_state=0, max_time=max_time)
    assert_matches_oracle(result, table)
    assert result.ended == "max_time"
    assert clock.elapsed <= allowed(max_time)
    assert (result.atoms.n_rows > 0) == (max_time == 5)
    assert deadlines == {cut_off(1000.0, 1000.0 + max_time)}


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


def test_windows_follow_the_positions_of_columns(monkeypatch):
    """Shuffled columns with positions are divided as the columns in order, and described about as well."""
    genotypes = ba.datasets.genotypes(60, 150, random_state=0)
    order = np.random.default_rng(0).permutation(150)
    columns = np.stack([2 * order, 2 * order + 1], axis=1).ravel()
    shuffled = ba.Table(genotypes.bits.take_columns(columns), column_data=genotypes.column_data.take(columns))
    divided = []

    def record(regions, width):
        divided.append([set(columns[run]) for run in runs_of_regions(regions, width)])
        return runs_of_regions(regions, width)

    monkeypatch.setattr(windows, "runs_of_regions", record)
    found = ba.factorize(shuffled, algebra="or", random_state=0)
    columns = np.arange(300)
    in_order = ba.factorize(genotypes, algebra="or", random_state=0)
    assert divided[0] == divided[1]
    assert len(divided[0]) > 2
    assert abs(found.codelength.total / in_order.codelength.total - 1) < 0.05
