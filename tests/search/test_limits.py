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


@pytest.mark.parametrize(
    ("algebra", "search", "n_components", "coder"), [("xor", "fast", 5, "auto"), ("or", "thorough", 20, "greedy")]
)
def test_new_samples_are_coded_for_the_fewest_errors(small, algebra, search, n_components, coder):
    how = {"algebra": algebra, "search": search, "coder": coder, "random_state": 0}
    model = BinaryDictionaryLearning(n_components, **how).fit(small[:100])
    new, empty = small[100:], np.zeros((len(small) - 100, n_components), np.uint8)
    if n_components == 5:  # the best of all codes
        expected = naive.exact_code(new, model.components_, empty, algebra)
    else:
        expected = naive.code(new, model.components_, empty, coder, algebra)
    np.testing.assert_array_equal(model.transform(new), expected)
