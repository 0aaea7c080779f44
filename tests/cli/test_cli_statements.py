"""bitatoms rules, recommend and score, and --json of all commands."""

import csv
import json
import re

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")

from bitatoms.cli.app import _command
from support.commands import runner

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, few_trials):
    """Create a folder with baskets as a CSV file and as a store, and a model."""
    folder = tmp_path_factory.mktemp("statements")
    table = ba.datasets.baskets(500)
    ba.write(table, folder / "baskets.csv")
    ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table).save(folder / "model.npz")
    return folder


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    monkeypatch.chdir(folder)
    return runner(capsys)


@pytest.fixture(scope="module")
def fitted(folder):
    return ba.load(folder / "model.npz"), ba.read(folder / "baskets.csv")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- rules


def test_rules_are_printed_as_sentences(bitatoms, fitted):
    model, table = fitted
    for data, rules in (((), model.rules()), (("baskets.csv",), model.rules(table))):
        code, out, _ = bitatoms("rules", "model.npz", *data, "--top", "2")
        assert code == 0
        lines = out.splitlines()
        assert lines[0].startswith(f"{len(rules)} rules from {model.n_components_} patterns")
        sentences = [str(rule) for rule in rules[:2]]
        assert [re.sub(r" \(×[\d.]+\)\.$", "", line) for line in lines[2:4]] == [f"O{text[1:]}" for text in sentences]
        assert lines[4] == f"and {len(rules) - 2} more (--top {len(rules)} shows all)"


def test_rules_are_written_and_printed_as_json(bitatoms, fitted, folder):
    model, table = fitted
    rules = model.rules(table, min_confidence=0.5)
    assert bitatoms("rules", "model.npz", "baskets.csv", "--min-confidence", "0.5", "-o", "rules.csv")[0] == 0
    rows = rows_of(folder / "rules.csv")
    assert [(row["antecedent"], row["consequent"]) for row in rows] == [
        ("; ".join(rule.antecedent), rule.consequent) for rule in rules
    ]
    assert [int(row["rows"]) for row in rows] == [rule.rows for rule in rules]
    assert bitatoms("rules", "model.npz", "baskets.csv", "--min-confidence", "0.5", "-o", "rules.json", "-q")[0] == 0
    written = json.loads((folder / "rules.json").read_text())
    printed = json.loads(bitatoms("rules", "model.npz", "baskets.csv", "--min-confidence", "0.5", "--json")[1])
    assert printed["rules"] == written
    assert written[0]["lift"] == rules[0].lift
    assert written[0]["antecedent"] == list(rules[0].antecedent)


def test_rules_errors(bitatoms):
    code, _, err = bitatoms("rules", "model.npz", "-o", "rules.txt")
    assert (code, err) == (2, "bitatoms: rules.txt: rules are written as .csv or .json; use one of these extensions\n")
    code, _, err = bitatoms("rules", "model.npz", "--min-support", "3")
    assert (code, err) == (2, "bitatoms: --min-support must be between 0 and 1, not 3.0\n")


# --- recommend


def test_items_are_recommended_as_text_csv_and_json(bitatoms, fitted, folder):
    model, table = fitted
    items, probabilities = model.recommend(table, 2)
    code, out, _ = bitatoms("recommend", "model.npz", "baskets.csv", "-n", "2")
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 500)
    assert lines[0].startswith(f"{table.row_names[0]}: {items[0, 0]} (")
    (folder / "one.csv").write_text("".join((folder / "baskets.csv").read_text().splitlines(keepends=True)[:2]))
    told = {"recommend": "recommendations for 1 row\n", "transform": "codes of 1 row by ", "score": "1 row takes "}
    for command, part in told.items():
        assert part in bitatoms(command, "model.npz", "one.csv", "-o", "one-row.csv")[1]
    assert bitatoms("recommend", "model.npz", "baskets.csv", "-n", "2", "-o", "next.csv")[0] == 0
    rows = rows_of(folder / "next.csv")
    assert [row["item"] for row in rows] == items.ravel().tolist()
    assert [row["row"] for row in rows[::2]] == list(table.row_names)
    assert [row["rank"] for row in rows[:4]] == ["1", "2", "1", "2"]
    np.testing.assert_allclose([float(row["probability"]) for row in rows], probabilities.ravel(), atol=1e-6)
    result = json.loads(bitatoms("recommend", "model.npz", "baskets.csv", "-n", "2", "--json")[1])
    assert result["rows"] == 500
    assert result["recommendations"][7]["row"] == table.row_names[7]
    assert [item["item"] for item in result["recommendations"][7]["items"]] == items[7].tolist()


