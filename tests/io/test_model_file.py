"""Model files: round trips, malformed files, and that nothing in them is executed."""

import json
import math
import pickle
import tracemalloc
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.cli.summary import model_json
from bitatoms.core.model import Model
from bitatoms.core.recurrence import Recurrence
from bitatoms.io import model_file
from bitatoms.io.npz import encode_metadata, write_npz
from bitatoms.parallel import Workers
from bitatoms.parameters import result_parameters
from bitatoms.sparse_bits import SparseBits
from bitatoms.table import Picture
from support.bundles import table_with_bundles
from support.files import outcome
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


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


@pytest.mark.parametrize("how", [{}, {"n_components": 3, "algebra": "or"}])
def test_round_trip_with_unknown_cells(how, named, tmp_path):
    """The known cells of each feature are stored, which prices and scores depend on."""
    mask = random_bits(5, *named.shape, 0.4)
    mask[:, :9] = 0
    bits = named.bits.with_unknown(ba.BitMatrix.from_dense(mask))
    model = ba.BinaryDictionaryLearning(random_state=0, **how).fit(bits)
    model.save(tmp_path / "model.npz")
    again = ba.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.as_model().known, 200 - mask.sum(axis=0))
    np.testing.assert_array_equal(again.transform(bits), model.transform(bits))
    np.testing.assert_array_equal(again.score_samples(bits), model.score_samples(bits))
    np.testing.assert_array_equal(again.decision_function(bits), model.decision_function(bits))
    assert again.summary_ == model.summary_
    assert "of the known cells are wrong" in again.summary_
    assert model_json(again.as_model())["unknown_cells"] == mask.sum()


def test_round_trip_of_counts_of_all_rows(tmp_path):
    """An atom that all rows use, and a column that is one in all rows."""
    X = np.vstack([random_bits(0, 30, 9, 0.4), np.ones((30, 9), np.uint8)])
    X[:, 0] = 1
    model = ba.factorize(X, 1, init=np.eye(1, 9, dtype=np.uint8), search="paper", max_iter=1)
    assert model.uses.tolist() == [60]
    assert model.ones[0] == 60
    model_file.save(Model.from_factorization(model), tmp_path / "model.npz")
    again = model_file.load(tmp_path / "model.npz").model
    np.testing.assert_array_equal(again.uses, model.uses)
    np.testing.assert_array_equal(again.ones, model.ones)


def test_round_trip_without_atoms(tmp_path):
    X = np.zeros((20, 5), np.uint8)
    model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    model.save(tmp_path / "none.npz")
    assert ba.load(tmp_path / "none.npz").transform(X).shape == (20, 0)
    assert "No atom makes the description shorter" in model.summary_


def test_round_trip_of_remembered_codes(model, named, path, tmp_path):
    """They are stored only if there are any: the file of a model without them is as before."""
    learned = replace(model.as_model(), remembered=ba.BitMatrix.from_dense(random_bits(1, 5, model.n_components_, 0.5)))
    model_file.save(learned, tmp_path / "more.npz", model.get_params())
    again = ba.load(tmp_path / "more.npz")
    assert again.as_model().remembered == learned.remembered
    np.testing.assert_array_equal(again.transform(named), learned.code(named.bits, Workers()).codes().to_dense())
    with np.load(tmp_path / "more.npz") as file, np.load(path) as without:
        assert set(file) - set(without) == {"remembered"}
        assert all((file[name] == without[name]).all() for name in without)
    assert ba.load(path).as_model().remembered is None


