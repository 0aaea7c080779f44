"""The public surface is the recorded one: names, parameters, options, exit codes and formats."""

import difflib

import pytest

from support.surface import NEEDS, SECTIONS, recorded


def parts(lines):
    """Return the lines with one parameter or name per line, for a readable difference."""
    return [part for line in lines for part in line.replace(", ", ",\n    ").split("\n")]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_public_surface_is_the_recorded_one(section):
    if section in NEEDS:
        pytest.importorskip(NEEDS[section])
    lines = difflib.unified_diff(parts(recorded()[section]), parts(SECTIONS[section]()), "recorded", "now", n=1)
    difference = "\n".join(line.rstrip("\n") for line in lines)
    assert not difference, (
        f"[{section}] differs:\n{difference}\nIf this is intended, record it with python tests/support/surface.py"
    )


def test_the_record_has_no_other_sections():
    assert list(recorded()) == list(SECTIONS)