def test_rows_of_a_store_are_recommended_and_scored_in_chunks(bitatoms, folder):
    pytest.importorskip("zarr")
    assert bitatoms("pack", "baskets.csv", "-o", "rows.zarr", "-q")[0] == 0
    for command in (("recommend",), ("score", "-n", "3"), ("rules", "--top", "3")):
        of_table, of_store = (bitatoms(*command, "model.npz", data)[1] for data in ("baskets.csv", "rows.zarr"))
        assert of_store.replace("rows.zarr", "baskets.csv") == of_table
    assert bitatoms("score", "model.npz", "baskets.csv", "-o", "table.csv", "-q")[0] == 0
    assert bitatoms("score", "model.npz", "rows.zarr", "-o", "store.csv", "-q")[0] == 0
    assert (folder / "table.csv").read_text() == (folder / "store.csv").read_text()


# --- score


def test_the_rows_that_fit_worst_are_printed_with_their_wrong_cells(bitatoms, fitted):
    model, table = fitted
    worst = model.worst_rows(table, 3)
    code, out, _ = bitatoms("score", "model.npz", "baskets.csv", "-n", "3")
    assert code == 0
    assert out.startswith(f"baskets.csv: 500 rows take {-model.score(table):.1f} bits per row on average")
    lines = out.splitlines()[-3:]
    for line, fit in zip(lines, worst, strict=True):
        assert line.startswith(f"{table.row_names[fit.row]}: {fit.bits:.1f} bits")
        assert f"{fit.cells[0].kind}: {fit.cells[0].feature} ({fit.cells[0].bits:.1f})" in line
    result = json.loads(bitatoms("score", "model.npz", "baskets.csv", "-n", "3", "--json")[1])
    assert [row["bits"] for row in result["worst"]] == [fit.bits for fit in worst]
    assert result["worst"][0]["cells"] == [cell._asdict() for cell in worst[0].cells]
    assert result["mean_bits"] == pytest.approx(-model.score(table))


def test_all_rows_are_scored_in_a_csv_file(bitatoms, fitted, folder):
    model, table = fitted
    assert bitatoms("score", "model.npz", "baskets.csv", "-o", "scores.csv")[0] == 0
    rows = rows_of(folder / "scores.csv")
    assert [row["row"] for row in rows] == list(table.row_names)
    np.testing.assert_allclose([float(row["bits"]) for row in rows], -model.score_samples(table), atol=1e-3)
    fit = model.worst_rows(table, 1)[0]
    listed = "; ".join(cell.feature for cell in fit.cells if cell.kind == "unexpected")
    assert rows[fit.row]["unexpected"] == listed


@pytest.mark.parametrize("command", ["recommend", "score"])
def test_output_files_are_csv(bitatoms, command):
    code, _, err = bitatoms(command, "model.npz", "baskets.csv", "-o", "out.npz")
    assert code == 2
    assert err == "bitatoms: out.npz: the result is written as CSV; use the extension .csv, or --json\n"
    assert bitatoms(command, "model.npz", "baskets.csv", "-o", "-", "-q")[1].startswith("row,")


# --- json


def test_every_command_has_json():
    for name, command in _command().commands.items():
        assert any("--json" in parameter.opts for parameter in command.params), name


def test_commands_that_write_files_print_what_they_wrote_as_json(bitatoms):
    for command, *expected in (
        (("transform", "model.npz", "baskets.csv", "-o", "codes.csv"), "atoms", ba.load("model.npz").n_components_),
        (("transform", "model.npz", "baskets.csv", "--soft", "-o", "soft.csv"), "rows", 500),
        (("reconstruct", "model.npz", "baskets.csv", "-o", "made.csv"), "columns", 67),
        (("complete", "model.npz", "baskets.csv", "-o", "filled.csv"), "filled", 0),
        (("report", "model.npz", "baskets.csv", "-o", "page.html"), "rows", 500),
        (("convert", "baskets.csv", "copy.npz"), "unknown", 0),
    ):
        code, out, _ = bitatoms(*command, "--json")
        result = json.loads(out)
        assert (code, result["written"]) == (0, command[-1])
        assert [expected[0], result[expected[0]]] == expected


@pytest.mark.parametrize("command", ["transform", "reconstruct", "complete"])
def test_json_and_a_table_do_not_share_the_standard_output(bitatoms, command):
    code, out, err = bitatoms(command, "model.npz", "baskets.csv", "--json")
    assert (code, out) == (2, "")
    assert err == "bitatoms: standard output: --json already writes to it; choose a file for other output\n"
