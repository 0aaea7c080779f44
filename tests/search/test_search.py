"""The fast and the thorough search: what they promise of a result, of its history, and of each move alone."""

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import naive
from bitatoms import BinaryDictionaryLearning, BitMatrix, Interrupted, api, codelength, factorize, parallel
from bitatoms.core.block import Block
from bitatoms.core.objective import Objective
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from bitatoms.search import fixed_rank, nmf_start
from bitatoms.search.moves.basis import change_basis
from bitatoms.search.moves.drop import eliminate, prune, savings, shrink
from bitatoms.search.moves.grow import grow
from bitatoms.search.moves.sweep import beam_sweep, flat_sweep, fresh_sweep, plain_sweep, sweep
from support.blocks import assert_consistent, factors, within
from support.strategies import SEEDS, factorisations, matrices, random_bits

ALGEBRAS = ("xor", "or")
SEARCHES = ("fast", "thorough")
MOVES = {
    *("no model", "start", "first code", "grow", "code", "recode", "basis", "drop", "boil down", "beam", "shake"),
    *("look", "go on", "go back", "trial", "exact"),
}
every_search = pytest.mark.parametrize("search", SEARCHES)
every_algebra = pytest.mark.parametrize("algebra", ALGEBRAS)
# What is sought: the number of atoms too, or a given number by either measure; up to 16 atoms and above.
GOALS = [("mdl", "auto"), (5, "errors"), (20, "errors"), (5, "codelength"), (20, "codelength")]
every_goal = pytest.mark.parametrize(("n_components", "objective"), GOALS)


