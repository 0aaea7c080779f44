"""The state file of a checkpoint: round trips, and corrupt files."""

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitatoms.rows import checkpoint as checkpoints
from bitatoms.rows.checkpoint import Checkpoint
from support.checkpoints import assert_equal, assert_raises, call_of, example_state, load, states, unfinished_fit
from support.files import outcome


@pytest.fixture
def folder(tmp_path):
    """A folder with an unfinished fit."""
    return unfinished_fit(tmp_path / "fit")


@settings(max_examples=30, deadline=None)
@given(state=states())
def test_a_saved_state_is_loaded_unchanged(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("saved") / "fit"
    call = call_of(state.specs[0].atoms.n_cols)
    with Checkpoint(folder, call, resume=False) as checkpoint:
        checkpoint.save(state)
        assert_equal(checkpoint.load(), state)
    with Checkpoint(folder, call, resume=True) as checkpoint:
        assert_equal(checkpoint.load(), state)


def test_the_same_state_gives_the_same_bytes(tmp_path):
    for name in ("one", "other"):
        with Checkpoint(tmp_path / name, call_of(), resume=False) as checkpoint:
            checkpoint.save(example_state())
    assert (tmp_path / "one" / "state.npz").read_bytes() == (tmp_path / "other" / "state.npz").read_bytes()


def test_the_file_is_readable_with_numpy_and_json(folder):
    with zipfile.ZipFile(folder / "state.npz") as file:
        assert file.testzip() is None
    with np.load(folder / "state.npz") as file:
        entries = json.loads(file["bitatoms"].tobytes())
        np.testing.assert_array_equal(file["counts free"], example_state().counts.free)
    assert (entries["format"], entries["call"]["n_components"]) == (checkpoints.KIND, 20)


def rewrite(folder, entries=None, state=None, spec=None, **arrays):
    """Change some arrays of a checkpoint, or entries of its JSON, state or first spec."""
    path = folder / "state.npz"
    with np.load(path) as file:
        old = dict(file)
    if entries or state or spec:
        found = json.loads(old["bitatoms"].tobytes())
        found["state"]["orders"][0] |= spec or {}
        found["state"] |= state or {}
        found |= entries or {}
        old["bitatoms"] = np.frombuffer(json.dumps(found).encode(), np.uint8)
    changed = {name.replace("_", " "): value for name, value in arrays.items()}
    np.savez(path, **{name: value for name, value in (old | changed).items() if value is not None})


PCG = {"bit_generator": "PCG64", "state": {"state": 1, "inc": 3}, "has_uint32": 0, "uinteger": 0}
MT = {"bit_generator": "MT19937", "state": {"key": [1] * 624, "pos": 10**9}}
CORRUPT = {
    "newer": ({"entries": {"version": 99, "bitatoms": "9.0"}}, "written by bitatoms 9.0, which is newer"),
    "a model": ({"entries": {"format": "bitatoms model"}}, "not a checkpoint, but a model"),
    "no description": ({"bitatoms": None}, "not a checkpoint; its arrays are order 0 atoms"),
    "no JSON": ({"bitatoms": np.zeros(4, np.uint8)}, "not a checkpoint: its metadata is corrupt"),
    "no call": ({"entries": {"call": 3}}, "corrupt checkpoint"),
    "a list as state": ({"entries": {"state": [1]}}, "corrupt checkpoint"),
    "no specs": ({"state": {"orders": []}}, "corrupt checkpoint"),
    "unknown algebra": ({"state": {"algebra": "and"}}, "corrupt checkpoint"),
    "another algebra": ({"state": {"algebra": "or"}}, "its algebra is not that of its passes"),
    "text as finished": ({"state": {"finished": "yes"}}, "corrupt checkpoint"),
    "best pass not complete": ({"state": {"best": 2}}, "pass 2 cannot be the best of 1"),
    "no best pass": ({"state": {"finished": True, "best": 0, "orders": []}}, "corrupt checkpoint"),
    "no counts": ({"state": {"counts": None}}, "corrupt checkpoint"),
    "more rows than the table": ({"state": {"partial": {"next_row": 1001, "counts": {}}}}, "its next_row is 1001"),
    "unknown history fields": ({"state": {"history_fields": ["what"]}}, "corrupt checkpoint"),
    "unknown coder": ({"spec": {"coder": "best"}}, "its order 0 is invalid"),
    "not an integer": ({"spec": {"max_atoms": 0.5}}, "corrupt checkpoint"),
    "no prices": ({"order_0_bit_prices": None}, "corrupt checkpoint"),
    "atoms of another width": ({"order_1_atoms": np.zeros((3, 2), np.uint64)}, "40 columns take 1 words per row"),
    "bits past the end": ({"order_1_atoms": np.full((3, 1), 1 << 40, np.uint64)}, "ones past column 40"),
    "atoms of floats": ({"order_1_atoms": np.zeros((3, 1))}, "corrupt checkpoint"),
    "two biases": ({"order_0_bias": np.zeros((2, 1), np.uint64)}, "its order 0 is invalid"),
    "kept index out of range": ({"order_1_kept": np.array([0, 2, 5])}, "its order 1 kept has values out of range"),
    "kept index twice": ({"order_1_kept": np.array([0, 2, 2])}, "its order 1 is invalid"),
    "kept indices in the first pass": (
        {"spec": {"goes_on": True}, "order_0_kept": np.arange(5)},
        "its order 0 kept has values out of range",
    ),
    "remembered codes of other atoms": (
        {"order_0_remembered": np.full((4, 1), 1 << 5, np.uint64)},
        "ones past column 5",
    ),
    "remembered codes of floats": ({"order_0_remembered": np.zeros((4, 1))}, "corrupt checkpoint"),
    "prices of zero": ({"order_0_bit_prices": np.zeros(40, np.int32)}, "has values out of range"),
    "prices too short": ({"order_0_use_prices": np.zeros(5, np.int32)}, "its order 0 use prices has shape (5,)"),
    "counts of another shape": ({"counts_free": np.zeros((3, 40), np.uint8)}, "has shape (3, 40) and type uint8"),
    "counts too large": ({"counts_wrong": np.full(40, 1001)}, "its counts wrong has values out of range"),
    "counts below zero": ({"partial_uses": np.full(3, -1)}, "its partial uses has values out of range"),
    "no array of counts": ({"counts_ones": None}, "corrupt checkpoint"),
    "counts of floats": ({"counts_ones": np.zeros(40)}, "corrupt checkpoint"),
    "a pickle": ({"counts_ones": np.array([None] * 40)}, "contains Python objects, which are never unpickled"),
    "unknown random generator": ({"entries": {"random": {"bit_generator": "os"}}}, "corrupt checkpoint"),
    "random generator out of range": (
        {"entries": {"random": MT}},
        "invalid state of a random generator of type 'MT19937'",
    ),
    "random generator of another name": ({"entries": {"random": PCG | {"bit_generator": "beta"}}}, "'beta'"),
    "random generator without state": ({"entries": {"random": PCG | {"state": {}}}}, "corrupt checkpoint"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_a_corrupt_checkpoint_raises_and_is_named(case, folder):
    changes, part = CORRUPT[case]
    rewrite(folder, **changes)
    assert_raises(folder, "state.npz: ", part, "; move this file away, or choose another folder, to start over")


def test_other_files_of_the_same_name_raise(tmp_path):
    for content in (b"", b"PK", b"\x80\x04K\x01.", b"a,b\n1,0\n"):
        (tmp_path / "state.npz").write_bytes(content)
        for resume in (False, True):
            assert_raises(tmp_path, "state.npz: corrupt, or not a file of the format 'npz'", resume=resume)
            assert (tmp_path / "state.npz").read_bytes() == content


def test_a_truncated_file_raises(folder):
    content = (folder / "state.npz").read_bytes()
    for length in (*range(0, len(content), 41), *range(len(content) - 60, len(content))):
        (folder / "state.npz").write_bytes(content[:length])
        assert_raises(folder, "state.npz: ")


def test_an_array_that_is_lost_raises(folder):
    with np.load(folder / "state.npz") as stored:
        kept = {name: stored[name] for name in stored.files if not name.endswith("remembered")}
        assert len(kept) < len(stored.files)
    np.savez(folder / "state.npz", **kept)
    assert_raises(folder, "state.npz: ")


@settings(max_examples=30, deadline=None)
@given(position=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_changed_byte_raises_or_does_not_matter(tmp_path_factory, position, byte):
    folder = tmp_path_factory.mktemp("fuzz") / "fit"
    with Checkpoint(folder, call_of(), resume=False) as checkpoint:
        checkpoint.save(example_state())
    data = bytearray((folder / "state.npz").read_bytes())
    data[int(position * (len(data) - 1))] = byte
    (folder / "state.npz").write_bytes(data)
    state = outcome(load, folder)
    if state is not None:
        assert_equal(state, example_state())
