"""Commands that the command line prints run as printed."""

import re
import shlex
from unittest.mock import ANY

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")
pytest.importorskip("zarr")

from support.commands import runner

pytestmark = pytest.mark.usefixtures("few_trials")

COMMAND = re.compile(r"\bbitatoms (?:fit|transform|reconstruct|show|report|convert|compare|pack) [^\n]*")


@pytest.fixture
def bitatoms(capsys, monkeypatch, tmp_path):
    """Return a function that runs a command in a folder with tables, and returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    data = ba.datasets.planted(600, 36, 4, noise=0.02, random_state=0).X
    ba.write(data, "-a table's.csv")
    np.savetxt("counts.txt", 3 * data, "%d", ";", header=";".join(f"item {j}" for j in range(36)), comments="")
    return runner(capsys)


def follow(bitatoms, *printed):
    """Run all commands in what was printed, and return them with their output."""
    commands = [command for text in printed for command in COMMAND.findall(text)]
    output = []
    for command in commands:
        code, stdout, stderr = bitatoms(*shlex.split(command)[1:])
        assert code == 0, f"{command}: {stderr}"
        output.append(stdout)
    return commands, output


COUNTS = ["counts.txt", "--format", "csv", "--separator", ";", "--binarize", "2", "--without", "item 3"]
TABLES = {"named like an option": ["./-a table's.csv", "--tile", "6x6"], "with options": COUNTS}


@pytest.mark.parametrize("table", TABLES)
def test_fit_of_a_table_suggests_a_report(bitatoms, table, tmp_path):
    code, stdout, _ = bitatoms("fit", *TABLES[table], "-k", "3", "-o", "-my model.npz")
    assert code == 0
    commands, _ = follow(bitatoms, stdout)
    assert [command.split()[1] for command in commands] == ["report"]
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize("default_limit", [None, 1 << 20])
def test_pack_and_fit_of_a_store_suggest_the_next_command(bitatoms, monkeypatch, tmp_path, default_limit):
    """Also where the search of the rows takes more than the default limit, or the user sets one."""
    if default_limit is not None:
        monkeypatch.setattr("bitatoms.rows.budget.DEFAULT_LIMIT", default_limit)
    enough = () if default_limit is None else ("--max-memory", "64MB")  # packing takes more than that limit
    code, stdout, _ = bitatoms("pack", *COUNTS, "-o", "my rows.zarr", *enough)
    assert code == 0
    commands, output = follow(bitatoms, stdout)
    assert [(command.split()[1], "--max-memory" in command) for command in commands] == [("fit", bool(default_limit))]
    commands, _ = follow(bitatoms, *output)
    assert [(command.split()[1], "--max-memory" in command) for command in commands] == [
        ("transform", bool(default_limit))
    ]
    assert ba.read(tmp_path / "codes.zarr").shape[0] == 600


def test_show_of_a_store_suggests_a_fit(bitatoms, tmp_path):
    assert bitatoms("pack", *COUNTS, "-o", "my rows.zarr", "-q")[0] == 0
    code, _, stderr = bitatoms("show", "my rows.zarr", "--patterns", "p.md")
    assert code == 2
    assert len(follow(bitatoms, stderr)[0]) == 1
    assert (tmp_path / "model.npz").exists()


def test_errors_about_stores_suggest_commands(bitatoms, tmp_path):
    assert bitatoms("pack", *COUNTS, "-o", "rows.zarr", "-q")[0] == 0
    table = ba.read(tmp_path / "rows.zarr")
    assert table.shape == (600, 35)
    code, _, stderr = bitatoms("fit", "rows.zarr", "--search", "paper")
    assert code == 2
    assert [command.split()[1] for command in follow(bitatoms, stderr)[0]] == ["convert"]
    assert ba.read(tmp_path / "table.npz") == table


OPTION = re.compile(r"--[a-z-]+ [^ ;]+")
ORDERS = {  # each with its number of rows
    "long table": ("who,what\n" + "ann,soap\nbob,milk\nbob,tea\ncyd,milk\ncyd,tea\n" * 2, 3),
    "quantities": ("who,what,quantity\n" + "ann,soap,2\nbob,milk,1\nbob,tea,1\ncyd,tea,3\n" * 2, 3),
    "baskets": ("soap,,tea\nmilk,tea,\nmilk,tea,\nsoap,jam,\n", 4),
}


@pytest.mark.parametrize("case", ORDERS)
def test_the_options_that_an_error_names_read_lists_of_items(bitatoms, tmp_path, case):
    text, n_rows = ORDERS[case]
    (tmp_path / "orders.csv").write_text(text)
    code, _, stderr = bitatoms("convert", "orders.csv", "orders.npz")
    assert code == 2
    options = OPTION.findall(stderr)[0].split()
    assert options[0] in ("--format", "--long")
    assert bitatoms("convert", "orders.csv", "orders.npz", *options)[0] == 0
    table = ba.read(tmp_path / "orders.npz")
    assert set(table.columns) - {"jam"} == {"soap", "milk", "tea"}
    assert len(table) == n_rows


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize(
    "name", ["\x1b[31mred", "\x07 bell", "two\nlines", "tab\t", "\u202eturned", "back\\slash", "it's"]
)
def test_a_column_with_control_characters_is_dropped_as_advised(bitatoms, name, ending):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [0, 1], name: ["Bonn", "Ulm"], "b": [1, 0]})
    if ending == ".csv":
        frame.to_csv("table.csv", index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet("table.parquet")
    code, _, stderr = bitatoms("convert", f"table{ending}", "out.npz")
    assert code == 2
    advised = stderr[stderr.index("--without") :]
    assert bitatoms("convert", f"table{ending}", "out.npz", *shlex.split(advised)) == (0, ANY, "")
    assert ba.read("out.npz").columns == ("a", "b")


def test_a_comparison_names_its_command(bitatoms, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("bitatoms.compare.comparison.draw_figures", lambda comparison, table: [])
    options = ["--only", "grecond", "--atoms", "2", "--seed", "2", "-o", "out put"]
    assert bitatoms("compare", *COUNTS, *options, "-q")[0] == 0
    page = (tmp_path / "out put" / "compare.md").read_text()
    [command] = COMMAND.findall(page)
    (tmp_path / "out put" / "compare.md").unlink()
    follow(bitatoms, command.rstrip("`"))
    assert command in (tmp_path / "out put" / "compare.md").read_text()
