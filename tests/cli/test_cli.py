"""The command line: its output and files, exit codes, and one-line errors."""

import csv
import errno
import gzip
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")

from bitatoms.__main__ import main
from bitatoms.cli.app import run
from bitatoms.formatting import percent
from bitatoms.io import model_file
from support.commands import COMPILATION, runner

pytestmark = pytest.mark.usefixtures("few_trials")

ROWS, COLUMNS = 300, 30


@pytest.fixture(scope="module")
def table():
    data = ba.datasets.planted(ROWS, COLUMNS, 4, algebra="or", noise=0.01, random_state=1)
    rows = [f"customer {i}" for i in range(ROWS)]
    return ba.Table(ba.BitMatrix.from_dense(data.X), rows, [f"item {j}" for j in range(COLUMNS)])


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """Create a folder with a table and a model of it."""
    place = tmp_path_factory.mktemp("cli")
    ba.write(table, place / "table.csv")
    model = ba.BinaryDictionaryLearning(algebra="auto", random_state=0).fit(table)
    model.save(place / "model.npz")
    return place


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return runner(capsys)


@pytest.mark.skipif(not find_spec("bed_reader"), reason="needs bed-reader")
def test_reconstruct_writes_the_nearest_genotypes_and_counts_them(bitatoms, tmp_path):
    columns = ("rs1:A", "rs1:AA", "rs2:C", "rs2:CC")
    table = ba.Table(ba.BitMatrix.from_dense([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0]] * 5), columns=columns)
    model = ba.BinaryDictionaryLearning(2, random_state=0).fit(table)
    learned = replace(
        model.as_model(),
        atoms=ba.BitMatrix.from_dense([[1, 1, 1, 1], [1, 0, 1, 0]]),
        lacking=None,
        algebra="xor",
        wrong=np.array([2, 1, 1, 2]),
    )
    model_file.save(learned, tmp_path / "model.npz")
    ba.write(ba.Table(ba.BitMatrix.from_dense([[1, 1], [1, 0], [0, 1]])), tmp_path / "codes.csv")
    written = ("--codes", tmp_path / "codes.csv", "-o", tmp_path / "made.bed")
    code, stdout, stderr = bitatoms("reconstruct", tmp_path / "model.npz", *written)
    assert code == 0
    assert "made.bed: 3 rows of 4 columns" in stdout
    assert "Note: 2 genotypes of the reconstruction had two copies of an allele but not one" in " ".join(stderr.split())
    assert ba.read(tmp_path / "made.bed").to_dense().tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]]


def test_show_and_report_give_the_same_rows_that_use_and_that_have_a_pattern(bitatoms, folder, tmp_path):
    shown = bitatoms("show", "model.npz")[1]
    assert re.search(r"complete in *\n.* used by +\(expected\) +lift +bits saved", shown)
    assert bitatoms("report", "model.npz", "table.csv", "-o", tmp_path / "report.html")[0] == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    cards = re.findall(r"<dt>used by</dt><dd>(\d+) rows .*?<dt>complete in</dt><dd>(\d+) rows", page)
    assert cards == re.findall(r"(\d+) rows +(\d+) rows +×", shown)
    assert cards == [(str(p.rows), str(p.complete)) for p in ba.load(folder / "model.npz").patterns()]


def test_show_of_a_model_without_complete_rows_lists_only_users(bitatoms):
    older = Path(__file__).parents[1] / "data" / "0.1.0" / "model_or_named.npz"
    shown = bitatoms("show", older)[1]
    assert "used by  bits saved" in shown
    assert "complete in" not in shown


@pytest.mark.parametrize(("algebra", "sentence"), [("or", "come together: a row"), ("xor", "exclusive-or (XOR)")])
def test_show_says_how_patterns_are_read(bitatoms, folder, tmp_path, algebra, sentence):
    learned = ba.load(folder / "model.npz").as_model()
    model_file.save(replace(learned, algebra=algebra), tmp_path / "model.npz")
    shown = " ".join(bitatoms("show", tmp_path / "model.npz")[1].split())
    assert sentence in shown
    assert '"not"' not in shown
    bias = np.zeros(COLUMNS, np.uint8)
    bias[0] = 1
    model_file.save(replace(learned, algebra=algebra, bias=bias), tmp_path / "bias.npz")
    assert '"not" marks a feature that' in " ".join(bitatoms("show", tmp_path / "bias.npz")[1].split())


