"""`bitatoms fit --codes` writes the codes that the counts of a model refer to, which coding afresh may not give."""

import base64

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")
pytest.importorskip("zarr")

from bitatoms.core.result import reconstruct
from support.scripts import data_of

pytestmark = pytest.mark.usefixtures("few_trials")

X = ba.datasets.planted(300, 40, 12, code_density=0.3, noise=0.15, random_state=2).X


@pytest.fixture(autouse=True)
def files(tmp_path):
    """Write the table as a file and as a packed store."""
    ba.write(ba.Table(ba.BitMatrix.from_dense(X)), tmp_path / "table.npz")
    ba.pack(tmp_path / "table.npz", tmp_path / "rows.zarr")


def recounted(codes):
    """Assert that the counts of model.npz are those of codes, and return the codes."""
    model = ba.load("model.npz").as_model()
    codes = ba.read(codes).bits
    np.testing.assert_array_equal(codes.column_weights(), model.uses)
    wrong = reconstruct(codes, model.atoms, model.bias, model.algebra).to_dense() != X
    np.testing.assert_array_equal(wrong.sum(axis=0), model.wrong)
    return codes


@pytest.mark.parametrize("rows", ["table.npz", "rows.zarr"])
@pytest.mark.parametrize("how", [(), ("--search-rows", "150")], ids=["all rows", "a sample"])
def test_the_counts_of_a_model_are_those_of_the_codes_that_fit_writes_and_its_report_shows(
    bitatoms, tmp_path, rows, how
):
    written = ("-o", "model.npz", "--codes", "codes.npz", "--report", "fit.html")
    assert bitatoms("fit", rows, *written, "--algebra", "xor", *how)[0] == 0
    codes = recounted("codes.npz")
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    shown, n_atoms = base64.b64decode(data_of(page)["rows"]["codes"]), data_of(page)["shape"][2]
    assert ba.BitMatrix.from_bytes(shown, len(X), n_atoms) == codes
    assert "with the patterns that the fit gave them" in page
    assert bitatoms("transform", "model.npz", "table.npz", "-o", "again.npz")[0] == 0
    assert ba.read("again.npz").bits != codes  # this table shows the difference
    assert bitatoms("report", "model.npz", "table.npz", "-o", "again.html")[0] == 0
    assert "does not hold the codes of its fit" in (tmp_path / "again.html").read_text(encoding="utf-8")
    assert bitatoms("reconstruct", "model.npz", "--codes", "codes.npz", "-o", "clean.npz")[0] == 0
    wrong = (ba.read("clean.npz").to_dense() != X).sum(axis=0)
    np.testing.assert_array_equal(wrong, ba.load("model.npz").as_model().wrong)


def test_codes_of_a_store_in_another_store(bitatoms, tmp_path):
    how = ("--search-rows", "150", "--algebra", "xor", "--checkpoint", "checkpoint", "-o", "model.npz", "--codes")
    assert bitatoms("fit", "rows.zarr", *how, "codes.zarr")[0] == 0
    codes = recounted("codes.zarr")
    assert not list((tmp_path / "checkpoint").glob("codes-*.bin"))  # removed after use
    # A finished fit is resumed: the passes are repeated for their codes.
    assert bitatoms("fit", "rows.zarr", *how, "codes.npz", "--resume")[0] == 0
    assert recounted("codes.npz") == codes
