"""Commands that the command line prints run as printed."""

import re
import shlex
from unittest.mock import ANY

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")
pytest.importorskip("zarr")

pytestmark = pytest.mark.usefixtures("few_trials")

COMMAND = re.compile(r"\bbitatoms (?:fit|transform|reconstruct|show|report|convert|compare|pack) [^\n]*")


@pytest.fixture(autouse=True)
def tables(tmp_path):
    data = ba.datasets.planted(200, 36, 4, noise=0.02, random_state=0).X
    ba.write(data, tmp_path / "-a table's.csv")
    header = ";".join(f"item {j}" for j in range(36))
    np.savetxt(tmp_path / "counts.txt", 3 * data, "%d", ";", header=header, comments="")


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
    stdout = bitatoms.output("fit", *TABLES[table], "-k", "3", "-o", "-my model.npz")
    commands, _ = follow(bitatoms, stdout)
    assert [command.split()[1] for command in commands] == ["report"]
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize("default_limit", [None, 1 << 20])
def test_pack_and_fit_of_a_store_suggest_the_next_command(bitatoms, monkeypatch, default_limit):
    """Also where the search of the rows takes more than the default limit, or the user sets one."""
    if default_limit is not None:
        monkeypatch.setattr("bitatoms.rows.budget.DEFAULT_LIMIT", default_limit)
    enough = () if default_limit is None else ("--max-memory", "64MB")  # packing takes more than that limit
    stdout = bitatoms.output("pack", *COUNTS, "-o", "my rows.zarr", *enough)
    for command in ("fit", "transform"):
        (advised,), (stdout,) = follow(bitatoms, stdout)
        assert (advised.split()[1], "--max-memory" in advised) == (command, bool(default_limit))
    assert ba.read("codes.zarr").shape[0] == 200


def test_errors_about_stores_suggest_commands(bitatoms, tmp_path):
    assert bitatoms("pack", *COUNTS, "-o", "my rows.zarr", "-q")[0] == 0
    for command, advised, written in (
        (("show", "my rows.zarr", "--patterns", "p.md"), "fit", "model.npz"),
        (("fit", "my rows.zarr", "--search", "paper"), "convert", "table.npz"),
    ):
        code, _, stderr = bitatoms(*command)
        assert code == 2
        assert [each.split()[1] for each in follow(bitatoms, stderr)[0]] == [advised]
        assert (tmp_path / written).exists()
    assert ba.read("table.npz") == ba.read("my rows.zarr")


OPTION = re.compile(r"--[a-z-]+ [^ ;]+")
ORDERS = {  # each with its number of rows
    "long table": ("who,what\n" + "ann,soap\nbob,milk\nbob,tea\ncyd,milk\ncyd,tea\n" * 2, 3),
    "baskets": ("soap,,tea\nmilk,tea,\nmilk,tea,\nsoap,jam,\n", 4),
}


@pytest.mark.parametrize("case", ORDERS)
def test_the_options_that_an_error_names_read_lists_of_items(bitatoms, tmp_path, case):
    text, n_rows = ORDERS[case]
    (tmp_path / "orders.csv").write_text(text)
    code, _, stderr = bitatoms("convert", "orders.csv", "orders.npz")
    options = OPTION.findall(stderr)[0].split()
    assert (code, options[0] in ("--format", "--long")) == (2, True)
    assert bitatoms("convert", "orders.csv", "orders.npz", *options)[0] == 0
    table = ba.read(tmp_path / "orders.npz")
    assert (set(table.columns) - {"jam"}, len(table)) == ({"soap", "milk", "tea"}, n_rows)


@pytest.mark.parametrize("column", ["\x1b[31mred", "two\nlines", "tab\t", "\u202eturned", "back\\slash", "it's"])
def test_a_column_with_control_characters_is_dropped_as_advised(bitatoms, column, tmp_path):
    (tmp_path / "table.csv").write_text(f'a,"{column}",b\n0,Bonn,1\n1,Ulm,0\n', encoding="utf-8")
    code, _, stderr = bitatoms("convert", "table.csv", "out.npz")
    assert code == 2
    advised = stderr[stderr.index("--without") :]
    assert bitatoms("convert", "table.csv", "out.npz", *shlex.split(advised)) == (0, ANY, "")
    assert ba.read("out.npz").columns == ("a", "b")
