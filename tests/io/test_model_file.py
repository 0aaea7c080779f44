"""Model files: round trips, malformed files, and that nothing in them is executed."""

import json
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.io import model_file
from bitatoms.table import Picture
from support.files import outcome


@pytest.fixture(scope="module")
def named():
    data = ba.datasets.planted(200, 36, 3, noise=0.02, random_state=0)
    columns = [f"feature {j}" for j in range(36)]
    return ba.Table(ba.BitMatrix.from_dense(data.X), columns=columns, picture=Picture((6, 6)))


@pytest.fixture(scope="module")
def model(named):
    return ba.BinaryDictionaryLearning(algebra="auto", random_state=0).fit(named)


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def assert_load_error(path, *parts):
    """Assert that loading raises a one-line FileError with these parts."""
    with pytest.raises(ba.FileError) as caught:
        ba.load(path)
    message = str(caught.value)
    assert message.startswith(str(path)), message
    assert "\n" not in message
    for part in parts:
        assert part in message, message


def test_round_trip(model, named, path):
    again = ba.load(path)
    assert [row[:-1] for row in again.history_] == [row[:-1] for row in model.history_]  # without the seconds
    for name in ("components_", "bias_", "codelength_", "algebra_", "codelengths_", "summary_", "n_iter_"):
        np.testing.assert_equal(getattr(again, name), getattr(model, name))
    assert again.feature_names_in_.tolist() == list(named.columns)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(named), model.transform(named))
    np.testing.assert_array_equal(again.score_samples(named), model.score_samples(named))
    assert again.patterns() == model.patterns()
    assert again.as_model().picture == Picture((6, 6))


@pytest.mark.parametrize("how", [{"search": "paper"}, {"n_components": 3}, {"search": "thorough", "algebra": "or"}])
def test_round_trip_of_every_coder(how, named, tmp_path):
    model = ba.BinaryDictionaryLearning(random_state=0, **how).fit(named)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(ba.load(tmp_path / "model.npz").transform(named), model.transform(named))


def test_round_trip_without_atoms(tmp_path):
    X = np.zeros((20, 5), np.uint8)
    model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    model.save(tmp_path / "none.npz")
    assert ba.load(tmp_path / "none.npz").transform(X).shape == (20, 0)
    assert "No atom makes the description shorter" in model.summary_


def test_parameters_that_json_cannot_hold_are_omitted(named, tmp_path):
    atoms = np.eye(2, 36, dtype=np.uint8)
    odd = {"init": atoms, "callbacks": lambda row: None, "random_state": np.random.default_rng(0)}
    model = ba.BinaryDictionaryLearning(2, search="paper", **odd).fit(named)
    model.save(tmp_path / "model.npz")
    again = ba.load(tmp_path / "model.npz")
    assert (again.init, again.callbacks, again.random_state, again.n_components) == ("auto", None, None, 2)


def test_same_model_same_bytes(model, tmp_path):
    for name in ("a.npz", "b.npz"):
        model.save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_save_uses_modified_components(model, tmp_path):
    changed = pickle.loads(pickle.dumps(model))
    changed.components_ = 1 - changed.components_
    changed.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(ba.load(tmp_path / "model.npz").components_, changed.components_)


def rewrite(path, metadata=None, **arrays):
    """Change arrays or entries of the metadata of a model file."""
    with np.load(path) as file:
        old = dict(file)
    if metadata:
        entries = json.loads(old["bitatoms"].tobytes()) | metadata
        old["bitatoms"] = np.frombuffer(json.dumps(entries).encode(), np.uint8)
    np.savez(path, **{name: value for name, value in (old | arrays).items() if value is not None})


