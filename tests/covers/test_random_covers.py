"""Covers of random tables with random parameters, checked by the definitions and against proved optima."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("few_exchanges")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz_cover.py"


def test_random_covers_are_exact_and_never_beat_the_optimum():
    spec = importlib.util.spec_from_file_location("fuzz_cover", SCRIPT)
    fuzz_cover = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz_cover)
    counts, failures = fuzz_cover.check(seed=0, n=200)
    assert failures == []
    assert counts["optimum found"] > 140
    for name in ("roles", "assignments", "codelength", "fixed_atoms", "apart", "together", "direct_weight"):
        assert counts[name] > 5
