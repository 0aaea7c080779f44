"""Commands on tables in memory: what they print and write. Errors are in test_cli_errors.py."""

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
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")

from bitatoms.__main__ import main
from bitatoms.cli import demo
from bitatoms.cli.output import print_line
from bitatoms.io import model_file

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(autouse=True)
def baskets(put):
    """The model and the table of the files model.npz and table.csv."""
    return put("or")


def words(text):
    return " ".join(text.split())


def test_fit_prints_a_summary(bitatoms, baskets):
    stdout = bitatoms.output("fit", "table.csv", "-o", "new.npz")
    lines = stdout.splitlines()
    assert lines[0].startswith("table.csv: 300 rows of 40 columns, ")
    assert lines[0].endswith("% ones, rows and columns have names")
    assert lines[2:4] == baskets.model.as_model().summary().splitlines()[:2]
    assert "The strongest patterns (atoms):" in lines
    assert "The features of a pattern come together" in words(stdout)
    assert lines[-2:] == ["Written: new.npz", "Next: bitatoms report new.npz table.csv -o report.html"]
    assert ba.load("new.npz").components_.tolist() == baskets.model.components_.tolist()
    assert "Nothing was written; -o model.npz keeps the model." in bitatoms("fit", "table.csv", "-k", "1")[1]


