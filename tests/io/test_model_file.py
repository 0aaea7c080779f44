"""Model files: round trips, malformed files, and that nothing in them is executed."""

import json
import math
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.cli.summary import model_json
from bitatoms.columns.table import Picture
from bitatoms.estimators.options import result_parameters, stored_parameters
from bitatoms.io import model_file
from bitatoms.model.model import Model
from bitatoms.model.patterns import Recurrence
from bitatoms.parallel import Workers
from bitatoms.sparse_bits import SparseBits
from support.bundles import table_with_bundles
from support.files import assert_read_error
from support.npz import npy, npz
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
    assert_read_error(path, *parts, read=ba.load)


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
    for name in ("transform", "score_samples", "decision_function"):
        np.testing.assert_array_equal(getattr(again, name)(bits), getattr(model, name)(bits))
    assert again.summary_ == model.summary_
    assert "of the known cells are wrong" in again.summary_
    assert model_json(again.as_model())["unknown_cells"] == mask.sum()


def test_round_trip_of_extreme_models(tmp_path):
    """An atom that all rows use, and a column that is one in all rows; no atoms."""
    X, path = np.vstack([random_bits(0, 30, 9, 0.4), np.ones((30, 9), np.uint8)]), tmp_path / "model.npz"
    X[:, 0] = 1
    model = ba.factorize(X, 1, init=np.eye(1, 9, dtype=np.uint8), search="paper", max_iter=1)
    model_file.save(Model.from_factorization(model), path)
    again = model_file.load(path).model
    assert again.uses.tolist() == [60] == model.uses.tolist()
    assert again.ones.tolist() == X.sum(axis=0).tolist()
    model = ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(np.zeros((20, 5), np.uint8))
    model.save(path)
    assert ba.load(path).transform(np.zeros((20, 5))).shape == (20, 0)
    assert "No atom makes the description shorter" in ba.load(path).summary_


def test_remembered_codes_and_recurrence_are_stored_only_if_there_are_any(model, named, path, tmp_path):
    codes = ba.BitMatrix.from_dense(random_bits(1, 5, model.n_components_, 0.5))
    recurrence = Recurrence(np.arange(model.n_components_), 20, 0.5, 0.8)
    learned = replace(model.as_model(), remembered=codes, recurrence=recurrence)
    model_file.save(learned, tmp_path / "more.npz", stored_parameters(model.get_params()))
    again = ba.load(tmp_path / "more.npz")
    assert again.as_model().remembered == codes
    np.testing.assert_array_equal(again.transform(named), learned.code(named.bits, Workers()).codes().to_dense())
    np.testing.assert_array_equal(again.as_model().recurrence.counts, recurrence.counts)
    assert again.as_model().recurrence[1:] == recurrence[1:]
    assert [pattern.recurs for pattern in again.patterns()] == (recurrence.counts / 20).tolist()
    (before, metadata), (after, more) = contents(path), contents(tmp_path / "more.npz")
    assert set(after) - set(before) == {"remembered", "recurs"}
    assert all((after[name] == before[name]).all() for name in before.keys() - {"bitatoms"})
    assert more.pop("recurrence") == {"n_resamples": 20, "share": 0.5, "threshold": 0.8}
    assert more == metadata
    assert ba.load(path).as_model().remembered is None
    again.components_ = again.components_ ^ np.eye(*again.components_.shape, dtype=np.uint8)
    assert again.as_model().recurrence is None  # these are other atoms
    again.save(path)
    np.testing.assert_array_equal(ba.load(path).components_, again.components_)


def contents(path):
    """Return the arrays and the metadata of a model file."""
    with np.load(path) as file:
        return dict(file), json.loads(file["bitatoms"].tobytes())


def test_parameters_that_json_cannot_hold_are_omitted(named, tmp_path):
    odd = {
        "init": np.eye(2, 36, dtype=np.uint8),
        "callbacks": lambda row: None,
        "random_state": np.random.default_rng(0),
    }
    model = ba.BinaryDictionaryLearning(2, search="paper", **odd).fit(named)
    for name in ("a.npz", "b.npz"):
        model.save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    again = ba.load(tmp_path / "a.npz")
    assert (again.init, again.callbacks, again.random_state, again.n_components) == ("auto", None, None, 2)


