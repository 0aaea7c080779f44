"""Limits on the atoms per sample and on errors left, in searches and for new samples; coding new samples."""

import warnings

import numpy as np
import pytest

import naive
from bitatoms import BinaryDictionaryLearning, factorize
from support.plans import use_budget
from support.results import (
    assert_matches_oracle,
    every_algebra,
    every_goal,
    every_search,
)

pytestmark = pytest.mark.usefixtures("few_trials")


LIMITED = [("or", "mdl", "auto"), ("or", 5, "errors"), ("or", 20, "errors"), ("or", 20, "codelength")]
LIMITED += [("xor", 5, "errors"), ("xor", 20, "errors")]


@pytest.mark.parametrize(("algebra", "n_components", "objective"), LIMITED)
@pytest.mark.parametrize(("search", "most"), [("fast", 1), ("thorough", 2)])
def test_no_sample_uses_more_atoms_than_allowed(table, algebra, search, n_components, objective, most):
    how = {"algebra": algebra, "search": search, "objective": objective, "max_atoms_per_sample": most}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "20 atoms were requested", UserWarning)
        result = factorize(table, n_components, **how, random_state=0)
    assert result.codes.row_weights().max() == most
    assert_matches_oracle(result, table)


@every_algebra
def test_a_limit_gives_no_fewer_atoms_and_no_more_errors_than_the_paper_search(monkeypatch, table, algebra):
    use_budget(monkeypatch, max_trials=100)
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
@pytest.mark.parametrize("n_components", ["mdl", 5, 20])
@pytest.mark.parametrize(
    ("search", "limits"),
    [("fast", {"max_atoms_per_sample": 1}), ("thorough", {"max_atoms_per_sample": 2, "residual_limit": 9})],
)
def test_new_samples_are_coded_within_the_limits(small, algebra, search, n_components, limits):
    model = BinaryDictionaryLearning(n_components, algebra=algebra, search=search, random_state=0, **limits)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "20 atoms were requested", UserWarning)
        codes = model.fit(small[:110]).transform(small[110:])
    assert 1 <= codes.sum(axis=1).max() <= limits["max_atoms_per_sample"]
    few = (small[110:] ^ model.bias_).sum(axis=1) <= limits.get("residual_limit", 0)
    assert few.any() == ("residual_limit" in limits)
    assert not codes[few].any()


@every_algebra
@every_search
def test_samples_within_the_residual_limit_are_not_coded(small, algebra, search):
    result = factorize(small, algebra=algebra, search=search, residual_limit=9, random_state=0)
    few = (small ^ result.bias).sum(axis=1) <= 9
    assert few.any()
    assert result.codes.row_weights().max() > 0
    assert not result.codes.row_weights()[few].any()


def test_atoms_that_the_residual_limit_leaves_without_users_are_dropped():
    """Half of the rows have one feature, which is within the limit: no row uses the atom of that feature."""
    X = np.repeat([[0, 1], [1, 1]], 9, axis=0)
    with pytest.warns(UserWarning, match="only 1 are useful"):
        result = factorize(X, 2, algebra="or", residual_limit=1, false_positive_cost=[1.5, 4.0], random_state=46)
    assert result.atoms.to_dense().tolist() == [[1, 1]]
    assert result.uses.tolist() == [9]


@every_algebra
def test_samples_within_the_residual_limit_are_not_coded_for_the_fewest_errors(table, algebra):
    result = factorize(table, 5, algebra=algebra, residual_limit=15, random_state=0)
    assert not result.codes.row_weights()[table.sum(axis=1) <= 15].any()


@pytest.mark.parametrize(("algebra", "search"), [("xor", "fast"), ("or", "thorough")])
@every_goal
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
        known = model.as_model().remembered
        remembered = () if known is None else known.to_dense()
        expected = naive.code_from_remembered(shifted, model.components_, remembered, algebra, prices)
        np.testing.assert_array_equal(codes, expected)
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