def test_fit_writes_all_outputs(bitatoms, baskets, tmp_path):
    options = "-o m.npz --codes codes.csv --atoms-to atoms.tsv --patterns patterns.json --report report.html --quiet"
    assert bitatoms("fit", "table.csv", *options.split()) == (0, "", "")
    model, table = ba.load("m.npz"), baskets.table
    codes, atoms = ba.read("codes.csv"), ba.read("atoms.tsv")
    np.testing.assert_array_equal(codes.to_dense(), model.transform(table))
    assert (codes.row_names, codes.columns) == (table.row_names, tuple(f"atom{k}" for k in range(1, 6)))
    np.testing.assert_array_equal(atoms.to_dense(), model.components_)
    assert (atoms.row_names, atoms.columns) == (codes.columns, table.columns)
    assert len(json.loads((tmp_path / "patterns.json").read_text())) == len(atoms)
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_a_model_as_json(bitatoms, baskets):
    code, stdout, stderr = bitatoms("show", "model.npz", "--json")
    found, learned = json.loads(stdout), baskets.model.as_model()
    assert (code, stderr) == (0, "")
    length = learned.codelength
    expected = {
        "bits": length.total, "bits_errors": length.errors, "bits_codes": length.codes, "bits_atoms": length.atoms,
        "atoms": 5, "algebra": "or", "samples": 300, "features": 40, "unknown_cells": 0, "recurrence": None,
        "wrong_bits": int(learned.wrong.sum()), "ones": baskets.table.bits.count(), "ended": "converged",
        "ones_missed": int(learned.missed.sum()), "bits_without": ba.codelength(baskets.table).total,
        "codelengths": dict(learned.codelengths),
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert [tuple(each["features"]) for each in found["patterns"]] == [p.features for p in baskets.model.patterns()]
    assert set(found["patterns"][0]) == set(baskets.model.to_frame().columns) - {"span"}
    fitted = json.loads(bitatoms("fit", "table.csv", "-k", "3", "--algebra", "or", "--json", "--top", "2")[1])
    assert (fitted["atoms"], len(fitted["patterns"])) == (3, 2)


def test_show_and_report_give_the_same_counts(bitatoms, baskets, tmp_path):
    shown = bitatoms("show", "model.npz")[1]
    assert re.search(r"complete in *\n.* used by +\(expected\) +lift +bits saved", shown)
    counts = [(str(p.rows), str(p.complete)) for p in baskets.model.patterns()]
    assert re.findall(r"(\d+) rows +(\d+) rows +×", shown) == counts
    line = "The report is in r.html; open it in a browser.\n"
    assert bitatoms("report", "model.npz", "table.csv", "-o", "r.html", "--row", "basket 7") == (0, line, "")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h3><bdi>basket 7</bdi></h3>" in page
    assert re.findall(r"<td[^>]*>(\d+) rows [^<]*</td><td[^>]*>(\d+) rows", page) == counts


def test_show_says_how_patterns_are_read(bitatoms, baskets):
    bias, parts = np.eye(1, 40, dtype=np.uint8)[0], ("come together: a row", "(XOR)", '"not" marks', "complete in")
    for changes, expected in (
        ({}, [True, False, False, True]),
        ({"algebra": "xor", "bias": bias}, [False, True, True, True]),
        ({"complete": None, "lacking": None}, [True, False, False, False]),
    ):
        model_file.save(replace(baskets.model.as_model(), **changes), "other.npz")
        shown = words(bitatoms.output("show", "other.npz"))
        assert [part in shown for part in parts] == expected


def test_show_prints_and_writes_atoms(bitatoms, tmp_path):
    stdout = bitatoms.output("show", "model.npz", "--top", "2", "--patterns", "patterns.md", "--atoms-to", "a.csv")
    assert "and 3 more (--top 5 shows all)" in stdout
    assert stdout.endswith("Written: a.csv, patterns.md\n")
    head, _, first, *_ = (tmp_path / "patterns.md").read_text().splitlines()
    assert head == "| atom | features | size | rows | share | bits_saved | complete | expected | lift | member_lifts |"
    assert first.startswith("| 1 | item ")
    assert ba.read("a.csv").shape == (5, 40)


def test_show_draws_pictures_in_half_blocks(bitatoms, put):
    model = put("xor").model
    stdout = bitatoms.output("show", "model.npz", "--top", "1")
    picture = (model.components_[0] ^ model.bias_).reshape(4, 2, 8)
    blocks = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
    drawn = ["".join(blocks[tuple(pair.tolist())] for pair in line.T).rstrip() for line in picture]
    pattern = model.patterns()[0]
    captions = [f"1: used by {pattern.rows}", f"complete in {pattern.complete}"]
    assert "\n".join([*drawn, *captions]) in stdout


def test_transform_and_reconstruct(bitatoms, baskets):
    model, table = baskets
    line = f"table.npz: 300 rows of 40 columns, {table.bits.density:.1%} ones\n"
    assert bitatoms("convert", "table.csv", "table.npz") == (0, line, "")
    assert ba.read("table.npz") == table
    code, stdout, _ = bitatoms("transform", "model.npz", "table.csv", "-o", "codes.npz")
    codes = ba.read("codes.npz")
    mean = codes.bits.count() / 300
    assert (code, stdout) == (0, f"codes.npz: codes of 300 rows by 5 atoms, {mean:.1f} atoms per row\n")
    np.testing.assert_array_equal(codes.to_dense(), model.transform(table))
    for given in (["table.csv"], ["--codes", "codes.npz"]):
        assert bitatoms("reconstruct", "model.npz", *given, "-o", "again.csv")[0] == 0
        again = ba.read("again.csv")
        np.testing.assert_array_equal(again.to_dense(), model.inverse_transform(codes.bits))
        assert (again.row_names, again.columns) == (table.row_names, table.columns)


def test_soft_codes_are_written_with_names(bitatoms, baskets, tmp_path):
    soft = baskets.model.decision_function(baskets.table)
    how = ("transform", "model.npz", "table.csv", "--soft")
    for name, delimiter in (("soft.csv", ","), ("soft.tsv.gz", "\t")):
        assert bitatoms(*how, "-o", name)[:2] == (0, f"{name}: soft codes of 300 rows by 5 atoms\n")
        with (gzip.open if name.endswith(".gz") else open)(name, "rt") as file:
            header, *rows = csv.reader(file, delimiter=delimiter)
        assert header == ["", *(f"atom{k}" for k in range(1, 6))]
        assert [row[0] for row in rows] == list(baskets.table.row_names)
        np.testing.assert_allclose([[float(cell) for cell in row[1:]] for row in rows], soft, rtol=1e-5)
    assert bitatoms(*how)[1] == (tmp_path / "soft.csv").read_text()
    assert bitatoms(*how, "-o", "soft.npy", "-q") == (0, "", "")
    np.testing.assert_array_equal(np.load("soft.npy"), soft)


def test_codes_of_a_model_without_atoms(bitatoms, tmp_path):
    """A text file cannot hold them: it would be blank lines."""
    ba.write(np.eye(9, dtype=np.uint8), "eye.npz")
    ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(np.zeros((5, 9))).save("none.npz")
    how = ("transform", "none.npz", "eye.npz")
    why = "the model has no atoms, so codes have no columns, which this format cannot store; .npz files can"
    assert bitatoms(*how, "-o", "codes.csv") == (2, "", f"bitatoms: codes.csv: {why}\n")
    assert not (tmp_path / "codes.csv").exists()
    assert bitatoms(*how, "-o", "codes.npz")[0] == 0
    assert ba.read("codes.npz").shape == (9, 0)
    assert "the model has no atoms, so soft codes have no columns" in bitatoms(*how, "--soft")[2]
    assert bitatoms(*how, "--soft", "-o", "soft.npy")[0] == 0
    assert np.load("soft.npy").shape == (9, 0)


def test_picture_in_blocks_is_reconstructed(bitatoms):
    stripes = np.tile(np.repeat([[0, 1]], 4, axis=1), (50, 5)).astype(np.uint8)[:, :38]
    ba.write(stripes, "picture.pbm")
    assert bitatoms("fit", "picture.pbm", "--blocks", "8x8", "-o", "blocks.npz", "-k", "4")[0] == 0
    assert bitatoms("reconstruct", "blocks.npz", "picture.pbm", "--blocks", "8x8", "-o", "clean.pbm")[0] == 0
    np.testing.assert_array_equal(ba.read("clean.pbm").to_dense(), stripes)


@pytest.mark.skipif(not find_spec("bed_reader"), reason="needs bed-reader")
def test_reconstruct_writes_the_nearest_genotypes_and_counts_them(bitatoms):
    columns = ("rs1:A", "rs1:AA", "rs2:C", "rs2:CC")
    table = ba.Table(ba.BitMatrix.from_dense([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0]] * 5), columns=columns)
    atoms = ba.BitMatrix.from_dense([[1, 1, 1, 1], [1, 0, 1, 0]])
    own = {"atoms": atoms, "lacking": None, "algebra": "xor", "wrong": np.array([2, 1, 1, 2])}
    learned = ba.BinaryDictionaryLearning(2, algebra="xor", random_state=0).fit(table).as_model()
    model_file.save(replace(learned, **own), "model.npz")
    ba.write(ba.Table(ba.BitMatrix.from_dense([[1, 1], [1, 0], [0, 1]])), "codes.csv")
    code, stdout, stderr = bitatoms("reconstruct", "model.npz", "--codes", "codes.csv", "-o", "made.bed")
    assert code == 0
    assert "made.bed: 3 rows of 4 columns" in stdout
    assert "Note: 2 genotypes of the reconstruction had two copies of an allele but not one" in words(stderr)
    assert ba.read("made.bed").to_dense().tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]]


@pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning")  # the command line prints them
@pytest.mark.parametrize(("which", "data"), [("digits", "npz"), ("halftone", "pbm"), ("customers", "csv")])
def test_demo_runs_the_commands_it_shows(bitatoms, monkeypatch, tmp_path, which, data):
    picture, (X, labels) = ba.datasets.halftone()[100:164, 200:264], ba.datasets.digits()
    monkeypatch.setattr("bitatoms.datasets.halftone", lambda: picture)
    monkeypatch.setattr("bitatoms.datasets.digits", lambda: (X[:80], labels[:80]))
    customers = demo._ALL["customers"]._replace(data=lambda: ba.datasets.customers(80))
    monkeypatch.setitem(demo._ALL, "customers", customers)
    how = ["--quiet"] if which == "halftone" else []
    printed = bitatoms.output("demo", which, "--folder", "new", *how)
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        f"{which}.{data}", f"{which}-model.npz", f"{which}.html"
    }  # fmt: skip
    assert ("$ bitatoms fit new/digits.npz -o new/digits-model.npz\n" in printed) == (which == "digits")
    assert (printed == "") == bool(how)


def test_patterns_are_known_atoms_of_another_fit(bitatoms):
    names = ["tea; green", "jam", "milk, fat", 'a "b"', "rum", "gin"]
    atoms = np.array([[1, 1, 0, 1, 0, 0], [0, 0, 1, 0, 1, 1]], np.uint8)
    ba.write(ba.Table(ba.BitMatrix.from_dense(np.repeat(atoms, 20, axis=0)), columns=names), "table.npz")
    fit = ("fit", "table.npz", "-k", "2", "--algebra", "or", "-q")
    assert bitatoms(*fit, "-o", "model.npz") == (0, "", "")
    first = {pattern.features for pattern in ba.load("model.npz").patterns()}
    for file in ("patterns.csv", "patterns.xlsx"):
        if file.endswith("xlsx") and not find_spec("openpyxl"):
            continue
        assert bitatoms("show", "model.npz", "--patterns", file, "--quiet") == (0, "", "")
        assert bitatoms(*fit, "--fixed", file, "-o", "again.npz")[0] == 0
        assert {pattern.features for pattern in ba.load("again.npz").patterns()} == first


