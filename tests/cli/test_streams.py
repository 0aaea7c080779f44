"""Standard output, devices and pipes as outputs: data go there, and everything else to standard error."""

import gzip
import os
import sys
import threading

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")

from bitatoms.cli.app import run
from bitatoms.cli.files import path_of_interrupted
from support.commands import COMPILATION

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such devices and pipes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with a table and a model of it."""
    folder = tmp_path_factory.mktemp("streams")
    X = np.repeat(np.eye(3, dtype=np.uint8), [40, 30, 20], axis=0).repeat(5, axis=1)
    ba.write(ba.Table(ba.BitMatrix.from_dense(X), columns=[f"item {j}" for j in range(15)]), folder / "table.csv")
    ba.BinaryDictionaryLearning(3, algebra="or", random_state=0).fit(ba.read(folder / "table.csv")).save(
        folder / "model.npz"
    )
    return folder


@pytest.fixture
def bitatoms(capsysbinary, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout as bytes and stderr."""
    monkeypatch.chdir(folder)

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        printed = capsysbinary.readouterr()
        return ended.value.code or 0, printed.out, COMPILATION.sub("", printed.err.decode())

    return command


@pytest.fixture
def pipe(tmp_path):
    """Return a function that makes a named pipe and returns its path, and a function that waits for its content."""

    def make(name):
        path, content = tmp_path / name, []
        os.mkfifo(path)
        thread = threading.Thread(target=lambda: content.append(path.read_bytes()), daemon=True)
        thread.start()

        def wait():
            thread.join(10)
            return content[0]

        return path, wait

    return make


COMMANDS = {  # the arguments before the output, its default extension, what is printed beside it
    "convert": (["convert", "table.csv"], ".csv", "90 rows of 15 columns"),
    "transform": (["transform", "model.npz", "table.csv", "-o"], ".csv", "codes of 90 rows"),
    "reconstruct": (["reconstruct", "model.npz", "table.csv", "-o"], ".csv", "90 rows of 15 columns"),
    "report": (["report", "model.npz", "table.csv", "-o"], ".html", ""),
    "atoms": (["show", "model.npz", "--atoms-to"], ".csv", "3 atoms (OR)"),
    "patterns": (["show", "model.npz", "--patterns"], ".csv", "3 atoms (OR)"),
    "fit": (["fit", "table.csv", "-k", "3", "--algebra", "or", "-o"], ".npz", "3 atoms (OR)"),
    "codes": (["fit", "table.csv", "-k", "3", "--algebra", "or", "--codes"], ".csv", "3 atoms (OR)"),
    "page": (["fit", "table.csv", "-k", "3", "--algebra", "or", "--report"], ".html", "3 atoms (OR)"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_data_are_not_mixed_with_what_is_printed(bitatoms, pipe, tmp_path, command):
    arguments, extension, printed = COMMANDS[command]
    file = tmp_path / f"file{extension}"
    assert bitatoms(*arguments, file)[0] == 0
    for stdout in ("-", "/dev/stdout"):
        code, content, stderr = bitatoms(*arguments, stdout)
        assert (code, content) == (0, file.read_bytes())
        assert printed in stderr
    path, wait = pipe("pipe")
    code, stdout, stderr = bitatoms(*arguments, path)
    assert (code, stdout, wait()) == (0, b"", file.read_bytes())
    assert printed in stderr
    assert bitatoms(*arguments, os.devnull)[0] == 0
    assert "Next:" not in stderr or command in ("codes", "page")


def test_quiet_prints_nothing_beside_the_data(bitatoms):
    for command in ("convert", "transform", "fit"):
        assert bitatoms(*COMMANDS[command][0], "/dev/stdout", "--quiet")[2] == ""


def test_all_outputs_may_be_the_null_device(bitatoms):
    options = [
        word for option in ("-o", "--codes", "--atoms-to", "--patterns", "--report") for word in (option, os.devnull)
    ]
    code, stdout, _ = bitatoms("fit", "table.csv", "-k", "3", *options, "--json")
    assert code == 0
    assert stdout.startswith(b"{")


def test_the_format_is_that_of_the_option_or_the_extension(bitatoms, folder, pipe, tmp_path):
    table = ba.read(folder / "table.csv")
    _, stdout, _ = bitatoms("convert", "table.csv", "/dev/stdout", "--to", "npz")
    (tmp_path / "read.npz").write_bytes(stdout)
    assert ba.read(tmp_path / "read.npz") == table
    path, wait = pipe("pipe.npz")
    assert bitatoms("convert", "table.csv", path)[0] == 0
    assert wait() == stdout
    path, wait = pipe("pipe.unknown")
    assert bitatoms("convert", "table.csv", path)[0] == 0
    assert wait() == (folder / "table.csv").read_bytes()
    (tmp_path / "link.csv.gz").symlink_to("/dev/stdout")
    _, stdout, _ = bitatoms("convert", "table.csv", tmp_path / "link.csv.gz")
    assert gzip.decompress(stdout) == (folder / "table.csv").read_bytes()
    (tmp_path / "link.json").symlink_to("/dev/stdout")
    _, stdout, _ = bitatoms("show", "model.npz", "--patterns", tmp_path / "link.json")
    assert stdout.startswith(b"[\n")


def test_output_redirected_to_the_file_that_is_written(folder, tmp_path, monkeypatch):
    """As in ``bitatoms convert table.csv /dev/stdout > file``: status lines would be in the file."""
    saved = os.dup(1)
    with open(tmp_path / "file", "w") as file, monkeypatch.context() as patch:
        os.dup2(file.fileno(), 1)
        patch.setattr("sys.stdout", file)
        try:
            with pytest.raises(SystemExit):
                run(["convert", str(folder / "table.csv"), "/dev/stdout"])
        finally:
            os.dup2(saved, 1)
            os.close(saved)
    assert (tmp_path / "file").read_bytes() == (folder / "table.csv").read_bytes()


INVALID = {
    "several files": (["convert", "table.csv", "/dev/stdout", "--to", "bed"], "PLINK genotypes cannot be written to a"),
    "a folder": (
        ["transform", "model.npz", "table.csv", "-o", "-", "--to", "zarr"],
        "a Zarr store cannot be written to",
    ),
    "a store": (["pack", "table.csv", "-o", "/dev/stdout"], "a store cannot be written to a stream; pass a file name"),
    "a checkpoint": (["fit", "table.csv", "--checkpoint", "/dev/null"], "a checkpoint cannot be written to a stream"),
    "twice": (["fit", "table.csv", "--codes", "-", "--report", "/dev/stdout"], "already reads or writes this file"),
    "with JSON": (["show", "model.npz", "--patterns", "/dev/stdout", "--json"], "--json already writes to it"),
}


@pytest.mark.parametrize("case", INVALID)
def test_outputs_that_a_stream_cannot_hold(bitatoms, case):
    arguments, message = INVALID[case]
    code, stdout, stderr = bitatoms(*arguments)
    assert (code, stdout) == (2, b"")
    assert message in stderr


def test_an_interrupted_model_is_written_into_a_stream(pipe):
    path, _ = pipe("pipe")
    assert path_of_interrupted(path) == path
    path.write_bytes(b"")  # for the reader
