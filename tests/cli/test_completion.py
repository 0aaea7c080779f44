"""bitatoms complete and bitatoms crossvalidate."""

import csv
import json
import re
import warnings

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.errors import InputWarning

pytest.importorskip("typer")

from support.commands import runner

pytestmark = [
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning"),  # the command line prints them
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with a table that has missing values, the table without them, and a model."""
    folder = tmp_path_factory.mktemp("completion")
    X = ba.datasets.planted(200, 30, 3, atom_density=0.3, code_density=0.4, noise=0, random_state=0).X
    mask = np.random.default_rng(0).random(X.shape) < 0.1
    names = [f"r{j}" for j in range(len(X))], [f"f{i}" for i in range(X.shape[1])]
    bits = ba.BitMatrix.from_dense(X)
    ba.write(ba.Table(bits, *names), folder / "all.csv")
    incomplete = ba.Table(bits.with_unknown(ba.BitMatrix.from_dense(mask)), *names)
    ba.write(incomplete, folder / "table.csv")
    ba.BinaryDictionaryLearning(random_state=0).fit(incomplete).save(folder / "model.npz")
    return folder


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return runner(capsys)


def test_missing_values_are_filled_in(bitatoms, folder):
    with pytest.warns(InputWarning, match="627 missing values"):
        table = ba.read(folder / "table.csv")
    code, out, _ = bitatoms("complete", "model.npz", "table.csv", "-o", "filled.csv")
    n_missing = table.bits.n_unknown
    assert (code, out) == (0, f"filled.csv: 200 rows of 30 columns, 22.8% ones, {n_missing} missing values filled in\n")
    filled = ba.read(folder / "filled.csv")
    expected = ba.load(folder / "model.npz").complete(table)
    assert filled.bits == expected.bits
    assert (filled.row_names, filled.columns) == (table.row_names, table.columns)
    wrong = filled.to_dense() != ba.read(folder / "all.csv").to_dense()
    assert wrong.sum() < 0.03 * n_missing


def test_missing_values_are_filled_in_by_similar_rows(bitatoms, folder):
    code, *_ = bitatoms("complete", "model.npz", "table.csv", "--neighbours", "-o", "by-rows.csv", "-q")
    assert code == 0
    with pytest.warns(InputWarning, match="627 missing values"):
        table = ba.read(folder / "table.csv")
    filled, truth = (ba.read(folder / name).to_dense() for name in ("by-rows.csv", "all.csv"))
    assert (filled != truth).sum() < 0.05 * table.bits.n_unknown
    assert (
        bitatoms("complete", "model.npz", "table.csv", "--neighbours", "--only-missing", "-o", "list.csv", "-q")[0] == 0
    )
    with open(folder / "list.csv", newline="") as file:
        predictions = list(csv.DictReader(file))
    assert len(predictions) == table.bits.n_unknown
    values = [filled[int(each["row"][1:]), int(each["column"][1:])] for each in predictions]
    assert [int(each["value"]) for each in predictions] == values


def test_a_table_goes_to_standard_output(bitatoms, folder):
    assert bitatoms("complete", "model.npz", "table.csv", "-o", "filled.csv", "-q") == (0, "", "")
    code, out, _ = bitatoms("complete", "model.npz", "table.csv")
    assert (code, out) == (0, (folder / "filled.csv").read_text())


def test_only_missing_values_are_listed_with_probabilities(bitatoms, folder):
    code, out, err = bitatoms("complete", "model.npz", "table.csv", "--only-missing")
    with pytest.warns(InputWarning, match="627 missing values"):
        table = ba.read(folder / "table.csv")
    model = ba.load(folder / "model.npz")
    assert code == 0
    assert err.endswith(f"standard output: {table.bits.n_unknown} missing values predicted\n")
    rows = list(csv.DictReader(out.splitlines()))
    cells = np.argwhere(table.bits.unknown.to_dense())
    assert [(row["row"], row["column"]) for row in rows] == [(f"r{j}", f"f{i}") for j, i in cells]
    probabilities = model.predict_cell_proba(table)[tuple(cells.T)]
    np.testing.assert_allclose([float(row["probability"]) for row in rows], probabilities, atol=1e-6)
    assert [int(row["value"]) for row in rows] == (probabilities > 0.5).tolist()


def test_a_complete_table_stays_as_it_is(bitatoms, folder):
    code, out, _ = bitatoms("complete", "model.npz", "all.csv", "-o", "same.csv")
    assert (code, out) == (0, "same.csv: 200 rows of 30 columns, 22.8% ones, 0 missing values filled in\n")
    assert (folder / "same.csv").read_text() == (folder / "all.csv").read_text()
    code, out, _ = bitatoms("complete", "model.npz", "all.csv", "--only-missing", "-q")
    assert (code, out) == (0, "row,column,value,probability\n")


def test_a_list_is_a_csv_file(bitatoms):
    code, _, err = bitatoms("complete", "model.npz", "table.csv", "--only-missing", "-o", "list.npz")
    assert code == 2
    assert "list.npz: a list of missing values is a CSV file; use the extension .csv" in err


def test_models_are_compared_by_hidden_cells(bitatoms):
    code, out, _ = bitatoms("crossvalidate", "table.csv", "--components", "1,mdl", "--folds", 2, "--algebra", "xor")
    assert code == 0
    first, _, head, *rows, _, last = out.splitlines()
    assert first.startswith("table.csv: 200 rows of 30 columns")
    assert head.split()[:2] == ["model", "atoms"]
    assert [row.split("  ")[0] for row in rows] == ["column majority", "1", "mdl"]
    assert last == "The log loss, in bits per hidden cell, is lowest with: mdl."


def test_the_comparison_as_json(bitatoms):
    code, out, _ = bitatoms("crossvalidate", "table.csv", "-k", "profiles", "--folds", 1, "--share", 0.2, "--json")
    assert code == 0
    result = json.loads(out)
    assert (result["share"], result["n_folds"]) == (0.2, 1)
    assert [row["model"] for row in result["models"]] == ["column majority", "profiles"]
    assert result["models"][1]["n_atoms"] is None
    assert 0 < result["models"][1]["log_loss"] < 1


def test_columns_of_a_variable_are_hidden_together(bitatoms, folder):
    (folder / "colours.csv").write_text("colour,size\n" + "red,S\nblue,L\ngreen,S\n" * 20)
    arguments = "colours.csv", "--categories", "-k", "profiles", "--folds", 1, "--json"
    code, out, _ = bitatoms("crossvalidate", *arguments)
    assert code == 0
    table = ba.read(folder / "colours.csv", categories=True)
    losses = [
        ba.cross_validate_cells(each, "profiles", n_folds=1).to_dict()["log_loss"] for each in (table, table.bits)
    ]
    assert [row["log_loss"] for row in json.loads(out)["models"]] == losses[0] != losses[1]


def test_wrong_numbers_of_atoms_are_reported(bitatoms):
    code, _, err = bitatoms("crossvalidate", "table.csv", "--atoms", "2,few")
    assert code == 2
    assert "few" in err


@pytest.mark.parametrize("by", [[], ["--neighbours"]])
def test_genotypes_are_completed_and_the_prediction_is_checked(bitatoms, folder, by):
    genotypes = ba.datasets.genotypes(150, 60, random_state=0)
    lacking = np.repeat(np.random.default_rng(0).random((150, 60)) < 0.05, 2, axis=1)
    table = genotypes.with_bits(genotypes.bits.with_unknown(ba.BitMatrix.from_dense(lacking)))
    ba.write(table, folder / "genotypes.npz")
    ba.BinaryDictionaryLearning(10, algebra="or", random_state=0).fit(table).save(folder / "genotypes-model.npz")
    code, out, _ = bitatoms("complete", "genotypes-model.npz", "genotypes.npz", *by, "-o", "completed.npz")
    assert code == 0
    found = re.search(r"Check: of (\d+) known genotypes, hidden and predicted by (.*?), ([0-9.]+)% are\s+right", out)
    assert 0.01 < int(found[1]) / (150 * 60) < 0.03
    assert float(found[3]) > 80
    assert ("similar rows" in found[2]) == bool(by)
    assert 0.5 < float(re.search(r"dosage r2 ([0-9.]+)\.", out)[1]) <= 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        completed = ba.read(folder / "completed.npz")
    assert completed.bits.n_unknown == 0
    assert (completed.row_data, completed.column_data) == (table.row_data, table.column_data)
    pairs = completed.to_dense().reshape(150, 60, 2)
    assert (pairs[:, :, 1] <= pairs[:, :, 0]).all()
    known = ~lacking
    assert (completed.to_dense()[known] == genotypes.to_dense()[known]).all()