CORRUPT = {
    "newer": ({"version": 99, "bitatoms": "9.0"}, {}, "written by bitatoms 9.0, which is newer"),
    "another format": ({"format": "bitatoms table"}, {}, "not a model, but a table"),
    "other arrays": (None, {"bitatoms": None}, "not a model; its arrays are atoms"),
    "no JSON": (None, {"bitatoms": np.zeros(4, np.uint8)}, "not a model: its metadata is corrupt"),
    "no object": (
        None,
        {"bitatoms": np.frombuffer(b"[1]", np.uint8)},
        "not a model: its metadata is corrupt",
    ),
    "deep JSON": (
        None,
        {"bitatoms": np.frombuffer(b"[" * 100000, np.uint8)},
        "not a model: its metadata is corrupt",
    ),
    "no atoms": (None, {"atoms": None}, "a corrupt model"),
    "atoms of the wrong shape": (None, {"atoms": np.zeros((3, 9), np.uint8)}, "a corrupt model"),
    "one-dimensional atoms": (None, {"atoms": np.zeros(3, np.uint8)}, "a corrupt model: its atoms have 1 dimensions"),
    "padding bits set": (None, {"atoms": np.full((3, 5), 255, np.uint8)}, "the bits past column 36 must be zero"),
    "bias of the wrong length": (None, {"bias": np.zeros(3, np.uint8)}, "its bias does not fit"),
    "bias of twos": (None, {"bias": np.full(36, 2, np.uint8)}, "its bias does not fit"),
    "more uses than samples": (None, {"uses": np.full(3, 10**6)}, "its uses do not fit"),
    "negative counts": (None, {"wrong": np.full(36, -1)}, "its wrong do not fit"),
    "counts that are not integers": (None, {"wrong": np.full(36, 0.5)}, "a corrupt model"),
    "unknown algebra": ({"algebra": "and"}, {}, "its algebra is 'and'"),
    "too few names": ({"columns": ["a"]}, {}, "its names do not match its 36 columns"),
    "a wrong picture": ({"picture": [[5, 5], None]}, {}, "an image of 5 x 5"),
    "another history": ({"history_fields": ["what"]}, {}, "a corrupt model"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_corrupt_model(path, case):
    metadata, arrays, part = CORRUPT[case]
    rewrite(path, metadata, **arrays)
    assert_load_error(path, part)


def test_pickles_are_never_loaded(path):
    with np.load(path) as file:
        old = dict(file)
    np.savez(path, **{**old, "bias": np.array([None, 1], object)})
    assert_load_error(path, "contains Python objects, which are never unpickled")


def test_files_that_are_not_models(tmp_path, named):
    ba.write(named, tmp_path / "data.csv")
    assert_load_error(
        tmp_path / "data.csv", "not a model (it is not an .npz file); 'bitatoms fit DATA -o MODEL.npz' writes one"
    )
    np.save(tmp_path / "data.npy", np.eye(3))
    assert_load_error(tmp_path / "data.npy", "not a model (it looks like 'npy')")
    np.savez(tmp_path / "data.npz", X=np.eye(3))
    assert_load_error(tmp_path / "data.npz", "not a model; its arrays are X")
    assert_load_error(tmp_path / "none.npz", "there is no such file")
    (tmp_path / "empty.npz").touch()
    assert_load_error(tmp_path / "empty.npz", "not a model")
    assert_load_error(tmp_path, "not a model")


def test_claimed_sizes_and_duplicate_members(path, tmp_path):
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "atoms.npy":
                new.writestr(name, old.read(name))
        header = (
            b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000, 1000000), }"
        )
        new.writestr("atoms.npy", header.ljust(127) + b"\n" + bytes(10**6))
    assert_load_error(tmp_path / "bomb.npz", "corrupt")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as file:
        file.writestr("atoms.npy", b"")
    assert_load_error(path, "two arrays named 'atoms'")


@settings(max_examples=60, deadline=None)
@given(cut=st.floats(0, 1), position=st.floats(0, 1), byte=st.integers(0, 255), truncate=st.booleans())
def test_truncated_or_modified_bytes(tmp_path_factory, model, cut, position, byte, truncate):
    path = tmp_path_factory.mktemp("fuzz") / "model.npz"
    model.save(path)
    data = bytearray(path.read_bytes())
    if truncate:
        data = data[: int(cut * len(data))]
    else:
        data[int(position * (len(data) - 1))] = byte
    path.write_bytes(data)
    outcome(ba.load, path)


def test_full_disk_keeps_the_old_file(model, path, monkeypatch):
    before = path.read_bytes()

    def full(*arguments, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bitatoms.io.model_file.write_npz", full)
    with pytest.raises(ba.FileError, match="cannot be written: No space left on device"):
        model.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_numpy_and_json_can_read_the_file(path):
    with np.load(path) as file:
        metadata = json.loads(file["bitatoms"].tobytes())
        atoms = np.unpackbits(file["atoms"], axis=1, count=metadata["n_features"], bitorder="little")
    assert metadata["format"] == model_file.MODEL_FORMAT
    np.testing.assert_array_equal(atoms, ba.load(path).components_)