def test_round_trip_of_recurrence(model, path, tmp_path):
    """It is stored only if it is known: the file of a model without it is as before."""
    learned = model.as_model()
    counts = np.arange(learned.atoms.n_rows)
    recurrence = Recurrence(counts, 20, 0.5, 0.8)
    model_file.save(replace(learned, recurrence=recurrence), tmp_path / "more.npz", model.get_params())
    again = ba.load(tmp_path / "more.npz")
    found = again.as_model().recurrence
    np.testing.assert_array_equal(found.counts, counts)
    assert found[1:] == recurrence[1:]
    assert [pattern.recurs for pattern in again.patterns()] == (counts / 20).tolist()
    with np.load(path) as before, np.load(tmp_path / "more.npz") as after:
        assert set(after) - set(before) == {"recurs"}
        metadata, more = (json.loads(file["bitatoms"].tobytes()) for file in (before, after))
    assert more.pop("recurrence") == {"n_resamples": 20, "share": 0.5, "threshold": 0.8}
    assert more == metadata
    again.components_ = again.components_ ^ np.eye(*again.components_.shape, dtype=np.uint8)
    assert again.as_model().recurrence is None  # these are other atoms


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"n_resamples": 2}, "its recurs do not fit its atoms"),
        ({"n_resamples": 0}, "n_resamples"),
        ({"share": 1.5}, "recurrence share must be between 0 and 1"),
        ({"threshold": "x"}, "recurrence threshold must be between 0 and 1"),
        (None, "it has no 'recurrence'"),
    ],
)
def test_malformed_recurrence_is_reported(model, tmp_path, settings, problem):
    learned, path = model.as_model(), tmp_path / "model.npz"
    recurrence = Recurrence(np.full(learned.atoms.n_rows, 3), 3, 0.5, 0.8)
    model_file.save(replace(learned, recurrence=recurrence), path)
    with np.load(path) as file:
        arrays = dict(file)
    metadata = json.loads(arrays["bitatoms"].tobytes())
    if settings is None:
        del metadata["recurrence"]
    else:
        metadata["recurrence"] |= settings
    write_npz(path, arrays | {"bitatoms": encode_metadata(metadata)})
    assert_load_error(path, "a corrupt model", problem)


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


NO_METADATA = "not a model: its metadata is corrupt"
NO_KNOWN = {"known": np.zeros(36, int)}


def bits_of(errors):
    return {"codelength": {"errors": errors, "codes": 1, "atoms": 1}}


