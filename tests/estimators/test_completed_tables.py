"""BinaryDictionaryLearning fills in missing values, in the kind of table that was given."""

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from bitatoms import BinaryDictionaryLearning, BitMatrix, Table, write
from bitatoms.datasets import planted
from bitatoms.errors import InputWarning
from bitatoms.parallel import Workers

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def hidden():
    """Return a table, its hidden cells, the table without them, and a model."""
    factors = planted(200, 40, 3, code_density=0.4, noise=0.02, random_state=0)
    mask = np.random.default_rng(0).random(factors.X.shape) < 0.1
    X = np.where(mask, np.nan, factors.X)
    return factors.X, mask, X, BinaryDictionaryLearning(algebra="xor", random_state=0).fit(X)


@pytest.fixture(scope="module")
def expected(hidden):
    _, _, X, model = hidden
    data = BitMatrix.from_any(X, missing="unknown")
    model.predict_cell_proba(X)  # the first prediction fits the probabilities
    return model.as_model().predictors.completed(data, Workers(1)).to_dense()


def test_known_cells_stay_and_hidden_ones_are_predicted(hidden, expected):
    truth, mask, X, model = hidden
    completed = model.complete(X)
    assert completed.dtype == X.dtype
    np.testing.assert_array_equal(completed, expected)
    np.testing.assert_array_equal(completed[~mask], X[~mask])
    assert (completed != truth)[mask].mean() < 0.05
    probabilities = model.predict_cell_proba(X)
    np.testing.assert_array_equal(completed[mask], probabilities[mask] > 0.5)


def test_the_kind_of_table_is_kept(hidden, expected, tmp_path):
    truth, mask, X, model = hidden
    data = BitMatrix.from_any(X, missing="unknown")
    assert model.complete(data) == BitMatrix.from_dense(expected)
    masked = np.ma.array(np.nan_to_num(X).astype(np.int16), mask=mask)
    objects = np.where(mask, None, np.nan_to_num(X))
    dtypes = float, np.float32, np.int16, np.uint8, np.uint8
    for given, dtype in zip((csr_array(X), X.astype(np.float32), masked, X.tolist(), objects), dtypes, strict=True):
        completed = model.complete(given)
        assert completed.dtype == dtype
        np.testing.assert_array_equal(completed.toarray() if issparse(given) else completed, expected)
        assert not issparse(given) or completed.nnz == expected.sum()  # no zero is stored
    table = model.complete(Table(data, row_names=[f"r{j}" for j in range(len(X))]))
    assert table.row_names[0] == "r0"
    np.testing.assert_array_equal(table.to_dense(), expected)
    write(truth, tmp_path / "table.npz")
    completed = model.complete(tmp_path / "table.npz")
    assert isinstance(completed, Table)
    np.testing.assert_array_equal(completed.to_dense(), truth)


def test_data_frames_keep_index_columns_and_dtypes(hidden, expected):
    pd = pytest.importorskip("pandas")
    _, _, X, _ = hidden
    names = [f"f{i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names, index=[f"r{j}" for j in range(len(X))])
    frame = frame.astype({"f1": "Int8", "f2": "boolean"})
    model = BinaryDictionaryLearning(algebra="xor", random_state=0).fit(frame)
    with pytest.warns(InputWarning, match="ignored 1 column that the model was not fitted on: 'other'"):
        completed = model.complete(frame[names[::-1]].assign(other=1))
    assert list(completed.columns) == names  # those of the model
    assert list(completed.index) == list(frame.index)
    assert completed.dtypes[["f0", "f1", "f2"]].astype(str).tolist() == ["float64", "Int8", "boolean"]
    np.testing.assert_array_equal(completed.to_numpy(float), expected)


def test_polars_frames_stay_polars_frames(hidden, expected):
    pl = pytest.importorskip("polars")
    _, _, X, _ = hidden
    frame = pl.DataFrame(X, schema=[f"f{i}" for i in range(X.shape[1])], nan_to_null=True)
    completed = BinaryDictionaryLearning(algebra="xor", random_state=0).fit(frame).complete(frame)
    assert completed.schema == frame.schema
    np.testing.assert_array_equal(completed.to_numpy(), expected)


def test_a_threshold_gives_0_and_1_and_lazy_collections_are_refused(hidden):
    truth, mask, X, _ = hidden
    model = BinaryDictionaryLearning(binarize=0.5, algebra="xor", random_state=0).fit(3 * X)
    np.testing.assert_array_equal(model.complete(3 * X)[~mask], truth[~mask])
    with pytest.raises(TypeError, match="read its rows into memory first"):
        model.complete(pytest.importorskip("dask.array").from_array(truth))
