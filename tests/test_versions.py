"""`show_versions` and `bitatoms --version --verbose`."""

import platform
import re
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import bitatoms as ba
from bitatoms import versions
from bitatoms.io.errors import FileError
from bitatoms.system.libraries import LIBRARIES
from support.commands import runner


def values_of(text):
    """Return the names and values of the description."""
    return dict(re.split(r" {2,}", line, maxsplit=1) for line in text.splitlines()[1:] if line)


def test_versions_are_printed(capsys):
    ba.show_versions()
    printed = capsys.readouterr().out
    values = values_of(printed)
    assert printed.startswith(f"bitatoms {ba.__version__}\n\nPython ")
    assert values["Python"].startswith(f"{platform.python_version()} (")
    assert (values["numpy"], values["numba"]) == (np.__version__, numba.__version__)
    assert {library.distribution for library in LIBRARIES.values()} <= values.keys()
    assert re.fullmatch(r"\d+, of which this process may use \d+", values["processors"])
    assert re.fullmatch(r"\d+\.\d GiB|unknown", values["memory"])
    assert re.fullmatch(r"all (\d+) in .*|\d+ of \d+ in .*; bitatoms warmup .*", values["compiled kernels"])


def test_libraries_that_are_missing_name_what_installs_them(monkeypatch):
    monkeypatch.setattr(versions, "version_of", lambda name: {"cupy-cuda13x": "14.0"}.get(name))
    values = values_of(versions.describe_installation())
    assert values["zarr"] == 'not installed: pip install "bitatoms[zarr]"'
    assert values["numpy"] == "not installed: pip install bitatoms"
    assert values["cupy"] == "14.0 (cupy-cuda13x)"
    monkeypatch.setattr(versions, "version_of", lambda name: None)
    assert "bitatoms[cuda12]" in values_of(versions.describe_installation())["cupy"]


def test_kernels_that_are_stored_and_not(monkeypatch):
    for counted, expected in (((88, 88), "all 88 in cache"), ((3, 88), "3 of 88 in cache; bitatoms warmup compiles")):
        monkeypatch.setattr("bitatoms.warmup.count_stored", lambda counted=counted: (*counted, "cache"))
        assert values_of(versions.describe_installation())["compiled kernels"].startswith(expected)

    def no_folder():
        raise FileError("no folder is writable")

    monkeypatch.setattr("bitatoms.warmup.count_stored", no_folder)
    assert values_of(versions.describe_installation())["compiled kernels"] == "none (no folder is writable)"


def test_the_device_is_named(monkeypatch):
    monkeypatch.setattr("bitatoms.kernels.gpu.device.find_device", lambda: SimpleNamespace(name="NVIDIA H200"))
    assert values_of(versions.describe_installation())["GPU"] == "NVIDIA H200"


def test_the_command_line(capsys):
    pytest.importorskip("click")
    command, described = runner(capsys), f"{versions.describe_installation()}\n"
    for options in ("--version", "--version show"):
        assert command(*options.split()) == (0, f"bitatoms {ba.__version__}\n", "")
    for options in ("--version --verbose", "--verbose --version"):
        assert command(*options.split()) == (0, described, "")
    code, out, err = command("--verbose", "show", "model.npz")
    assert (code, out, "--verbose goes with --version" in err) == (2, "", True)
