"""Send SIGINT to a process during a long fit."""

import signal
import subprocess
import sys

import pytest

LONG_FIT = """
import bitatoms as ba

X = ba.datasets.planted(1000, 100, 30, random_state=0).X
model = ba.BinaryDictionaryLearning(
    search="anytime", algebra="xor", n_jobs=2, random_state=0, callbacks=lambda row: print(row.atoms, flush=True)
)
try:
    model.fit(X)
except KeyboardInterrupt:
    assert model.components_.shape == (model.n_components_, 100)
    kept = [row.bits for row in model.history_ if row.move in ("no model", "drop")]
    assert model.codelength_.total <= min(kept, default=float("inf"))
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to one process")
def test_interrupt_stops_a_fit_soon_and_leaves_the_best_model():
    """`test_cut_anywhere.py` interrupts other searches, in one process."""
    command = [sys.executable, "-c", LONG_FIT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(12):
            assert process.stdout.readline().strip().isdigit()
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert printed.splitlines()[-1] == "interrupted"
    assert len(printed.splitlines()) < 30
