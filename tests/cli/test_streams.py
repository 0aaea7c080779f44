"""Standard output, devices and pipes as outputs: data go there, and everything else to standard error."""

import os
import sys
import threading

import pytest

pytest.importorskip("typer")

from bitatoms.cli.app import run
from support.commands import COMPILATION

pytestmark = [
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.skipif(sys.platform == "win32", reason="there are no such devices and pipes"),
]


@pytest.fixture(autouse=True)
def baskets(put):
    return put("or")


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
def test_data_are_not_mixed_with_what_is_printed(bitatoms, tmp_path, command):
    arguments, extension, printed = COMMANDS[command]
    file = tmp_path / f"file{extension}"
    assert bitatoms(*arguments.split(), file)[0] == 0
    code, content, stderr = bitatoms(*arguments.split(), "-")
    assert (code, content, printed in stderr) == (0, file.read_bytes(), True)
    assert bitatoms(*arguments.split(), "-", "--quiet")[2] == ""


def test_devices_and_pipes(bitatoms, tmp_path):
    content = (tmp_path / "table.csv").read_bytes()
    assert bitatoms("convert", "table.csv", "/dev/stdout")[:2] == (0, content)
    assert bitatoms("convert", "table.csv", os.devnull)[0] == 0
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[content], daemon=True)
    thread.start()
    assert bitatoms("convert", "pipe", "copy.csv", "--format", "csv")[0] == 0
    thread.join(10)
    assert (tmp_path / "copy.csv").read_bytes() == content