def rewrite(path, metadata=None, **arrays):
    """Change arrays or entries of the metadata of a model file."""
    old, entries = contents(path)
    if metadata:
        old["bitatoms"] = np.frombuffer(json.dumps(entries | metadata).encode(), np.uint8)
    np.savez(path, **{name: value for name, value in (old | arrays).items() if value is not None})


def recurring(**changes):
    """Return a recurrence of three resamples, with changes, and its counts."""
    return {"recurrence": {"n_resamples": 3, "share": 0.5, "threshold": 0.8} | changes}, {"recurs": np.full(3, 3)}


RECURRENCE = {
    "fewer resamples": (*recurring(n_resamples=2), "its recurs do not fit its atoms"),
    "no resamples": (*recurring(n_resamples=0), "n_resamples"),
    "a share above 1": (*recurring(share=1.5), "recurrence share must be between 0 and 1"),
    "a threshold of text for recurrence": (*recurring(threshold="x"), "recurrence threshold must be between 0 and 1"),
    "no recurrence": (None, recurring()[1], "it has no 'recurrence'"),
}
NO_METADATA = "not a model: its metadata is corrupt"
NO_KNOWN = {"known": np.zeros(36, int)}


def bits_of(errors):
    return {"codelength": {"errors": errors, "codes": 1, "atoms": 1}}


CORRUPT = {
    "newer": ({"version": 99, "bitatoms": "9.0"}, {}, "written by bitatoms 9.0, which is newer"),
    "older": ({"version": 4, "bitatoms": "0.2.0"}, {}, "an older version, whose files are not read; fit it again"),
    "another format": ({"format": "bitatoms table"}, {}, "not a model, but a table"),
    "other arrays": (None, {"bitatoms": None}, "not a model; its arrays are atoms"),
    "no JSON": (None, {"bitatoms": np.zeros(4, np.uint8)}, NO_METADATA),
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
    "a threshold of text": ({"reading": {"binarize": "0"}}, {}, "binarize must be None or a finite number, not '0'"),
    "a choice that does not exist": ({"reading": {"missing": "guess"}}, {}, "missing='guess' is not available"),
    "an absurd limit": ({"max_atoms_per_sample": 2**70}, {}, "its max_atoms_per_sample is 1180591620717411303"),
    "a negative limit": ({"residual_limit": -1}, {}, "its residual_limit is -1"),
    "negative features": ({"n_features": -3}, {}, "its n_features is -3"),
    "a hash of text": ({"rows_hash": "x"}, {}, "its rows_hash is not a hash"),
    "unknown algebra": ({"algebra": "and"}, {}, "its algebra is 'and'"),
    "too few names": ({"columns": ["a"]}, {}, "its names do not match its 36 columns"),
    "a wrong picture": ({"picture": [[5, 5], None]}, {}, "an image of 5 x 5"),
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
    "an absurd seed": ({"parameters": {"random_state": -1}}, {}, "random_state must be None, a non-negative integer"),
    "an absurd number of atoms": ({"parameters": {"n_components": "many"}}, {}, "n_components='many' is not available"),
}


@pytest.mark.parametrize("case", CORRUPT | RECURRENCE)
def test_corrupt_model(path, case):
    metadata, arrays, part = (CORRUPT | RECURRENCE)[case]
    rewrite(path, metadata, **arrays)
    assert_load_error(path, part)


@pytest.fixture(scope="module")
def wide():
    return ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(csr_array(table_with_bundles()))


