"""The files of a checkpoint, the state of passes and the states of a search: round trips, and corrupt files."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from sklearn.exceptions import ConvergenceWarning

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.io.errors import FileError
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.checkpoint_files import StateFiles
from bitatoms.search.states import SavedStates, State
from support.checkpoints import PARAMS, assert_equal, assert_raises, call_of, states, unfinished_fit
from support.faults import FaultAtChunk, ctrl_c_when
from support.plans import use_small_budget
from support.results import assert_same_search
from support.strategies import random_bits

START_OVER = "; move this file away, or choose another folder, to start over"


def rewrite(path, changes):
    """Change entries of the JSON of a file, by their paths, or arrays, by their names; None removes an array."""
    with np.load(path) as file:
        arrays = dict(file)
    entries = json.loads(arrays["bitatoms"].tobytes())
    for name, value in changes.items():
        if name.startswith("/"):
            *parents, last = name[1:].split("/")
            entry = entries
            for parent in parents:
                entry = entry[int(parent) if parent.isdigit() else parent]
            entry[last] = value
            arrays["bitatoms"] = np.frombuffer(json.dumps(entries).encode(), np.uint8)
        else:
            arrays[name] = value
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


# --- the state of passes


@pytest.fixture
def folder(tmp_path):
    """A folder with an unfinished fit."""
    return unfinished_fit(tmp_path / "fit")


@given(state=states())
def test_a_saved_state_is_loaded_unchanged(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("saved") / "fit"
    call = call_of(state.specs[0].atoms.n_cols)
    with Checkpoint(folder, call, resume=False) as checkpoint:
        checkpoint.save(state)
        assert_equal(checkpoint.load(PARAMS), state)
    with Checkpoint(folder, call, resume=True) as checkpoint:
        assert_equal(checkpoint.load(PARAMS), state)


PCG = json.loads(json.dumps(np.random.default_rng(0).bit_generator.state))
MT = {"bit_generator": "MT19937", "state": {"key": [1] * 624, "pos": 10**9}}
CORRUPT = [
    ({"/version": 99, "/bitatoms": "9.0"}, "written by bitatoms 9.0, which is newer"),
    ({"/version": 1}, ", an older version, whose files are not read; move"),
    ({"/format": "bitatoms model"}, "not a checkpoint, but a model"),
    ({"bitatoms": None}, "not a checkpoint; its arrays are spec 0 atoms"),
    ({"bitatoms": np.zeros(4, np.uint8)}, "not a checkpoint: its metadata is corrupt"),
    ({"/state/specs": []}, "corrupt checkpoint"),
    ({"/state/algebra": "and"}, "its algebra is invalid"),
    ({"/state/finished": "yes"}, "corrupt checkpoint"),
    ({"/state/best": 2}, "its best pass is not one of the 1 passes made"),
    ({"/state/finished": True, "/state/best": 0, "/state/specs": []}, "corrupt checkpoint"),
    ({"/state/next_row": 1001}, "its next_row is 1001"),
    ({"/state/history": [{"what": 1}]}, "corrupt checkpoint"),
    ({"/state/specs/0/coder": "best"}, "its spec 0 is invalid"),
    ({"spec 1 atoms": np.zeros((3, 2), np.uint64)}, "40 columns take 1 words per row"),
    ({"spec 1 atoms": np.full((3, 1), 1 << 40, np.uint64)}, "ones past column 40"),
    ({"spec 0 bias": np.zeros((2, 1), np.uint64)}, "its spec 0 bias has shape (2, 1)"),
    ({"spec 1 kept": np.array([0, 2, 5])}, "its spec 1 kept has values out of range"),
    ({"spec 1 kept": np.array([0, 2, 2])}, "its spec 1 is invalid"),
    ({"spec 0 kept": np.arange(5)}, "its spec 0 kept has values out of range"),
    ({"spec 0 remembered": np.full((4, 1), 1 << 5, np.uint64)}, "ones past column 5"),
    ({"spec 0 known": np.zeros(40, np.uint8)}, "its spec 0 wrong has values out of range"),
    ({"spec 0 uses": np.zeros(4, np.int32)}, "its spec 0 uses has shape (4,)"),
    ({"counts free": np.zeros((3, 40), np.uint8)}, "has shape (3, 40) and type uint8"),
    ({"counts wrong": np.full(40, 1001)}, "its counts wrong has values out of range"),
    ({"partial uses": np.full(3, -1)}, "its partial uses has values out of range"),
    ({"counts ones": np.zeros(40)}, "corrupt checkpoint"),
    ({"counts ones": np.array([None] * 40)}, "contains Python objects, which are never unpickled"),
    ({"/random": {"bit_generator": "os"}}, "corrupt checkpoint"),
    ({"/random": MT}, "invalid state of a random generator of type 'MT19937'"),
    ({"/random": PCG | {"bit_generator": "beta"}}, "'beta'"),
]


def test_a_corrupt_checkpoint_raises_and_is_named(folder):
    content = (folder / "state.npz").read_bytes()
    for changes, part in CORRUPT:
        rewrite(folder / "state.npz", changes)
        assert_raises(folder, "state.npz: ", part, START_OVER)
        (folder / "state.npz").write_bytes(content)


def test_other_files_of_the_same_name_raise(tmp_path):
    for content in (b"", b"PK", b"\x80\x04K\x01.", b"a,b\n1,0\n"):
        (tmp_path / "state.npz").write_bytes(content)
        for resume in (False, True):
            assert_raises(tmp_path, "state.npz: corrupt, or not a file of the format 'npz'", resume=resume)
            assert (tmp_path / "state.npz").read_bytes() == content


# --- the states of a search


X = ba.datasets.planted(120, 30, 4, noise=0.03, random_state=0).X
HOW = {"random_state": 0, "algebra": "or"}


@pytest.fixture
def written_at_once(monkeypatch):
    """Write states whenever they are better."""
    use_small_budget(monkeypatch)
    monkeypatch.setattr(StateFiles, "is_due", lambda states, name: True)


def interrupted(folder, **how):
    """Interrupt a fit, and return its best result."""
    with pytest.raises(ba.Interrupted) as caught:
        ba.factorize(
            X,
            callbacks=ctrl_c_when(lambda row: row.round == 12),
            resources=ba.Resources(checkpoint=folder),
            **HOW | how,
        )
    return caught.value.result


def files_in(folder):
    return sorted(path.name for path in folder.glob("search-*.npz"))


def test_an_interrupted_search_is_not_overwritten_and_resumes_to_the_same_model(written_at_once, tmp_path):
    how = HOW | {"random_state": None}  # the checkpoint keeps the random numbers
    saved, resume = ba.Resources(checkpoint=tmp_path), ba.Resources(checkpoint=tmp_path, resume=True)
    best = interrupted(tmp_path, random_state=None)
    assert files_in(tmp_path)
    with pytest.raises(FileError, match=r"contains an unfinished fit; pass resume=True to resume it, or delete state"):
        ba.factorize(X, resources=saved, **how)
    for table, changes, message in ((X[::-1], {}, "the rows differ"), (X, {"n_init": 9}, "n_init was .* and is 9")):
        with pytest.raises(FileError, match=f"contains the fit of a different call: {message}"):
            ba.factorize(table, resources=resume, **how, **changes)
    resumed = ba.factorize(X, resources=resume, **how)
    assert resumed.codelength.total <= best.codelength.total
    assert len(files_in(tmp_path)) == 1  # one start
    again = ba.factorize(X, resources=resume, **how)  # the search is not made again
    assert (again.atoms, again.codes, again.codelength) == (resumed.atoms, resumed.codes, resumed.codelength)
    assert len(again.history) < len(resumed.history)
    assert_same_search(ba.factorize(X, resources=saved, **HOW), ba.factorize(X, **HOW))  # replaces it


def test_without_its_state_a_search_starts_over(written_at_once, tmp_path):
    interrupted(tmp_path)
    (tmp_path / "state.npz").unlink()
    assert_same_search(ba.factorize(X, resources=ba.Resources(checkpoint=tmp_path), **HOW), ba.factorize(X, **HOW))


def test_a_short_search_leaves_no_states_but_one_that_is_not_finished_can_be_resumed(few_trials_here, tmp_path):
    for max_iter in (2, 500):  # a search that ends at its last round is finished, too
        ba.factorize(X, resources=ba.Resources(checkpoint=tmp_path), max_iter=max_iter, **HOW)
        assert files_in(tmp_path) == []
    stopped = ba.factorize(X, resources=ba.Resources(checkpoint=tmp_path), callbacks=lambda row: row.round == 5, **HOW)
    assert (stopped.ended, len(files_in(tmp_path))) == ("callback", 1)
    resumed = ba.factorize(X, resources=ba.Resources(checkpoint=tmp_path, resume=True), **HOW)
    assert resumed.codelength.total <= stopped.codelength.total
    assert resumed.converged


def test_a_search_ended_by_its_time_is_resumed(written_at_once, tmp_path):
    def fit(resume=False, **how):
        resources = ba.Resources(checkpoint=tmp_path, resume=resume)
        return ba.BinaryDictionaryLearning(algebra="xor", random_state=0, resources=resources, **how).fit(X)

    ended = "max_time ended the search .*; raise it for a better model, or pass resume=True to resume from the check"
    with pytest.MonkeyPatch.context() as patch:
        FaultAtChunk(patch, at=1)
        with pytest.warns(ConvergenceWarning, match=ended):
            cut = fit(max_time=1.0)
    assert fit(resume=True).codelength_.total < cut.codelength_.total


CORRUPT_STATES = [
    ({"/version": 99, "/bitatoms": "9.0"}, "written by bitatoms 9.0, which is newer"),
    ({"/version": 0}, ", an older version, whose files are not read; move"),
    ({"/format": "bitatoms model"}, "not a search states, but a model"),
    ({"/fit": "b"}, "this file belongs to another fit"),
    ({"/states": [{}]}, "corrupt checkpoint"),
    ({"/states": []}, "its states are not of 120 rows and 30 columns"),
    ({"/ended": 3}, "its reason to end is not a text"),
    ({"0 atoms": np.full((3, 1), 1 << 30, np.uint64)}, "ones past column 30"),
    ({"0 codes": np.zeros((119, 1), np.uint64)}, "its 0 codes has shape (119, 1)"),
    ({"0 bias": np.zeros((2, 1), np.uint64)}, "its 0 bias has shape (2, 1)"),
    ({"0 wrong": np.zeros(29, np.int64)}, "its 0 wrong has shape (29,)"),
    ({"/states/0/n_rows": -1}, "its n_rows is -1"),
    ({"/states/0/bits": [1]}, "corrupt checkpoint"),
    ({"/states/0/n_rows": 119, "0 codes": np.zeros((119, 1), np.uint64)}, "are not of 120 rows and 30 columns"),
]


def test_a_corrupt_file_of_states_raises_and_is_named(written_at_once, tmp_path):
    interrupted(tmp_path)
    path = tmp_path / "search-or-1.npz"
    content = path.read_bytes()
    for changes, part in CORRUPT_STATES:
        rewrite(path, changes)
        with pytest.raises(FileError) as caught:
            ba.factorize(X, resources=ba.Resources(checkpoint=tmp_path, resume=True), **HOW)
        message = str(caught.value)
        assert message.startswith(f"{path}: "), message
        assert part in message
        assert message.endswith(START_OVER)
        assert "\n" not in message
        path.write_bytes(content)


def state_of(seed, n_atoms):
    shapes = (n_atoms, 40), (20, n_atoms), (1, 40)
    factors = (BitMatrix.from_dense(random_bits(seed, *shape, 0.4)) for shape in shapes)
    return State(10**20 + seed, *factors, np.arange(40) + seed, ba.Codelength(1 << 70, 2, seed))


@pytest.mark.parametrize("ended", [None, "max_iter"])
@pytest.mark.parametrize("columns", [(), (np.arange(40), np.arange(40, 80))])
def test_states_are_loaded_unchanged(tmp_path, ended, columns):
    saved = SavedStates([state_of(0, 3), state_of(1, 0)], ended, columns)
    files = StateFiles(tmp_path, min_seconds=0.0)
    files.begin("a")
    files.save("xor 1", lambda: saved)
    again = StateFiles(tmp_path)
    again.resume("a")
    found = again.load("xor 1", lambda found: found)
    assert found.ended == ended
    assert [state[:4] for state in found.states] == [state[:4] for state in saved.states]
    assert [state.codelength for state in found.states] == [state.codelength for state in saved.states]
    for one, other in zip(
        (*found.columns, *(s.wrong for s in found.states)), (*columns, *(s.wrong for s in saved.states)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert again.load("or 1", lambda found: found) is None
    assert files.load("xor 1", lambda found: found) is None  # of this process


def test_states_are_written_when_that_is_due(tmp_path, monkeypatch):
    now, fsync, saved = [100.0], os.fsync, SavedStates([state_of(0, 3)])
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    files = StateFiles(tmp_path, min_seconds=3.0)
    for seconds, n_files in ((1.0, 0), (2.9, 0), (3.0, 1), (5.9, 1)):
        now[0] = 100.0 + seconds
        files.save("or 1", lambda: saved)
        assert len(files_in(tmp_path)) == n_files
    content = (tmp_path / "search-or-1.npz").read_bytes()
    saved = SavedStates([state_of(1, 5)])
    files.save("or 1", lambda: saved)
    assert (tmp_path / "search-or-1.npz").read_bytes() == content
    files.flush()
    assert (tmp_path / "search-or-1.npz").read_bytes() != content

    def slow(file):
        now[0] += 0.5
        fsync(file)

    monkeypatch.setattr(os, "fsync", slow)
    now[0] += 10.0
    files.save("or 1", lambda: saved)  # which takes a second, with the sync of the folder
    now[0] += 49.0
    assert not files.is_due("or 1")  # slow writes are rare
    now[0] += 2.0
    assert files.is_due("or 1")