CORRUPT = {
    "newer": ({"version": 99, "bitatoms": "9.0"}, {}, "written by bitatoms 9.0, which is newer"),
    "another format": ({"format": "bitatoms table"}, {}, "not a model, but a table"),
    "other arrays": (None, {"bitatoms": None}, "not a model; its arrays are atoms"),
    "no JSON": (None, {"bitatoms": np.zeros(4, np.uint8)}, NO_METADATA),
    "no object": (None, {"bitatoms": np.frombuffer(b"[1]", np.uint8)}, NO_METADATA),
    "deep JSON": (None, {"bitatoms": np.frombuffer(b"[" * 100000, np.uint8)}, NO_METADATA),
    "objects": (None, {"bias": np.array([None, 1], object)}, "contains Python objects, which are never unpickled"),
    "no atoms": (None, {"atoms": None}, "a corrupt model"),
    "atoms of the wrong shape": (None, {"atoms": np.zeros((3, 9), np.uint8)}, "a corrupt model"),
    "one-dimensional atoms": (None, {"atoms": np.zeros(3, np.uint8)}, "its atoms are of type uint8 and shape (3,)"),
    "padding bits set": (None, {"atoms": np.full((3, 5), 255, np.uint8)}, "the bits past column 36 must be zero"),
    "bias of the wrong length": (None, {"bias": np.zeros(3, np.uint8)}, "its bias does not fit"),
    "bias of twos": (None, {"bias": np.full(36, 2, np.uint8)}, "its bias does not fit"),
    "more uses than samples": (None, {"uses": np.full(3, 10**6)}, "its uses do not fit"),
    "more errors than known cells": (None, NO_KNOWN, "its wrong are more than its known cells"),
    "more ones than known cells": (None, NO_KNOWN | {"wrong": np.zeros(36, int)}, "its ones are more than its known"),
    "known cells of other features": (None, {"known": np.zeros(35, int)}, "its known do not fit its atoms"),
    "negative counts": (None, {"wrong": np.full(36, -1)}, "its wrong do not fit"),
    "counts that are not integers": (None, {"wrong": np.full(36, 0.5)}, "a corrupt model"),
    "remembered codes of other atoms": (None, {"remembered": np.full((3, 1), 8, np.uint8)}, "column 3 must be zero"),
    "remembered codes of counts": (None, {"remembered": np.zeros((3, 3), int)}, "its remembered are of type int64"),
    "too many remembered codes": (None, {"remembered": np.zeros((4097, 1), np.uint8)}, "4097 remembered codes are too"),
    "a codelength of one number": ({"codelength": 5}, {}, "its errors is not an integer"),
    "no picture": ({"picture": []}, {}, "a corrupt model"),
    "blocks of one number": ({"reading": {"blocks": 5}}, {}, "blocks must be a pair (height, width), not 5"),
    "a threshold of text": ({"reading": {"binarize": "0"}}, {}, "binarize must be None or a finite number, got '0'"),
    "a choice that does not exist": ({"reading": {"missing": "guess"}}, {}, "missing='guess' is not available"),
    "options of another type": ({"reading": 7}, {}, "a corrupt model"),
    "an absurd limit": ({"max_atoms_per_sample": 2**70}, {}, "its max_atoms_per_sample is 1180591620717411303"),
    "a negative limit": ({"residual_limit": -1}, {}, "its residual_limit is -1"),
    "negative features": ({"n_features": -3}, {}, "its n_features is -3"),
    "unknown algebra": ({"algebra": "and"}, {}, "its algebra is 'and'"),
    "too few names": ({"columns": ["a"]}, {}, "its names do not match its 36 columns"),
    "a wrong picture": ({"picture": [[5, 5], None]}, {}, "an image of 5 x 5"),
    "another history": ({"history_fields": ["what"]}, {}, "a corrupt model"),
    "an absurd codelength": (bits_of(10**400), {}, "its errors is 10000000000000000000"),
    "a negative codelength": (bits_of(-1), {}, "its errors is -1"),
    "a codelength that is not a number": (bits_of(math.nan), {}, "its errors is not an integer"),
    "a codelength without parts": ({"codelength": {}}, {}, "it has no 'errors'"),
    "a codelength of text": (bits_of("9"), {}, "not an integer"),
    "absurd codelengths": ({"codelengths": {"xor": 1e308}}, {}, "its xor is not an integer"),
    "absurd bits without atoms": ({"bits_without": 10**400}, {}, "its bits_without is 1000"),
    "an absurd number of samples": ({"n_samples": 10**400}, {}, "its n_samples is 1000"),
    "a history of text": ({"history_fields": ["bits"], "history": [["9"]]}, {}, "a corrupt model"),
    "no history": ({"history": 3}, {}, "a corrupt model"),
    "parameters of another type": ({"parameters": [1]}, {}, "a corrupt model"),
    "an absurd parameter": ({"parameters": {"max_iter": "forever"}}, {}, "max_iter must be an integer"),
    "an infinite threshold": ({"parameters": {"binarize": math.inf}}, {}, "binarize must be None or a finite number"),
    "an absurd seed": ({"parameters": {"random_state": -1}}, {}, "random_state must be at least 0"),
    "an absurd number of atoms": ({"parameters": {"n_components": "many"}}, {}, "n_components='many' is not available"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_corrupt_model(path, case):
    metadata, arrays, part = CORRUPT[case]
    rewrite(path, metadata, **arrays)
    assert_load_error(path, part)


@pytest.fixture(scope="module")
def wide():
    return ba.BinaryDictionaryLearning(random_state=0).fit(csr_array(table_with_bundles()))


def test_atoms_of_a_wide_model_are_stored_by_their_ones(wide, tmp_path):
    X, path = csr_array(table_with_bundles()), tmp_path / "model.npz"
    assert isinstance(wide.as_model().atoms, SparseBits)
    wide.save(path)
    with np.load(path) as file:
        assert "atoms" not in file
    again = ba.load(path)
    assert again.as_model().atoms == wide.as_model().atoms
    np.testing.assert_array_equal(again.components_, wide.components_)
    np.testing.assert_array_equal(again.transform(X), wide.transform(X))
    assert again.patterns() == wide.patterns()
    assert again.as_model().n_duplicate == wide.as_model().n_zero == 0


def test_a_wide_model_may_remember_as_many_codes_as_its_windows(wide, tmp_path):
    """Windows remember more codes than a table of all their columns does."""
    model = wide.as_model()
    remembered = ba.BitMatrix.from_dense(random_bits(0, 2000, model.atoms.n_rows, 0.3))
    model_file.save(replace(model, remembered=remembered), tmp_path / "model.npz")
    assert ba.load(tmp_path / "model.npz").as_model().remembered == remembered


@pytest.mark.parametrize(
    "problem", ["columns out of range", "columns not in order", "ends not in order", "ends too low", "bytes", "no ends"]
)
def test_corrupt_atoms_of_a_wide_model(wide, tmp_path, problem):
    path, atoms = tmp_path / "model.npz", wide.as_model().atoms
    columns, ends = atoms.indices.copy(), atoms.indptr[1:].copy()
    if problem == "columns out of range":
        columns[ends[0] - 1] = atoms.n_cols
    elif problem == "columns not in order":
        columns[:2] = columns[1::-1]
    elif problem == "ends not in order":
        ends[:2] = ends[1::-1]
    elif problem == "ends too low":
        ends -= 1
    elif problem == "bytes":
        columns = columns.astype(np.uint8)
    wide.save(path)
    rewrite(path, atom_columns=columns, atom_ends=None if problem == "no ends" else ends)
    assert_load_error(path, "a corrupt model")


ABSURD = (10**400, -1, 0, 1.5, math.nan, "9", None, [1], {"a": 1})


def test_a_model_with_absurd_values_is_refused_or_usable(path, named):
    """Nothing that a file contains raises an error after it was loaded."""
    with np.load(path) as file:
        arrays = dict(file)
    entries = json.loads(arrays["bitatoms"].tobytes())
    parts = [(name, None) for name in entries] + [
        (name, part) for name in ("codelength", "codelengths", "parameters", "reading") for part in entries[name]
    ]
    n_refused = 0
    for name, part in parts:
        for value in ABSURD:
            changed = entries | {name: value if part is None else entries[name] | {part: value}}
            np.savez(path, **arrays | {"bitatoms": np.frombuffer(json.dumps(changed).encode(), np.uint8)})
            loaded = outcome(model_file.load, path)  # one-line errors only
            if loaded is None:
                n_refused += 1
                continue
            if name in ("parameters", "reading"):
                continue
            found = loaded.model
            json.dumps(model_json(found, 3))
            assert found.summary()
            block = found.code(named.bits[:20], Workers())
            assert found.row_bits(block.data(), block.codes(), Workers()).shape == (20,)
    assert n_refused > 100


RUN_SETTINGS = {
    "checkpoint": "hostile",
    "resume": True,
    "n_jobs": 1000,
    "device": "cuda",
    "verbose": 2,
    "max_memory": "1 TB",
    "callbacks": "os.system",
}


def test_run_settings_are_neither_read_from_a_file_nor_stored(path, model, tmp_path, monkeypatch):
    """A hostile model must not decide where the next fit writes."""
    monkeypatch.chdir(tmp_path)
    rewrite(path, {"parameters": {**RUN_SETTINGS, "n_components": 2, "search_rows": 50, "random_state": 3}})
    loaded = ba.load(path)
    defaults = ba.BinaryDictionaryLearning().get_params()
    assert {name: getattr(loaded, name) for name in RUN_SETTINGS} == {name: defaults[name] for name in RUN_SETTINGS}
    assert (loaded.n_components, loaded.search_rows, loaded.random_state) == (2, 50, 3)
    loaded.fit(random_bits(0, 100, 10, 0.3))
    assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]
    other = deepcopy(model).set_params(n_jobs=2, max_memory="1 GB", verbose=1, checkpoint="folder", resume=True)
    other.save(path)
    with np.load(path) as file:
        assert not RUN_SETTINGS.keys() & json.loads(file["bitatoms"].tobytes())["parameters"].keys()


def test_every_parameter_is_stored_or_a_run_setting():
    names = {*ba.BinaryDictionaryLearning().get_params()}
    assert names - result_parameters().keys() == RUN_SETTINGS.keys()


def peak_of_loading(path):
    """Return the peak number of bytes that Python allocates while it loads a model, or refuses it."""
    outcome(model_file.load, path)  # import libraries first
    tracemalloc.start()
    try:
        outcome(model_file.load, path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", ["[]", '{"a":1}'])
def test_metadata_that_takes_far_more_memory_than_the_file_is_refused(path, value):
    """A file of 440 kB took 923 MiB."""
    text = (
        f'{{"format": "bitatoms model", "version": 1, "history": [{",".join([value] * (12_000_000 // len(value)))}]}}'
    )
    with np.load(path) as file:
        arrays = dict(file) | {"bitatoms": np.frombuffer(text.encode(), np.uint8)}
    write_npz(path, arrays)
    assert path.stat().st_size < 500_000
    assert_load_error(path, "claims an impossible size: corrupt or malicious")
    assert peak_of_loading(path) < 3 * len(text)


def test_a_model_larger_than_memory_is_refused(path, monkeypatch):
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 1000)
    assert_load_error(path, "its arrays take 0.0 GiB", "GiB of memory are available")


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


@settings(max_examples=30)
@given(share=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), truncate=st.booleans())
def test_a_file_with_changed_bytes_is_an_error_or_the_same_model(tmp_path_factory, model, share, byte, truncate):
    path = tmp_path_factory.mktemp("fuzz") / "model.npz"
    model.save(path)
    data = bytearray(path.read_bytes())
    index = int(share * len(data))
    if truncate:
        data = data[:index]
    else:
        data[index] = byte
    path.write_bytes(data)
    found = outcome(ba.load, path)
    assert found is None or (not truncate and found.as_model().atoms == model.as_model().atoms)
