"""Run the command line in the test process."""

import csv
import re
import sys
from unittest import mock

import pytest

COMPILATION = re.compile(r"Note: compiling kernels .*\n")  # only where they are not cached


def runner(capsys):
    """Return a function that runs a command and returns exit code, stdout and stderr.

    Its attribute ``output`` is a function that runs a command that must succeed, and returns stdout.
    """
    from bitatoms.cli.app import run  # click may not be installed

    def command(*arguments):
        words = [str(argument) for argument in arguments]
        with pytest.raises(SystemExit) as ended, mock.patch.object(sys, "argv", ["bitatoms", *words]):
            run(words)
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, COMPILATION.sub("", printed.err)

    def output(*arguments):
        code, out, err = command(*arguments)
        assert code == 0, err
        return out

    command.output = output
    return command


def rows_of(path):
    """Return the rows of a CSV file by the names of their columns."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
