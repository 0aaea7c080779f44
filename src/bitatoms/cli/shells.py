"""Completion of commands, options and their values in shells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import click

from .help import acting
from .output import print_line, print_page

VARIABLE = "_BITATOMS_COMPLETE"
_SHELLS = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}  # and the files they read at start
_START = {  # what these files, and the profile of PowerShell, contain
    "bash": 'eval "$(_BITATOMS_COMPLETE=bash_source bitatoms)"',
    "zsh": 'eval "$(_BITATOMS_COMPLETE=zsh_source bitatoms)"',
    "fish": "_BITATOMS_COMPLETE=fish_source bitatoms | source",
    "powershell": '$Env:_BITATOMS_COMPLETE = "powershell_source"; bitatoms | Out-String | Invoke-Expression; '
    "Remove-Item Env:_BITATOMS_COMPLETE",
}
_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $command, $position)
    $Env:%(complete_var)s = "powershell_complete"
    $Env:COMP_WORDS = $command.ToString()
    $Env:COMP_INCOMPLETE = $word
    %(prog_name)s | ForEach-Object {
        $value, $about = $_ -split "`t", 2
        [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $about)
    }
    Remove-Item Env:%(complete_var)s, Env:COMP_WORDS, Env:COMP_INCOMPLETE
}
"""


def completion_options() -> list[click.Parameter]:
    """Return the options that print and install completion."""
    return [
        acting("--install-completion", "Install completion for your shell.", _install_completion),
        acting("--show-completion", "Print the completion for your shell.", _show_completion),
    ]


def _show_completion(ctx: click.Context, option: click.Parameter, is_requested: bool) -> None:
    """Print the script that completes commands, options and their values in the user's shell."""
    if is_requested:
        from click.shell_completion import get_completion_class

        add_powershell()
        complete = get_completion_class(_shell())
        assert complete is not None
        print_page(complete(ctx.command, {}, "bitatoms", VARIABLE).source())
        ctx.exit()


def _install_completion(ctx: click.Context, option: click.Parameter, is_requested: bool) -> None:
    """Let the user's shell run that script when it starts."""
    if is_requested:
        shell = _shell()
        file = Path.home() / _SHELLS[shell] if shell in _SHELLS else _powershell_profile()
        line = f"{_START[shell]}\n"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or line not in file.read_text(encoding="utf-8"):
            with open(file, "a", encoding="utf-8") as text:
                text.write(f"\n{line}")
        print_line(f"{shell} completion is installed in {file}; it works in shells that are started from now on.")
        ctx.exit()


def _shell() -> str:
    """Return the name of the user's shell; on Windows, the variable SHELL is set in other shells than PowerShell."""
    shell = Path(os.environ.get("SHELL", "powershell" if sys.platform == "win32" else "")).name.removesuffix(".exe")
    if shell not in (*_SHELLS, "powershell"):
        known = ", ".join((*_SHELLS, "powershell"))
        raise click.UsageError(f"completion works in {known}; the variable SHELL names {shell or 'none'}")
    return shell


def add_powershell() -> None:
    """Let click complete in PowerShell, too."""
    from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

    class PowerShellComplete(ShellComplete):
        name = "powershell"
        source_template = _POWERSHELL

        def get_completion_args(self) -> tuple[list[str], str]:
            words, incomplete = split_arg_string(os.environ["COMP_WORDS"]), os.environ["COMP_INCOMPLETE"]
            return words[1 : len(words) - bool(incomplete)], incomplete

        def format_completion(self, item: CompletionItem) -> str:
            return f"{item.value}\t{item.help or item.value}"

    add_completion_class(PowerShellComplete)


def _powershell_profile() -> Path:
    """Return the file that PowerShell reads when it starts."""
    program = which("pwsh") or "powershell"
    found = subprocess.run([program, "-NoProfile", "-Command", "$PROFILE"], capture_output=True, text=True)
    if found.returncode or not found.stdout.strip():
        raise click.UsageError(f"{program} does not say where its profile is; add --show-completion to it by hand")
    return Path(found.stdout.strip())
