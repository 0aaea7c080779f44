"""The steps of a search in a checkpoint: what is saved and when, files that are no longer needed, and corrupt ones."""

import errno
import json
import os
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import bitatoms as ba
from bitatoms.core.result import Round
from bitatoms.io.errors import FileError
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.checkpoint_steps import StepFiles
from bitatoms.search.journal import BestState, StepRecord, random_state
from bitatoms.search.population import CostedState
from support.checkpoints import call_of, example_state
from support.files import outcome
from support.plans import use_small_budget
from support.results import assert_same_search
from support.strategies import random_bits

SHAPE = 20, 40
X = ba.datasets.planted(120, 30, 4, noise=0.03, random_state=0).X


def state(seed, n_atoms=3, shape=SHAPE):
    atoms, codes, bias = (
        ba.BitMatrix.from_dense(random_bits(seed, *each, 0.4))
        for each in ((n_atoms, shape[1]), (shape[0], n_atoms), (1, shape[1]))
    )
    return CostedState(10**20 + seed, atoms, codes, bias)


def record(seed=0, **changes):
    """Return the record of a step."""
    rounds = tuple(Round(n, "grow", 5, 1 << 70, 1, 2, 3, 4, 5, 6, 7, 8, 1, "xor", 20, 0.1) for n in (1, 2))
    given = {
        "states": (state(seed), state(seed + 1, 0)),
        "numbers": (seed, -3),
        "randoms": (random_state(np.random.default_rng(seed)),),
        "rounds": 7,
        "history": rounds,
        "best": BestState(state(seed + 2, 70), (0, 5, 1), True),
    }
    return StepRecord(**given | changes)


def same(one, other):
    """Return whether two records are equal."""
    return vars(one) == vars(other)


def opened(folder, fit="a", resume=True):
    """Return the steps in a folder, all of which are written at once."""
    steps = StepFiles(folder)
    steps.is_due = lambda: True
    (steps.resume if resume else steps.begin)(fit)
    return steps


def loaded(folder, name, shape=SHAPE, fit="a"):
    """Return a record in a folder."""
    return opened(folder, fit).load(name, shape, lambda record: None)


def files(folder):
    return sorted(path.name for path in folder.glob("*.npz"))


@pytest.mark.parametrize(
    "changes",
    [{}, {"best": None, "rounds": 0}, {"best": BestState(state(0), (1, 2, 3), False)}, {"states": ()}],
    ids=["another best state", "no best state", "a state is the best", "no states"],
)
def test_a_record_is_loaded_unchanged(tmp_path, changes):
    steps = opened(tmp_path, resume=False)
    steps.save("one", record(**changes))
    assert same(loaded(tmp_path, "one"), record(**changes))
    assert loaded(tmp_path, "other") is None