def test_fit_prints_a_summary(bitatoms, folder, tmp_path):
    code, stdout, _ = bitatoms("fit", "table.csv", "-o", tmp_path / "model.npz")
    assert code == 0
    assert "table.csv: 300 rows of 30 columns" in stdout
    assert "rows and columns have names" in stdout
    assert re.search(r"\d atoms \((OR|XOR)\) describe 300 samples of 30 features in \d+ bits, [\d.]+% fewer", stdout)
    assert "of the ones are accounted for" in stdout
    assert "The strongest patterns (atoms):" in stdout
    assert "(OR) describe" in stdout
    assert re.search(r"XOR needs \d+ bits", stdout)
    assert "The features of a pattern come together" in " ".join(stdout.split())
    assert "item " in stdout
    assert f"Next: bitatoms report {tmp_path / 'model.npz'} table.csv" in stdout
    again = ba.load(tmp_path / "model.npz")
    assert again.components_.tolist() == ba.load(folder / "model.npz").components_.tolist()


def test_fit_writes_all_outputs(bitatoms, table, tmp_path):
    files = {name: tmp_path / name for name in ("m.npz", "codes.csv", "atoms.tsv", "patterns.json", "report.html")}
    options = ["-o", files["m.npz"], "--codes", files["codes.csv"], "--atoms-to", files["atoms.tsv"]]
    options += ["--patterns", files["patterns.json"], "--report", files["report.html"], "--quiet"]
    assert bitatoms("fit", "table.csv", *options) == (0, "", "")
    model = ba.load(files["m.npz"])
    codes, atoms = ba.read(files["codes.csv"]), ba.read(files["atoms.tsv"])
    np.testing.assert_array_equal(codes.to_dense(), model.transform(table))
    assert codes.row_names == table.row_names
    assert codes.columns[0] == "atom1"
    np.testing.assert_array_equal(atoms.to_dense(), model.components_)
    assert atoms.columns == table.columns
    assert len(json.loads(files["patterns.json"].read_text())) == len(atoms)
    assert files["report.html"].read_text().startswith("<!doctype html>")


def test_json_output(bitatoms):
    code, stdout, stderr = bitatoms("fit", "table.csv", "--json", "-k", "3", "--algebra", "or", "--seed", "1")
    found = json.loads(stdout)
    assert (code, stderr) == (0, "")
    assert (found["atoms"], found["algebra"], found["samples"], found["features"]) == (3, "or", ROWS, COLUMNS)
    assert found["patterns"][0]["atom"] == 1
    assert json.loads(bitatoms("show", "model.npz", "--json")[1])["bits"] < found["bits_without"]


def test_the_same_seed_gives_the_same_file_with_any_number_of_threads(bitatoms, tmp_path):
    for jobs in ("1", "2"):
        assert bitatoms("fit", "table.csv", "-o", tmp_path / f"{jobs}.npz", "--jobs", jobs)[0] == 0
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


def test_transform_and_reconstruct(bitatoms, folder, table, tmp_path):
    model = ba.load(folder / "model.npz")
    code, stdout, _ = bitatoms("transform", "model.npz", "table.csv", "-o", tmp_path / "codes.npz")
    assert code == 0
    assert f"codes of 300 rows by {model.n_components_} atoms" in stdout
    codes = ba.read(tmp_path / "codes.npz")
    np.testing.assert_array_equal(codes.to_dense(), model.transform(table))
    for given in (["table.csv"], ["--codes", tmp_path / "codes.npz"]):
        assert bitatoms("reconstruct", "model.npz", *given, "-o", tmp_path / "again.csv")[0] == 0
        again = ba.read(tmp_path / "again.csv")
        np.testing.assert_array_equal(again.to_dense(), model.inverse_transform(codes.bits))
        assert (again.row_names, again.columns) == (table.row_names, table.columns)


