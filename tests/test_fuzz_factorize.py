"""A small run of ``benchmarks/fuzz_factorize.py``, and that it notices what it is for."""

import importlib.util
import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "fuzz_factorize.py"


@pytest.fixture(scope="module")
def fuzz():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("fuzz_factorize", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


PLANTED = np.repeat([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 1, 1, 1, 0], [0, 0, 0, 0, 1]], [9, 8, 7, 2], axis=0)
PLANTED = PLANTED.astype(np.uint8)


@cache
def fit():
    return ba.factorize(PLANTED, algebra="xor", random_state=0)


def test_random_fits_are_what_was_asked_for_and_what_they_report(fuzz, capsys):
    assert fuzz.main(["--fits", "20", "--seed", "12"]) == 0, capsys.readouterr().out
    assert "20 fits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"wrong": np.ones(5, np.int64)}, "cells are wrong, not"),
        ({"ones": np.zeros(5, np.int64)}, "ones are not those of the table"),
        ({"saved": np.array([1, 2])}, "not in the order"),
        ({"complete": np.array([1, 2])}, r"\[1, 2\] rows are complete"),
        ({"codelength": ba.Codelength(1, 2, 3)}, "the codelength is"),
        ({"algebra": "or"}, "the algebra is or"),
    ],
)
def test_the_oracles_recompute_what_is_reported(fuzz, changes, found):
    asked = fuzz.Case((0, 0), PLANTED, "planted", "array", "factorize", {"algebra": "xor", "random_state": 0})
    result = replace(fit(), **changes)
    assert re.search(found, "\n".join(fuzz.check(asked, result, ())))
