"""Models of planted tables."""

import pytest

import bitatoms as ba


@pytest.fixture(scope="module", params=["or", "xor", "bias"])
def fitted(request):
    """A model, and rows of its table."""
    algebra = "or" if request.param == "bias" else request.param
    X = ba.datasets.planted(200, 70, 4, algebra=algebra, code_density=0.4, noise=0.04, random_state=2).X
    X ^= request.param == "bias"
    return ba.BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(X).as_model(), X