def test_soft_codes_are_written_with_names(bitatoms, folder, table, tmp_path):
    soft = ba.load(folder / "model.npz").decision_function(table)
    how = ("transform", "model.npz", "table.csv", "--soft")
    for name, delimiter in (("soft.csv", ","), ("soft.tsv.gz", "\t")):
        code, stdout, _ = bitatoms(*how, "-o", tmp_path / name)
        assert code == 0
        assert f"soft codes of 300 rows by {soft.shape[1]} atoms" in stdout
        with (gzip.open if name.endswith(".gz") else open)(tmp_path / name, "rt") as file:
            header, *rows = csv.reader(file, delimiter=delimiter)
        assert header == ["", *(f"atom{k + 1}" for k in range(soft.shape[1]))]
        assert [row[0] for row in rows] == list(table.row_names)
        np.testing.assert_allclose([[float(cell) for cell in row[1:]] for row in rows], soft, rtol=1e-5)
    assert bitatoms(*how)[1] == (tmp_path / "soft.csv").read_text()
    assert bitatoms(*how, "-o", tmp_path / "soft.npy", "-q") == (0, "", "")
    np.testing.assert_array_equal(np.load(tmp_path / "soft.npy"), soft)


@pytest.mark.parametrize("name", ["soft.npz", "soft.h5ad", "soft.zarr"])
def test_other_formats_do_not_hold_soft_codes(bitatoms, tmp_path, name):
    code, _, stderr = bitatoms("transform", "model.npz", "table.csv", "--soft", "-o", tmp_path / name)
    assert code == 2
    assert "soft codes are numbers, which are written as .csv, .tsv or .npy" in stderr
    assert not (tmp_path / name).exists()


def test_picture_in_blocks_is_reconstructed(bitatoms, tmp_path):
    stripes = np.tile(np.repeat([[0, 1]], 4, axis=1), (50, 5)).astype(np.uint8)[:, :38]
    ba.write(stripes, tmp_path / "picture.pbm")
    model, clean = tmp_path / "model.npz", tmp_path / "clean.pbm"
    blocks = ["--blocks", "8x8"]
    assert bitatoms("fit", tmp_path / "picture.pbm", *blocks, "-o", model, "-k", "4")[0] == 0
    assert bitatoms("reconstruct", model, tmp_path / "picture.pbm", *blocks, "-o", clean)[0] == 0
    np.testing.assert_array_equal(ba.read(clean).to_dense(), stripes)


def test_show_prints_and_writes_atoms(bitatoms, tmp_path):
    code, stdout, _ = bitatoms("show", "model.npz", "--top", "2", "--patterns", tmp_path / "patterns.md")
    assert code == 0
    assert "more (--top" in stdout
    lines = (tmp_path / "patterns.md").read_text().splitlines()
    assert (
        lines[0] == "| atom | features | size | rows | share | bits_saved | complete | expected | lift | member_lifts |"
    )
    assert lines[2].startswith("| 1 | item ")


def test_convert_keeps_bits_and_names(bitatoms, table, tmp_path):
    code, stdout, _ = bitatoms("convert", "table.csv", tmp_path / "table.npz")
    assert code == 0
    assert "table.npz: 300 rows of 30 columns" in stdout
    assert ba.read(tmp_path / "table.npz") == table


def test_report(bitatoms, tmp_path):
    code, stdout, _ = bitatoms("report", "model.npz", "table.csv", "-o", tmp_path / "r.html", "--row", "customer 7")
    assert code == 0
    assert "open it in a browser" in stdout
    assert "customer 7" in (tmp_path / "r.html").read_text()


def test_report_without_single_rows(bitatoms, tmp_path):
    for name, options in (("some.html", ("--max-rows", 5)), ("none.html", ("--max-rows", 0))):
        assert bitatoms("report", "model.npz", "table.csv", "-o", tmp_path / name, *options)[0] == 0
    assert "The page contains 5 of the " in " ".join((tmp_path / "some.html").read_text(encoding="utf-8").split())
    assert "customer" not in (tmp_path / "none.html").read_text(encoding="utf-8")


def test_standard_input_and_output(table, folder):
    """They are bytes, so this needs a process of its own."""
    command = [sys.executable, "-m", "bitatoms"]
    csv = (folder / "table.csv").read_bytes()
    done = subprocess.run([*command, "convert", "-", "-", "--to", "npz"], input=csv, capture_output=True, check=True)
    (folder / "piped.npz").write_bytes(done.stdout)
    assert ba.read(folder / "piped.npz") == table
    bad = subprocess.run([*command, "convert", "-", "-"], input=b"a,b\n1,2\n", capture_output=True)
    assert (bad.returncode, bad.stdout) == (2, b"")
    assert b"standard input: line 2, column 'b': 2 is neither 0 nor 1; for counts, pass --binarize 0" in bad.stderr


