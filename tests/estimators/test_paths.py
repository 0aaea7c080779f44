"""Estimators take the path of a file, of a plain table as of a packed store."""

import numpy as np
import pytest

import bitatoms as ba

pytestmark = pytest.mark.usefixtures("few_trials")

TABLE = ba.Table(
    ba.BitMatrix.from_dense(ba.datasets.planted(90, 20, 2, noise=0.02, random_state=0).X),
    columns=[f"item {j}" for j in range(20)],
)


@pytest.mark.parametrize("name", ["table.csv", "table.npz", "table.zarr"])
def test_methods_take_a_path(tmp_path, name):
    pytest.importorskip("zarr")
    write = ba.pack if name == "table.zarr" else ba.write
    write(TABLE, tmp_path / name)
    path = str(tmp_path / name) if name == "table.csv" else tmp_path / name
    how = {"n_components": 2, "random_state": 0}
    expected, model = (ba.BinaryDictionaryLearning(**how).fit(table) for table in (TABLE, path))
    np.testing.assert_array_equal(model.components_, expected.components_)
    assert model.feature_names_in_.tolist() == list(TABLE.columns)
    np.testing.assert_array_equal(model.transform(path), expected.transform(TABLE))
    np.testing.assert_allclose(model.score_samples(path), expected.score_samples(TABLE), rtol=1e-12)
    assert model.score(path) == pytest.approx(expected.score(TABLE))
    np.testing.assert_array_equal(ba.baselines.Asso(2).fit_transform(path), ba.baselines.Asso(2).fit_transform(TABLE))
    if name != "table.zarr":
        first, second = (ba.BinaryDictionaryLearning(**how).partial_fit(table) for table in (TABLE, path))
        np.testing.assert_array_equal(second.components_, first.components_)


def test_a_threshold_applies_once_to_a_file(tmp_path):
    counts = np.random.default_rng(0).poisson(2, (60, 8))
    np.save(tmp_path / "counts.npy", counts)
    model, expected = (ba.BinaryDictionaryLearning(2, binarize=2, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(model.fit(tmp_path / "counts.npy").components_, expected.fit(counts).components_)


@pytest.mark.parametrize("name", ["none.csv", "none.zarr"])
def test_a_missing_file_is_reported(tmp_path, name):
    with pytest.raises(ba.FileError, match=name):
        ba.BinaryDictionaryLearning().fit(tmp_path / name)