def test_atoms_of_a_wide_model_are_stored_by_their_ones(wide, tmp_path):
    X, path = csr_array(table_with_bundles()), tmp_path / "model.npz"
    assert isinstance(wide.as_model().atoms, SparseBits)
    wide.save(path)
    assert "atoms" not in contents(path)[0]
    again = ba.load(path)
    assert again.as_model().atoms == wide.as_model().atoms
    np.testing.assert_array_equal(again.components_, wide.components_)
    np.testing.assert_array_equal(again.transform(X), wide.transform(X))
    assert again.patterns() == wide.patterns()
    assert again.as_model().n_duplicate == wide.as_model().n_zero == 0
    remembered = ba.BitMatrix.from_dense(random_bits(0, 2000, wide.n_components_, 0.3))  # as many as its windows
    model_file.save(replace(wide.as_model(), remembered=remembered), path)
    assert ba.load(path).as_model().remembered == remembered


SWAPPED = [1, 0]


@pytest.mark.parametrize(
    ("columns", "ends"),
    [
        (lambda columns, n_cols: np.append(columns[:-1], n_cols), None),
        (lambda columns, n_cols: np.append(columns[SWAPPED], columns[2:]), None),
        (lambda columns, n_cols: columns.astype(np.uint8), None),
        (None, lambda ends: np.append(ends[SWAPPED], ends[2:])),
        (None, lambda ends: ends - 1),
        (None, lambda ends: None),
    ],
    ids=["out of range", "not in order", "bytes", "ends not in order", "ends too low", "no ends"],
)
def test_corrupt_atoms_of_a_wide_model(wide, tmp_path, columns, ends):
    path, atoms = tmp_path / "model.npz", wide.as_model().atoms
    wide.save(path)
    arrays = {"atom_columns": atoms.indices, "atom_ends": atoms.indptr[1:]}
    rewrite(path, **arrays)
    assert ba.load(path).as_model().atoms == atoms
    arrays |= (
        {"atom_columns": columns(atoms.indices, atoms.n_cols)} if columns else {"atom_ends": ends(atoms.indptr[1:])}
    )
    rewrite(path, **arrays)
    assert_load_error(path, "a corrupt model")


RUN_SETTINGS = {"n_jobs": 1000, "device": "cuda", "verbose": 2, "callbacks": "os.system"}
RESOURCES = {"checkpoint": "hostile", "resume": True, "max_memory": "1 TB"}


def test_run_settings_are_neither_read_from_a_file_nor_stored(path, model, tmp_path, monkeypatch):
    """A hostile model must not decide where the next fit writes."""
    monkeypatch.chdir(tmp_path)
    nested = {f"resources__{name}": value for name, value in RESOURCES.items()}
    hostile = {**RUN_SETTINGS, **RESOURCES, **nested, "resources": RESOURCES}
    rewrite(path, {"parameters": {**hostile, "n_components": 2, "search_rows": 50, "random_state": 3}})
    loaded = ba.load(path)
    defaults = ba.BinaryDictionaryLearning()
    for name in (*RUN_SETTINGS, "resources"):
        assert name not in result_parameters()
        assert getattr(loaded, name) == getattr(defaults, name)
    assert (loaded.n_components, loaded.search_rows, loaded.random_state) == (2, 50, 3)
    loaded.fit(random_bits(0, 100, 10, 0.3))
    assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]
    other = deepcopy(model).set_params(n_jobs=2, verbose=1, resources=ba.Resources(**RESOURCES))
    other.save(path)
    assert not hostile.keys() & contents(path)[1]["parameters"].keys()


OTHER_FILES = {  # files that are not models
    "data.csv": (b"a,b\n1,0\n", "(it is not an .npz file); 'bitatoms fit DATA -o MODEL.npz' writes one"),
    "data.npy": (npy(np.eye(3)), "not a model (it looks like 'npy')"),
    "data.npz": (npz(X=np.eye(3)), "not a model; its arrays are X"),
    "empty.npz": (b"", "not a model"),
    "none.npz": (None, "there is no such file"),
}


def test_files_that_are_not_models(file, path, tmp_path, monkeypatch):
    for name, (content, part) in OTHER_FILES.items():
        assert_load_error(tmp_path / name if content is None else file(content, name), part)
    assert_load_error(tmp_path, "not a model")
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 1000)
    assert_load_error(path, "its metadata take 0.0 GiB", "GiB of memory are available")
