"""Completion of commands, options and values in shells, and what is printed for a wrong command."""

import os
import sys

import pytest

pytest.importorskip("click")

from bitatoms.cli import shells

WORDS = {
    "bitatoms fi": "fit",
    "bitatoms fit --alg": "--algebra",
    "bitatoms fit x.csv --algebra ": "auto or xor",
    "bitatoms convert x.csv - --to pa": "parquet pairs",
    "bitatoms fit x.csv --device cu": "cuda",  # whether or not there is a device
}


@pytest.mark.parametrize("words", WORDS)
def test_words_are_completed(bitatoms, monkeypatch, words):
    monkeypatch.setenv("_BITATOMS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert bitatoms.output() == "".join(f"plain,{word}\n" for word in WORDS[words].split())


@pytest.mark.parametrize(
    ("shell", "file"), [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish/config.fish")]
)
def test_completion_is_installed_once(bitatoms, monkeypatch, tmp_path, shell, file):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert "_BITATOMS_COMPLETE" in bitatoms.output("--show-completion")
    for _ in range(2):
        assert file in bitatoms.output("--install-completion").replace("\\", "/")
        assert (tmp_path / file).read_text().count(f"_BITATOMS_COMPLETE={shell}_source bitatoms") == 1


@pytest.mark.parametrize("words", WORDS)
def test_words_are_completed_in_powershell(bitatoms, monkeypatch, words):
    monkeypatch.setenv("_BITATOMS_COMPLETE", "powershell_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_INCOMPLETE", words.split(" ")[-1])
    lines = bitatoms.output().splitlines()
    assert [line.split("\t")[0] for line in lines] == WORDS[words].split()
    assert all(line.split("\t")[1] for line in lines)


def test_completion_is_installed_in_the_profile_of_powershell(bitatoms, monkeypatch, tmp_path):
    profile = tmp_path / "WindowsPowerShell/profile.ps1"
    monkeypatch.setenv("SHELL", "powershell.exe")
    monkeypatch.setattr(shells, "_powershell_profile", lambda: profile)
    script = bitatoms.output("--show-completion")
    assert "Register-ArgumentCompleter -Native -CommandName bitatoms" in script
    assert '$Env:_BITATOMS_COMPLETE = "powershell_complete"' in script
    for _ in range(2):
        bitatoms("--install-completion")
        assert profile.read_text().count("powershell_source") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a program that is a shell script")
@pytest.mark.parametrize("script", ["exit 1", "exit 0", "echo profile.ps1"])
def test_powershell_is_asked_for_its_profile(bitatoms, monkeypatch, tmp_path, script):
    (tmp_path / "pwsh").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "pwsh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SHELL", "powershell")
    monkeypatch.chdir(tmp_path)
    code, stdout, stderr = bitatoms("--install-completion")
    if script.startswith("echo"):
        assert code == 0
        assert "Register" not in (tmp_path / "profile.ps1").read_text()
        assert "powershell_source" in (tmp_path / "profile.ps1").read_text()
    else:
        assert (code, stdout) == (2, "")
        assert "pwsh does not say where its profile is" in stderr


WRONG = {
    "fi": "no such command: 'fi', did you mean 'fit'?; see bitatoms --help",
    "fit": "Missing argument 'DATA'; see bitatoms fit --help",
    "fit x.csv --seed -1": "Invalid value for '--seed': -1 is not in the range x>=0; see bitatoms fit --help",
    "--show-completion": "completion works in bash, zsh, fish, powershell; the variable SHELL names tcsh; "
    "see bitatoms --help",
}


@pytest.mark.parametrize("command", WRONG)
def test_a_wrong_command_is_reported_in_one_line(bitatoms, monkeypatch, command):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert bitatoms(*command.split()) == (2, "", f"bitatoms: {WRONG[command]}\n")


def test_without_a_command_help_is_printed(bitatoms):
    code, stdout, stderr = bitatoms()
    assert (code, stdout, stderr) == (2, bitatoms.output("--help"), "")
