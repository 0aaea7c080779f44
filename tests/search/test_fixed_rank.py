"""A fixed number of atoms: as many as asked for, few errors, trials on a sample of the rows."""

import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BinaryDictionaryLearning, BitMatrix, factorize
from bitatoms.errors import InputWarning
from bitatoms.parallel import Workers
from bitatoms.search.exchange import refill, varied_columns
from bitatoms.search.fixed_rank import nearest_sampled
from bitatoms.search.plan import FixedRankBudget
from support.blocks import bits_of
from support.contexts import search_context
from support.parameters import resolved
from support.plans import use_budget
from support.results import ALGEBRAS, AWKWARD, SEARCHES, assert_matches_oracle, dense, every_algebra
from support.strategies import SEEDS, matrices, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


OBJECTIVES = st.sampled_from(("errors", "errors", "codelength"))


@settings(max_examples=24)
@given(matrices(), st.integers(1, 20), OBJECTIVES, st.sampled_from(ALGEBRAS), st.sampled_from(SEARCHES), SEEDS)
def test_fewer_atoms_are_warned_about_and_leave_no_errors(X, n_components, objective, algebra, search, seed):
    how = {"objective": objective, "algebra": algebra, "search": search, "random_state": seed}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = factorize(X, n_components, **how)
    assert_matches_oracle(result, X)
    n_atoms = result.atoms.n_rows
    assert result.n_unused == 0
    messages = [str(warning.message) for warning in caught]
    if objective == "codelength":
        assert [warning.category for warning in caught] == [InputWarning] * (n_atoms < n_components)
        assert n_atoms <= n_components
        return
    if n_atoms == n_components:
        assert messages == []
        return
    assert n_atoms < n_components
    wanted = f"{n_components} atoms were requested, but {n_atoms} leave no errors; {n_atoms} are returned"
    assert messages == [wanted]
    wrong = naive.errors(X, *dense(result), algebra)
    assert not (wrong if algebra == "xor" else wrong & X).any()  # under OR, none that one more atom could fix


def test_the_warning_of_fewer_atoms_points_to_the_caller_unless_the_search_ended_early():
    X = AWKWARD["equal rows"]
    many = BinaryDictionaryLearning(10**30, algebra="xor", random_state=0)
    for call, wanted in ((partial(factorize, X, 9, random_state=0), 9), (partial(many.fit, X), 10**30)):
        with pytest.warns(UserWarning, match=f"{wanted} atoms were requested, but ") as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]
    assert factorize(X, 9, algebra="xor", random_state=0, callbacks=lambda row: True).ended == "callback"


@every_algebra
def test_unused_atoms_are_replaced_by_atoms_grown_from_the_errors(algebra):
    atoms = np.repeat(np.eye(4, dtype=np.uint8), 9, axis=1)
    codes = np.repeat(np.eye(4, dtype=np.uint8), 5, axis=0)
    params = resolved(4, algebra=algebra)
    context = search_context(codes @ atoms, params.objective(algebra), params.plan)
    block = context.block(bits_of(atoms[[0, 3]]), bits_of(np.pad(codes[:, :1], ((0, 0), (0, 1)))))
    assert [refill(context, block, context.greedy_rule) for _ in range(2)] == [3, 0]
    assert sorted(block.atoms().to_dense().tolist()) == sorted(atoms.tolist())


@pytest.mark.parametrize(("algebra", "search"), [("xor", "thorough"), ("or", "fast")])
def test_the_moves_for_the_fewest_errors(table, algebra, search):
    for n_components, last in ((5, {"exact"}), (20, {"fresh sweep", "sweep", "finish"})):
        # Rows of the table as a start leave more to the trials than other starts.
        how = {
            "algebra": algebra,
            "search": search,
            "init": np.unique(table, axis=0)[-n_components:],
            "random_state": 0,
        }
        history = factorize(table, n_components, **how).history
        moves = [row.move for row in history]
        assert moves[0] == "start"
        assert last <= set(moves) <= {"start", "trial", "recombine", "grow"} | last
        assert "trial" in moves
        wrong = [row.wrong_bits for row in history if row.move in ("trial", "recombine")]
        assert all(after < before for before, after in pairwise(wrong))