@pytest.fixture
def streams(monkeypatch):
    """Return a function that replaces the standard output by a stream that fails until it is redirected."""

    class Failing(io.RawIOBase):
        def __init__(self, error, path):
            self.error, self.target = error, os.open(path, os.O_WRONLY | os.O_CREAT)

        def writable(self):
            return True

        def fileno(self):
            return self.target

        def write(self, content):
            if os.fstat(self.target).st_rdev != os.stat(os.devnull).st_rdev:
                raise self.error
            return len(content)

    def replace(error, folder):
        stream = io.BufferedWriter(Failing(error, folder / "stdout"))
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(stream))

    return replace


@pytest.mark.skipif(sys.platform == "win32", reason="the null device has no number there")
@pytest.mark.parametrize(
    "command",
    [
        ["show", "model.npz"],
        ["show", "model.npz", "--json"],
        ["transform", "model.npz", "table.csv", "-q"],
        ["transform", "model.npz", "table.csv", "-q", "-o", "/dev/stdout"],
    ],
)
@pytest.mark.parametrize(("error", "expected"), [(errno.EPIPE, (0, "")), (errno.ENOSPC, (2, "No space left"))])
def test_closed_or_full_output(bitatoms, streams, tmp_path, command, error, expected):
    """A closed pipe is no error; other errors name the standard output."""
    streams(OSError(error, os.strerror(error)), tmp_path)
    code, _, stderr = bitatoms(*command)
    message = f"bitatoms: standard output: cannot be written: {os.strerror(error)}\n"
    assert (code, stderr) == (expected[0], message if expected[1] else "")
    sys.stdout.flush()  # nothing is left that Python could not write when it exits


@pytest.mark.skipif(sys.platform == "win32", reason="the null device has no number there")
def test_fit_with_closed_output_writes_the_model(bitatoms, streams, tmp_path):
    streams(BrokenPipeError(errno.EPIPE, "Broken pipe"), tmp_path)
    assert bitatoms("fit", "table.csv", "-o", tmp_path / "model.npz") == (0, "", "")
    assert ba.load(tmp_path / "model.npz").n_components_ > 0


