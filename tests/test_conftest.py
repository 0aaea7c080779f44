"""What conftest.py sets for all tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_clocks_start_at_the_time_that_the_environment_names():
    """No machine has run for 30 years, so that the clocks of none are there already."""
    code = "import time, conftest; from time import monotonic; print(time.perf_counter(), monotonic())"
    environment = os.environ | {"CLOCK_SHIFT": "1e9"}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert all(1e9 <= float(seconds) < 1.001e9 for seconds in run.stdout.split())
