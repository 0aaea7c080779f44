"""States of the passes for checkpoints to save, and comparison of states."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import strategies as st

from bitatoms.bits import BitMatrix
from bitatoms.engine.coding import CODERS
from bitatoms.engine.counts import Counts
from bitatoms.engine.passes import PassSpec, RowCounts
from bitatoms.io.errors import FileError
from bitatoms.model.result import Round
from bitatoms.rows.checkpoint import Checkpoint, PassState
from bitatoms.rows.source import PartialPass
from bitatoms.sparse_bits import SparseBits
from support.parameters import resolved
from support.strategies import COLUMNS, SEEDS, random_bits

N_ROWS = 1000
PARAMS = resolved(algebra="xor")


def call_of(n_features=40, **changes):
    """Return the description of a call."""
    return {"n_samples": N_ROWS, "n_features": n_features, "n_components": 20, "init": [1, None, "x"]} | changes


def load(folder):
    """Return the state in a folder."""
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        return checkpoint.load(PARAMS)


def unfinished_fit(folder):
    """Save an unfinished fit in a folder, and return the folder."""
    with Checkpoint(folder, call_of(), resume=False) as checkpoint:
        checkpoint.random(np.random.default_rng(7))
        checkpoint.save(example_state())
    return folder


def assert_raises(folder, *parts, call=None, resume=True):
    """Assert that opening or loading raises a one-line FileError that starts with the folder and has these parts."""
    with (
        pytest.raises(FileError) as caught,
        Checkpoint(folder, call_of() if call is None else call, resume) as checkpoint,
    ):
        checkpoint.load(PARAMS)
    message = str(caught.value)
    assert message.startswith(str(folder)), message
    assert "\n" not in message
    assert len(message) < 600, message
    for part in parts:
        assert part in message, message


def random_counts(rng, n_rows, p, m, most):
    shapes = ((m,), (p,), (m,), (p, m), (p, m), (p, p), (m,), (m,))
    arrays = (rng.integers(0, min(n_rows, most) + 1, shape) for shape in shapes)
    return Counts(n_rows, *arrays, codes_changed=int(rng.integers(0, n_rows * p + 1)))


def priced_spec(atoms, bias, coder, priced_by, algebra="xor", kept=None, remembered=None):
    """Return a spec at the prices of these counts."""
    rule = PARAMS.objective(algebra).rule_from_counts(*priced_by)
    return PassSpec(atoms, bias, coder, rule, kept, remembered, priced_by=priced_by)


@st.composite
def states(draw, n_cols=COLUMNS):
    """Draw states before, between, within and after passes, also without atoms or kept atoms."""
    m, algebra = draw(n_cols), draw(st.sampled_from(("xor", "or")))
    rng = np.random.default_rng(draw(SEEDS))
    specs, p = [], draw(st.sampled_from((0, 1, 5, 17, 70)))
    for _ in range(draw(st.integers(1, 4))):
        kept = None
        if specs and draw(st.booleans()):
            kept = np.flatnonzero(rng.integers(0, 4, p))
            p = len(kept)
        bits = (BitMatrix.from_dense(random_bits(int(rng.integers(2**32)), rows, m, 0.4)) for rows in (p, 1))
        remembered = None
        if draw(st.booleans()):
            n_remembered = draw(st.sampled_from((0, 3)))
            remembered = BitMatrix.from_dense(random_bits(int(rng.integers(2**32)), n_remembered, p, 0.4))
        atoms, bias = bits
        if draw(st.booleans()):
            atoms = SparseBits.from_bits(atoms)
        coder, known = draw(st.sampled_from((*CODERS, "mend"))), rng.integers(0, N_ROWS, m)
        priced_by = RowCounts(N_ROWS, known, rng.integers(0, known + 1), rng.integers(0, N_ROWS, p))
        specs.append(priced_spec(atoms, bias, coder, priced_by, algebra, kept, remembered))
    finished = draw(st.booleans())
    best = draw(st.integers(int(finished), len(specs) - (not finished)))
    most = draw(st.sampled_from((0, 255, 256, N_ROWS)))
    counts = random_counts(rng, N_ROWS, len(specs[best - 1].atoms), m, most) if best else None
    partial = None
    if not finished and draw(st.booleans()):
        next_row = draw(st.integers(0, N_ROWS))
        partial = PartialPass(next_row, random_counts(rng, next_row, p, m, most))
    seconds = draw(st.floats(0, 1e9))
    row = Round(3, draw(st.text()), 4, 1 << 70, 6, 7, 8, 9, 10, 11, 12, 13, 14, algebra, seconds, N_ROWS)
    history = (row,) * draw(st.integers(0, 3))
    compared = draw(st.sampled_from(({}, {"or": 7, "xor": 2**70})))
    return PassState(algebra, draw(st.text()), compared, tuple(specs), history, partial, best, counts, finished)


def example_state(n_features=40, finished=False):
    """Return a state with one complete pass and, unless finished, a part of the next."""
    rng = np.random.default_rng(0)
    counted = RowCounts(N_ROWS, np.full(n_features, N_ROWS), np.full(n_features, 30), np.full(5, 90))
    atoms, bias = BitMatrix.from_dense(random_bits(0, 5, n_features, 0.3)), BitMatrix.zeros(1, n_features)
    remembered = BitMatrix.from_dense(random_bits(1, 4, 5, 0.5))
    specs = (
        priced_spec(atoms, bias, "mend", counted, remembered=remembered),
        priced_spec(atoms[[0, 2, 3]], bias, "mdl", counted._replace(uses=np.full(3, 90)), kept=np.array([0, 2, 3])),
    )
    row = Round(1, "grow", 5, 6, 1, 2, 3, 4, 5, 6, 7, 8, 1, "xor", 0.1, N_ROWS)
    partial = None if finished else PartialPass(640, random_counts(rng, 640, 3, n_features, 640))
    counts = random_counts(rng, N_ROWS, 5, n_features, 200)
    return PassState("xor", "converged", {}, specs, (row,), partial, 1, counts, finished)


def assert_equal(one, other):
    """Assert that two states have the same values and types, recursively."""
    assert type(one) is type(other), (one, other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_equal(left, right)
    elif isinstance(one, (PassState, PassSpec, Counts)):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, float):
        assert one.hex() == other.hex()
    else:
        assert one == other