@pytest.mark.parametrize(
    ("command", "stream"), [(["fit", "-"], "standard input"), (["convert", "table.csv", "-"], "standard output")]
)
def test_full_temporary_folder_is_named(bitatoms, folder, monkeypatch, tmp_path, command, stream):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((folder / "table.csv").read_bytes())))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("shutil.copyfileobj", full)
    monkeypatch.setattr("bitatoms.io.atomic._move", full)
    code, stdout, stderr = bitatoms(*command)
    assert (code, stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert stderr.startswith(f"bitatoms: {stream}: cannot be copied to the temporary folder {tmp_path}")
    assert "No space left on device; free some space" in stderr
    assert "environment variable TMPDIR" in stderr


@pytest.mark.parametrize("quiet", [False, True])
def test_compilation_is_noted_without_a_terminal(folder, monkeypatch, capsys, quiet):
    monkeypatch.chdir(folder)
    fit = ba.BinaryDictionaryLearning.fit

    def compiling(*arguments, **kwargs):
        logging.getLogger("bitatoms.kernels.jit").info("compiling kernels")
        return fit(*arguments)

    monkeypatch.setattr("bitatoms.estimators.BinaryDictionaryLearning.fit", compiling)
    with pytest.raises(SystemExit):
        run(["fit", "table.csv", "-k", "1", "--json", *["--quiet"] * quiet])
    assert ("Note: compiling kernels\n" in capsys.readouterr().err) is not quiet


NUMBERS = ["numbers.csv", "--binarize", "0"]
INVALID = {
    "no such file": (["fit", "none.csv"], "none.csv: there is no such file"),
    "no format": (["fit", "table.xyz"], "unknown extension; pass --format, one of csv"),
    "not binary": (
        ["fit", "numbers.csv"],
        "line 2, column 'b': 7 is neither 0 nor 1; for counts, pass --binarize 0 to read",
    ),
    "missing": (
        ["fit", "missing.csv", "--missing", "refuse"],
        "1 value is missing, at line 3, column 'b'; fill it in, or pass --missing zero",
    ),
    "no rows": (["fit", "header.csv"], "the table has no rows"),
    "data as model": (["show", "table.csv"], "table.csv: not a model"),
    "model as data": (["fit", "model.npz"], "model"),
    "wrong columns": (
        ["transform", "model.npz", *NUMBERS],
        "numbers.csv has no column that the model was fitted on",
    ),
    "a model from a stream": (["show", "-"], "standard input: a model cannot be read from a stream; pass a file"),
    "no folder": (["fit", "table.csv", "-o", "nowhere/model.npz"], "nowhere/model.npz: there is no folder 'nowhere'"),
    "patterns as text": (
        ["fit", "table.csv", "--patterns", "p.txt"],
        "p.txt: patterns are written as .csv, .json",
    ),
    "codes as picture": (["fit", "table.csv", "--codes", "codes.xls"], "codes.xls: unknown extension"),
    "a negative number": (["fit", "table.csv", "-k", "-3"], "--atoms must be at least 1, not -3"),
    "no atoms": (["fit", "table.csv", "--atoms", "0"], "--atoms must be at least 1, not 0"),
    "less than no atoms": (["fit", "table.csv", "--max-atoms", "-1"], "--max-atoms must be"),
    "unknown option": (["fit", "table.csv", "--fast"], "--fast"),
    "unknown format": (["fit", "table.csv", "--format", "excel"], "excel"),
    "no size": (["fit", "table.csv", "--tile", "big"], "'big' is not a size; pass height x width"),
    "a tile that does not fit": (["fit", "table.csv", "--tile", "4x4"], "an image of 4 x 4 has 16 pixels"),
    "words for a number": (["fit", "table.csv", "-k", "many"], "--atoms is 'many'; pass an integer or mdl"),
    "neither data nor codes": (["reconstruct", "model.npz"], "pass either a table or --codes"),
    "codes of another model": (
        ["reconstruct", "model.npz", "--codes", *NUMBERS],
        "the codes have 2 columns",
    ),
    "a row of a page without rows": (
        ["report", "model.npz", "table.csv", "--row", "customer 7", "--max-rows", "0"],
        "no rows can be shown with --max-rows 0; omit it, or row 'customer 7'",
    ),
    "groups that are not there": (
        ["report", "model.npz", "table.csv", "--groups", "country"],
        "--groups country: there is no such file, and no such field of the rows (fields: none)",
    ),
    "a row that is not there": (["report", "model.npz", "table.csv", "--row", "nobody"], "nobody"),
    "a store from a stream": (
        ["convert", "-", "x.csv", "--format", "zarr"],
        "cannot be read from a stream; pass a file",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_input_is_reported_in_one_line_and_nothing_is_written(bitatoms, folder, case):
    (folder / "numbers.csv").write_text("a,b\n1,7\n3,0\n")
    (folder / "missing.csv").write_text("a,b\n1,0\n0,NA\n")
    (folder / "header.csv").write_text("a,b\n")
    before = sorted(file.name for file in folder.iterdir())
    arguments, part = INVALID[case]
    code, stdout, stderr = bitatoms(*arguments)
    assert code == 2
    assert part in " ".join(stderr.replace("│", " ").split())
    assert "Traceback" not in stderr + stdout
    assert sorted(file.name for file in folder.iterdir()) == before


def test_help_has_examples(bitatoms):
    for command in ("fit", "transform", "reconstruct", "show", "report", "convert", "demo"):
        code, stdout, _ = bitatoms(command, "--help")
        assert code == 0
        assert f"bitatoms {command} " in stdout
    assert bitatoms("--version") == (0, f"bitatoms {ba.__version__}\n", "")


def test_costs_of_errors(bitatoms, table, tmp_path):
    costs = ("--false-positive-cost", "inf", "--false-negative-cost", "1.5")
    code, stdout, _ = bitatoms("fit", "table.csv", "--algebra", "or", *costs, "-o", tmp_path / "costs.npz")
    assert code == 0
    assert "missed at a cost of 1.5, 0 added at a cost of inf" in stdout
    model = ba.load(tmp_path / "costs.npz")
    assert (model.false_positive_cost, model.false_negative_cost) == (np.inf, 1.5)
    assert not (model.inverse_transform(model.transform(table)) > table.to_dense()).any()


@pytest.mark.parametrize(("which", "quiet"), [("baskets", False), ("digits", True)])
def test_demo_runs_the_commands_it_shows(bitatoms, tmp_path, which, quiet):
    code, stdout, stderr = bitatoms("demo", which, "--folder", tmp_path / "new", *["--quiet"] * quiet)
    assert code == 0
    assert ("$ bitatoms fit " in stdout) is not quiet
    assert ("$ bitatoms report " in stdout) is not quiet
    assert not (quiet and stdout + stderr)
    assert len(list((tmp_path / "new").iterdir())) == 3


def test_patterns_are_known_atoms_of_another_fit(bitatoms, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["tea; green", "jam", "milk, fat", 'a "b"', "rum", "gin"]
    atoms = np.array([[1, 1, 0, 1, 0, 0], [0, 0, 1, 0, 1, 1]], np.uint8)
    ba.write(ba.Table.from_any(np.repeat(atoms, 20, axis=0)).bits, "rows.npy")
    table = ba.Table(ba.read("rows.npy").bits, columns=names)
    ba.write(table, "table.npz")
    assert bitatoms("fit", "table.npz", "-k", "2", "--algebra", "or", "-o", "model.npz", "-q") == (0, "", "")
    for file in ("patterns.csv", "patterns.xlsx"):
        if file.endswith("xlsx") and not find_spec("openpyxl"):
            continue
        assert bitatoms("show", "model.npz", "--patterns", file, "--quiet") == (0, "", "")
        assert bitatoms("fit", "table.npz", "--fixed", file, "-k", "2", "--algebra", "or", "-o", "again.npz")[0] == 0
        again, first = ba.load("again.npz"), ba.load("model.npz")
        assert {pattern.features for pattern in again.patterns()} == {pattern.features for pattern in first.patterns()}
    lines = (tmp_path / "patterns.csv").read_text().splitlines()
    (tmp_path / "patterns.csv").write_text("\n".join([lines[0], '1,"""jam; tea"']))
    code, _, stderr = bitatoms("fit", "table.npz", "--fixed", "patterns.csv")
    assert code == 2
    assert "patterns.csv: line 2, column 'features': quotes do not match" in stderr
    (tmp_path / "patterns.csv").write_text("\n".join([lines[0], "1,jam; bread"]))
    code, _, stderr = bitatoms("fit", "table.npz", "--fixed", "patterns.csv")
    assert "the table lacks columns of --fixed: 'bread'; add or remove them; in a pattern file, a name with" in stderr
    assert bitatoms("show", "model.npz", "--patterns", "patterns.json", "--quiet")[0] == 0
    code, _, stderr = bitatoms("fit", "table.npz", "--fixed", "patterns.json")
    assert (code, stderr.split(";")[0]) == (2, "bitatoms: patterns.json: patterns are read as .csv or .xlsx")


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr("bitatoms.__main__.find_spec", lambda name: None if name == "rich" else find_spec(name))
    with pytest.raises(SystemExit, match=r'needs rich; install it with pip install "bitatoms\[cli\]"'):
        main()


def test_interrupt_during_imports_prints_nothing(monkeypatch, capsys):
    class Interrupting:
        def find_spec(self, name, path=None, target=None):
            if name == "bitatoms.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "bitatoms.cli.app")
    monkeypatch.delattr("bitatoms.cli.app")
    monkeypatch.setattr("sys.meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, *capsys.readouterr()) == (130, "", "")


def test_interrupt_before_the_first_result(bitatoms, folder, monkeypatch):
    def stopped(*arguments, **options):
        raise ba.Interrupted(None)

    monkeypatch.setattr("bitatoms.estimators.BinaryDictionaryLearning.fit", stopped)
    before = sorted(file.name for file in folder.iterdir())
    code, _, stderr = bitatoms("fit", "table.csv", "-o", "other.npz")
    assert (code, stderr) == (130, "bitatoms: interrupted; nothing was written\n")
    assert sorted(file.name for file in folder.iterdir()) == before


def test_model_remembers_options_that_define_cells(bitatoms, folder, tmp_path):
    (folder / "counts.csv").write_text("a,b,c\n" + "5,0,3\n0,2,0\n" * 40)
    model = tmp_path / "model.npz"
    code, stdout, _ = bitatoms("fit", "counts.csv", "--binarize", "2", "-k", "1", "-o", model, "--header")
    assert code == 0
    assert f"Next: bitatoms report {model} counts.csv -o report.html --header\n" in stdout
    code, stdout, stderr = bitatoms("transform", model, "counts.csv")
    note = "Note: counts.csv is read with the options of the model's data: --binarize 2.0\n"
    assert (code, stderr.splitlines(keepends=True)[0]) == (0, note)
    assert stdout == "atom1\n" + "1\n0\n" * 40
    assert "Note:" not in bitatoms("transform", model, "counts.csv", "--binarize", "1")[2]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_named_pipe_is_read(table, folder, bitatoms, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes((folder / "table.csv").read_bytes()))
    thread.start()
    assert bitatoms("convert", tmp_path / "pipe", tmp_path / "table.npz", "--format", "csv")[0] == 0
    thread.join()
    assert ba.read(tmp_path / "table.npz") == table


def test_columns_are_reordered_as_in_the_model(bitatoms, folder, table, tmp_path):
    ba.write(ba.Table(table.bits.T[::-1].T, table.row_names, table.columns[::-1]), tmp_path / "turned.csv")
    assert bitatoms("transform", "model.npz", tmp_path / "turned.csv") == bitatoms(
        "transform", "model.npz", "table.csv"
    )


INTERRUPTED_FITS = """
import os, signal, sys
from bitatoms.cli import progress
from bitatoms.cli.app import run

def interrupt(self, row):
    if row.round == 2:
        os.kill(os.getpid(), number)

progress.SearchProgress.__call__ = interrupt
for number in (signal.SIGINT, signal.SIGTERM):
    try:
        run(["fit", "table.npz", "-o", f"{number.name}.npz", "--algebra", "or"])
    except SystemExit as ended:
        code = ended.code
    print("exit code", code)
sys.exit(code)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to one process")
def test_interrupt_keeps_the_best_model(tmp_path):
    """The second round of a search sends SIGINT to its own process, and that of another one SIGTERM."""
    X = ba.datasets.planted(600, 60, 6, noise=0.05, random_state=0).X
    ba.write(X, tmp_path / "table.npz")
    command = [sys.executable, "-c", INTERRUPTED_FITS]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 143
    assert re.findall(r"exit code (\d+)", done.stdout) == ["130", "143"]
    assert done.stdout.count("describe 600 samples") == 2
    assert COMPILATION.sub("", done.stderr) == (
        "bitatoms: interrupted; the best model so far is in SIGINT.npz\n"
        "bitatoms: interrupted by SIGTERM; the best model so far is in SIGTERM.npz\n"
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == ["SIGINT.npz", "SIGTERM.npz", "table.npz"]
    for name in ("SIGINT.npz", "SIGTERM.npz"):
        model = ba.load(tmp_path / name)
        assert model.n_components_ > 0
        assert len(model.history_) == 2


def test_codes_of_a_model_without_atoms(bitatoms, tmp_path):
    """A text file cannot hold them: it would be blank lines."""
    ba.write(np.eye(9, dtype=np.uint8), tmp_path / "eye.npz")
    ba.BinaryDictionaryLearning(random_state=0).fit(np.zeros((5, 9))).save(tmp_path / "none.npz")
    how = ("transform", tmp_path / "none.npz", tmp_path / "eye.npz")
    why = "the model has no atoms, so codes have no columns, which this format cannot store; .npz files can"
    assert bitatoms(*how) == (2, "", f"bitatoms: standard output: {why}\n")
    assert bitatoms(*how, "-o", tmp_path / "codes.csv")[0] == 2
    assert not (tmp_path / "codes.csv").exists()
    assert bitatoms(*how, "-o", tmp_path / "codes.npz")[0] == 0
    assert ba.read(tmp_path / "codes.npz").shape == (9, 0)
    assert "the model has no atoms, so soft codes have no columns" in bitatoms(*how, "--soft")[2]
    assert bitatoms(*how, "--soft", "-o", tmp_path / "soft.npy")[0] == 0
    assert np.load(tmp_path / "soft.npy").shape == (9, 0)


def test_show_and_report_round_alike(bitatoms, tmp_path):
    shares = re.findall(r"\(([\d.]+%)\)", bitatoms("show", "model.npz")[1])
    assert shares
    assert bitatoms("report", "model.npz", "table.csv", "-o", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert [share for share in shares if share not in page] == []


def test_show_rounds_decimal_shares(bitatoms, tmp_path):
    """33 of 2000 rows are 1.65 %, which is not a number of binary digits."""
    learned = replace(ba.load("model.npz").as_model(), n_samples=2000)
    learned = replace(learned, uses=np.full(len(learned.uses), 33), rows_hash=None)
    model_file.save(learned, tmp_path / "rounded.npz")
    shown = bitatoms("show", tmp_path / "rounded.npz")[1]
    assert "33 rows" in shown
    assert f"({percent(33, 2000)})" in shown
