"""The option --device: where it is, that it reaches the rows, and its errors."""

import json

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")

from support.commands import runner
from support.devices import FOUND, fake_cupy, found_device, installed_cupy

pytestmark = pytest.mark.usefixtures("few_trials")

X = ba.datasets.planted(80, 20, 3, code_density=0.4, noise=0.02, random_state=0).X
COMMANDS = {
    "fit": ("table.csv", "-k", "3", "-o", "new.npz", "--report", "fit.html", "--codes", "fit.csv"),
    "transform": ("model.npz", "table.csv", "-o", "codes.csv"),
    "reconstruct": ("model.npz", "table.csv", "-o", "clean.csv"),
    "crossvalidate": ("table.csv", "-k", "2", "--folds", "2"),
    "stability": ("table.csv", "model.npz", "--resamples", "2"),
    "recommend": ("model.npz", "table.csv"),
    "score": ("model.npz", "table.csv", "-o", "scores.csv"),
    "report": ("model.npz", "table.csv", "-o", "report.html"),
    "denoise": ("picture.pbm", "-o", "clean.pbm", "--block-sizes", "4", "--stride", "4"),
    "inpaint": ("picture.pbm", "--mask", "mask.pbm", "-o", "whole.pbm", "--block-sizes", "4", "--stride", "4"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with a table, a model of it, a picture and a mask."""
    folder = tmp_path_factory.mktemp("devices")
    ba.write(ba.BitMatrix.from_dense(X), folder / "table.csv")
    ba.write(ba.BitMatrix.from_dense(np.tile(np.eye(4, dtype=np.uint8), (4, 4))), folder / "picture.pbm")
    ba.write(ba.BitMatrix.from_dense(np.eye(16, dtype=np.uint8)), folder / "mask.pbm")
    ba.BinaryDictionaryLearning(3, random_state=0).fit(X).save(folder / "model.npz")
    return folder


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    monkeypatch.chdir(folder)
    return runner(capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_rows_are_processed_on_it(bitatoms, command):
    with found_device() as devices:
        code, _, stderr = bitatoms(command, *COMMANDS[command], "--device", "cuda", "-j", "1")
    assert code == 0, stderr
    assert FOUND in devices


def test_stores_are_processed_on_it(bitatoms, folder, tmp_path):
    pytest.importorskip("zarr")
    ba.pack(X, tmp_path / "rows.zarr")
    for command in (
        ("fit", tmp_path / "rows.zarr", "-k", "3", "-o", tmp_path / "model.npz", "--search-rows", "40"),
        ("transform", "model.npz", tmp_path / "rows.zarr", "-o", tmp_path / "codes.zarr"),
        ("transform", "model.npz", tmp_path / "rows.zarr", "--soft", "-o", tmp_path / "soft.csv"),
    ):
        with found_device() as devices:
            code, _, stderr = bitatoms(*command, "--device", "auto", "-j", "1")
        assert code == 0, stderr
        assert FOUND in devices


def test_missing_values_are_completed_with_it(bitatoms):
    with found_device():
        assert bitatoms("complete", "model.npz", "table.csv", "-o", "filled.csv", "--device", "cuda")[0] == 0


def test_an_error_comes_before_the_table_is_read(bitatoms):
    message = "--device cuda is not available: CuPy is not installed; install it with pip install"
    with installed_cupy(None):
        code, out, stderr = bitatoms("fit", "no such table.csv", "--device", "cuda")
        assert (code, out) == (2, "")
        assert message in " ".join(stderr.split())
    with installed_cupy(fake_cupy(n_devices=0)):
        code, _, stderr = bitatoms("transform", "no such model.npz", "no such table.csv", "--device", "cuda")
        assert code == 2
        assert "--device cuda is not available: CuPy finds no CUDA device" in stderr


def test_auto_falls_back(bitatoms):
    with installed_cupy(None):
        fit = "fit", "table.csv", "-k", "3", "--device", "auto"
        code, out, stderr = bitatoms(*fit, "--json")
        assert bitatoms(*fit, "--quiet") == (0, "", "")
    assert (code, json.loads(out)["atoms"]) == (0, 3)
    assert stderr == "Note: computing on the CPU: a table of 1600 cells is too small to gain by a device\n"


def test_other_devices_are_errors(bitatoms):
    code, _, stderr = bitatoms("fit", "table.csv", "--device", "gpu")
    assert code == 2
    assert "'gpu' is not one of 'cpu', 'cuda', 'auto'" in " ".join(stderr.replace("│", " ").split())


def test_the_help_names_the_choices(bitatoms):
    _, out, _ = bitatoms("transform", "--help")
    assert "--device" in out
    assert "cpu|cuda|auto" in out
