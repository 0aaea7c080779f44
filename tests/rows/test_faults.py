"""A fit that is killed or finds the disk full is resumed to the same result."""

import errno
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.parallel import Workers
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.store import Store, StoreRows
from support.sources import assert_same, learned, write_store

SHAPE = (3000, 130)
needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="starting a process for each kill takes long without fork"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store of several chunks."""
    path = tmp_path_factory.mktemp("faults") / "rows.zarr"
    data = ba.datasets.planted(*SHAPE, 10, noise=0.03, random_state=0)
    return write_store(path, BitMatrix.from_dense(data.X), chunk_bytes=17 * 500).path


@needs_fork
@pytest.mark.parametrize(
    ("params", "n_kills"),
    [
        ({"n_components": 9, "search_rows": 300, "max_iter": 9}, 6),
        ({"n_components": "mdl", "algebra": "or", "search_rows": 400}, 4),  # by windows
    ],
    ids=["9", "mdl"],
)
def test_a_fit_killed_at_random_events_gives_the_same_bits(params, n_kills, path, tmp_path):
    report = killed_fits(path, tmp_path, params, n_kills)
    assert report["events"].count("saved part of a pass") > 2 * 8  # states within passes to resume from
    n_searching = report["events"].index("saved a pass")  # before the first pass
    assert report["events"][:n_searching].count("rename") > 5  # steps of the search to resume from


@needs_fork
def test_a_search_without_passes_killed_at_random_events_gives_the_same_bits(tmp_path):
    data = ba.datasets.planted(200, SHAPE[1], 6, noise=0.03, random_state=0)
    path = write_store(tmp_path / "rows.zarr", BitMatrix.from_dense(data.X)).path
    report = killed_fits(path, tmp_path, {"n_components": "mdl"}, 3)
    assert report["events"].count("rename") > 5


@needs_fork
def test_a_fit_with_costs_of_errors_killed_at_random_events_gives_the_same_bits(path, tmp_path):
    costs = {"algebra": "or", "false_positive_cost": math.inf, "false_negative_cost": [1.0, 2.0] * 65}
    report = killed_fits(path, tmp_path, {**costs, "search_rows": 200}, 4)
    n_searching = report["events"].index("saved a pass")
    assert report["events"][:n_searching].count("rename") > 3


def killed_fits(path, tmp_path, params, n_kills):
    """Kill fits of a store this many times, and return what happened, after checking the results."""
    program = Path(__file__).parents[1] / "support" / "kill.py"
    command = [sys.executable, str(program), str(path), str(tmp_path), json.dumps(params), "0", str(n_kills)]
    python_path = os.pathsep.join([str(program.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": python_path}
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout)
    assert sum(map(len, report["kills"])) >= n_kills
    assert set(report["results"]) == {report["uninterrupted"]}
    return report


class FullDisk:
    """Makes every sync fail after some successful ones."""

    def __init__(self, fsync, n_successes):
        self.fsync, self.n_left = fsync, n_successes

    def __call__(self, file):
        self.n_left -= 1
        if self.n_left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.fsync(file)


def test_a_fit_stopped_by_a_full_disk_is_resumed(path, tmp_path, monkeypatch):
    store, workers = Store(path), Workers(1, chunk_rows=320)
    params = {"n_components": 9, "search_rows": 300, "max_iter": 9, "workers": workers}

    def fit(folder, resume):
        with Checkpoint(folder, {"n_samples": SHAPE[0], "n_features": SHAPE[1]}, resume) as checkpoint:
            rows = StoreRows(store, workers, code_folder=folder)
            rows.save_interval = 0.0
            return learned(rows, checkpoint.random(np.random.default_rng(5)), checkpoint, **params)

    uninterrupted = fit(tmp_path / "uninterrupted", resume=False)
    for n_successes in (0, 1, 2, 3, 4, 8, 20):
        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", FullDisk(os.fsync, n_successes))
            with pytest.raises(ba.FileError, match="No space left on device"):
                fit(tmp_path / "interrupted", resume=True)
    assert_same(fit(tmp_path / "interrupted", resume=True), uninterrupted)