@every_algebra
def test_trials_on_a_sample_of_the_rows_end_with_all_rows(monkeypatch, algebra):
    """Each of 60 rows occurs five times; all are among 200 of 300 sampled rows, and others get the codes of these."""
    use_budget(monkeypatch, sample_rows=200)
    X = np.repeat(random_bits(0, 60, 40, 0.4), 5, axis=0)
    result = factorize(X, 20, algebra=algebra, random_state=0)
    assert_matches_oracle(result, X)
    assert (result.atoms.n_rows, result.n_unused) == (20, 0)
    assert "trial" in {row.move for row in result.history}
    codes = result.codes.to_dense().reshape(60, 5, 20)
    assert (codes == codes[:, :1]).all()


@every_algebra
def test_trials_on_some_of_the_columns_end_with_all_columns(monkeypatch, algebra):
    """Each pattern has columns that trials see, and others with fewer ones."""
    use_budget(monkeypatch, sample_cols=40, sample_share=0.0)
    codes, atoms = random_bits(0, 90, 6, 0.3), random_bits(1, 6, 70, 0.4)
    X = naive.product(codes, atoms, algebra)
    X[:, 40:] &= random_bits(2, 90, 30, 0.9)
    result = factorize(X, 12, algebra=algebra, random_state=0)
    assert_matches_oracle(result, X)
    assert (result.atoms.n_rows, result.n_unused) == (12, 0)
    assert result.wrong[:40].sum() <= 5
    assert result.wrong.sum() <= naive.errors(X, atoms, codes, algebra).sum()


def test_trials_see_the_columns_with_most_of_the_rarer_cells():
    X = np.zeros((20, 5), np.uint8)
    for column, ones in enumerate((3, 10, 18, 20, 0)):
        X[:ones, column] = 1
    data = bits_of(X)  # rarer cells: 3, 10, 2, 0, 0
    for most, share, expected in ((1, 0.0, [1]), (1, 0.8, [0, 1]), (3, 0.0, [0, 1, 2]), (1, 0.95, [0, 1, 2])):
        budget = FixedRankBudget(sample_cols=most, sample_share=share)
        assert varied_columns(data, budget).tolist() == expected
    assert varied_columns(data, FixedRankBudget()) is None


@pytest.mark.parametrize(("n_words", "every"), [(260 * 40 * 2, 1), (260 * 40 * 2 // 4, 4), (260 * 40 * 2 // 4 - 1, 5)])
def test_the_nearest_sampled_row_is_found_for_each_row(n_words, every):
    """On large tables, only every so many sampled rows are compared with the others."""
    X = random_bits(0, 300, 70, 0.3)
    sampled = np.sort(np.random.default_rng(1).choice(300, 40, replace=False))
    nearest = nearest_sampled(BitMatrix.from_dense(X), sampled, Workers(2, 64), n_words)
    distances = (X[:, np.newaxis] != X[sampled[::every]]).sum(axis=2)
    expected = every * distances.argmin(axis=1)
    expected[sampled] = np.arange(40)
    np.testing.assert_array_equal(nearest, expected)


def test_candidates_for_the_nearest_row_are_skipped_on_large_tables():
    X = random_bits(0, 40, 65, 0.4)
    sampled = np.arange(0, 40, 2)
    nearest = nearest_sampled(BitMatrix.from_dense(X), sampled, Workers(), max_words=20 * 20 * 2 // 4)
    candidates = sampled[::4]
    for row in range(1, 40, 2):
        distances = (X[candidates] != X[row]).sum(axis=1)
        assert nearest[row] == 4 * int(distances.argmin())
    assert (nearest[sampled] == np.arange(20)).all()
