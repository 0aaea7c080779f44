"""The files of a checkpoint, the state of passes and the steps of a search: round trips, and corrupt files."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from sklearn.exceptions import ConvergenceWarning

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.io.errors import FileError
from bitatoms.model.result import Round
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.checkpoint_steps import StepFiles
from bitatoms.search.journal import BestState, StepRecord, random_state
from bitatoms.search.monitor import CostedState
from support.checkpoints import assert_equal, assert_raises, call_of, states, unfinished_fit
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
        assert_equal(checkpoint.load(), state)
    with Checkpoint(folder, call, resume=True) as checkpoint:
        assert_equal(checkpoint.load(), state)


PCG = json.loads(json.dumps(np.random.default_rng(0).bit_generator.state))
MT = {"bit_generator": "MT19937", "state": {"key": [1] * 624, "pos": 10**9}}
CORRUPT = [
    ({"/version": 99, "/bitatoms": "9.0"}, "written by bitatoms 9.0, which is newer"),
    ({"/format": "bitatoms model"}, "not a checkpoint, but a model"),
    ({"bitatoms": None}, "not a checkpoint; its arrays are order 0 atoms"),
    ({"bitatoms": np.zeros(4, np.uint8)}, "not a checkpoint: its metadata is corrupt"),
    ({"/state/orders": []}, "corrupt checkpoint"),
    ({"/state/algebra": "or"}, "its algebra is not that of its passes"),
    ({"/state/finished": "yes"}, "corrupt checkpoint"),
    ({"/state/best": 2}, "pass 2 cannot be the best of 1"),
    ({"/state/finished": True, "/state/best": 0, "/state/orders": []}, "corrupt checkpoint"),
    ({"/state/partial": {"next_row": 1001, "counts": {}}}, "its next_row is 1001"),
    ({"/state/history_fields": ["what"]}, "corrupt checkpoint"),
    ({"/state/orders/0/coder": "best"}, "its order 0 is invalid"),
    ({"order 1 atoms": np.zeros((3, 2), np.uint64)}, "40 columns take 1 words per row"),
    ({"order 1 atoms": np.full((3, 1), 1 << 40, np.uint64)}, "ones past column 40"),
    ({"order 0 bias": np.zeros((2, 1), np.uint64)}, "its order 0 is invalid"),
    ({"order 1 kept": np.array([0, 2, 5])}, "its order 1 kept has values out of range"),
    ({"order 1 kept": np.array([0, 2, 2])}, "its order 1 is invalid"),
    ({"/state/orders/0/goes_on": True, "order 0 kept": np.arange(5)}, "its order 0 kept has values out of range"),
    ({"order 0 remembered": np.full((4, 1), 1 << 5, np.uint64)}, "ones past column 5"),
    ({"order 0 bit prices": np.zeros(40, np.int32)}, "has values out of range"),
    ({"order 0 use prices": np.zeros(5, np.int32)}, "its order 0 use prices has shape (5,)"),
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


# --- the steps of a search


X = ba.datasets.planted(120, 30, 4, noise=0.03, random_state=0).X
HOW = {"random_state": 0, "algebra": "or"}


@pytest.fixture
def written_at_once(monkeypatch):
    """Write each step."""
    use_small_budget(monkeypatch)
    monkeypatch.setattr(StepFiles, "is_due", lambda steps: True)


def interrupted(folder, **how):
    """Interrupt a fit, and return its best result."""
    with pytest.raises(ba.Interrupted) as caught:
        ba.factorize(X, callbacks=ctrl_c_when(lambda row: row.round == 12), checkpoint=folder, **HOW | how)
    return caught.value.result


def steps_in(folder):
    return sorted(path.name for path in folder.glob("search-*.npz"))


def test_an_interrupted_search_is_not_overwritten_and_resumes_to_the_same_model(written_at_once, tmp_path):
    how = HOW | {"random_state": None, "checkpoint": tmp_path}  # the checkpoint keeps the random numbers
    best = interrupted(tmp_path, random_state=None)
    assert steps_in(tmp_path)
    with pytest.raises(FileError, match=r"contains an unfinished fit; pass resume=True to resume it, or delete state"):
        ba.factorize(X, **how)
    for table, changes, message in ((X[::-1], {}, "the rows differ"), (X, {"patience": 9}, "patience was .* and is 9")):
        with pytest.raises(FileError, match=f"contains the fit of a different call: {message}"):
            ba.factorize(table, resume=True, **how, **changes)
    resumed = ba.factorize(X, resume=True, **how)
    assert resumed.codelength.total <= best.codelength.total
    assert len(steps_in(tmp_path)) == 1  # one start
    assert_same_search(ba.factorize(X, resume=True, **how), resumed)
    assert_same_search(ba.factorize(X, **HOW | {"checkpoint": tmp_path}), ba.factorize(X, **HOW))  # replaces it


def test_without_its_state_a_search_starts_over(written_at_once, tmp_path):
    interrupted(tmp_path)
    (tmp_path / "state.npz").unlink()
    assert_same_search(ba.factorize(X, checkpoint=tmp_path, **HOW), ba.factorize(X, **HOW))


def test_a_short_search_leaves_no_steps_but_one_that_is_not_finished_can_be_resumed(few_trials_here, tmp_path):
    for max_iter in (2, 500):  # a search that ends at its last round is finished, too
        ba.factorize(X, checkpoint=tmp_path, max_iter=max_iter, **HOW)
        assert steps_in(tmp_path) == []
    stopped = ba.factorize(X, checkpoint=tmp_path, callbacks=lambda row: row.round == 5, **HOW)
    assert (stopped.ended, len(steps_in(tmp_path))) == ("callback", 1)
    assert_same_search(ba.factorize(X, checkpoint=tmp_path, resume=True, **HOW), ba.factorize(X, **HOW))


def test_a_search_ended_by_its_time_is_resumed(written_at_once, tmp_path):
    def fit(**how):
        return ba.BinaryDictionaryLearning(random_state=0, checkpoint=tmp_path, **how).fit(X)

    ended = "max_time ended the search .*; raise it for a better model, or pass resume=True to go on from the check"
    with pytest.MonkeyPatch.context() as patch:
        FaultAtChunk(patch, at=1)
        with pytest.warns(ConvergenceWarning, match=ended):
            cut = fit(max_time=1.0)
    resumed, uninterrupted = fit(resume=True), ba.BinaryDictionaryLearning(random_state=0).fit(X)
    assert resumed.codelength_.total == uninterrupted.codelength_.total < cut.codelength_.total
    np.testing.assert_array_equal(resumed.components_, uninterrupted.components_)


STATE = "/steps/0/states/0"
CORRUPT_STEPS = [
    ({"/version": 99, "/bitatoms": "9.0"}, "written by bitatoms 9.0, which is newer"),
    ({"/version": 1}, "written by a version whose searches cannot be resumed"),
    ({"/format": "bitatoms model"}, "not a search steps, but a model"),
    ({"/fit": "b"}, "this file belongs to another fit"),
    ({"/steps": [{}]}, "corrupt checkpoint"),
    ({"0 0 atoms": np.full((3, 1), 1 << 30, np.uint64)}, "ones past column 30"),
    ({"0 0 codes": np.zeros((119, 1), np.uint64)}, "its 0 0 codes has shape (119, 1)"),
    ({"0 0 bias": np.zeros((2, 1), np.uint64)}, "its 0 0 bias has shape (2, 1)"),
    ({f"{STATE}/n_rows": -1}, "its n_rows is -1"),
    ({f"{STATE}/n_rows": 119, "0 0 codes": np.zeros((119, 1), np.uint64)}, "is not of 120 rows and 30 columns"),
    (
        {"/steps/0/best": {"state": {"same_as": 1, "cost": 1}, "rank": [1, 2, 3], "by_holdout": False}},
        "corrupt checkpoint",
    ),
    ({"/steps/0/randoms/0/state/bit_generator": "os"}, "invalid state of a random"),
    ({"/steps/0/randoms/0/n_spawned": 1 << 40}, "its n_spawned is"),
    ({"/steps/0/history_fields": ["what"]}, "corrupt checkpoint"),
]


def test_a_corrupt_file_of_steps_raises_and_is_named(written_at_once, tmp_path):
    interrupted(tmp_path)
    path = tmp_path / "search-1.npz"
    content = path.read_bytes()
    for changes, part in CORRUPT_STEPS:
        rewrite(path, changes)
        with pytest.raises(FileError) as caught:
            ba.factorize(X, checkpoint=tmp_path, resume=True, **HOW)
        message = str(caught.value)
        assert message.startswith(f"{path}: "), message
        assert part in message
        assert message.endswith(START_OVER)
        assert "\n" not in message
        path.write_bytes(content)


def test_a_step_is_loaded_unchanged(tmp_path):
    def state(seed, n_atoms):
        shapes = (n_atoms, 40), (20, n_atoms), (1, 40)
        return CostedState(10**20 + seed, *(BitMatrix.from_dense(random_bits(seed, *shape, 0.4)) for shape in shapes))

    one, other, random = state(0, 3), state(1, 0), random_state(np.random.default_rng(0))
    history = (Round(1, "grow", 5, 1 << 70, 1, 2, 3, 4, 5, 6, 7, 8, 1, "xor", 20, 0.1),) * 2
    bests = BestState(state(2, 70), (0, 5, 1), True), BestState(other._replace(cost=7), (1, 2, 3), False), None
    for best in bests:
        record = StepRecord((one, other), (4, -3), (random, random), 7, history, best)
        steps = StepFiles(tmp_path)
        steps.begin("a")
        steps.save("one", record)
        steps.flush()
        again = StepFiles(tmp_path)
        again.resume("a")
        assert vars(again.load("one", (20, 40), id)) == vars(record)
        assert again.load("other", (20, 40), id) is None


def test_steps_are_written_together_when_that_is_due(tmp_path, monkeypatch):
    now, fsync, record = [100.0], os.fsync, StepRecord((), (), (), 0, (), None)
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    steps = StepFiles(tmp_path, min_seconds=3.0)
    for seconds, n_files in ((1.0, 0), (2.9, 0), (3.0, 1), (5.9, 1), (6.0, 2), (8.9, 2)):
        now[0] = 100.0 + seconds
        steps.save(f"after {seconds}", record)
        assert len(steps_in(tmp_path)) == n_files
    steps.flush()
    assert len(steps_in(tmp_path)) == 3
    again = StepFiles(tmp_path)
    again.resume("")
    assert all(vars(again.load(f"after {s}", None, id)) == vars(record) for s in (1.0, 3.0, 5.9, 8.9))
    now[0] = 1100.0  # after 1000 seconds, every 20 seconds
    steps.save("late", record)
    for seconds, is_due in ((3.0, False), (19.9, False), (21.0, True)):
        now[0] = 1100.0 + seconds
        assert steps.is_due() is is_due

    def slow(file):
        now[0] += 0.5
        fsync(file)

    steps = StepFiles(tmp_path, min_seconds=0.0)
    monkeypatch.setattr(os, "fsync", slow)
    steps.save("slow", record)  # which takes a second, with the sync of the folder
    now[0] += 49.0
    assert not steps.is_due()  # slow writes are rare
    now[0] += 2.0
    assert steps.is_due()
