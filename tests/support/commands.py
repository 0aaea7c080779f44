"""Run the command line in the test process."""

import re

import pytest

COMPILATION = re.compile(r"Note: compiling kernels .*\n")  # only where they are not cached


def runner(capsys):
    """Return a function that runs a command and returns exit code, stdout and stderr."""
    from bitatoms.cli.app import run  # typer may not be installed

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, COMPILATION.sub("", printed.err)

    return command
