"""bitatoms rules, recommend and score, and what commands print as JSON about files."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("click")

from bitatoms.imputation.regression import regression_for
from bitatoms.model.recommendation import fit_item_pool, named, recommend
from bitatoms.parallel import Workers
from support.commands import rows_of


@pytest.fixture(autouse=True)
def baskets(put):
    """The model and the table of the files model.npz and table.csv."""
    return put("or")


def test_rules_are_printed_as_sentences(bitatoms, baskets):
    model, table = baskets
    for data, rules in (((), model.rules()), (("table.csv",), model.rules(table))):
        out = bitatoms.output("rules", "model.npz", *data, "--top", "2")
        lines = out.splitlines()
        assert lines[0].startswith(f"{len(rules)} rules from 5 patterns")
        assert [re.sub(r" \(×[\d.]+\)\.$", "", line) for line in lines[2:4]] == [f"O{str(r)[1:]}" for r in rules[:2]]
        assert lines[4] == f"and {len(rules) - 2} more (--top {len(rules)} shows all)"
    code, out, _ = bitatoms("rules", "model.npz", "--min-lift", "1000")
    none = "No rules from 5 patterns; lower --min-support, --min-confidence or --min-lift to see more.\n"
    assert (code, out) == (0, none)


def test_rules_are_written_and_printed_as_json(bitatoms, baskets, tmp_path):
    rules = baskets.model.rules(baskets.table, min_confidence=0.5)
    how = ("rules", "model.npz", "table.csv", "--min-confidence", "0.5")
    assert bitatoms(*how, "-o", "rules.csv") == (0, f"rules.csv: {len(rules)} rules\n", "")
    rows = rows_of("rules.csv")
    assert [(row["antecedent"], row["consequent"], int(row["rows"])) for row in rows] == [
        ("; ".join(rule.antecedent), rule.consequent, rule.rows) for rule in rules
    ]
    assert bitatoms(*how, "-o", "rules.json", "-q")[0] == 0
    written = json.loads((tmp_path / "rules.json").read_text())
    assert json.loads(bitatoms(*how, "--json")[1]) == {"rules": written, "patterns": 5}
    assert (written[0]["lift"], written[0]["antecedent"]) == (rules[0].lift, list(rules[0].antecedent))


def test_items_are_recommended_as_text_csv_and_json(bitatoms, baskets, tmp_path):
    table, model = baskets.table, baskets.model.as_model()
    model = replace(model, regression=regression_for(table.bits, model.tied_columns))
    pool = model.item_pool  # if another test has asked for recommendations
    if pool is None:
        pool = fit_item_pool(table.bits, model, lambda _: model, np.random.default_rng(0))
    items, probabilities = named(recommend(replace(model, item_pool=pool), table.data, 2, Workers()), model)
    how = ("recommend", "model.npz", "table.csv", "-n", "2")
    code, out, _ = bitatoms(*how)
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 300)
    assert lines[0].startswith(f"basket 0: {items[0, 0]} (")
    assert bitatoms(*how, "-o", "next.csv")[0] == 0
    rows = rows_of("next.csv")
    assert [row["item"] for row in rows] == items.ravel().tolist()
    assert [row["row"] for row in rows[::2]] == list(table.row_names)
    assert [row["rank"] for row in rows[:4]] == ["1", "2", "1", "2"]
    np.testing.assert_allclose([float(row["probability"]) for row in rows], probabilities.ravel(), atol=1e-6)
    assert bitatoms(*how, "-o", "-", "-q")[1] == (tmp_path / "next.csv").read_text()
    result = json.loads(bitatoms(*how, "--json")[1])
    assert result["rows"] == 300
    assert result["recommendations"][7]["row"] == "basket 7"
    assert [item["item"] for item in result["recommendations"][7]["items"]] == items[7].tolist()


def test_the_rows_that_fit_worst_are_printed_with_their_wrong_cells(bitatoms, baskets):
    model, table = baskets
    worst = model.worst_rows(table, 3)
    out = bitatoms.output("score", "model.npz", "table.csv", "-n", "3")
    assert out.startswith(f"table.csv: 300 rows take {-model.score(table):.1f} bits per row on average")
    for line, fit in zip(out.splitlines()[-3:], worst, strict=True):
        assert line.startswith(f"{table.row_names[fit.row]}: {fit.bits:.1f} bits")
        assert f"{fit.cells[0].kind}: {fit.cells[0].feature} ({fit.cells[0].bits:.1f})" in line
    result = json.loads(bitatoms.output("score", "model.npz", "table.csv", "-n", "3", "--json"))
    assert [row["bits"] for row in result["worst"]] == [fit.bits for fit in worst]
    assert result["worst"][0]["cells"] == [cell._asdict() for cell in worst[0].cells]
    assert result["mean_bits"] == pytest.approx(-model.score(table))


def test_all_rows_are_scored_in_a_csv_file(bitatoms, baskets):
    model, table = baskets
    assert bitatoms("score", "model.npz", "table.csv", "-o", "scores.csv")[0] == 0
    rows = rows_of("scores.csv")
    assert [row["row"] for row in rows] == list(table.row_names)
    np.testing.assert_allclose([float(row["bits"]) for row in rows], -model.score_samples(table), atol=1e-3)
    for fit in model.worst_rows(table, 5):
        assert int(rows[fit.row]["known"]) == fit.n_known == table.shape[1]
        for kind in ("unexpected", "missing"):
            cells = [cell.feature for cell in fit.cells if cell.kind == kind]
            assert rows[fit.row][kind] == "; ".join(cells)


def test_rows_of_a_store_are_recommended_and_scored_in_chunks(bitatoms, tmp_path):
    pytest.importorskip("zarr")
    assert bitatoms("pack", "table.csv", "-o", "rows.zarr", "-q")[0] == 0
    for command in (("recommend",), ("score", "-n", "3"), ("rules", "--top", "3")):
        of_table, of_store = (bitatoms(*command, "model.npz", data)[1] for data in ("table.csv", "rows.zarr"))
        assert of_store.replace("rows.zarr", "table.csv") == of_table
    for data in ("table.csv", "rows.zarr"):
        assert bitatoms("score", "model.npz", data, "-o", f"scores-{data[:4]}.csv", "-q")[0] == 0
    assert (tmp_path / "scores-tabl.csv").read_text() == (tmp_path / "scores-rows.csv").read_text()


def test_commands_that_write_files_print_what_they_wrote_as_json(bitatoms, baskets):
    ones, uses = baskets.table.bits.count(), int(baskets.model.transform(baskets.table).sum())
    table = {"rows": 300, "columns": 40, "ones": ones, "unknown": 0}
    made = {"rows": 300, "columns": 40, "unknown": 0}
    for command, output, expected in (
        (("transform", "model.npz", "table.csv", "-o"), "codes.csv", {"rows": 300, "atoms": 5, "uses": uses}),
        (("transform", "model.npz", "table.csv", "--soft", "-o"), "soft.csv", {"rows": 300, "atoms": 5}),
        (("reconstruct", "model.npz", "table.csv", "-o"), "made.csv", made),
        (("complete", "model.npz", "table.csv", "-o"), "f.csv", {"rows": 300, "columns": 40, "filled": 0}),
        (("report", "model.npz", "table.csv", "-o"), "page.html", table | {"patterns": 5}),
        (("convert", "table.csv"), "copy.npz", table),
    ):
        code, out, err = bitatoms(*command, output, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out).items() >= (expected | {"written": output}).items()


QUIET = [
    "show model.npz", "show model.npz --patterns p.csv", "rules model.npz", "rules model.npz table.csv -o r.csv",
    "recommend model.npz table.csv", "recommend model.npz table.csv -o r.csv", "score model.npz table.csv",
    "score model.npz table.csv -o s.csv", "convert table.csv x.npz", "report model.npz table.csv",
    "transform model.npz table.csv -o c.csv", "reconstruct model.npz table.csv -o x.csv",
    "complete model.npz table.csv -o x.csv", "roles table.csv --max-iter 1 -o r.csv", "roles-diff table.csv table.csv",
]  # fmt: skip


@pytest.mark.parametrize("command", QUIET)
def test_quiet_prints_nothing(bitatoms, command):
    assert bitatoms(*command.split(), "--quiet") == (0, "", "")
