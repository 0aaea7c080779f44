"""Standard output, devices and pipes as outputs: data go there, and everything else to standard error."""

import gzip
import os
import sys
import threading

import pytest

import bitatoms as ba

pytest.importorskip("typer")

from bitatoms.cli.app import run
from bitatoms.cli.files import path_of_interrupted
from support.commands import COMPILATION

pytestmark = [
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.skipif(sys.platform == "win32", reason="there are no such devices and pipes"),
]


@pytest.fixture(autouse=True)
def baskets(put):
    put("or")


@pytest.fixture
def bitatoms(capsysbinary, monkeypatch, tmp_path):
    """Return a function that runs a command in the folder and returns exit code, stdout as bytes and stderr."""
    monkeypatch.chdir(tmp_path)

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
    "convert": ("convert table.csv", ".csv", "300 rows of 40 columns"),
    "transform": ("transform model.npz table.csv -o", ".csv", "codes of 300 rows"),
    "reconstruct": ("reconstruct model.npz table.csv -o", ".csv", "300 rows of 40 columns"),
    "report": ("report model.npz table.csv -o", ".html", ""),
    "atoms": ("show model.npz --atoms-to", ".csv", "5 atoms (OR)"),
    "patterns": ("show model.npz --patterns", ".csv", "5 atoms (OR)"),
    "fit": ("fit table.csv -k 1 --algebra or -o", ".npz", "1 atom (OR)"),
    "codes": ("fit table.csv -k 1 --algebra or --codes", ".csv", "1 atom (OR)"),
    "page": ("fit table.csv -k 1 --algebra or --report", ".html", "1 atom (OR)"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_data_are_not_mixed_with_what_is_printed(bitatoms, pipe, tmp_path, command):
    arguments, extension, printed = COMMANDS[command]
    file = tmp_path / f"file{extension}"
    assert bitatoms(*arguments.split(), file)[0] == 0
    code, content, stderr = bitatoms(*arguments.split(), "-")
    assert (code, content) == (0, file.read_bytes())
    assert printed in stderr
    assert bitatoms(*arguments.split(), "-", "--quiet")[2] == ""
    if command != "convert":
        return
    assert bitatoms(*arguments.split(), "/dev/stdout")[:2] == (0, file.read_bytes())
    assert bitatoms(*arguments.split(), os.devnull)[0] == 0
    path, wait = pipe("pipe")
    code, stdout, stderr = bitatoms(*arguments.split(), path)
    assert (code, stdout, wait()) == (0, b"", file.read_bytes())
    assert printed in stderr


def test_a_named_pipe_is_read(bitatoms, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    content = (tmp_path / "table.csv").read_bytes()
    thread = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(content))
    thread.start()
    assert bitatoms("convert", "pipe", "-", "--format", "csv")[:2] == (0, content)
    thread.join()


def test_the_format_is_that_of_the_option_or_the_extension(bitatoms, pipe, tmp_path):
    table = ba.read(tmp_path / "table.csv")
    _, stdout, _ = bitatoms("convert", "table.csv", "/dev/stdout", "--to", "npz")
    (tmp_path / "read.npz").write_bytes(stdout)
    assert ba.read(tmp_path / "read.npz") == table
    path, wait = pipe("pipe.npz")
    assert bitatoms("convert", "table.csv", path)[0] == 0
    assert wait() == stdout
    path, wait = pipe("pipe.unknown")
    assert bitatoms("convert", "table.csv", path)[0] == 0
    assert wait() == (tmp_path / "table.csv").read_bytes()
    (tmp_path / "link.csv.gz").symlink_to("/dev/stdout")
    _, stdout, _ = bitatoms("convert", "table.csv", tmp_path / "link.csv.gz")
    assert gzip.decompress(stdout) == (tmp_path / "table.csv").read_bytes()
    (tmp_path / "link.json").symlink_to("/dev/stdout")
    _, stdout, _ = bitatoms("show", "model.npz", "--patterns", tmp_path / "link.json")
    assert stdout.startswith(b"[\n")


def test_output_redirected_to_the_file_that_is_written(tmp_path, monkeypatch):
    """As in ``bitatoms convert table.csv /dev/stdout > file``: status lines would be in the file."""
    saved = os.dup(1)
    with open(tmp_path / "file", "w") as file, monkeypatch.context() as patch:
        os.dup2(file.fileno(), 1)
        patch.setattr("sys.stdout", file)
        try:
            with pytest.raises(SystemExit):
                run(["convert", str(tmp_path / "table.csv"), "/dev/stdout"])
        finally:
            os.dup2(saved, 1)
            os.close(saved)
    assert (tmp_path / "file").read_bytes() == (tmp_path / "table.csv").read_bytes()


def test_an_interrupted_model_is_written_into_a_stream(pipe):
    path, _ = pipe("pipe")
    assert path_of_interrupted(path) == path
    path.write_bytes(b"")  # for the reader