def test_steps_are_written_together_when_that_is_due(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    steps = StepFiles(tmp_path, min_seconds=3.0)
    for seconds, n_files in ((1.0, 0), (2.9, 0), (3.0, 1), (5.9, 1), (6.0, 2), (8.9, 2)):
        now[0] = 100.0 + seconds
        steps.save(f"after {seconds}", record())
        assert len(files(tmp_path)) == n_files
    steps.flush()
    assert len(files(tmp_path)) == 3
    assert all(same(loaded(tmp_path, f"after {seconds}", fit=""), record()) for seconds in (1.0, 3.0, 5.9, 8.9))
    now[0] = 1100.0  # after 1000 seconds, every 20 seconds
    steps.save("late", record())
    for seconds, is_due in ((3.0, False), (19.9, False), (21.0, True)):
        now[0] = 1100.0 + seconds
        assert steps.is_due() is is_due


def test_slow_writes_are_rare(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    fsync = os.fsync

    def slow(file):
        now[0] += 0.5
        fsync(file)

    steps = StepFiles(tmp_path, min_seconds=0.0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", slow)
        steps.save("one", record())  # which takes a second, with that of the folder
    now[0] += 49.0
    assert not steps.is_due()
    now[0] += 2.0
    assert steps.is_due()


def test_records_are_replaced_and_dropped_with_their_files(tmp_path):
    steps = opened(tmp_path, resume=False)
    steps.save("loop", record(1))
    steps.save("step.1", record(2))
    steps.save("loop", record(3))
    assert files(tmp_path) == ["search-2.npz", "search-3.npz"]
    steps.drop("step.")
    steps.save("step", record(4))
    assert files(tmp_path) == ["search-3.npz", "search-4.npz"]
    assert same(loaded(tmp_path, "loop"), record(3))
    assert same(loaded(tmp_path, "step"), record(4))
    again = opened(tmp_path)
    again.save("step", record(5))  # in a file of its own
    assert files(tmp_path) == ["search-3.npz", "search-5.npz"]
    again.clear()
    assert files(tmp_path) == []


def test_a_full_disk_leaves_the_previous_steps(tmp_path, monkeypatch):
    steps = opened(tmp_path, resume=False)
    steps.save("one", record())
    with monkeypatch.context() as patched:
        patched.setattr("bitatoms.rows.checkpoint_file.os.fsync", lambda file: os.write(-1, b""))
        with pytest.raises(
            FileError, match="The previous checkpoint is intact; fix the problem, then pass resume=True"
        ):
            steps.save("other", record(1))
    assert same(loaded(tmp_path, "one"), record())
    steps.flush()
    assert same(loaded(tmp_path, "other"), record(1))


def assert_corrupt(folder, *parts, **how):
    """Assert that loading a step raises a one-line error that names the file."""
    with pytest.raises(FileError) as caught:
        loaded(folder, "one", **how)
    message = str(caught.value)
    assert message.startswith(str(folder / "search-1.npz"))
    assert "; move this file away, or choose another folder, to start over" in message
    assert "\n" not in message
    for part in parts:
        assert part in message


def rewrite(folder, entries=None, step=None, **arrays):
    """Change entries of the file, or of its step, or some arrays."""
    path = folder / "search-1.npz"
    with np.load(path) as file:
        old = dict(file)
    found = json.loads(old["bitatoms"].tobytes())
    found["steps"][0] |= step or {}
    old["bitatoms"] = np.frombuffer(json.dumps(found | (entries or {})).encode(), np.uint8)
    changed = {name.replace("_", " ").strip(): value for name, value in arrays.items()}
    np.savez(path, **{name: value for name, value in (old | changed).items() if value is not None})


PCG = random_state(np.random.default_rng(0)).state
CORRUPT = {
    "newer": ({"entries": {"version": 99, "bitatoms": "9.0"}}, "written by bitatoms 9.0, which is newer"),
    "another kind": ({"entries": {"format": "bitatoms model"}}, "not a search steps, but a model"),
    "another fit": ({"entries": {"fit": "b"}}, "this file belongs to another fit"),
    "no steps": ({"entries": {"steps": 3}}, "corrupt checkpoint"),
    "no name": ({"entries": {"steps": [{}]}}, "corrupt checkpoint"),
    "an array is missing": ({"_0_0_atoms": None}, "corrupt checkpoint"),
    "atoms of floats": ({"_0_0_atoms": np.zeros((3, 1))}, "corrupt checkpoint"),
    "bits past the end": ({"_0_0_atoms": np.full((3, 1), 1 << 40, np.uint64)}, "ones past column 40"),
    "codes of other rows": ({"_0_0_codes": np.zeros((19, 1), np.uint64)}, "its 0 0 codes has shape (19, 1)"),
    "two biases": ({"_0_0_bias": np.zeros((2, 1), np.uint64)}, "its 0 0 bias has shape (2, 1)"),
    "a cost that is no number": ({"step": {"states": [{"cost": "1", "n_rows": 20, "n_cols": 40}]}}, "corrupt"),
    "rows below zero": ({"step": {"states": [{"cost": 1, "n_rows": -1, "n_cols": 40}]}}, "its n_rows is -1"),
    "a best state that is not there": (
        {"step": {"best": {"state": {"same_as": 2, "cost": 1}, "rank": [1, 2, 3], "by_holdout": False}}},
        "corrupt checkpoint",
    ),
    "another generator": (
        {"step": {"randoms": [{"state": PCG | {"bit_generator": "os"}, "n_spawned": 0}]}},
        "invalid state of a random generator",
    ),
    "too many generators": ({"step": {"randoms": [{"state": PCG, "n_spawned": 1 << 40}]}}, "its n_spawned is"),
    "history of other fields": ({"step": {"history_fields": ["what"]}}, "corrupt checkpoint"),
    "half a number": ({"step": {"numbers": [0.5]}}, "corrupt checkpoint"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_a_corrupt_file_raises_and_is_named(case, tmp_path):
    changes, part = CORRUPT[case]
    opened(tmp_path, resume=False).save("one", record())
    rewrite(tmp_path, **changes)
    assert_corrupt(tmp_path, part)


def test_a_record_that_cannot_be_restored_from_is_corrupt(tmp_path):
    def fail(record):
        raise ValueError("3 generators cannot have been spawned")

    opened(tmp_path, resume=False).save("one", record())
    assert_corrupt(tmp_path, "its step one is not of 21 rows and 40 columns", shape=(21, 40))
    with pytest.raises(
        FileError, match=r"search-1.npz: corrupt checkpoint: 3 generators cannot have been spawned; move"
    ):
        opened(tmp_path).load("one", SHAPE, fail)


@settings(max_examples=20, deadline=None)
@given(position=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_changed_byte_raises_or_does_not_matter(tmp_path_factory, position, byte):
    folder = tmp_path_factory.mktemp("fuzz")
    opened(folder, resume=False).save("one", record())
    path = folder / "search-1.npz"
    data = bytearray(path.read_bytes())
    data[int(position * (len(data) - 1))] = byte
    path.write_bytes(data)
    found = outcome(lambda path: loaded(folder, "one"), path)
    assert found is None or same(found, record())


# --- in the folder of a checkpoint


@pytest.fixture
def folder(tmp_path):
    """A folder with a search that was killed."""
    with suppress(KeyboardInterrupt), Checkpoint(tmp_path, call_of(), resume=False) as checkpoint:
        checkpoint.random(np.random.default_rng(0))
        checkpoint.steps.save("one", record())
        raise KeyboardInterrupt
    return tmp_path


def reopened(folder, resume=True, **call):
    """Return the record in a folder."""
    with Checkpoint(folder, call_of(**call), resume) as checkpoint:
        return checkpoint.steps.load("one", SHAPE, lambda record: None)


def test_steps_are_saved_when_a_fit_is_interrupted(folder):
    assert files(folder) == ["search-1.npz", "state.npz"]
    assert same(reopened(folder), record())


def test_an_unfinished_search_is_not_overwritten(folder):
    with pytest.raises(
        FileError, match=r"contains an unfinished fit; pass resume=True to resume it, or delete state\.npz"
    ):
        reopened(folder, resume=False)
    with pytest.raises(FileError, match="the fit of a different call: n_components was 20 and is 3"):
        reopened(folder, n_components=3)
    assert same(reopened(folder), record())


def test_without_its_state_a_search_starts_over(folder):
    (folder / "state.npz").unlink()
    assert reopened(folder, resume=False) is None
    assert files(folder) == []


def test_steps_of_another_fit_raise(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    with Checkpoint(other, call_of(), resume=False) as checkpoint:
        checkpoint.random(np.random.default_rng(1))
    (folder / "search-1.npz").rename(other / "search-1.npz")
    with pytest.raises(FileError, match="this file belongs to another fit; move this file away"):
        reopened(other)


def test_a_finished_search_is_replaced(folder):
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        checkpoint.end_search(finished=True)
    assert same(reopened(folder), record())
    assert reopened(folder, resume=False, n_components=3) is None
    assert files(folder) == ["state.npz"]


def test_passes_replace_the_search(folder):
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        checkpoint.save(example_state())
    assert files(folder) == ["state.npz"]


def test_a_short_search_leaves_nothing_but_one_that_is_not_finished_can_be_resumed(tmp_path):
    for finished in (True, False):
        with Checkpoint(tmp_path, call_of(), resume=True) as checkpoint:
            checkpoint.random(np.random.default_rng(0))
            checkpoint.steps.save("one", record())
            checkpoint.end_search(finished)
        assert (reopened(tmp_path) is None) is finished


# --- whole searches


@pytest.fixture
def written_at_once(monkeypatch):
    """Write each step."""
    use_small_budget(monkeypatch)
    monkeypatch.setattr(StepFiles, "is_due", lambda steps: True)


def test_an_interrupted_fit_resumes_to_the_same_model(written_at_once, tmp_path):
    def interrupt(row):
        if row.round == 12:
            raise KeyboardInterrupt

    how = {"random_state": None, "algebra": "or", "checkpoint": tmp_path}  # the checkpoint keeps the random numbers
    with pytest.raises(ba.Interrupted) as caught:
        ba.factorize(X, callbacks=interrupt, **how)
    with pytest.raises(FileError, match="contains an unfinished fit"):
        ba.factorize(X, **how)
    with pytest.raises(FileError, match="the rows differ"):
        ba.factorize(X[::-1], resume=True, **how)
    resumed = ba.factorize(X, resume=True, **how)
    assert resumed.codelength.total <= caught.value.result.codelength.total
    assert len(files(tmp_path)) == 2  # one start
    assert_same_search(ba.factorize(X, resume=True, **how), resumed)


def test_a_search_ended_by_its_time_goes_on(written_at_once, tmp_path):
    def fit(**how):
        return ba.BinaryDictionaryLearning(random_state=0, checkpoint=tmp_path, **how).fit(X)

    with pytest.warns(
        ConvergenceWarning,
        match="max_time ended the search .*; raise it for a better model, or pass resume=True to go on from the check",
    ):
        cut = fit(max_time=1e-9)
    resumed = fit(resume=True)
    uninterrupted = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    assert resumed.codelength_.total == uninterrupted.codelength_.total < cut.codelength_.total
    np.testing.assert_array_equal(resumed.components_, uninterrupted.components_)


def fails_after(function, n_successes):
    """Return a function that works this many times, until the disk is full."""
    left = [n_successes]

    def limited(*arguments, **named):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return function(*arguments, **named)

    return limited


FULL = {
    "writing": lambda n: ("bitatoms.rows.checkpoint_file.npy.write_array", fails_after(np.lib.format.write_array, n)),
    "syncing": lambda n: ("os.fsync", fails_after(os.fsync, n)),
    "renaming": lambda n: ("os.replace", fails_after(os.replace, n)),
}


@pytest.mark.parametrize("point", FULL)
@pytest.mark.parametrize("n_successes", [0, 1, 5, 18])
def test_a_search_that_finds_the_disk_full_is_resumed(
    written_at_once, tmp_path, monkeypatch, caplog, point, n_successes
):
    how = {"random_state": 0, "algebra": "or", "checkpoint": tmp_path}
    with monkeypatch.context() as patch:
        patch.setattr(*FULL[point](n_successes))
        with pytest.raises(FileError, match="No space left on device") as caught:
            ba.factorize(X, **how)
    assert ("The previous checkpoint is intact" in str(caught.value)) == (tmp_path / "state.npz").exists()
    assert caplog.messages == []  # the error is not logged in addition
    assert not list(tmp_path.glob(".*.part"))
    resumed = ba.factorize(X, resume=True, **how)
    assert_same_search(resumed, ba.factorize(X, random_state=0, algebra="or"))