@pytest.fixture(autouse=True, scope="module")
def few_trials():
    """Trials take as long as they may; few are enough to see what they do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixed_rank, "_TRIALS", 8)
        patch.setattr(nmf_start, "_STARTS", 3)
        yield


def planted_in(algebra, n=600, m=60, p=6, noise=0.02, seed=0):
    density = (0.2, 0.25) if algebra == "or" else (0.3, 0.3)
    return planted(
        n, m, p, algebra=algebra, atom_density=density[0], code_density=density[1], noise=noise, random_state=seed
    )


@pytest.fixture(scope="module")
def table():
    """Eight atoms in noise: enough for every move to have something to do."""
    return planted(300, 60, 8, noise=0.05, code_density=0.4, random_state=1).X


@pytest.fixture(scope="module")
def small():
    return planted(150, 40, 6, noise=0.05, code_density=0.4, random_state=1).X


@pytest.fixture(scope="module")
def dense_table():
    """Planted atoms, and features that most samples have but for those that use an atom with them."""
    X = planted_in("or", 500, 65, 5, seed=3).X
    X[:, :40] ^= 1
    return X


def dense(result):
    return result.atoms.to_dense(), result.codes.to_dense()


def no_model(X):
    return sum(naive.string_bits(len(X), int(column.sum())) for column in X.T)


def assert_true(result, X):
    """The result says of itself what the oracles say of its factors."""
    factors = *dense(result), result.algebra, result.bias
    length = result.codelength
    assert (length.errors, length.codes, length.atoms) == naive.codelength(X, *factors)
    assert length.total == sum(naive.codelength(X, *factors))
    wrong = naive.errors(X, *factors)
    np.testing.assert_array_equal(result.wrong, wrong.sum(axis=0))
    assert result.wrong_bits == wrong.sum()
    np.testing.assert_array_equal(result.reconstruct().to_dense(), X ^ wrong)


def assert_same(first, second):
    """Two results agree in all but the seconds they took."""
    assert first.atoms == second.atoms
    assert first.codes == second.codes
    assert first.codelength == second.codelength
    np.testing.assert_array_equal(first.bias, second.bias)
    np.testing.assert_array_equal(first.wrong, second.wrong)
    assert (first.algebra, first.ended, first.codelengths) == (second.algebra, second.ended, second.codelengths)
    assert [row[:-1] for row in first.history] == [row[:-1] for row in second.history]


# --- the right number of atoms


@every_algebra
@every_search
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_atoms_are_found_exactly(algebra, search, seed):
    data = planted_in(algebra)
    result = factorize(data.X, algebra=algebra, search=search, random_state=seed)
    assert sorted(result.atoms.to_dense().tolist()) == sorted(data.atoms.tolist())
    assert result.codelength.total <= codelength(data.X, data.atoms, data.codes, algebra=algebra).total
    assert_true(result, data.X)
    assert result.converged
    assert result.bits_without == no_model(data.X)


def test_the_default_is_the_fast_search_for_the_shortest_codelength(table):
    assert_same(
        factorize(table, random_state=0),
        factorize(
            table, "mdl", search="fast", objective="codelength", coder="mdl", n_init=1, algebra="xor", random_state=0
        ),
    )


@every_algebra
@every_search
@pytest.mark.parametrize("density", [0.5, 0.1])
def test_noise_has_no_atoms(algebra, search, density):
    X = random_bits(0, 400, 50, density)
    result = factorize(X, algebra=algebra, search=search, random_state=0)
    assert result.atoms.shape == (0, 50)
    assert result.codelength.total == no_model(X) == codelength(X).total
    assert not result.bias.any()


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


@pytest.mark.parametrize("X", AWKWARD.values(), ids=AWKWARD.keys())
@every_algebra
@every_search
def test_awkward_tables_take_no_more_bits_than_without_a_model(X, algebra, search):
    result = factorize(X, algebra=algebra, search=search, random_state=0)
    assert_true(result, X)
    assert result.codelength.total <= no_model(X)
    assert (result.n_unused, result.n_zero, result.converged) == (0, 0, True)


@settings(max_examples=25)
@given(matrices(), st.sampled_from((*ALGEBRAS, "auto")), st.sampled_from(SEARCHES), SEEDS)
def test_no_table_takes_more_bits_than_without_a_model(X, algebra, search, seed):
    result = factorize(X, algebra=algebra, search=search, random_state=seed)
    assert_true(result, X)
    assert result.codelength.total <= no_model(X)
    assert result.converged


@pytest.mark.parametrize("shape", [(5, 0), (0, 0)])
def test_tables_without_columns_have_no_atoms(shape):
    result = factorize(np.zeros(shape, np.uint8), random_state=0)
    assert (result.atoms.shape, result.codelength.total) == ((0, 0), 0)


def test_equal_rows_are_explained_without_an_error():
    X = AWKWARD["equal rows"]
    for algebra in ALGEBRAS:
        result = factorize(X, algebra=algebra, random_state=0)
        assert result.wrong_bits == 0
        assert 1 <= result.atoms.n_rows <= 4


# --- a given number of atoms


@every_algebra
@every_search
@pytest.mark.parametrize("objective", ["auto", "codelength"])
@pytest.mark.parametrize("n_components", [0, 1, 3, 10, 20, 40])
def test_exactly_as_many_atoms_as_asked_for_and_all_used(table, algebra, search, objective, n_components):
    result = factorize(table, n_components, algebra=algebra, search=search, objective=objective, random_state=0)
    assert result.atoms.shape == (n_components, 60)
    assert result.n_unused == 0
    assert_true(result, table)
    assert result.converged
    assert not (result.bias.any() and objective == "auto")


@every_algebra
@every_search
@pytest.mark.parametrize("n_components", [1, 3, 10, 20, 40])
def test_no_more_is_wrong_than_by_the_paper(table, algebra, search, n_components):
    result, paper = (
        factorize(table, n_components, algebra=algebra, random_state=0, **how)
        for how in ({"search": search}, {"search": "paper", "coder": "greedy"})
    )
    assert result.wrong_bits <= paper.wrong_bits


@every_algebra
def test_planted_atoms_of_a_given_number_leave_no_more_wrong_than_the_noise(algebra):
    data = planted_in(algebra)
    result = factorize(data.X, 6, algebra=algebra, random_state=0)
    assert result.wrong_bits <= (data.X != data.clean).sum()


@settings(max_examples=25)
@given(matrices(), st.integers(0, 20), st.sampled_from(ALGEBRAS), st.sampled_from(SEARCHES), SEEDS)
def test_fewer_atoms_are_told_and_leave_nothing_wrong(X, n_components, algebra, search, seed):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = factorize(X, n_components, algebra=algebra, search=search, random_state=seed)
    assert_true(result, X)
    n_atoms = result.atoms.n_rows
    assert result.n_unused == 0
    messages = [str(warning.message) for warning in told]
    if n_atoms == n_components:
        assert messages == []
        return
    assert n_atoms < n_components
    wanted = f"{n_components} atoms were asked for, but with {n_atoms} nothing is wrong any more: no more are learned"
    assert messages == [wanted]
    wrong = naive.errors(X, *dense(result), algebra)
    assert not (wrong if algebra == "xor" else wrong & X).any()  # under OR, none that one more atom could mend


def test_under_or_too_fewer_atoms_leave_nothing_wrong():
    rows = ["00110000", "00010101", "00001100", "00000000", "10000000", "00000000", "10000101"]
    X = np.array([[int(bit) for bit in rows[j % 7]] for j in range(17)], np.uint8)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        result = factorize(X, 5, algebra="or", random_state=0)
    assert result.atoms.n_rows == 5 or result.wrong_bits == 0


@settings(max_examples=25)
@given(
    matrices(n_cols=st.sampled_from((1, 9, 64, 65))),
    st.integers(0, 20),
    st.sampled_from(ALGEBRAS),
    st.sampled_from(SEARCHES),
    SEEDS,
)
def test_so_are_fewer_atoms_for_the_shortest_codelength(X, n_components, algebra, search, seed):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = factorize(X, n_components, algebra=algebra, search=search, objective="codelength", random_state=seed)
    assert_true(result, X)
    assert result.n_unused == 0
    assert result.atoms.n_rows <= n_components
    assert [warning.category for warning in told] == [UserWarning] * (result.atoms.n_rows < n_components)


@every_search
def test_the_warning_of_fewer_atoms_points_to_the_caller(search):
    with pytest.warns(UserWarning, match="9 atoms were asked for, but with") as told:
        result = factorize(AWKWARD["equal rows"], 9, search=search, random_state=0)
    assert result.wrong_bits == 0
    assert [warning.filename for warning in told] == [__file__]


def test_the_warning_of_fewer_atoms_points_to_the_caller_of_fit():
    with pytest.warns(UserWarning, match="9 atoms were asked for") as told:
        BinaryDictionaryLearning(9, random_state=0).fit(AWKWARD["equal rows"])
    assert [warning.filename for warning in told] == [__file__]


def test_a_search_cut_short_does_not_say_what_X_has_no_use_for():
    X = AWKWARD["equal rows"]
    result = factorize(X, 9, random_state=0, callbacks=lambda row: True)
    assert result.ended == "callback"


def test_no_atom_of_a_given_number_is_empty():
    result = factorize(AWKWARD["equal columns"], 10, objective="codelength", random_state=0)
    assert result.atoms.n_rows == 10
    assert result.n_zero == 0


def test_nor_is_one_for_the_fewest_errors(table):
    results = [factorize(table, n_components, random_state=2) for n_components in (9, 10, 12)]
    assert [result.n_zero for result in results] == [0, 0, 0]


@pytest.mark.filterwarnings("ignore:3 atoms were asked for:UserWarning")
def test_for_the_shortest_codelength_too_there_are_fewer_atoms_only_where_nothing_is_wrong():
    result = factorize(random_bits(0, 1, 70, 0.4), 3, objective="codelength", random_state=0)
    assert result.wrong_bits == 0


# --- the same bits


def goes(X, monkeypatch):
    """Ways to run the same search: threads, and blocks of rows."""

    def by_blocks(n_threads):
        return lambda **how: _with_blocks(X, monkeypatch, n_threads, how)

    return [
        *(lambda n_jobs=n_jobs, **how: factorize(X, n_jobs=n_jobs, **how) for n_jobs in (1, 2, 3)),
        by_blocks(1),
        by_blocks(2),
    ]


def _with_blocks(X, monkeypatch, n_threads, how):
    with monkeypatch.context() as patch:
        patch.setattr(api, "Workers", lambda n: Workers(n_threads, 64))
        return factorize(X, **how)


@every_algebra
@every_search
@pytest.mark.parametrize("n_components", ["mdl", 5, 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_any_number_of_threads_and_blocks_gives_the_same_bits(monkeypatch, algebra, search, n_components, seed):
    monkeypatch.setattr(parallel, "_MIN_PARALLEL_NS", 0)  # share out even the smallest job
    monkeypatch.setattr(fixed_rank, "_TRIALS", 3)
    monkeypatch.setattr(fixed_rank, "_SAMPLE", 100 if seed else 4000)
    X = planted_in(algebra, 130, 40, 4, noise=0.05, seed=seed).X
    how = {"n_components": n_components, "algebra": algebra, "search": search, "random_state": seed}
    ways = goes(X, monkeypatch)
    first, *others = (go(**how) for go in (ways[:4] if seed == 0 else [ways[0], ways[-1]]))
    for other in others:
        assert_same(first, other)
    assert_true(first, X)


@every_search
@pytest.mark.parametrize("how", [{"algebra": "auto", "n_init": 2}, {"n_components": 20, "objective": "codelength"}])
def test_so_it_does_with_restarts_and_both_algebras(monkeypatch, dense_table, search, how):
    monkeypatch.setattr(parallel, "_MIN_PARALLEL_NS", 0)
    X = dense_table[:130, :45]
    how = {**how, "search": search, "patience": 1, "random_state": 2}
    first, *others = (go(**how) for go in goes(X, monkeypatch)[2:4])
    for other in others:
        assert_same(first, other)


@every_goal
@every_search
def test_the_same_seed_gives_the_same_bits(small, n_components, objective, search):
    how = {"objective": objective, "search": search}
    first, again, other = (factorize(small, n_components, **how, random_state=seed) for seed in (5, 5, 6))
    assert_same(first, again)
    assert [row[:-1] for row in other.history] != [row[:-1] for row in first.history]


def test_trials_on_a_sample_of_the_rows_end_with_all_rows(monkeypatch, table):
    monkeypatch.setattr(fixed_rank, "_SAMPLE", 100)
    for n_components in (5, 20):
        result = factorize(table, n_components, random_state=0)
        assert_true(result, table)
        assert result.atoms.n_rows == n_components
        assert result.n_unused == 0
        assert "trial" in {row.move for row in result.history}


# --- the history


@every_algebra
@every_search
@every_goal
def test_every_round_tells_its_move_and_the_best_is_the_result(small, algebra, search, n_components, objective):
    seen = []
    how = {"algebra": algebra, "search": search, "objective": objective, "random_state": 0}
    result = factorize(small, n_components, **how, callbacks=seen.append)
    history = result.history
    assert tuple(seen) == history
    assert [row.round for row in history] == list(range(1, len(history) + 1))
    assert {row.move for row in history} <= MOVES
    assert {(row.start, row.algebra) for row in history} == {(1, algebra)}
    assert all(row.bits == row.bits_errors + row.bits_codes + row.bits_atoms for row in history)
    assert sorted(row.seconds for row in history) == [row.seconds for row in history]
    assert result.n_iter == sum(row.iterations for row in history)
    able = [row for row in history if n_components in ("mdl", row.atoms)]
    if objective == "errors":
        assert result.wrong_bits == min(row.wrong_bits for row in able)
        best = [row for row in able if row.wrong_bits == result.wrong_bits][-1]
    else:
        best = min((row for row in able if row.bits == result.codelength.total), key=lambda row: row.round)
        assert n_components != "mdl" or best.bits == min(row.bits for row in history)
    assert (best.bits, best.atoms, best.wrong_bits) == (
        result.codelength.total,
        result.atoms.n_rows,
        result.wrong_bits,
    )


@every_algebra
@every_search
def test_the_moves_for_the_shortest_codelength(table, algebra, search):
    moves = [row.move for row in factorize(table, algebra=algebra, search=search, random_state=0).history]
    assert moves.index("no model") < moves.index("start")
    assert {"first code", "grow", "code", "recode", "drop", "boil down"} <= set(moves)
    assert ("basis" in moves) == (algebra == "xor")
    assert ("shake" in moves) == (search == "thorough")
    assert ("beam" in moves) >= (search == "thorough")
    assert not {"trial", "exact"} & set(moves)


@every_search
def test_one_round_is_what_it_takes_without_a_model(table, search):
    history = factorize(table, search=search, random_state=0).history
    (nothing,) = (row for row in history if row.move == "no model")
    assert (nothing.atoms, nothing.bits, nothing.wrong_bits) == (0, no_model(table), table.sum())


@every_algebra
@every_search
def test_the_moves_for_the_fewest_errors(table, algebra, search):
    for n_components, last in ((5, {"exact"}), (20, {"recode", "code"})):
        # from rows of the table, which leave more to trials than a start of its own may
        how = {
            "algebra": algebra,
            "search": search,
            "init": np.unique(table, axis=0)[-n_components:],
            "random_state": 0,
        }
        history = factorize(table, n_components, **how).history
        moves = [row.move for row in history]
        assert moves[0] == "start"
        assert last <= set(moves) <= {"start", "trial", "grow"} | last
        assert "trial" in moves
        wrong = [row.wrong_bits for row in history if row.move == "trial"]
        assert all(after < before for before, after in pairwise(wrong))


@every_search
def test_a_beam_may_be_asked_for_and_left_out(table, search):
    for coder in ("mdl", "beam"):
        result = factorize(table, search=search, coder=coder, patience=1, random_state=0)
        assert result.coder == coder
        assert_true(result, table)


# --- what ends it


@every_search
@every_goal
@pytest.mark.parametrize("at", [1, 9])
def test_a_callback_that_returns_true_ends_the_search_with_the_best_so_far(small, search, n_components, objective, at):
    how = {"search": search, "objective": objective, "random_state": 0}
    seen = []
    full = factorize(small, n_components, **how, callbacks=seen.append)
    at = min(at, len(seen) - 1)
    told = []
    result = factorize(small, n_components, **how, callbacks=lambda row: told.append(row) or row.round == at)
    assert (result.ended, result.converged) == ("callback", False)
    assert tuple(told) == result.history[:at]  # it is asked no more
    assert [row[:-1] for row in told] == [row[:-1] for row in full.history[:at]]
    assert len(result.history) <= at + 24
    assert_true(result, small)
    if n_components == "mdl":
        assert result.codelength.total == min(row.bits for row in result.history)
    elif at > 1 or objective == "errors":
        assert result.atoms.n_rows == n_components


@every_search
@pytest.mark.parametrize("how", [{"max_time": 1e-6}, {"callbacks": lambda row: True}])
def test_a_given_number_of_atoms_is_there_even_when_the_search_ends_at_once(small, search, how):
    result = factorize(small, 5, search=search, objective="codelength", random_state=0, **how)
    assert result.atoms.n_rows == 5


@every_search
def test_no_start_is_made_after_the_end(table, search):
    told = []
    factorize(table, search=search, random_state=0, callbacks=lambda row: told.append(row.move) or len(told) >= 3)
    assert "start" not in told[3:]


def test_a_callback_ends_all_restarts_and_both_algebras(table):
    result = factorize(table, algebra="auto", n_init=3, random_state=0, callbacks=lambda row: True)
    assert {(row.start, row.algebra) for row in result.history} == {(1, "xor")}
    assert list(result.codelengths) == ["xor"]


@every_search
@every_goal
@pytest.mark.parametrize("how", [{"max_iter": 1}, {"max_iter": 6}, {"max_time": 1e-6}])
def test_limits_end_the_search_with_a_usable_model(small, search, n_components, objective, how):
    expected = next(iter(how))
    how = {**how, "search": search, "objective": objective, "random_state": 0}
    result = factorize(small, n_components, **how)
    assert (result.ended, result.converged) == (expected, False)
    assert_true(result, small)
    assert result.codelength.total <= no_model(small)
    with pytest.warns(ConvergenceWarning, match=f"{expected} ended the search before it converged; raise it") as told:
        model = BinaryDictionaryLearning(n_components, **how).fit(small)
    assert told[0].filename == __file__
    codes = model.transform(small)
    assert codes.shape == (150, model.n_components_)
    assert model.inverse_transform(codes).shape == small.shape
    assert n_components in ("mdl", model.n_components_) or (objective == "codelength" and expected == "max_time")


def test_more_rounds_never_lead_to_a_longer_description(table):
    bits = [factorize(table, max_iter=rounds, random_state=0).codelength.total for rounds in (1, 4)]
    assert bits == sorted(bits, reverse=True)


@every_algebra
@every_search
@every_goal
@pytest.mark.parametrize("at", [1, 12])
def test_ctrl_c_leaves_the_best_so_far(small, algebra, search, n_components, objective, at):
    how = {"algebra": algebra, "search": search, "objective": objective, "random_state": 0}
    at = min(at, len(factorize(small, n_components, **how).history)) if objective == "errors" else at

    def press(row):
        if row.round == at:
            raise KeyboardInterrupt

    model = BinaryDictionaryLearning(n_components, **how, callbacks=press)
    with pytest.raises(Interrupted, match="the best factorisation so far") as caught:
        model.fit(small)
    result = caught.value.result
    assert_true(result, small)
    assert (result.ended, len(result.history), len(model.history_)) == ("interrupted", at, at)
    if n_components == "mdl":
        assert result.codelength.total == min(row.bits for row in result.history)
    elif objective == "errors":
        assert result.wrong_bits == min(row.wrong_bits for row in result.history)
        assert result.atoms.n_rows == n_components
    np.testing.assert_array_equal(model.components_, result.atoms.to_dense())
    assert model.codelength_ == result.codelength
    assert model.transform(small[:7]).shape == (7, model.n_components_)


def test_ctrl_c_never_leaves_a_model_that_is_worse_than_none():
    def press(row):
        raise KeyboardInterrupt

    X = random_bits(0, 150, 40, 0.1)
    with pytest.raises(Interrupted) as caught:
        factorize(X, random_state=0, callbacks=press)
    assert caught.value.result.codelength.total <= no_model(X)


def test_an_interrupted_search_tells_what_it_compared_with(table):
    def press(row):
        if row.round == 12:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        factorize(table, random_state=0, callbacks=press)
    result = caught.value.result
    assert result.bits_without == no_model(table)
    assert result.codelengths == {"xor": result.codelength.total}


# --- parameters


@every_algebra
@every_search
@pytest.mark.parametrize("most", [0, 1, 3])
def test_there_are_no_more_atoms_than_allowed(small, algebra, search, most):
    result = factorize(small, max_components=most, algebra=algebra, search=search, random_state=0)
    assert result.atoms.n_rows <= most
    assert result.codelength.total == min(row.bits for row in result.history if row.atoms <= most)
    assert_true(result, small)
    assert most == 0 or result.codelength.total < no_model(small)


@pytest.mark.parametrize("start", [0, 1, 7, 500])
def test_it_starts_from_as_many_atoms_as_told(table, start):
    result = factorize(table, start_components=start, random_state=0)
    begun = [row.atoms for row in result.history if row.move == "start"]
    assert begun == [min(start, len(table) // 2)]
    assert result.codelength.total < no_model(table)


@every_search
@pytest.mark.parametrize("init", ["samples", "bernoulli", "spread", "greedy"])
@pytest.mark.parametrize(("n_components", "objective"), [("mdl", "auto"), (5, "errors"), (5, "codelength")])
def test_a_start_may_be_named(small, search, init, n_components, objective):
    how = {"init": init, "search": search, "objective": objective, "random_state": 0, "start_components": 7}
    result = factorize(small, n_components, **how)
    first = next(row for row in result.history if row.move == "start")
    assert first.atoms == (7 if n_components == "mdl" else 5)
    assert sum(row.move == "start" for row in result.history) == 1
    assert n_components in ("mdl", result.atoms.n_rows)
    assert_true(result, small)


@every_algebra
@every_search
@pytest.mark.parametrize("with_codes", [False, True])
@pytest.mark.parametrize(("n_components", "objective"), [("mdl", "auto"), (6, "errors"), (6, "codelength")])
def test_a_start_may_be_given(algebra, search, with_codes, n_components, objective):
    data = planted_in(algebra)
    init = (data.atoms, data.codes) if with_codes else data.atoms
    how = {"init": init, "algebra": algebra, "search": search, "objective": objective, "random_state": 0}
    result = factorize(data.X, n_components, **how)
    truth = codelength(data.X, data.atoms, data.codes, algebra=algebra).total
    assert objective == "errors" or result.codelength.total <= truth
    assert result.wrong_bits <= 1.05 * (data.X != data.clean).sum()
    assert sorted(result.atoms.to_dense().tolist()) == sorted(data.atoms.tolist())


def test_what_was_given_is_the_best_so_far_when_the_search_ends_soon():
    data = planted_in("xor")
    result = factorize(data.X, init=(data.atoms, data.codes), random_state=0, callbacks=lambda row: row.round == 2)
    assert result.codelength.total <= codelength(data.X, data.atoms, data.codes).total


def test_patience_is_how_long_it_goes_on_without_a_gain(table):
    short, long = (factorize(table, patience=patience, random_state=0) for patience in (1, 12))
    assert len(short.history) < len(long.history)
    assert short.converged
    assert long.converged
    endless = factorize(table, patience=None, max_iter=40, random_state=0)
    assert endless.ended == "max_iter"
    assert_same(factorize(table, patience=3, random_state=0), factorize(table, patience="auto", random_state=0))


LIMITED = [("or", "mdl", "auto"), ("or", 5, "errors"), ("or", 20, "errors"), ("or", 20, "codelength")]
LIMITED += [("xor", 5, "errors"), ("xor", 20, "errors")]


@every_search
@pytest.mark.parametrize(("algebra", "n_components", "objective"), LIMITED)
@pytest.mark.parametrize("most", [1, 2])
def test_no_sample_uses_more_atoms_than_allowed(table, algebra, search, n_components, objective, most):
    how = {"algebra": algebra, "search": search, "objective": objective, "max_atoms_per_sample": most}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "20 atoms were asked for", UserWarning)
        result = factorize(table, n_components, **how, random_state=0)
    assert result.codes.row_weights().max() == most
    assert_true(result, table)


@every_algebra
def test_a_limit_is_no_reason_for_fewer_atoms_or_more_errors_than_by_the_paper(monkeypatch, table, algebra):
    monkeypatch.setattr(fixed_rank, "_TRIALS", 100)
    how = {"algebra": algebra, "max_atoms_per_sample": 1, "random_state": 0}
    result, paper = factorize(table, 20, **how), factorize(table, 20, search="paper", coder="greedy", **how)
    assert paper.atoms.n_rows - paper.n_unused == 20
    assert result.atoms.n_rows == 20
    assert result.wrong_bits <= paper.wrong_bits


@every_search
def test_no_sample_uses_more_atoms_than_allowed_after_a_basis_move(table, search):
    result = factorize(table, search=search, max_atoms_per_sample=1, random_state=0)
    assert result.codes.row_weights().max() == 1


@every_algebra
@every_search
@pytest.mark.parametrize("n_components", ["mdl", 5, 20])
@pytest.mark.parametrize("limits", [{"max_atoms_per_sample": 1}, {"max_atoms_per_sample": 2, "residual_limit": 9}])
def test_new_samples_are_coded_within_the_limits(small, algebra, search, n_components, limits):
    model = BinaryDictionaryLearning(n_components, algebra=algebra, search=search, random_state=0, **limits)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "20 atoms were asked for", UserWarning)
        codes = model.fit(small[:110]).transform(small[110:])
    assert 1 <= codes.sum(axis=1).max() <= limits["max_atoms_per_sample"]
    few = (small[110:] ^ model.bias_).sum(axis=1) <= limits.get("residual_limit", 0)
    assert few.any() == ("residual_limit" in limits)
    assert not codes[few].any()


@every_algebra
@every_search
def test_samples_with_few_wrong_bits_are_not_coded(small, algebra, search):
    result = factorize(small, algebra=algebra, search=search, residual_limit=9, random_state=0)
    few = (small ^ result.bias).sum(axis=1) <= 9
    assert few.any()
    assert result.codes.row_weights().max() > 0
    assert not result.codes.row_weights()[few].any()


@every_algebra
def test_nor_are_they_for_the_fewest_errors(table, algebra):
    result = factorize(table, 5, algebra=algebra, residual_limit=15, random_state=0)
    assert not result.codes.row_weights()[table.sum(axis=1) <= 15].any()


# --- both algebras, and a bias


@every_search
@every_algebra
@pytest.mark.parametrize("n_components", ["mdl", 5])
def test_of_both_algebras_the_shorter_is_kept(algebra, search, n_components):
    X = planted_in(algebra, 300, 60, 6).X
    auto, xor, either = (
        factorize(X, n_components, algebra=asked, search=search, random_state=0) for asked in ("auto", "xor", "or")
    )
    assert list(auto.codelengths) == ["xor", "or"]
    assert auto.codelengths["xor"] == xor.codelength.total
    assert auto.codelength.total == auto.codelengths[auto.algebra] == min(auto.codelengths.values())
    assert auto.algebra == algebra
    assert either.codelengths == {"or": either.codelength.total}
    other = "or" if algebra == "xor" else "xor"
    bits = auto.codelengths[other]
    assert f"{other.upper()} needs {bits} bits, {bits - auto.codelength.total} more" in auto.summary()
    assert f"({algebra.upper()}) describe 300 samples of 60 features in {auto.codelength.total} bits" in auto.summary()
    assert "needs" not in either.summary()


def test_an_estimator_tells_both_algebras(table):
    model = BinaryDictionaryLearning(algebra="auto", random_state=0).fit(table)
    result = factorize(table, algebra="auto", random_state=0)
    assert (model.codelengths_, model.summary_) == (result.codelengths, result.summary())
    assert model.algebra_ == result.algebra


def bits_of(rows, shares):
    """Bits that each row takes when its ones come with these shares."""
    return [
        sum(-math.log2(share if bit else 1 - share) for bit, share in zip(row, shares, strict=True)) for row in rows
    ]


@every_algebra
@every_search
def test_a_bias_is_learned_where_features_are_dense_and_used_throughout(dense_table, algebra, search):
    X, new = dense_table[:300], dense_table[470:]
    how = {"algebra": algebra, "search": search, "random_state": 0}
    result = factorize(X, **how)
    assert result.bias.any()
    assert not result.bias[X.mean(axis=0) < 0.5].any()
    assert_true(result, X)
    assert "are ones unless an atom says otherwise (the bias)" in result.summary()
    model = BinaryDictionaryLearning(**how).fit(X)
    np.testing.assert_array_equal(model.bias_, result.bias)
    codes = model.transform(new)
    samples = model.inverse_transform(codes)
    np.testing.assert_array_equal(samples, naive.product(codes, model.components_, algebra) ^ model.bias_)
    wrong_shares = (naive.errors(X, *dense(result), algebra, result.bias).sum(axis=0) + 0.5) / 301
    use_shares = (dense(result)[1].sum(axis=0) + 0.5) / 301
    expected = -np.add(bits_of(new ^ samples, wrong_shares), bits_of(codes, use_shares))
    np.testing.assert_allclose(model.score_samples(new), expected, rtol=1e-12)
    assert model.score(new) == pytest.approx(expected.mean())
    np.testing.assert_array_equal(BinaryDictionaryLearning(**how).fit_transform(X), model.transform(X))


def test_a_bias_pays(dense_table):
    """The same table without the features that make the bias has none."""
    assert not factorize(dense_table[:, 40:], algebra="or", random_state=0).bias.any()


@every_algebra
@every_search
@pytest.mark.parametrize("objective", ["auto", "codelength"])
@pytest.mark.parametrize("n_components", ["mdl", 5, 20])
def test_fit_transform_is_fit_and_then_transform(small, algebra, search, n_components, objective):
    model = BinaryDictionaryLearning(n_components, algebra=algebra, search=search, objective=objective, random_state=0)
    codes = model.fit_transform(small)
    np.testing.assert_array_equal(codes, model.transform(small))


@every_algebra
@pytest.mark.parametrize("coder", ["mdl", "auto"])
def test_new_samples_are_coded_at_the_prices_that_fit_ended_with(dense_table, algebra, coder):
    X, new = dense_table[:400], dense_table[400:]
    model = BinaryDictionaryLearning(algebra=algebra, coder=coder, random_state=0).fit(X)
    at = model.as_model().rule.prices
    prices = at.bits.astype(int), at.uses[: model.n_components_].astype(int)
    shifted, empty = new ^ model.bias_, np.zeros((len(new), model.n_components_), np.uint8)
    plain = naive.priced_code(shifted, model.components_, empty, algebra, prices)
    codes = model.transform(new)
    if coder == "mdl":
        np.testing.assert_array_equal(codes, plain)
        return
    beam, greedy = (naive.costs(shifted, model.components_, these, algebra, prices) for these in (codes, plain))
    assert all(one <= other for one, other in zip(beam, greedy, strict=True))


@every_algebra
@every_search
@pytest.mark.parametrize(("n_components", "coder"), [(5, "auto"), (20, "greedy"), (20, "auto")])
def test_new_samples_are_coded_for_the_fewest_errors(small, algebra, search, n_components, coder):
    how = {"algebra": algebra, "search": search, "coder": coder, "random_state": 0}
    model = BinaryDictionaryLearning(n_components, **how).fit(small[:100])
    new, empty = small[100:], np.zeros((50, n_components), np.uint8)
    if n_components <= 16:
        expected = naive.exact_code(new, model.components_, empty, algebra)
    else:
        expected = naive.code(new, model.components_, empty, "greedy", algebra)
    codes = model.transform(new)
    if coder == "auto" and n_components > 16:  # by beam
        ours, greedy = (naive.product(these, model.components_, algebra) != new for these in (codes, expected))
        assert ours.sum() <= greedy.sum()
    else:
        np.testing.assert_array_equal(codes, expected)


# --- each move alone

MOST = st.sampled_from((None, 1, 2))
AIMS = st.builds(Objective, st.booleans(), st.sampled_from(ALGEBRAS), MOST, st.sampled_from((0, 3)))
UNLIMITED_AIMS = st.builds(Objective, st.booleans(), st.sampled_from(ALGEBRAS), MOST)  # no residual limit
BLOCKS = st.sampled_from((Workers(), Workers(1, 64)))
FILLED = factorisations(n_rows=st.sampled_from((1, 2, 17, 64, 65, 130)))


def state(problem, objective, workers, bias_seed=None):
    """A block within the limits of the objective, with or without a bias, and the data less the bias."""
    X, atoms, codes = problem
    bias = None if bias_seed is None else random_bits(bias_seed, 1, X.shape[1], 0.3)
    tables = (BitMatrix.from_dense(table) for table in (X, atoms, within(codes, objective.max_atoms)))
    block = Block(*tables, objective.algebra == "or", workers, None if bias is None else BitMatrix.from_dense(bias))
    return block, X if bias is None else X ^ bias


def cost_of(X, atoms, codes, objective):
    """What is made small, by the oracle, a bias aside."""
    if objective.by_codelength:
        return sum(naive.codelength(X, atoms, codes, objective.algebra))
    return int(naive.errors(X, atoms, codes, objective.algebra).sum())


def assert_within(block, objective):
    assert objective.max_atoms is None or (factors(block)[1].sum(axis=1) <= objective.max_atoms).all()


BIASES = st.sampled_from((None, 3))


@given(FILLED, UNLIMITED_AIMS, BLOCKS)
def test_the_cost_is_that_of_the_oracle(problem, objective, workers):
    block, X = state(problem, objective, workers)
    assert objective.cost(block) == cost_of(X, *factors(block), objective)
    nothing = np.zeros((0, X.shape[1]), np.uint8), np.zeros((len(X), 0), np.uint8)
    assert objective.cost_of_nothing(BitMatrix.from_dense(X)) == cost_of(X, *nothing, objective)


@given(FILLED, AIMS, BLOCKS, BIASES)
def test_savings_are_what_it_would_cost_more_without_the_atom(problem, objective, workers, bias):
    block, X = state(problem, objective, workers, bias)
    atoms, codes = factors(block)
    now = cost_of(X, atoms, codes, objective)
    expected = [
        cost_of(X, np.delete(atoms, k, axis=0), np.delete(codes, k, axis=1), objective) - now for k in range(len(atoms))
    ]
    assert savings(block, objective).tolist() == expected


def test_savings_of_many_atoms():
    X, atoms, codes = random_bits(0, 200, 65, 0.3), random_bits(1, 140, 65, 0.2), random_bits(2, 200, 140, 0.03)
    for algebra in ALGEBRAS:
        objective = Objective(True, algebra)
        saved = savings(state((X, atoms, codes), objective, Workers())[0], objective)
        for k in (0, 63, 64, 65, 127, 128, 139):
            without = cost_of(X, np.delete(atoms, k, axis=0), np.delete(codes, k, axis=1), objective)
            assert saved[k] == without - cost_of(X, atoms, codes, objective)


@settings(max_examples=60)
@given(FILLED, UNLIMITED_AIMS, BLOCKS, BIASES, st.sampled_from((prune, eliminate)), st.integers(0, 3))
def test_dropping_atoms_that_do_not_pay_never_costs_anything(problem, objective, workers, bias, drop, least):
    block, X = state(problem, objective, workers, bias)
    atoms, _ = factors(block)
    before = objective.cost(block)
    gone = drop(block, objective, least)
    left, codes = factors(block)
    assert_consistent(block, X, objective.algebra)
    assert_within(block, objective)
    assert len(left) == len(atoms) - gone >= min(len(atoms), least)
    rest = iter(atoms.tolist())
    assert all(atom in rest for atom in left.tolist())  # those left are as they were, in order
    assert objective.cost(block) <= before
    assert gone or np.array_equal(codes, within(problem[2], objective.max_atoms))


@pytest.mark.parametrize("by_codelength", [False, True])
def test_nor_does_it_with_a_residual_limit(by_codelength):
    X = np.repeat(random_bits(0, 1, 40, 0.5), 50, axis=0)
    X[25:] = 0
    codes = np.repeat([[1], [0]], 25, axis=0).astype(np.uint8)
    objective = Objective(by_codelength, "xor", residual_limit=3)
    block, _ = state((X, X[:1], codes), objective, Workers())
    before = objective.cost(block)
    eliminate(block, objective)
    assert objective.cost(block) <= before


@settings(max_examples=40)
@given(FILLED, UNLIMITED_AIMS, BLOCKS)
def test_after_pruning_every_atom_saves_something(problem, objective, workers):
    """Unless rows that would be coded anew cost more than the atom saves."""
    block, _ = state(problem, objective, workers)
    unused = block.uses() == 0
    if objective.by_codelength:
        kept = block.n_atoms - unused.sum()
        prune(block, objective)
        assert block.n_atoms <= kept
        assert (block.uses() > 0).all()


@settings(max_examples=60)
@given(FILLED, AIMS, BLOCKS, BIASES, st.integers(0, 6))
def test_shrinking_leaves_no_more_atoms_than_it_is_told(problem, objective, workers, bias, most):
    block, X = state(problem, objective, workers, bias)
    n_atoms = block.n_atoms
    gone = shrink(block, objective, most)
    assert_consistent(block, X, objective.algebra)
    assert_within(block, objective)
    assert block.n_atoms == n_atoms - gone == min(n_atoms, most)


def test_rows_of_a_dropped_atom_find_another():
    """Two halves do what a whole does, for less than the three of them."""
    whole = random_bits(0, 1, 64, 0.5)
    halves = np.vstack([whole & (np.arange(64) < 32), whole & (np.arange(64) >= 32)]).astype(np.uint8)
    codes = np.repeat([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [60, 60, 3], axis=0).astype(np.uint8)
    X = naive.product(codes, np.vstack([whole, halves]), "xor")
    for algebra in ALGEBRAS:
        block, _ = state((X, np.vstack([whole, halves]), codes), Objective(True, algebra), Workers())
        assert eliminate(block, Objective(True, algebra)) == 1
        atoms, found = factors(block)
        np.testing.assert_array_equal(atoms, halves)
        np.testing.assert_array_equal(naive.errors(X, atoms, found, algebra), 0)


def pair_moves(X, atoms, codes):
    """The codelength after each basis move."""
    for k in range(len(atoms)):
        for other in range(len(atoms)):
            if other != k:
                new_atoms, new_codes = atoms.copy(), codes.copy()
                new_atoms[k] ^= atoms[other]
                new_codes[:, other] ^= codes[:, k]
                yield sum(naive.codelength(X, new_atoms, new_codes, "xor"))


@settings(max_examples=60)
@given(FILLED, BLOCKS, BIASES)
def test_a_change_of_basis_leaves_the_product_and_shortens_the_rest(problem, workers, bias):
    objective = Objective(True, "xor")
    block, X = state(problem, objective, workers, bias)
    before = factors(block)
    product, bits = naive.product(before[1], before[0], "xor"), cost_of(X, *before, objective)
    errors = block.rows.errors.copy()
    moves = change_basis(block, Objective(True, "xor"))
    after = factors(block)
    assert_consistent(block, X, "xor")
    np.testing.assert_array_equal(block.rows.errors, errors)
    np.testing.assert_array_equal(naive.product(after[1], after[0], "xor"), product)
    assert cost_of(X, *after, objective) <= bits - moves  # each saves a bit or more
    assert moves or all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert all(other >= cost_of(X, *after, objective) for other in pair_moves(X, *after))
    assert change_basis(block, Objective(True, "xor")) == 0


@settings(max_examples=30)
@given(FILLED, BLOCKS)
def test_the_first_change_of_basis_is_the_one_that_saves_most(problem, workers):
    objective = Objective(True, "xor")
    block, X = state(problem, objective, workers)
    bits, best = cost_of(X, *factors(block), objective), min(pair_moves(X, *factors(block)), default=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitatoms.search.moves.basis._MOST", 1)
        moves = change_basis(block, Objective(True, "xor"))
    assert cost_of(X, *factors(block), objective) == (best if moves else bits)
    assert_consistent(block, X, "xor")


@given(FILLED, BLOCKS)
def test_under_or_there_is_no_change_of_basis(problem, workers):
    block, _ = state(problem, Objective(True, "or"), workers)
    before = factors(block)
    assert change_basis(block, Objective(True, "xor")) == 0
    assert all(np.array_equal(one, other) for one, other in zip(before, factors(block), strict=True))


@settings(max_examples=60)
@given(FILLED, AIMS, BLOCKS, BIASES, st.integers(1, 5), st.integers(0, 2), SEEDS)
def test_growing_appends_atoms_that_no_row_uses_yet(problem, objective, workers, bias, most, n_fits, seed):
    block, X = state(problem, objective, workers, bias)
    atoms, codes = factors(block)
    grown = grow(block, objective, np.random.default_rng(seed), most, n_fits)
    assert grown <= most
    new_atoms, new_codes = factors(block)
    assert len(new_atoms) == len(atoms) + grown
    np.testing.assert_array_equal(new_atoms[: len(atoms)], atoms)
    np.testing.assert_array_equal(new_codes[:, : len(atoms)], codes)
    assert not new_codes[:, len(atoms) :].any()
    assert new_atoms[len(atoms) :].any(axis=1).all()
    assert_consistent(block, X, objective.algebra)


@every_algebra
def test_growing_finds_planted_atoms_in_the_data(algebra):
    data = planted_in(algebra, 400, 60, 3, noise=0.0)
    objective = Objective(True, algebra)
    nothing = np.zeros((0, 60), np.uint8), np.zeros((400, 0), np.uint8)
    block, _ = state((data.X, *nothing), objective, Workers())
    before = objective.cost(block)
    assert grow(block, objective, np.random.default_rng(0), 8) >= 1
    plain_sweep(block, objective)
    assert objective.cost(block) < before


SWEEPS = st.sampled_from((sweep, plain_sweep, fresh_sweep, beam_sweep))


@settings(max_examples=80)
@given(FILLED, AIMS, BLOCKS, BIASES, SWEEPS)
def test_a_sweep_never_makes_it_dearer(problem, objective, workers, bias, a_sweep):
    block, X = state(problem, objective, workers, bias)
    for _ in range(3):
        before, cost = factors(block), objective.cost(block)
        change = a_sweep(block, objective)
        after = factors(block)
        assert_consistent(block, X, objective.algebra)
        assert_within(block, objective)
        assert objective.cost(block) <= cost
        if not change:
            assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))


@settings(max_examples=40)
@given(FILLED, AIMS, BLOCKS, BIASES)
def test_a_flat_sweep_keeps_the_block_consistent(problem, objective, workers, bias):
    block, X = state(problem, objective, workers, bias)
    flat_sweep(block, objective)
    assert_consistent(block, X, objective.algebra)
    assert_within(block, objective)


@settings(max_examples=40)
@given(FILLED, st.booleans(), st.sampled_from(ALGEBRAS), BLOCKS, SEEDS)
def test_moves_follow_each_other(problem, by_codelength, algebra, workers, seed):
    """Whatever one move leaves behind is a state for the next."""
    objective = Objective(by_codelength, algebra)
    block, X = state(problem, objective, workers)
    random = np.random.default_rng(seed)
    for _ in range(2):
        grow(block, objective, random, 3)
        for move in (plain_sweep, sweep, prune, fresh_sweep, eliminate, beam_sweep):
            cost = objective.cost(block)
            move(block, objective)
            assert objective.cost(block) <= cost
            assert_consistent(block, X, algebra)
        change_basis(block, Objective(True, "xor"))
        assert_consistent(block, X, algebra)


# --- what is refused


@pytest.mark.parametrize(
    ("how", "message"),
    [
        *(
            (
                {"search": search, "coder": coder},
                f"search=\"{search}\" for the codelength codes by {choices}; coder='{coder}' goes with search=.paper.$",
            )
            for search, choices in (("fast", "'mdl' or 'beam'"), ("thorough", "'beam' or 'mdl'"))
            for coder in ("bmp", "greedy", "exact")
        ),
        (
            {"search": "paper", "coder": "mdl"},
            "search=\"paper\" for the codelength codes by 'bmp' or 'greedy' or 'exact'; coder='mdl' goes with "
            'search="fast" and the codelength as objective$',
        ),
        ({"search": "paper", "coder": "beam", "n_components": 3}, 'search="paper" for the fewest errors of 3 atoms'),
        ({"n_components": 5, "coder": "greedy"}, "search=\"fast\" for the fewest errors of 5 atoms codes by 'exact';"),
        (
            {"n_components": 17, "coder": "exact"},
            "search=\"fast\" for the fewest errors of 17 atoms codes by 'greedy'; coder='exact' goes with",
        ),
        ({"n_components": 17, "coder": "mdl"}, "search=\"fast\" for the fewest errors of 17 atoms codes by 'greedy'"),
        ({"coder": "svd"}, "coder='svd' is not available; choose from 'auto', 'bmp', 'greedy', 'exact', 'mdl', 'beam'"),
        ({"search": "slow"}, "search='slow' is not available; choose from 'paper', 'fast', 'thorough'$"),
        *(
            (
                {"search": search, "update": "k-prox"},
                f'update="k-prox" belongs to search="paper"; search="{search}" updates all atoms together$',
            )
            for search in SEARCHES
        ),
        (
            {"search": "paper", "n_components": 4, "objective": "codelength"},
            'search="paper" with a fixed n_components minimises the wrong bits; use search="fast", '
            'n_components="mdl" or objective="errors"$',
        ),
        ({"objective": "errors"}, 'objective="errors" needs n_components to be a number'),
        ({"start_components": 5, "max_components": 4}, "start_components=5 is above max_components=4"),
        ({"init": np.ones((3, 3)), "max_components": 2}, "init holds 3 atoms, more than max_components=2"),
        ({"init": np.ones((3, 3)), "n_components": 2}, "init holds 3 atoms, but n_components=2; make them agree"),
        (
            {"init": (np.ones((2, 3)), np.ones((2, 2))), "max_atoms_per_sample": 1},
            "the codes in init use 2 atoms in row 0, above max_atoms_per_sample=1",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(how, message):
    with pytest.raises(ValueError, match=message):
        factorize([[1, 0, 1], [0, 1, 1]], **how)


def test_a_coder_for_the_codelength_is_refused_in_words_that_help():
    with pytest.raises(ValueError, match=r"coder='mdl' goes with search=.fast. and the codelength as objective$"):
        factorize([[1, 0, 1], [0, 1, 1]], 1, search="fast", coder="mdl")


@every_search
def test_what_goes_together_is_taken(search):
    X = random_bits(0, 30, 20, 0.4)
    assert factorize(X, 3, search=search, objective="codelength", coder="beam", random_state=0).coder == "beam"
    assert factorize(X, 3, search=search, coder="exact", random_state=0).coder == "exact"
    assert factorize(X, 17, search=search, coder="greedy", random_state=0).coder == "greedy"
    assert factorize(X, search=search, patience=None, max_iter=8, random_state=0).ended == "max_iter"
