"""Files of earlier versions stay readable."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba

FILES = Path(__file__).parent / "data" / "0.1.0"
NEW_FILES = Path(__file__).parent / "data" / "0.2.0"
X = ba.datasets.planted(120, 30, 3, code_density=0.4, noise=0.02, random_state=0).X

rows, columns = np.indices(X.shape)
INCOMPLETE = np.where((rows >= 70) & ((7 * rows + 3 * columns) % 11 == 0), np.nan, X)


def assert_same_model(first, second):
    """Assert that two models have the same factors, and the same passes over all rows if there were any."""
    np.testing.assert_array_equal(first.components_, second.components_)
    np.testing.assert_array_equal(first.bias_, second.bias_)
    assert first.codelength_ == second.codelength_
    # The moves of a search may change from version to version, and the numbers of the rounds with them.
    passes = [[row[1:-1] for row in model.history_ if "pass" in row.move] for model in (first, second)]
    assert passes[0] == passes[1]


@pytest.mark.parametrize("path", [FILES / "model_xor.npz", NEW_FILES / "model_remembered.npz"], ids=["0.1.0", "0.2.0"])
def test_model_file(path):
    model, refitted = ba.load(path), ba.BinaryDictionaryLearning(random_state=0).fit(X)
    assert_same_model(model, refitted)
    np.testing.assert_array_equal(model.transform(X), refitted.transform(X))
    if path.parent == FILES:
        assert model.get_params() == refitted.get_params()  # device is dropped


def test_table_and_stores():
    table = ba.read(FILES / "table.npz")
    np.testing.assert_array_equal(table.to_dense(), X)
    assert (table.row_names[-1], table.columns[-1], table.picture) == ("r119", "c29", ba.Picture((5, 6)))
    pytest.importorskip("zarr")
    assert ba.read(FILES / "store.zarr") == table
    store = ba.Store(NEW_FILES / "store.zarr")
    assert (store.has_unknown, store.columns, store.row_names(118)) == (True, table.columns, ["r118", "r119"])
    np.testing.assert_array_equal(store.take(np.arange(120)).to_dense(float), INCOMPLETE)
    assert ba.Store(NEW_FILES / "sparse_store.zarr").n_ones == (X * (rows % 4 == 1)).sum()


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("path", [FILES / "checkpoint", NEW_FILES / "search-checkpoint"], ids=["passes", "search"])
def test_a_checkpoint_of_an_older_version_is_refused(path, resume, tmp_path):
    checkpoint = shutil.copytree(path, tmp_path / "checkpoint")
    message = "written by an older version of bitatoms, whose fits cannot be resumed; move this file away"
    with pytest.raises(ba.FileError, match=message):
        ba.BinaryDictionaryLearning(random_state=0, checkpoint=checkpoint, resume=resume).fit(X)
