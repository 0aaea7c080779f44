"""Model files: what is kept, what is refused, and that nothing in them is ever executed."""

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


def refused(path, *parts):
    with pytest.raises(ba.FileError) as caught:
        ba.load(path)
    message = str(caught.value)
    assert message.startswith(str(path)), message
    assert "\n" not in message
    for part in parts:
        assert part in message, message


def test_a_model_comes_back_as_it_was(model, named, path):
    again = ba.load(path)
    assert [row[:-1] for row in again.history_] == [row[:-1] for row in model.history_]  # all but the seconds
    for name in ("components_", "bias_", "codelength_", "algebra_", "codelengths_", "summary_", "n_iter_"):
        np.testing.assert_equal(getattr(again, name), getattr(model, name))
    assert again.feature_names_in_.tolist() == list(named.columns)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(named), model.transform(named))
    np.testing.assert_array_equal(again.score_samples(named), model.score_samples(named))
    assert again.patterns() == model.patterns()
    assert again.as_model().picture == Picture((6, 6))


@pytest.mark.parametrize("how", [{"search": "paper"}, {"n_components": 3}, {"search": "thorough", "algebra": "or"}])
def test_every_coder_comes_back(how, named, tmp_path):
    model = ba.BinaryDictionaryLearning(random_state=0, **how).fit(named)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(ba.load(tmp_path / "model.npz").transform(named), model.transform(named))


def test_a_model_without_atoms_comes_back(tmp_path):
    X = np.zeros((20, 5), np.uint8)
    model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    model.save(tmp_path / "none.npz")
    assert ba.load(tmp_path / "none.npz").transform(X).shape == (20, 0)
    assert "No atom makes the description shorter" in model.summary_


def test_parameters_that_are_no_plain_values_are_left_out(named, tmp_path):
    atoms = np.eye(2, 36, dtype=np.uint8)
    odd = {"init": atoms, "callbacks": lambda row: None, "random_state": np.random.default_rng(0)}
    model = ba.BinaryDictionaryLearning(2, search="paper", **odd).fit(named)
    model.save(tmp_path / "model.npz")
    again = ba.load(tmp_path / "model.npz")
    assert (again.init, again.callbacks, again.random_state, again.n_components) == ("auto", None, None, 2)


def test_the_same_model_gives_the_same_bytes(model, tmp_path):
    for name in ("a.npz", "b.npz"):
        model.save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_changed_atoms_are_what_is_saved(model, tmp_path):
    changed = pickle.loads(pickle.dumps(model))
    changed.components_ = 1 - changed.components_
    changed.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(ba.load(tmp_path / "model.npz").components_, changed.components_)


def rewritten(path, about=None, **arrays):
    """The model with some of its arrays, or entries of its description, changed."""
    with np.load(path) as file:
        old = dict(file)
    if about:
        entries = json.loads(old["bitatoms"].tobytes()) | about
        old["bitatoms"] = np.frombuffer(json.dumps(entries).encode(), np.uint8)
    np.savez(path, **{name: value for name, value in (old | arrays).items() if value is not None})


CHANGED = {
    "newer": ({"version": 99, "bitatoms": "9.0"}, {}, "written by bitatoms 9.0, which is newer"),
    "foreign": ({"format": "bitatoms table"}, {}, "not a model, but a table"),
    "other arrays": (None, {"bitatoms": None}, "not a model, but data: its arrays are atoms"),
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
    "atoms of another size": (None, {"atoms": np.zeros((3, 9), np.uint8)}, "a corrupt model"),
    "atoms in one row": (None, {"atoms": np.zeros(3, np.uint8)}, "a corrupt model: its atoms have 1 dimensions"),
    "bits past the end": (None, {"atoms": np.full((3, 5), 255, np.uint8)}, "the bits past column 36 must be zero"),
    "bias of another size": (None, {"bias": np.zeros(3, np.uint8)}, "its bias does not fit"),
    "bias of twos": (None, {"bias": np.full(36, 2, np.uint8)}, "its bias does not fit"),
    "more uses than samples": (None, {"uses": np.full(3, 10**6)}, "its uses do not fit"),
    "negative counts": (None, {"wrong": np.full(36, -1)}, "its wrong do not fit"),
    "counts that are no whole numbers": (None, {"wrong": np.full(36, 0.5)}, "a corrupt model"),
    "unknown algebra": ({"algebra": "and"}, {}, "its algebra is 'and'"),
    "too few names": ({"columns": ["a"]}, {}, "its names do not fit"),
    "a wrong picture": ({"picture": [[5, 5], None]}, {}, "an image of 5 x 5"),
    "another history": ({"history_fields": ["what"]}, {}, "a corrupt model"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_damaged_model_is_refused(path, case):
    about, arrays, part = CHANGED[case]
    rewritten(path, about, **arrays)
    refused(path, part)


def test_pickles_are_never_loaded(path):
    with np.load(path) as file:
        old = dict(file)
    np.savez(path, **{**old, "bias": np.array([None, 1], object)})
    refused(path, "contains Python objects, which are never unpickled")


def test_data_given_where_a_model_belongs_is_told_so(tmp_path, named):
    ba.write(named, tmp_path / "data.csv")
    refused(tmp_path / "data.csv", "not a model (it is not an .npz file); 'bitatoms fit DATA -o MODEL.npz' writes one")
    np.save(tmp_path / "data.npy", np.eye(3))
    refused(tmp_path / "data.npy", "not a model (it looks like 'npy')")
    np.savez(tmp_path / "data.npz", X=np.eye(3))
    refused(tmp_path / "data.npz", "not a model, but data: its arrays are X")
    refused(tmp_path / "none.npz", "there is no such file")
    (tmp_path / "empty.npz").touch()
    refused(tmp_path / "empty.npz", "not a model")
    refused(tmp_path, "not a model")


def test_bombs_and_misleading_archives_are_refused(path, tmp_path):
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "atoms.npy":
                new.writestr(name, old.read(name))
        header = (
            b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000, 1000000), }"
        )
        new.writestr("atoms.npy", header.ljust(127) + b"\n" + bytes(10**6))
    refused(tmp_path / "bomb.npz", "corrupt")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as file:
        file.writestr("atoms.npy", b"")
    refused(path, "two arrays named 'atoms'")


@settings(max_examples=60, deadline=None)
@given(cut=st.floats(0, 1), place=st.floats(0, 1), byte=st.integers(0, 255), whole=st.booleans())
def test_a_file_cut_or_changed_anywhere_gives_a_model_or_a_line(tmp_path_factory, model, cut, place, byte, whole):
    path = tmp_path_factory.mktemp("fuzz") / "model.npz"
    model.save(path)
    data = bytearray(path.read_bytes())
    if whole:
        data[int(place * (len(data) - 1))] = byte
    else:
        data = data[: int(cut * len(data))]
    path.write_bytes(data)
    outcome(ba.load, path)


def test_nothing_is_lost_when_the_disk_is_full(model, path, monkeypatch):
    before = path.read_bytes()

    def full(*arguments, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bitatoms.io.model_file.write_npz", full)
    with pytest.raises(ba.FileError, match="cannot be written: No space left on device"):
        model.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_description_can_be_read_with_numpy_and_json_alone(path):
    with np.load(path) as file:
        about = json.loads(file["bitatoms"].tobytes())
        atoms = np.unpackbits(file["atoms"], axis=1, count=about["n_features"], bitorder="little")
    assert about["format"] == model_file.MODEL_FORMAT
    np.testing.assert_array_equal(atoms, ba.load(path).components_)
