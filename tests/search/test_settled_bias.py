"""No result leaves a column wrong in more than half of the rows, where the codelength is the objective."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.online.stream import StreamLearner
from bitatoms.parallel import Workers
from support.sources import params_for
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


def two_groups(n_rows=400, noise=0.0):
    """Rows with the features 0, 1, 2 and rows with the features 3, 4, in turn."""
    X = np.zeros((n_rows, 5), np.uint8)
    X[::2, :3] = X[1::2, 3:] = 1
    return X ^ (np.random.default_rng(0).random(X.shape) < noise)


def share_wrong(result):
    """The share of the rows in which each column is wrong."""
    return result.wrong / result.n_samples


@pytest.mark.filterwarnings("ignore:2 atoms were requested")
@pytest.mark.parametrize(
    ("X", "search", "algebra"),
    [
        (two_groups(201, 0.05), "fast", "xor"),
        (random_bits(1, 100, 40, 0.95), "fast", "or"),
        (1 - two_groups(101), "thorough", "or"),
        (np.ones((5, 3), np.uint8), "thorough", "xor"),
    ],
    ids=["noisy", "mostly ones", "complement", "all ones"],
)
def test_the_bias_takes_what_most_rows_have(X, search, algebra):
    for how in ({}, {"n_components": 2, "objective": "codelength"}, {"callbacks": lambda row: True}):
        result = ba.factorize(X, algebra=algebra, search=search, random_state=0, **how)
        assert share_wrong(result).max() <= 0.5
        np.testing.assert_array_equal(result.wrong, (result.reconstruct() != X).sum(axis=0))
        assert result.codelength == ba.codelength(X, result.atoms, result.codes, bias=result.bias, algebra=algebra)
        same = [row.bits for row in result.history if row.atoms == result.atoms.n_rows]
        assert min(same) == result.codelength.total


@pytest.mark.parametrize("how", [{"n_components": 2}, {"search": "paper"}, {"search": "paper", "n_components": 2}])
def test_the_fewest_errors_and_the_paper_have_no_bias(how):
    result = ba.factorize(random_bits(1, 300, 70, 0.95), random_state=0, **how)
    assert not result.bias.any()


def test_all_rows_decide_and_not_the_sample(tmp_path):
    """Every column is one in about half of the rows, so that a sample often has another majority."""
    X = random_bits(3, 1200, 70, 0.5)
    X[:, :20] = X[:, :1] ^ random_bits(4, 1200, 20, 0.05)
    in_memory = ba.factorize(X, search_rows=150, random_state=0)
    assert share_wrong(in_memory).max() <= 0.5
    assert in_memory.bias.any()
    model = ba.BinaryDictionaryLearning(search_rows=150, random_state=0).fit(ba.pack(X, tmp_path / "rows.zarr"))
    np.testing.assert_array_equal(model.bias_, in_memory.bias)
    assert model.codelength_ == in_memory.codelength


@pytest.mark.parametrize(("algebra", "forget"), [("xor", 0.0), ("or", 0.001)])
def test_a_stream_settles_its_bias_after_every_batch(algebra, forget):
    X = random_bits(3, 300, 40, 0.5)
    X[:, :20] = X[:, :1] ^ random_bits(4, 300, 20, 0.05)
    stream = StreamLearner(params_for(algebra=algebra), forget, np.random.default_rng(0))
    for batch in np.array_split(X, 3):
        stream.partial_fit(BitMatrix.from_dense(batch), Workers())
        assert share_wrong(stream.as_result()).max() <= 0.5
        assert stream.state.bias.to_dense()[0].tolist() == stream.as_result().bias.tolist()
    assert stream.state.bias.count()