def test_model_remembers_options_that_define_cells(bitatoms, tmp_path):
    (tmp_path / "counts.csv").write_text("a,b,c\n" + "5,0,3\n0,2,0\n" * 40)
    stdout = bitatoms.output("fit", "counts.csv", "--binarize", "2", "-k", "1", "-o", "m.npz", "--header")
    assert stdout.endswith("Next: bitatoms report m.npz counts.csv -o report.html --header\n")
    code, stdout, stderr = bitatoms("transform", "m.npz", "counts.csv")
    note = "Note: counts.csv is read with the options of the model's data: --binarize 2.0\n"
    assert (code, stderr.splitlines(keepends=True)[0]) == (0, note)
    assert stdout == "atom1\n" + "1\n0\n" * 40
    assert "Note:" not in bitatoms("transform", "m.npz", "counts.csv", "--binarize", "1")[2]


# --- streams, the environment and interrupts


STREAMS = {  # the arguments before the output, its default extension, what is printed beside it
    "convert": ("convert table.csv", ".csv", "300 rows of 40 columns"),
    "transform": ("transform model.npz table.csv -o", ".csv", "codes of 300 rows"),
    "reconstruct": ("reconstruct model.npz table.csv -o", ".csv", "300 rows of 40 columns"),
    "report": ("report model.npz table.csv -o", ".html", ""),
    "atoms": ("show model.npz --atoms-to", ".csv", "5 atoms (OR)"),
    "patterns": ("show model.npz --patterns", ".csv", "5 atoms (OR)"),
    "codes": ("fit table.csv -k 1 --algebra or --codes", ".csv", "1 atom (OR)"),
    "page": ("fit table.csv -k 1 --algebra or --report", ".html", "1 atom (OR)"),
}


@pytest.mark.parametrize("command", STREAMS)
def test_data_are_not_mixed_with_what_is_printed(bitatoms, tmp_path, command):
    arguments, extension, printed = STREAMS[command]
    file = tmp_path / f"file{extension}"
    assert bitatoms(*arguments.split(), file)[0] == 0
    code, content, stderr = bitatoms(*arguments.split(), "-")
    assert (code, content, printed in stderr) == (0, file.read_text(encoding="utf-8"), True)
    assert bitatoms(*arguments.split(), "-", "--quiet")[2] == ""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such device")
def test_devices_are_refused(bitatoms):
    message = f"bitatoms: {os.devnull}: a device or a pipe, not a file; commands read and write streams as -"
    for arguments in (("table.csv", os.devnull), (os.devnull, "copy.csv")):
        code, _, stderr = bitatoms("convert", *arguments)
        assert (code, stderr.splitlines()[-1]) == (2, message)


def test_standard_input_and_output_of_a_process(baskets, tmp_path):
    command = [sys.executable, "-m", "bitatoms", "convert", "-", "-", "--to", "npz"]
    table = (tmp_path / "table.csv").read_bytes()
    done = subprocess.run(command, input=table, capture_output=True, check=True)
    (tmp_path / "piped.npz").write_bytes(done.stdout)
    assert ba.read(tmp_path / "piped.npz") == baskets.table


