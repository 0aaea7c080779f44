"""What the tests of the command line share."""

import pytest


def runner(capsys):
    """Runs a command; gives the exit code, and what was said."""
    from bitatoms.cli.app import run  # typer may not be there

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return command
