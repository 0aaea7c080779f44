"""`bitatoms compare`: its output and files, and what an interrupt keeps."""

import json
import re
import sys
from dataclasses import replace

import pytest

import bitatoms as ba

pytest.importorskip("click")
pytest.importorskip("matplotlib")

from bitatoms.compare import all_methods
from support.commands import rows_of

pytestmark = pytest.mark.usefixtures("few_trials")

FEW = ("--only", "bitatoms-or,mob,grecond", "-k", "1,2")


@pytest.fixture(autouse=True)
def table(tmp_path):
    X = ba.datasets.planted(90, 20, 2, algebra="or", noise=0.05, random_state=1).X
    ba.write(ba.Table(ba.BitMatrix.from_dense(X), columns=[f"item {n}" for n in range(20)]), tmp_path / "table.csv")


@pytest.fixture
def no_figures(monkeypatch):
    """Draw no figures, which takes longer than the comparisons."""
    monkeypatch.setattr("bitatoms.compare.comparison.draw_figures", lambda table, results: {})


def test_comparison_on_a_file_writes_all_outputs(bitatoms, tmp_path):
    code, stdout, _ = bitatoms("compare", "table.csv", "--only", "grecond,mob", "-k", "1,2", "-o", "out", "--seed", 5)
    assert code == 0  # progress is printed if it takes long, as where kernels are compiled
    assert "table.csv: 90 rows of 20 columns" in stdout
    assert "Wrong cells in percent" in stdout
    assert "Fewest bits, any number of atoms: " in stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"compare.md", "compare.csv", "figures"}
    asked = [(row["contender"], row["atoms asked"], row["seed"]) for row in rows_of(tmp_path / "out/compare.csv")]
    assert asked == [("grecond", "1", ""), ("grecond", "2", ""), ("mob", "1", "5"), ("mob", "2", "5")]
    command = "bitatoms compare table.csv --only grecond,mob -k 1,2 -o out --seed 5"
    assert command in (tmp_path / "out" / "compare.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_figures")
def test_no_figure_is_lost_in_a_narrow_terminal(bitatoms, monkeypatch, tmp_path):
    from bitatoms.cli.output import out

    monkeypatch.setattr(out, "width", 60)
    wanted = ("--only", "mob,k-prox", "-k", "1,2,3,4,5,6", "--seeds", 2, "-o", ".")
    _, stdout, _ = bitatoms("compare", "table.csv", *wanted)
    assert "…" not in stdout
    lines = [line for line in stdout.splitlines() if line.startswith(("method", "MOB ", "K-PROX ", "     "))]
    assert max(map(len, lines)) <= 60
    cells = re.findall(r"^\| (.*) \|$", (tmp_path / "compare.md").read_text(encoding="utf-8"), re.MULTILINE)
    figures = {word for row in cells for word in re.findall(r"\(?\d[\d.,–]*\)?", row)}
    assert any(figure.startswith("(") for figure in figures)
    assert {figure for figure in figures if figure not in stdout} == set()


@pytest.mark.usefixtures("no_figures")
def test_json_output_of_tables_of_the_same_name(bitatoms, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "table.csv").write_bytes((tmp_path / "table.csv").read_bytes())
    wanted = ("compare", "table.csv", "other/table.csv", "--only", "grecond", "-k", "1", "-o", "out")
    code, stdout, stderr = bitatoms(*wanted, "--json")
    assert (code, stderr) == (0, "")
    found = json.loads(stdout)
    without = ba.codelength(ba.read("table.csv")).total
    size = {"rows": 90, "columns": 20, "bits_without": without}
    assert found["data"] == [{"name": "table.csv"} | size, {"name": "other/table.csv"} | size]
    assert [run["contender"] for run in found["runs"]] == ["grecond"] * 2
    assert found["runs"][0]["wrong_cells"] > 0
    assert (found["interrupted"], found["not_reached"]) == (False, [])
    assert found["written"] == ["out/compare.md", "out/compare.csv"]


def test_a_page_is_not_written(bitatoms):
    code, _, stderr = bitatoms("compare", "table.csv", "-o", "page.html")
    written = "a comparison is written to a folder, as Markdown, CSV and PNG, not as a page; pass a folder"
    assert (code, stderr) == (2, f"bitatoms: page.html: {written}\n")


@pytest.mark.usefixtures("no_figures")
def test_a_file_takes_precedence_over_bundled_data(bitatoms, tmp_path):
    wanted = ("--only", "grecond", "-k", "1", "-o", "out", "--quiet")
    assert bitatoms("compare", "planted-or", *wanted) == (0, "", "")
    assert [row["data"] for row in rows_of(tmp_path / "out" / "compare.csv")] == ["planted-or"]
    (tmp_path / "planted-or").write_bytes(b"")
    assert bitatoms("compare", "planted-or", *wanted)[0] == 2


def test_list_names_methods_and_data(bitatoms):
    stdout = bitatoms.output("compare", "--list")
    for name in ("bitatoms-xor-mdl", "k-prox", "message-passing", "asso", "planted-dense"):
        assert name in stdout
    found = json.loads(bitatoms("compare", "--list", "--json")[1])
    assert "grecond" in [each["key"] for each in found["contenders"]]
    assert "halftone" in found["data"]


def test_unwritable_folder_is_reported_before_any_work(bitatoms, monkeypatch):
    def refuse(*given, **more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("bitatoms.cli.paths.tempfile.TemporaryDirectory", refuse)
    monkeypatch.setattr("bitatoms.compare.compare", None)
    code, _, stderr = bitatoms("compare", "table.csv", "-o", ".")
    assert (code, stderr) == (2, "bitatoms: .: cannot be written: Permission denied; nothing was changed\n")


@pytest.fixture
def stop_at(monkeypatch, no_figures):
    """Return a function that makes a method raise an exception."""

    def stop(key, error):
        def run(task):
            raise error

        methods = [replace(each, run=run) if each.key == key else each for each in all_methods()]
        monkeypatch.setattr(sys.modules["bitatoms.compare.methods"], "all_methods", lambda: methods)

    return stop


def test_interrupt_keeps_completed_runs_and_an_earlier_comparison(bitatoms, stop_at, tmp_path):
    command = ("compare", "table.csv", *FEW, "-o", "out", "-q")
    stop_at("bitatoms-or", KeyboardInterrupt())
    assert bitatoms(*command)[::2] == (130, "bitatoms: interrupted; nothing was written\n")
    assert not (tmp_path / "out").exists()
    stop_at("grecond", KeyboardInterrupt())
    earlier = None
    for folder in ("out", "out/interrupted", "out/interrupted-2"):
        code, _, stderr = bitatoms(*command)
        assert (code, stderr) == (130, f"bitatoms: interrupted; the 4 runs that were done are in {folder}\n")
        assert len(rows_of(tmp_path / folder / "compare.csv")) == 4
        files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()}
        earlier = earlier or files
        assert files == earlier
