"""Send SIGINT to a process during a long fit."""

import signal
import subprocess
import sys

import pytest

LONG_FIT = """
import sys
import numpy as np
import bitatoms as ba

X = ba.datasets.planted(1000, 100, 30, random_state=0).X
model = ba.BinaryDictionaryLearning(
    **eval(sys.argv[2]), n_jobs=int(sys.argv[1]), random_state=0, callbacks=lambda row: print(row.atoms, flush=True)
)
try:
    model.fit(X)
except KeyboardInterrupt:
    assert model.components_.shape == (model.n_components_, 100)
    best = min(model.history_, key=lambda row: row.bits if model.n_components == "mdl" else row.wrong_bits)
    assert model.codelength_.total == best.bits
    print("interrupted")
"""


SLOW = pytest.mark.slow  # `test_cut_anywhere.py` interrupts other searches, in one process


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to one process")
@pytest.mark.parametrize(
    ("n_jobs", "how", "n_rounds"),
    [
        ("2", {"search": "fast", "patience": None}, 12),
        pytest.param(
            "1", {"search": "paper", "coder": "greedy", "patience": None, "max_components": 2000}, 3, marks=SLOW
        ),
        pytest.param("2", {"search": "fast", "n_components": 30, "n_init": 20}, 1, marks=SLOW),
    ],
)
def test_interrupt_stops_a_fit_soon_and_leaves_the_best_model(n_jobs, how, n_rounds):
    command = [sys.executable, "-c", LONG_FIT, n_jobs, repr(how)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(n_rounds):
            assert process.stdout.readline().strip().isdigit()
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert printed.splitlines()[-1] == "interrupted"
    assert len(printed.splitlines()) < 30
