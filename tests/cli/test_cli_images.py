"""`bitatoms denoise` and `bitatoms inpaint`: files, and what is printed."""

import json

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")

pytestmark = pytest.mark.usefixtures("few_trials")

OPTIONS = ("--block-sizes", "6", "--jobs", "1")
CLEAN = np.tile(ba.datasets.dither(np.full((6, 6), 0.6)), (10, 10))
NOISY = CLEAN ^ (np.random.default_rng(0).random(CLEAN.shape) < 0.05)
HOLES = np.pad(np.ones((4, 30), bool), [(28, 28), (15, 15)])


@pytest.fixture(autouse=True)
def pictures(tmp_path):
    """Write a halftone, the same with noise, and a mask of holes."""
    for name, picture in (("clean", CLEAN), ("noisy", NOISY), ("holes", HOLES)):
        ba.write(picture, tmp_path / f"{name}.pbm")


def test_denoise_writes_the_picture_and_prints_what_it_estimated(bitatoms):
    code, out, err = bitatoms("denoise", "noisy.pbm", "-o", "made.pbm", *OPTIONS)
    result = ba.denoise(NOISY, block_sizes=6, random_state=0)
    assert (code, err) == (0, "")
    made = ba.read("made.pbm").to_dense()
    assert np.array_equal(made, result.image)
    assert (made != CLEAN).sum() < 0.2 * (NOISY != CLEAN).sum()
    n = result.n_changed
    line = f"made.pbm: 60 x 60 pixels, {n} changed ({n / 3600:.2%}); estimated noise {result.noise:.2%}\n"
    assert out == line
    out = bitatoms("denoise", "noisy.pbm", "-o", "made.pbm", "--json", *OPTIONS)[1]
    figures = {"height": 60, "width": 60, "noise": result.noise, "changed": n, "repetition": result.repetition}
    assert json.loads(out) == figures | {"atoms": list(result.n_atoms)}
    assert "; given noise 5.00%" in bitatoms("denoise", "noisy.pbm", "-o", "made.pbm", "--noise", 0.05, *OPTIONS)[1]


def test_inpaint_fills_the_holes_and_nothing_else(bitatoms, tmp_path):
    ba.write(CLEAN & ~HOLES & 1, "scratched.pbm")
    how = ("inpaint", "scratched.pbm", "--mask", "holes.pbm", "-o", "made.pbm", *OPTIONS)
    code, out, err = bitatoms(*how)
    assert (code, err) == (0, "")
    line = "made.pbm: 60 x 60 pixels, 120 filled; of known pixels, hidden as a test, 100.0% were predicted\n"
    assert out == line
    assert np.array_equal(ba.read("made.pbm").to_dense(), CLEAN)
    result = ba.inpaint(CLEAN & ~HOLES & 1, HOLES, block_sizes=6, random_state=0)
    figures = {"height": 60, "width": 60, "filled": 120, "accuracy": 1.0, "baseline": result.baseline}
    assert json.loads(bitatoms(*how, "--json")[1]) == figures | {"atoms": list(result.n_atoms)}


def test_a_picture_that_repeats_itself_little_is_noted(bitatoms):
    ba.write(np.random.default_rng(0).random((40, 40)) < 0.5, "random.pbm")
    ba.write(np.eye(40, dtype=bool), "mask.pbm")
    for command in (("denoise", "random.pbm"), ("inpaint", "random.pbm", "--mask", "mask.pbm")):
        code, _, err = bitatoms(*command, "-o", "made.pbm", *OPTIONS)
        assert code == 0
        assert err.startswith("Note: random.pbm repeats itself little: ")
        assert bitatoms(*command, "-o", "made.pbm", *OPTIONS, "--quiet") == (0, "", "")


@pytest.mark.filterwarnings("default")  # the reader notes the missing value
def test_missing_pixels_are_holes(bitatoms, tmp_path):
    rows = [",".join(map(str, row)) for row in CLEAN]
    rows[7] = f",{rows[7][2:]}"  # the first pixel
    (tmp_path / "picture.csv").write_text("\n".join(rows) + "\n")
    how = ("--missing", "unknown", "--mask", "holes.pbm", "-o", "made.pbm", "--no-header", *OPTIONS)
    out = bitatoms.output("inpaint", "picture.csv", *how)
    assert "121 filled" in out
    assert np.array_equal(ba.read("made.pbm").to_dense(), CLEAN)
