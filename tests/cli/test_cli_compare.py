"""`bitatoms compare`: its output and files, and one-line errors before any work."""

import csv
import json
import re
import sys
from dataclasses import replace

import pytest

import bitatoms as ba

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

from bitatoms.compare import all_methods
from support.commands import runner

FEW = ("--only", "bitatoms-or,mob,grecond", "-k", "1,2")


pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with a table."""
    folder = tmp_path_factory.mktemp("compare")
    data = ba.datasets.planted(90, 20, 2, algebra="or", noise=0.05, random_state=1)
    columns = [f"item {number}" for number in range(20)]
    ba.write(ba.Table(ba.BitMatrix.from_dense(data.X), columns=columns), folder / "table.csv")
    (folder / "digits").write_text("no table at all")
    return folder


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return runner(capsys)


@pytest.fixture
def no_figures(monkeypatch):
    """Draw no figures, which takes longer than the comparisons."""
    monkeypatch.setattr("bitatoms.compare.comparison.draw_figures", lambda comparison, table: [])


def test_comparison_on_a_file_writes_all_outputs(bitatoms, tmp_path):
    code, stdout, _ = bitatoms("compare", "table.csv", *FEW, "-o", tmp_path / "out", "--seed", 5)
    assert code == 0  # progress is printed if it takes long, as where kernels are compiled
    assert "table.csv: 90 rows of 20 columns" in stdout
    assert "Wrong cells in percent" in stdout
    assert "With 2 atoms, bitatoms gets " in stdout
    assert "The shortest description is that of " in stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "compare.md",
        "compare.csv",
        "index.html",
        "figures",
    }
    with (tmp_path / "out" / "compare.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    asked = [(row["contender"], row["atoms asked"], row["seed"]) for row in rows]
    assert asked == [(key, rank, "" if key == "grecond" else "5") for key in FEW[1].split(",") for rank in "12"]
    command = f"bitatoms compare table.csv --atoms 1,2 --only {FEW[1]} --seed 5 -o {tmp_path / 'out'}"
    assert command in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_figures")
def test_no_figure_is_lost_in_a_narrow_terminal(bitatoms, monkeypatch, tmp_path):
    from bitatoms.cli import compare as command

    wanted = ("--only", "mob,k-prox", "-k", "1,2,3,4,5,6", "--seeds", 3, "-o", tmp_path)
    monkeypatch.setattr(command.out, "width", 60)
    _, stdout, _ = bitatoms("compare", "table.csv", *wanted)
    assert "…" not in stdout
    lines = stdout.splitlines()
    tables = [line for line in lines if line.startswith(("method", "MOB ", "K-PROX ", "     "))]
    assert max(map(len, tables)) <= 60
    cells = re.findall(r"^\| (.*) \|$", (tmp_path / "compare.md").read_text(encoding="utf-8"), re.MULTILINE)
    figures = {word for row in cells for word in re.findall(r"\(?\d[\d.,–]*\)?", row)}
    assert any(figure.startswith("(") for figure in figures)
    assert {figure for figure in figures if figure not in stdout} == set()


@pytest.mark.usefixtures("no_figures")
def test_figures_of_an_earlier_comparison_are_kept_and_reported(bitatoms, tmp_path):
    older = tmp_path / "figures" / "other-csv-or-bits-by-atoms.png"
    older.parent.mkdir()
    older.write_bytes(b"older")
    _, stdout, _ = bitatoms("compare", "table.csv", "--only", "grecond", "-k", "1", "-o", tmp_path)
    assert f"Left in {older.parent}: 1 file of figures of an earlier comparison" in stdout
    assert older.read_bytes() == b"older"


def test_help_groups_options(bitatoms, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, stdout, _ = bitatoms("compare", "--help")
    running = stdout[stdout.index("Comparison options") : stdout.index("General options")]
    assert "--list" in running
    assert "--jobs" in running
    assert "--quiet" not in running


@pytest.mark.usefixtures("no_figures")
def test_json_output(bitatoms, tmp_path):
    wanted = ("--only", "bitatoms-or,grecond", "-k", "1,2")
    code, stdout, stderr = bitatoms("compare", "table.csv", *wanted, "--json", "-o", tmp_path)
    assert (code, stderr) == (0, "")
    found = json.loads(stdout)
    assert found["data"][0] | {"bits_without": 0} == {"name": "table.csv", "rows": 90, "columns": 20, "bits_without": 0}
    assert [run["contender"] for run in found["runs"][::2]] == ["bitatoms-or", "grecond"]
    assert found["runs"][0]["wrong_cells"] > 0
    assert not found["interrupted"]
    assert found["not_reached"] == found["older_figures"] == []
    assert str(tmp_path / "index.html") in found["written"]


@pytest.mark.usefixtures("no_figures")
def test_a_file_takes_precedence_over_bundled_data(bitatoms, tmp_path):
    wanted = ("--only", "grecond", "-k", "1", "-o", tmp_path, "--quiet")
    assert bitatoms("compare", "planted-or", *wanted) == (0, "", "")
    code, _, stderr = bitatoms("compare", "digits", *wanted)  # the folder has a file of that name
    assert code == 2
    assert "digits" in stderr


@pytest.mark.usefixtures("no_figures")
def test_tables_of_the_same_name_are_distinguished(bitatoms, folder, tmp_path):
    (tmp_path / "table.csv").write_bytes((folder / "table.csv").read_bytes())
    wanted = ("--only", "grecond", "-k", "1", "-o", tmp_path / "out", "--json")
    _, stdout, _ = bitatoms("compare", "table.csv", tmp_path / "table.csv", *wanted)
    assert [table["name"] for table in json.loads(stdout)["data"]] == ["table.csv", str(tmp_path / "table.csv")]


def test_list_names_methods_and_data(bitatoms):
    code, stdout, _ = bitatoms("compare", "--list")
    assert code == 0
    for name in ("bitatoms-xor-mdl", "k-prox", "message-passing", "asso", "planted-dense"):
        assert name in stdout
    _, stdout, _ = bitatoms("compare", "--list", "--json")
    found = json.loads(stdout)
    assert "grecond" in [each["key"] for each in found["contenders"]]
    assert "halftone" in found["data"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no data to compare; pass a file, or one of digits, halftone"),
        (("planted",), "planted: there is no such file or bundled data set; choose from digits"),
        (("nowhere.csv",), "nowhere.csv"),
        (("table.csv", "table.csv"), "table.csv: passed twice"),
        (("table.csv", "-k", "2,x"), "--atoms is '2,x'; pass positive integers separated by commas"),
        (("table.csv", "-k", "0,2"), "--atoms is '0,2'; pass positive integers"),
        (("table.csv", "-k", ","), "--atoms is ','; pass positive integers"),
        (("table.csv", "--only", "aso"), "there is no method 'aso'; choose from bitatoms-or"),
        (("table.csv", "--leave-out", "aso"), "there is no method 'aso'"),
        (("table.csv", "--max-time", "0"), "--max-time must be a number of seconds greater than 0, not 0.0"),
        (("table.csv", "--only", "mob", "--jobs", "0"), "--jobs must not be 0"),
        (("table.csv", "-o", "table.csv"), "table.csv is a file, but a comparison is written to a folder"),
        (("table.csv", "-o", "table.csv/below"), "table.csv is a file, but a comparison is written to a folder"),
    ],
)
def test_invalid_input_is_reported_in_one_line_and_nothing_is_written(bitatoms, folder, arguments, message):
    before = sorted(folder.rglob("*"))
    code, stdout, stderr = bitatoms("compare", *arguments)
    assert (code, stdout) == (2, "")
    assert message in stderr
    assert stderr.count("\n") == 1
    assert sorted(folder.rglob("*")) == before


def test_unwritable_folder_is_reported_before_any_work(bitatoms, monkeypatch, tmp_path):
    def refuse(*given, **more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("bitatoms.cli.files.tempfile.TemporaryDirectory", refuse)
    monkeypatch.setattr("bitatoms.cli.compare.run_comparison", None)
    code, _, stderr = bitatoms("compare", "table.csv", "-o", tmp_path)
    assert code == 2
    assert stderr == f"bitatoms: {tmp_path}: cannot be written: Permission denied; nothing was changed\n"


def test_missing_matplotlib_is_reported_before_any_work(bitatoms, monkeypatch, tmp_path):
    monkeypatch.setattr("bitatoms.html.figures.find_spec", lambda name: None)
    monkeypatch.setattr("bitatoms.cli.compare.run_comparison", None)
    code, _, stderr = bitatoms("compare", "table.csv", "-o", tmp_path)
    assert code == 2
    assert 'install it with pip install "bitatoms[plot]"' in stderr


def replace_method(monkeypatch, key, run):
    """Replace what a method runs."""
    methods = [replace(each, run=run) if each.key == key else each for each in all_methods()]
    monkeypatch.setattr(sys.modules["bitatoms.compare.methods"], "all_methods", lambda: methods)


@pytest.mark.usefixtures("no_figures")
def test_a_method_that_fails_does_not_end_the_others(bitatoms, monkeypatch, tmp_path):
    def fail(task):
        raise RuntimeError("out of luck")

    replace_method(monkeypatch, "mob", fail)
    code, stdout, _ = bitatoms("compare", "table.csv", *FEW, "-o", tmp_path)
    assert code == 0
    assert "MOB (XOR), 1 atom: failed: out of luck." in stdout
    assert "GreConD" in stdout


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(("key", "n_runs"), [("bitatoms-or", 0), ("grecond", 4)])
def test_interrupt_keeps_completed_runs(bitatoms, monkeypatch, tmp_path, key, n_runs):
    def stop(task):
        raise KeyboardInterrupt

    replace_method(monkeypatch, key, stop)
    code, _, stderr = bitatoms("compare", "table.csv", *FEW, "-o", tmp_path / "out")
    assert code == 130
    if n_runs:
        assert stderr == f"bitatoms: interrupted; the {n_runs} runs that were done are in {tmp_path / 'out'}\n"
        with (tmp_path / "out" / "compare.csv").open(encoding="utf-8") as file:
            assert len(list(csv.reader(file))) == 1 + n_runs
    else:
        assert stderr == "bitatoms: interrupted; nothing was written\n"
        assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_figures")
def test_interrupt_keeps_an_earlier_comparison(bitatoms, monkeypatch, tmp_path):
    def stop(task):
        raise KeyboardInterrupt

    arguments = "compare", "table.csv", *FEW, "-o", tmp_path, "-q"
    assert bitatoms(*arguments)[0] == 0
    earlier = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    replace_method(monkeypatch, "grecond", stop)
    for name in ("interrupted", "interrupted-2"):
        code, _, stderr = bitatoms(*arguments)
        assert (code, stderr) == (130, f"bitatoms: interrupted; the 4 runs that were done are in {tmp_path / name}\n")
        assert {path.name for path in (tmp_path / name).iterdir()} == set(earlier)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == earlier


@pytest.mark.usefixtures("no_figures")
def test_interrupt_names_tables_that_were_not_reached(bitatoms, folder, monkeypatch, tmp_path):
    def stop(task):
        raise KeyboardInterrupt

    (tmp_path / "other.csv").write_bytes((folder / "table.csv").read_bytes())
    replace_method(monkeypatch, "mob", stop)
    code, stdout, stderr = bitatoms("compare", "table.csv", tmp_path / "other.csv", *FEW, "-o", tmp_path / "out")
    assert code == 130
    assert stderr.endswith("; not reached: other.csv\n")
    assert "other.csv" not in stdout
