"""`bitatoms fit --codes` writes the codes that the counts of a model refer to, which coding afresh may not give."""

from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")
pytest.importorskip("zarr")

from bitatoms.core.result import reconstruct
from support.commands import runner

pytestmark = pytest.mark.usefixtures("few_trials")

X = ba.datasets.planted(900, 40, 12, code_density=0.3, noise=0.15, random_state=2).X
SEARCHES = {"all rows": (), "a sample": ("--search-rows", "300")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with a table as a file and as a packed store."""
    folder = tmp_path_factory.mktemp("codes")
    ba.write(ba.Table(ba.BitMatrix.from_dense(X)), folder / "table.npz")
    ba.pack(folder / "table.npz", folder / "rows.zarr")
    return folder


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return runner(capsys)


@pytest.fixture(scope="module")
def recounted(folder):
    """Return a function that asserts that the counts of a model are those of codes, and returns the codes."""

    def recount(codes):
        model = ba.load(folder / "model.npz").as_model()
        codes = ba.read(folder / codes).bits
        np.testing.assert_array_equal(codes.column_weights(), model.uses)
        wrong = reconstruct(codes, model.atoms, model.bias, model.algebra).to_dense() != X
        np.testing.assert_array_equal(wrong.sum(axis=0), model.wrong)
        return codes

    return recount


@pytest.mark.parametrize("rows", ["table.npz", "rows.zarr"])
@pytest.mark.parametrize("how", SEARCHES.values(), ids=SEARCHES)
def test_the_counts_of_a_model_are_those_of_the_codes_that_fit_writes(bitatoms, recounted, rows, how):
    written = ("-o", "model.npz", "--codes", "codes.npz")
    assert bitatoms("fit", rows, *written, "--algebra", "xor", *how)[0] == 0
    codes = recounted("codes.npz")
    assert bitatoms("transform", "model.npz", "table.npz", "-o", "again.npz")[0] == 0
    assert ba.read("again.npz").bits != codes  # this table shows the difference


def test_codes_of_a_store_in_another_store(bitatoms, recounted):
    how = ("--search-rows", "300", "--algebra", "xor", "--checkpoint", "checkpoint")
    written = ("-o", "model.npz", "--codes")
    assert bitatoms("fit", "rows.zarr", *written, "codes.zarr", *how)[0] == 0
    codes = recounted("codes.zarr")
    assert not list(Path("checkpoint").glob("codes-*.bin"))  # removed after use
    # A finished fit is resumed: the passes are repeated for their codes.
    assert bitatoms("fit", "rows.zarr", *written, "codes.npz", *how, "--resume")[0] == 0
    assert recounted("codes.npz") == codes


def test_reconstruction_from_the_codes_of_a_fit(bitatoms):
    assert bitatoms("fit", "table.npz", "-o", "model.npz", "--codes", "codes.npz", "--algebra", "xor")[0] == 0
    assert bitatoms("reconstruct", "model.npz", "--codes", "codes.npz", "-o", "clean.npz")[0] == 0
    model = ba.load("model.npz").as_model()
    np.testing.assert_array_equal((ba.read("clean.npz").to_dense() != X).sum(axis=0), model.wrong)


@pytest.mark.parametrize("command", ["transform", "reconstruct", "show"])
def test_help_says_where_the_codes_of_the_fit_are(bitatoms, command):
    assert "bitatoms fit --codes" in " ".join(bitatoms(command, "--help")[1].split())