@pytest.fixture
def fail_output(monkeypatch, tmp_path):
    """Return a function that replaces the standard output by a stream that fails until it is redirected."""

    class Failing(io.RawIOBase):
        def __init__(self, error):
            self.error, self.target = error, os.open(tmp_path / "stdout", os.O_WRONLY | os.O_CREAT)

        def writable(self):
            return True

        def fileno(self):
            return self.target

        def write(self, content):
            if os.fstat(self.target).st_rdev != os.stat(os.devnull).st_rdev:
                raise self.error
            return len(content)

    return lambda error: monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BufferedWriter(Failing(error))))


@pytest.mark.skipif(sys.platform == "win32", reason="the null device has no number there")
@pytest.mark.parametrize("error", [errno.EPIPE, errno.ENOSPC])
@pytest.mark.parametrize(
    "command",
    ["show model.npz", "show model.npz --json", "transform model.npz table.csv -q", "fit table.csv -k 1 -o new.npz"],
)
def test_closed_or_full_output(bitatoms, fail_output, tmp_path, command, error):
    """A closed pipe is no error; other errors name the standard output. A model is written all the same."""
    fail_output(OSError(error, os.strerror(error)))
    code, _, stderr = bitatoms(*command.split())
    message = f"bitatoms: standard output: cannot be written: {os.strerror(error)}\n"
    assert (code, stderr) == ((0, "") if error == errno.EPIPE else (2, message))
    assert error != errno.EPIPE or (tmp_path / "new.npz").exists() == command.startswith("fit")
    print_line("")  # the console does not keep what it could not write for the next test
    sys.stdout.flush()  # nothing is left that Python could not write when it exits


@pytest.mark.parametrize(
    ("command", "stream"), [(["fit", "-"], "standard input"), (["convert", "table.csv", "-"], "standard output")]
)
def test_full_temporary_folder_is_named(bitatoms, monkeypatch, tmp_path, command, stream):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "table.csv").read_bytes())))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr("shutil.copyfileobj", full)
    monkeypatch.setattr("os.replace", full)
    code, stdout, stderr = bitatoms(*command)
    assert (code, stdout, list((tmp_path / "temporary").iterdir())) == (2, "", [])
    assert stderr.startswith(f"bitatoms: {stream}: cannot be copied to the temporary folder {tmp_path / 'temporary'}")
    assert "No space left on device; free some space, or choose a folder" in stderr


def test_compilation_is_not_noted_with_quiet(bitatoms, monkeypatch):
    noted = []

    def compiling(*arguments, **kwargs):
        noted.append(bool(logging.getLogger("bitatoms.kernels").handlers))
        raise ba.InputError("noted")

    monkeypatch.setattr("bitatoms.estimators.BinaryDictionaryLearning.fit", compiling)
    for quiet in ([], ["--quiet"]):
        assert bitatoms("fit", "table.csv", *quiet)[0] == 2
    assert noted == [True, False]


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr("bitatoms.__main__.find_spec", lambda name: None if name == "rich" else find_spec(name))
    with pytest.raises(SystemExit, match=r'needs rich; install it with pip install "bitatoms\[cli\]"'):
        main()


def test_interrupt_during_imports_prints_nothing(monkeypatch, capsys):
    class Interrupting:
        def find_spec(self, name, path=None, target=None):
            if name == "bitatoms.cli.app":
                raise KeyboardInterrupt

    import bitatoms.cli.app  # noqa: F401 - so that it can be removed

    monkeypatch.delitem(sys.modules, "bitatoms.cli.app")
    monkeypatch.delattr("bitatoms.cli.app")
    monkeypatch.setattr("sys.meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, *capsys.readouterr()) == (130, "", "")


def test_interrupt_before_the_first_result(bitatoms, monkeypatch, tmp_path):
    def stopped(*arguments, **options):
        raise ba.Interrupted(None)

    monkeypatch.setattr("bitatoms.estimators.BinaryDictionaryLearning.fit", stopped)
    code, _, stderr = bitatoms("fit", "table.csv", "-o", "other.npz")
    assert (code, stderr) == (130, "bitatoms: interrupted; nothing was written\n")
    assert {path.name for path in tmp_path.iterdir()} == {"model.npz", "table.csv"}
