"""Checkpoint: what its files hold, when it resumes, locks, corrupt files, and full disks."""

import errno
import gc
import os
import sys
import warnings

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.rows import checkpoint as checkpoints
from bitatoms.rows.checkpoint import Checkpoint
from support.checkpoints import PARAMS, assert_equal, assert_raises, call_of, example_state, load, unfinished_fit

GENERATORS = [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64]


@pytest.fixture
def folder(tmp_path):
    """A folder with an unfinished fit."""
    return unfinished_fit(tmp_path / "fit")


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_resumed_fit_has_the_random_numbers_of_the_first_call(kind, tmp_path):
    def drawn(checkpoint):
        return checkpoint.random(generator).integers(0, 1 << 40, 1000).tolist()

    generator = np.random.Generator(kind(3))
    generator.integers(0, 9, 7, dtype=np.uint32)  # leaves half a word buffered
    with Checkpoint(tmp_path / "fit", call_of(), resume=False) as checkpoint:
        first = drawn(checkpoint)
    for _ in range(2):
        with Checkpoint(tmp_path / "fit", call_of(), resume=True) as checkpoint:
            assert drawn(checkpoint) == first
            checkpoint.save(example_state())  # which saves the generator too
    with Checkpoint(tmp_path / "other", call_of(), resume=True) as checkpoint:
        assert drawn(checkpoint) != first


def test_a_generator_of_unknown_type_raises(tmp_path):
    class Own:
        class bit_generator:
            state = {"bit_generator": "Own", "state": 3}  # noqa: RUF012

    with (
        Checkpoint(tmp_path / "fit", call_of(), resume=False) as checkpoint,
        pytest.raises(ValueError, match="random_state of type Own cannot be saved in a checkpoint; pass an integer"),
    ):
        checkpoint.random(Own)


def test_files_of_killed_processes_are_removed_and_no_others(folder):
    (folder / ".state.npz.abc.part").mkdir()
    (folder / ".state.npz.abc.part" / "state.npz").write_bytes(b"incomplete")
    others = [folder / name for name in (".other.part", "codes 1", "state.npz.part")]
    for other in others:
        other.mkdir()
    assert_equal(load(folder), example_state())
    assert sorted(folder.iterdir()) == sorted([*others, folder / "state.npz", folder / "lock"])


def test_an_unfinished_fit_is_not_overwritten(folder):
    unfinished = "contains an unfinished fit; pass resume=True to resume it, or delete state.npz"
    for n_components in (20, 3):
        assert_raises(folder, unfinished, resume=False, call=call_of(n_components=n_components))
    assert_equal(load(folder), example_state())


def test_a_finished_fit_is_returned_or_replaced(folder):
    finished = example_state(finished=True)
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        checkpoint.save(finished)
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        assert_equal(checkpoint.load(PARAMS), finished)
    with Checkpoint(folder, call_of(n_components=3), resume=False) as checkpoint:
        assert checkpoint.load(PARAMS) is None
        checkpoint.random(np.random.default_rng())
        assert checkpoint.load(PARAMS) is None
    with Checkpoint(folder, call_of(n_components=3), resume=True) as checkpoint:
        assert checkpoint.load(PARAMS) is None


CALLS = {
    "another number": (call_of(n_components=30), "n_components was 20 and is 30;"),
    "another list": (call_of(init=[1, 2, "x"]), 'init was [1, null, "x"] and is [1, 2, "x"]'),
    "a new parameter": (call_of(forget=0.5), "forget was not given and is 0.5"),
    "other rows": (call_of(7, rows="ab"), "n_features was 40 and is 7, the rows differ;"),
    "all of it": (dict.fromkeys(("n_samples", "n_features", *"abcde"), 1), "n_samples was 1000 and is 1", "5 more)"),
}


@pytest.mark.parametrize("case", CALLS)
def test_the_fit_of_another_call_raises_with_the_differences(case, folder):
    call, *parts = CALLS[case]
    assert_raises(folder, "contains the fit of a different call", "repeat that call", *parts, call=call)


def test_a_fit_of_another_version_raises(folder, monkeypatch):
    monkeypatch.setattr(checkpoints, "__version__", "99.0")
    assert_raises(folder, f"a fit of bitatoms {ba.__version__}, which 99.0 cannot resume", "install that version")
    assert_raises(folder, "which 99.0 cannot resume", call=call_of(n_components=30))


def test_a_path_that_cannot_be_a_folder_raises(tmp_path):
    (tmp_path / "file").touch()
    assert_raises(tmp_path / "file", "this is a file, but a checkpoint is a folder; choose another name")
    assert_raises(tmp_path / "none" / "fit", "there is no folder", "create it first")
    assert_raises(tmp_path / "file" / "fit")
    (tmp_path / "fit" / "state.npz").mkdir(parents=True)
    assert_raises(tmp_path / "fit", "cannot be read", "move this file away")
    (tmp_path / "locked" / "lock").mkdir(parents=True)
    assert_raises(tmp_path / "locked", "cannot be written")


def test_a_folder_is_locked_until_it_is_closed(folder, recwarn):
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        warnings.simplefilter("always")
        assert_raises(folder, "another fit is using this folder; wait until it ends")
        gc.collect()
        assert not recwarn.list  # about a file that was not closed
        checkpoint.save(example_state())
    with Checkpoint(folder, call_of(), resume=True):
        pass
    assert_raises(folder, "contains an unfinished fit", resume=False)  # which unlocks it
    with Checkpoint(folder, call_of(), resume=True):
        pass


def test_a_file_system_without_locks_gives_a_warning(folder, monkeypatch, caplog):
    def no_locks(file):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("bitatoms.system.locks._lock", no_locks)
    assert_equal(load(folder), example_state())
    assert "files cannot be locked here" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be synced")
def test_a_checkpoint_and_its_folder_are_synced(folder, monkeypatch):
    """The file before it is renamed, and the folder after that: otherwise a power failure may lose the checkpoint."""
    events = []
    fsync, replace = os.fsync, os.replace

    def record_sync(descriptor):
        status = os.fstat(descriptor)
        is_folder = os.path.samestat(status, os.stat(folder))
        events.append("sync folder" if is_folder else f"sync {status.st_ino}")
        fsync(descriptor)

    def record_rename(source, target):
        events.append(f"rename {os.stat(source).st_ino}")
        replace(source, target)

    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        monkeypatch.setattr(os, "fsync", record_sync)
        monkeypatch.setattr(os, "replace", record_rename)
        checkpoint.save(example_state())
    file = os.stat(folder / "state.npz").st_ino
    assert events == [f"sync {file}", f"rename {file}", "sync folder"]
