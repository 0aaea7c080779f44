"""What goes wrong in a long fit, a process that is killed or a disk that is full, costs time and not the result."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.io.packed_store import PackedStoreWriter
from bitatoms.io.stream import RowChunk
from bitatoms.parallel import Workers
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.store import Store, StoreRows
from support.sources import assert_same, learned

SHAPE = (6000, 130)
N_KILLS = 10


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store of several chunks."""
    path = tmp_path_factory.mktemp("faults") / "rows.zarr"
    data = ba.datasets.planted(*SHAPE, 10, noise=0.03, random_state=0)
    with PackedStoreWriter(path, SHAPE[1], chunk_bytes=17 * 1000) as writer:
        writer.append(RowChunk(BitMatrix.from_dense(data.X)))
    return path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process for each kill would take long where none can be forked")
@pytest.mark.parametrize(
    "how",
    [
        {"n_components": 9, "search_rows": 300, "max_iter": 9},
        {"n_components": "mdl", "algebra": "or", "search_rows": 1200},
    ],
    ids=lambda how: str(how["n_components"]),
)
def test_a_fit_killed_at_random_moments_ends_with_the_same_bits(how, path, tmp_path):
    program = Path(__file__).parents[1] / "support" / "kill.py"
    command = [sys.executable, str(program), str(path), str(tmp_path), json.dumps(how), "0", str(N_KILLS)]
    paths = os.pathsep.join([str(program.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert sum(map(len, told["kills"])) >= N_KILLS
    assert (
        told["events"].count("saved half a pass") > 2 * 8
    )  # there was something to go on from in the middle of passes
    assert set(told["results"]) == {told["undisturbed"]}


class FullDisk:
    """Makes every write to the disk fail from some time on."""

    def __init__(self, fsync, room):
        self.fsync, self.room = fsync, room

    def __call__(self, file):
        self.room -= 1
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.fsync(file)


def test_a_fit_that_finds_the_disk_full_goes_on_when_there_is_room(path, tmp_path, monkeypatch):
    store, workers = Store(path), Workers(1, chunk_rows=640)
    how = {"n_components": 9, "search_rows": 300, "max_iter": 9, "workers": workers}

    def fit(folder, resume):
        with Checkpoint(folder, {"n_samples": SHAPE[0], "n_features": SHAPE[1]}, resume) as checkpoint:
            rows = StoreRows(store, workers, scratch=folder)
            rows.keep_every = 0.0
            return learned(rows, checkpoint.random(np.random.default_rng(5)), checkpoint, **how)

    undisturbed = fit(tmp_path / "undisturbed", resume=False)
    for room in (0, 1, 2, 3, 4, 8, 20):
        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", FullDisk(os.fsync, room))
            with pytest.raises(ba.FileError, match="No space left on device"):
                fit(tmp_path / "disturbed", resume=True)
    assert_same(fit(tmp_path / "disturbed", resume=True), undisturbed)
