"""`bitatoms fit --codes` writes the codes that the counts of a model refer to, which coding afresh may not give."""

import base64
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")
pytest.importorskip("zarr")

from bitatoms.core.result import reconstruct
from support.commands import runner
from support.scripts import data_of

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


@pytest.mark.parametrize("rows", ["table.npz", "rows.zarr"])
@pytest.mark.parametrize("how", SEARCHES.values(), ids=SEARCHES)
def test_the_report_of_a_fit_shows_its_codes(bitatoms, folder, recounted, rows, how):
    for written in (("--codes", "codes.npz"), ("--report", "fit.html")):
        assert bitatoms("fit", rows, "-o", "model.npz", *written, "--algebra", "xor", *how)[0] == 0
    data = data_of((folder / "fit.html").read_text(encoding="utf-8"))
    codes = ba.BitMatrix.from_bytes(base64.b64decode(data["rows"]["codes"]), len(X), data["shape"][2])
    assert codes == recounted("codes.npz")
    assert "with the patterns that the fit gave them" in (folder / "fit.html").read_text(encoding="utf-8")
    assert bitatoms("report", "model.npz", "table.npz", "-o", "again.html")[0] == 0
    assert "does not hold the codes of its fit" in (folder / "again.html").read_text(encoding="utf-8")


def test_the_report_of_a_fit_with_weights_shows_its_codes(bitatoms, folder):
    lines = ["a,b,c,n", "1,1,0,3", "0,0,1,2", "1,1,1,4", "0,0,0,1"] * 3
    Path("weighted.csv").write_text("\n".join(lines[:1] + [line for line in lines if line[0] != "a"]) + "\n")
    how = ("--weight-column", "n", "--algebra", "or", "-k", "2")
    assert bitatoms("fit", "weighted.csv", *how, "--report", "weighted.html", "--codes", "w.csv")[0] == 0
    data = data_of((folder / "weighted.html").read_text(encoding="utf-8"))
    codes = ba.BitMatrix.from_bytes(base64.b64decode(data["rows"]["codes"]), 30, 2).to_dense()
    own = ba.read("w.csv").to_dense()
    np.testing.assert_array_equal(codes, np.repeat(own, [3, 2, 4, 1] * 3, axis=0))
