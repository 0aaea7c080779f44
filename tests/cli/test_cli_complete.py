"""bitatoms complete and bitatoms crossvalidate."""

import csv
import json
import re

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")

from support.commands import rows_of
from support.zoo import specimen

pytestmark = [
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning"),  # the command line prints them
]


@pytest.fixture(autouse=True)
def answers(put):
    """The model and the table of the files model.npz and table.csv; some cells of the table are unknown."""
    return put("unknown")


def test_missing_values_are_filled_in(bitatoms, answers, tmp_path):
    model, table = answers
    expected = model.complete(table)
    out = bitatoms.output("complete", "model.npz", "table.csv", "-o", "filled.csv")
    shape = f"filled.csv: 300 rows of 40 columns, {expected.bits.density:.1%} ones"
    assert out == f"{shape}, {table.bits.n_unknown} missing values filled in\n"
    filled, text = ba.read("filled.csv"), (tmp_path / "filled.csv").read_text()
    assert filled.bits == expected.bits
    assert (filled.row_names, filled.columns) == (table.row_names, table.columns)
    assert bitatoms("complete", "model.npz", "table.csv")[1] == text
    out = bitatoms.output("complete", "model.npz", "filled.csv", "-o", "same.csv")
    assert out.endswith(", 0 missing values filled in\n")
    assert (tmp_path / "same.csv").read_text() == text
    only = ("complete", "model.npz", "filled.csv", "--only-missing", "-q")
    assert bitatoms(*only) == (0, "row,column,value,probability\n", "")


def test_only_missing_values_are_listed_with_probabilities(bitatoms, answers):
    """The probabilities are fitted to known values of the table."""
    model, table = ba.load("model.npz").calibrate(answers.table), answers.table
    code, out, err = bitatoms("complete", "model.npz", "table.csv", "--only-missing")
    assert code == 0
    assert err.endswith(f"standard output: {table.bits.n_unknown} missing values predicted\n")
    rows = list(csv.DictReader(out.splitlines()))
    cells = np.argwhere(table.bits.unknown.to_dense())
    assert [(row["row"], row["column"]) for row in rows] == [(f"person {j}", f"item {i}") for j, i in cells]
    probabilities = model.predict_cell_proba(table)[tuple(cells.T)]
    np.testing.assert_allclose([float(row["probability"]) for row in rows], probabilities, atol=1e-6)
    assert [int(row["value"]) for row in rows] == (probabilities > 0.5).tolist()


def test_missing_values_are_filled_in_by_similar_rows(bitatoms, answers):
    how = ("complete", "model.npz", "table.csv", "--neighbours", "-q")
    assert bitatoms(*how, "-o", "filled.csv")[0] == bitatoms(*how, "--only-missing", "-o", "list.csv")[0] == 0
    filled, truth = ba.read("filled.csv").to_dense(), specimen("or").table.to_dense()
    n_missing, predictions = answers.table.bits.n_unknown, rows_of("list.csv")
    assert 0 < (filled != truth).sum() < 0.1 * n_missing
    assert len(predictions) == n_missing
    values = [filled[int(each["row"].split()[1]), int(each["column"].split()[1])] for each in predictions]
    assert [int(each["value"]) for each in predictions] == values


@pytest.mark.parametrize("by", [[], ["--neighbours"]])
def test_genotypes_are_completed_and_the_prediction_is_checked(bitatoms, put, by):
    genotypes = put("genotypes").table
    lacking = np.repeat(np.random.default_rng(0).random((60, 40)) < 0.05, 2, axis=1)
    table = genotypes.with_bits(genotypes.bits.with_unknown(ba.BitMatrix.from_dense(lacking)))
    ba.write(table, "table.npz")
    out = bitatoms.output("complete", "model.npz", "table.npz", *by, "-o", "completed.npz")
    found = re.search(r"Check: of (\d+) known genotypes, hidden and predicted by (.*?), ([0-9.]+)% are\s+right", out)
    assert 0.01 < int(found[1]) / (60 * 40) < 0.03
    assert float(found[3]) > 60
    assert ("similar rows" in found[2]) == bool(by)
    assert 0.3 < float(re.search(r"dosage r2 ([0-9.]+)\.", out)[1]) <= 1
    completed = ba.read("completed.npz")
    assert completed.bits.n_unknown == 0
    assert (completed.row_data, completed.column_data) == (table.row_data, table.column_data)
    pairs = completed.to_dense().reshape(60, 40, 2)
    assert (pairs[:, :, 1] <= pairs[:, :, 0]).all()
    assert (completed.to_dense()[~lacking] == genotypes.to_dense()[~lacking]).all()


def test_models_are_compared_by_hidden_cells(bitatoms, answers):
    how = ("table.csv", "--components", "1,profiles", "--folds", 2, "--algebra", "or", "--search", "paper")
    out = bitatoms.output("crossvalidate", *how)
    first, _, head, *rows, _, last = out.splitlines()
    assert first.startswith("table.csv: 300 rows of 40 columns")
    assert head.split()[:2] == ["model", "atoms"]
    assert [row.split("  ")[0] for row in rows] == ["column majority", "1", "profiles"]
    expected = ba.cross_validate_cells(
        answers.table, [1, "profiles"], n_folds=2, algebra="or", search="paper", random_state=0
    )
    assert last == f"The log loss, in bits per hidden cell, is lowest with: {expected.best}."
    result = json.loads(bitatoms("crossvalidate", *how, "--json")[1])
    assert (result["share"], result["n_folds"], result["best"]) == (0.1, 2, expected.best)
    assert [row["log_loss"] for row in result["models"]] == expected.to_dict()["log_loss"]
    assert result["models"][2]["n_atoms"] is None


def test_columns_of_a_variable_are_hidden_together(bitatoms, tmp_path):
    (tmp_path / "colours.csv").write_text("colour,size\n" + "red,S\nblue,L\ngreen,S\n" * 20)
    out = bitatoms.output("crossvalidate", "colours.csv", "--categories", "-k", "profiles", "--folds", 1, "--json")
    table = ba.read("colours.csv", categories=True)
    together, apart = (
        ba.cross_validate_cells(each, "profiles", n_folds=1).to_dict()["log_loss"] for each in (table, table.bits)
    )
    assert [row["log_loss"] for row in json.loads(out)["models"]] == together != apart
