"""The option --device: it reaches the rows, and an error comes before a table is read."""

import json

import pytest

import bitatoms as ba

pytest.importorskip("click")

from support.devices import FOUND, fake_cupy, found_device, installed_cupy

pytestmark = pytest.mark.usefixtures("few_trials")

COMMANDS = [  # of others, test_options.py shows that the option arrives
    "fit rows.zarr -k 3 -o new.npz --search-rows 150",
    "transform model.npz table.csv -o codes.csv",
    "transform model.npz rows.zarr -o codes.zarr",
    "transform model.npz rows.zarr --soft -o soft.csv",
    "reconstruct model.npz table.csv -o clean.csv",
    "recommend model.npz table.csv",
    "score model.npz table.csv -o scores.csv",
]


@pytest.fixture(autouse=True)
def baskets(put):
    put("or")


@pytest.mark.parametrize("command", COMMANDS)
def test_rows_are_processed_on_it(bitatoms, command):
    if "rows.zarr" in command:
        pytest.importorskip("zarr")
        ba.pack("table.csv", "rows.zarr")
    with found_device() as devices:
        code, _, stderr = bitatoms(*command.split(), "--device", "cuda", "-j", "1")
    assert code == 0, stderr
    assert FOUND in devices


def test_missing_values_are_completed_with_it(bitatoms):
    with found_device():
        assert bitatoms("complete", "model.npz", "table.csv", "-o", "filled.csv", "--device", "cuda")[0] == 0


def test_an_error_comes_before_the_table_is_read(bitatoms):
    for cupy, command, message in (
        (None, ("fit", "none.csv"), "CuPy is not installed; install it with pip install"),
        (fake_cupy(n_devices=0), ("transform", "none.npz", "none.csv"), "CuPy finds no CUDA device"),
    ):
        with installed_cupy(cupy):
            code, out, stderr = bitatoms(*command, "--device", "cuda")
        assert (code, out) == (2, "")
        assert f"--device cuda is not available: {message}" in " ".join(stderr.split())


def test_auto_falls_back(bitatoms):
    with installed_cupy(None):
        fit = "fit", "table.csv", "-k", "1", "--device", "auto"
        code, out, stderr = bitatoms(*fit, "--json")
        assert bitatoms(*fit, "--quiet") == (0, "", "")
    assert (code, json.loads(out)["atoms"]) == (0, 1)
    assert stderr == "Note: computing on the CPU: a table of 12000 cells is too small to gain by a device\n"
