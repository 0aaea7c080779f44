"""Limits on the atoms per sample and on errors left, in searches and for new samples; coding new samples."""

import numpy as np
import pytest

import naive
from bitatoms import BinaryDictionaryLearning, factorize
from support.results import assert_matches_oracle, every_fit

pytestmark = pytest.mark.usefixtures("few_trials")
LIMITS = {"fast": {"max_atoms_per_sample": 1}, "thorough": {"max_atoms_per_sample": 2, "residual_limit": 9}}


def assert_within(limits, codes, rows, bias):
    """Assert that samples have no more atoms than allowed, and those with few ones none."""
    assert 1 <= codes.sum(axis=1).max() <= limits["max_atoms_per_sample"]
    few = (rows ^ bias).sum(axis=1) <= limits.get("residual_limit", 0)
    assert few.any() == ("residual_limit" in limits)
    assert not codes[few].any()


@every_fit
@pytest.mark.filterwarnings("ignore:20 atoms were requested")
def test_samples_are_coded_within_the_limits(small, how):
    limits = LIMITS[how["search"]]
    result = factorize(small[:110], **how, **limits)
    assert_matches_oracle(result, small[:110])
    n_most = result.codes.row_weights().max()
    assert n_most == limits["max_atoms_per_sample"] or (how["n_components"], how["objective"]) == (20, "codelength")
    if how["n_components"] != 20:  # the limit of errors gives way where many atoms must be used
        assert_within(limits, result.codes.to_dense(), small[:110], result.bias)
    model = BinaryDictionaryLearning(**how, **limits).fit(small[:110])
    np.testing.assert_array_equal(model.components_, result.atoms.to_dense())
    assert_within(limits, model.transform(small[110:]), small[110:], result.bias)


def test_atoms_that_the_residual_limit_leaves_without_users_are_dropped():
    """Half of the rows have one feature, which is within the limit: no row uses the atom of that feature."""
    X = np.repeat([[0, 1], [1, 1]], 9, axis=0)
    with pytest.warns(UserWarning, match="only 1 are useful"):
        result = factorize(X, 2, algebra="or", residual_limit=1, false_positive_cost=[1.5, 4.0], random_state=46)
    assert result.atoms.to_dense().tolist() == [[1, 1]]
    assert result.uses.tolist() == [9]


def _coded_for_the_fewest_errors(rows, atoms, algebra):
    """Return the best of all codes of few atoms, or codes by the greedy coder."""
    empty = np.zeros((len(rows), len(atoms)), np.uint8)
    return (
        naive.exact_code(rows, atoms, empty, algebra)
        if len(atoms) <= 16
        else naive.code(rows, atoms, empty, "greedy", algebra)
    )


@pytest.mark.parametrize(
    ("algebra", "search", "n_components", "coder"), [("xor", "fast", 5, "auto"), ("or", "thorough", 20, "greedy")]
)
def test_new_samples_are_coded_for_the_fewest_errors(small, algebra, search, n_components, coder):
    how = {"algebra": algebra, "search": search, "coder": coder, "random_state": 0}
    model = BinaryDictionaryLearning(n_components, **how).fit(small[:100])
    expected = _coded_for_the_fewest_errors(small[100:], model.components_, algebra)
    np.testing.assert_array_equal(model.transform(small[100:]), expected)


@pytest.mark.parametrize(("algebra", "coder"), [("xor", "mdl"), ("or", "mdl"), ("or", "auto")])
def test_new_samples_are_coded_at_the_prices_that_fit_ended_with(dense_table, algebra, coder):
    X, new = dense_table[:200], dense_table[400:450]
    model = BinaryDictionaryLearning(algebra=algebra, coder=coder, random_state=0).fit(X)
    at = model.as_model().rule.prices
    prices = at.bits.astype(int), at.uses[: model.n_components_].astype(int)
    shifted, empty = new ^ model.bias_, np.zeros((len(new), model.n_components_), np.uint8)
    codes = model.transform(new)
    if coder == "mdl":
        known = model.as_model().remembered
        remembered = () if known is None else known.to_dense()
        expected = naive.code_from_remembered(shifted, model.components_, remembered, algebra, prices)
        np.testing.assert_array_equal(codes, expected)
        return
    plain = naive.priced_code(shifted, model.components_, empty, algebra, prices)
    beam, greedy = (naive.costs(shifted, model.components_, these, algebra, prices) for these in (codes, plain))
    assert all(one <= other for one, other in zip(beam, greedy, strict=True))
