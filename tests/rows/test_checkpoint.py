"""Checkpoints: what is kept, what is refused, and that a fit that was stopped ends with the bits of another."""

import errno
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import fields
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.core.block import lanes_of
from bitatoms.core.coding import CODERS
from bitatoms.core.counts import Counts
from bitatoms.core.pass_spec import PassSpec
from bitatoms.core.result import Round
from bitatoms.kernels.structs import Prices, Rule, covering
from bitatoms.parallel import Workers
from bitatoms.rows import checkpoint as checkpoints
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.dask import DaskRows
from bitatoms.rows.memory import MemoryRows
from bitatoms.rows.passes import PassState
from bitatoms.rows.source import PartialPass
from bitatoms.rows.store import StoreRows
from support.files import outcome
from support.sources import assert_same, learned
from support.strategies import COLUMNS, SEEDS, random_bits

N_ROWS = 1000
GENERATORS = [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64]


def call_of(n_features=40, **changes):
    return {"n_samples": N_ROWS, "n_features": n_features, "n_components": 20, "init": [1, None, "x"]} | changes


def counts_of(rng, n_rows, p, m, most):
    shapes = ((p,), (m,), (p, m), (p, m), (p, p), (m,), (m,))
    arrays = (rng.integers(0, min(n_rows, most) + 1, shape) for shape in shapes)
    return Counts(n_rows, *arrays, codes_changed=int(rng.integers(0, n_rows * p + 1)))


@st.composite
def states(draw, n_cols=COLUMNS):
    """States of every kind: no pass done, some, one half done, finished; without atoms, prices or kept places."""
    m, algebra = draw(n_cols), draw(st.sampled_from(("xor", "or")))
    rng = np.random.default_rng(draw(SEEDS))
    orders, p = [], draw(st.sampled_from((0, 1, 5, 17, 70)))
    for _ in range(draw(st.integers(1, 4))):
        kept = None
        if orders and draw(st.booleans()):
            kept = np.flatnonzero(rng.integers(0, 4, p))
            p = len(kept)
        prices = None
        if draw(st.booleans()):
            uses = rng.integers(0, 2**31, lanes_of(p)).astype(np.int32)
            prices = Prices(rng.integers(1, 256, m).astype(np.int32), uses)
        rule = Rule(
            covering(algebra),
            draw(st.booleans()),
            draw(st.integers(1, 2**62)),
            draw(st.integers(-1, 9)),
            prices,
            draw(st.booleans()),
            draw(st.floats()),
        )
        bits = (BitMatrix.from_dense(random_bits(int(rng.integers(2**32)), rows, m, 0.4)) for rows in (p, 1))
        orders.append(PassSpec(*bits, draw(st.sampled_from((*CODERS, "mend"))), rule, kept))
    finished = draw(st.booleans())
    best = draw(st.integers(int(finished), len(orders) - (not finished)))
    most = draw(st.sampled_from((0, 255, 256, N_ROWS)))
    counts = counts_of(rng, N_ROWS, len(orders[best - 1].atoms), m, most) if best else None
    partial = None
    if not finished and draw(st.booleans()):
        next_row = draw(st.integers(0, N_ROWS))
        partial = PartialPass(next_row, counts_of(rng, next_row, p, m, most))
    seconds = draw(st.floats(0, 1e9))
    row = Round(3, draw(st.text()), 4, 1 << 70, 6, 7, 8, 9, 10, 11, 12, 13, 14, algebra, seconds, N_ROWS)
    history = (row,) * draw(st.integers(0, 3))
    return PassState(algebra, draw(st.text()), tuple(orders), history, partial, best, counts, finished)


def assert_equal(one, other):
    """The same values of the same types, all the way down."""
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


def a_state(n_features=40, finished=False):
    """One that has everything: a pass done, and half of the next."""
    rng = np.random.default_rng(0)
    prices = Prices(np.full(n_features, 3, np.int32), np.full(16, 4, np.int32))
    rule = Rule(None, False, 9, -1, prices, True, 1 / 3)
    atoms, bias = BitMatrix.from_dense(random_bits(0, 5, n_features, 0.3)), BitMatrix.zeros(1, n_features)
    orders = PassSpec(atoms, bias, "mend", rule), PassSpec(atoms[[0, 2, 3]], bias, "mdl", rule, np.array([0, 2, 3]))
    row = Round(1, "grow", 5, 6, 1, 2, 3, 4, 5, 6, 7, 8, 1, "xor", 0.1, N_ROWS)
    partial = None if finished else PartialPass(640, counts_of(rng, 640, 3, n_features, 640))
    counts = counts_of(rng, N_ROWS, 5, n_features, 200)
    return PassState("xor", "converged", orders, (row,), partial, 1, counts, finished)


@pytest.fixture
def folder(tmp_path):
    """A folder with an unfinished fit."""
    with Checkpoint(tmp_path / "fit", call_of(), resume=False) as checkpoint:
        checkpoint.random(np.random.default_rng(7))
        checkpoint.save(a_state())
    return tmp_path / "fit"


def loaded(folder):
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        return checkpoint.load()


def refused(folder, *parts, call=None, resume=True):
    """Opening or loading gives one line that begins with the folder's name and says these parts."""
    with (
        pytest.raises(ba.FileError) as caught,
        Checkpoint(folder, call_of() if call is None else call, resume) as checkpoint,
    ):
        checkpoint.load()
    message = str(caught.value)
    assert message.startswith(str(folder)), message
    assert "\n" not in message
    assert len(message) < 600, message
    for part in parts:
        assert part in message, message


# ---- what is kept


@settings(max_examples=60, deadline=None)
@given(state=states())
def test_a_state_comes_back_as_it_was(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("kept") / "fit"
    call = call_of(state.orders[0].atoms.n_cols)
    with Checkpoint(folder, call, resume=False) as checkpoint:
        checkpoint.save(state)
        assert_equal(checkpoint.load(), state)
    with Checkpoint(folder, call, resume=True) as checkpoint:
        assert_equal(checkpoint.load(), state)


def test_where_nothing_is_there_it_begins(tmp_path):
    for resume in (False, True):
        with Checkpoint(tmp_path / str(resume), call_of(), resume) as checkpoint:
            assert checkpoint.load() is None


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_call_that_goes_on_has_the_numbers_of_the_one_that_began(kind, tmp_path):
    def used(checkpoint):
        return checkpoint.random(used_up).integers(0, 1 << 40, 1000).tolist()

    used_up = np.random.Generator(kind(3))
    used_up.integers(0, 9, 7, dtype=np.uint32)  # half a word is left over
    with Checkpoint(tmp_path / "fit", call_of(), resume=False) as checkpoint:
        first = used(checkpoint)
    for _ in range(2):
        with Checkpoint(tmp_path / "fit", call_of(), resume=True) as checkpoint:
            assert used(checkpoint) == first
            checkpoint.save(a_state())  # which keeps them too
    with Checkpoint(tmp_path / "other", call_of(), resume=True) as checkpoint:
        assert used(checkpoint) != first


def test_asking_for_random_numbers_loses_no_state(tmp_path):
    with Checkpoint(tmp_path / "fit", call_of(), resume=False) as checkpoint:
        checkpoint.save(a_state())
        checkpoint.random(np.random.default_rng())
    assert_equal(loaded(tmp_path / "fit"), a_state())


def test_a_generator_whose_state_is_not_known_is_refused(tmp_path):
    class Own:
        class bit_generator:
            state = {"bit_generator": "Own", "state": 3}  # noqa: RUF012

    with (
        Checkpoint(tmp_path / "fit", call_of(), resume=False) as checkpoint,
        pytest.raises(ValueError, match="cannot keep a random_state of the kind Own; pass a whole number"),
    ):
        checkpoint.random(Own)


def test_what_killed_processes_left_is_removed_and_nothing_else(folder):
    (folder / ".state.npz.abc.part").mkdir()
    (folder / ".state.npz.abc.part" / "state.npz").write_bytes(b"half")
    others = [folder / name for name in (".other.part", "codes 1", "state.npz.part")]
    for other in others:
        other.mkdir()
    assert_equal(loaded(folder), a_state())
    assert sorted(folder.iterdir()) == sorted([*others, folder / "state.npz", folder / "lock"])


def test_the_same_state_gives_the_same_bytes(tmp_path):
    for name in ("one", "other"):
        with Checkpoint(tmp_path / name, call_of(), resume=False) as checkpoint:
            checkpoint.save(a_state())
    assert (tmp_path / "one" / "state.npz").read_bytes() == (tmp_path / "other" / "state.npz").read_bytes()


# ---- what is refused


def test_an_unfinished_fit_is_not_lost_by_mistake(folder):
    refused(folder, "holds an unfinished fit; pass resume=True to go on from it, or remove state.npz", resume=False)
    refused(folder, "holds an unfinished fit", resume=False, call=call_of(n_components=3))
    assert_equal(loaded(folder), a_state())


def test_a_finished_fit_is_begun_anew_or_given_back(folder):
    finished = a_state(finished=True)
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        checkpoint.save(finished)
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        assert_equal(checkpoint.load(), finished)
    with Checkpoint(folder, call_of(n_components=3), resume=False) as checkpoint:
        assert checkpoint.load() is None
        checkpoint.random(np.random.default_rng())
        assert checkpoint.load() is None
    with Checkpoint(folder, call_of(n_components=3), resume=True) as checkpoint:
        assert checkpoint.load() is None


def test_a_fit_that_found_nothing_yet_is_begun_anew(tmp_path):
    for n_components, resume in ((3, False), (4, False), (5, True)):
        with Checkpoint(tmp_path / "fit", call_of(n_components=n_components), resume) as checkpoint:
            given_one = np.random.default_rng(n_components)
            assert checkpoint.random(given_one) is given_one


CALLS = {
    "another number": (call_of(n_components=30), "n_components was 20 and is 30;"),
    "another list": (call_of(init=[1, 2, "x"]), 'init was [1, null, "x"] and is [1, 2, "x"]'),
    "a new parameter": (call_of(forget=0.5), "forget was not there and is 0.5"),
    "other rows": (call_of(7, rows="ab"), "n_features was 40 and is 7, the rows are others;"),
    "all of it": (dict.fromkeys(("n_samples", "n_features", *"abcde"), 1), "n_samples was 1000 and is 1", "5 more)"),
}


@pytest.mark.parametrize("case", CALLS)
def test_the_fit_of_another_call_is_refused_with_what_differs(case, folder):
    call, *parts = CALLS[case]
    refused(folder, "holds the fit of another call", "make the same call", *parts, call=call)


def test_a_fit_of_another_bitatoms_is_refused(folder, monkeypatch):
    monkeypatch.setattr(checkpoints, "__version__", "99.0")
    refused(folder, f'bitatoms was "{ba.__version__}" and is "99.0"')


def test_a_folder_that_cannot_be_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    refused(tmp_path / "file", "is a file, and a checkpoint is a folder; choose another name")
    refused(tmp_path / "none" / "fit", "there is no folder", "make it first")
    refused(tmp_path / "file" / "fit")
    (tmp_path / "fit" / "state.npz").mkdir(parents=True)
    refused(tmp_path / "fit", "cannot be read", "move this file away")
    (tmp_path / "locked" / "lock").mkdir(parents=True)
    refused(tmp_path / "locked", "cannot be written")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    refused(tmp_path, "cannot be written")
    refused(tmp_path / "fit", "cannot be written")


# ---- damaged files


def rewritten(folder, about=None, state=None, order=None, **arrays):
    """The checkpoint with some of its arrays, or entries of its description, state or first order, changed."""
    path = folder / "state.npz"
    with np.load(path) as file:
        old = dict(file)
    if about or state or order:
        entries = json.loads(old["bitatoms"].tobytes())
        entries["state"]["orders"][0] |= order or {}
        entries["state"] |= state or {}
        entries |= about or {}
        old["bitatoms"] = np.frombuffer(json.dumps(entries).encode(), np.uint8)
    changed = {name.replace("_", " "): value for name, value in arrays.items()}
    np.savez(path, **{name: value for name, value in (old | changed).items() if value is not None})


PCG = {"bit_generator": "PCG64", "state": {"state": 1, "inc": 3}, "has_uint32": 0, "uinteger": 0}
MT = {"bit_generator": "MT19937", "state": {"key": [1] * 624, "pos": 10**9}}
CHANGED = {
    "newer": ({"about": {"version": 99, "bitatoms": "9.0"}}, "written by bitatoms 9.0, which is newer"),
    "a model": ({"about": {"format": "bitatoms model"}}, "not a checkpoint, but a model"),
    "no description": ({"bitatoms": None}, "not a checkpoint, but data: its arrays are order 0 atoms"),
    "no JSON": ({"bitatoms": np.zeros(4, np.uint8)}, "not a checkpoint: its metadata is corrupt"),
    "no call": ({"about": {"call": 3}}, "a damaged checkpoint"),
    "a state that is none": ({"about": {"state": [1]}}, "a damaged checkpoint"),
    "a state without orders": ({"state": {"orders": []}}, "a damaged checkpoint"),
    "unknown algebra": ({"state": {"algebra": "and"}}, "a damaged checkpoint"),
    "another algebra": ({"state": {"algebra": "or"}}, "its algebra is not that of its passes"),
    "finished by a word": ({"state": {"finished": "yes"}}, "a damaged checkpoint"),
    "a best pass that is not done": ({"state": {"best": 2}}, "it says that pass 2 is the best of 1"),
    "no best pass": ({"state": {"finished": True, "best": 0, "orders": []}}, "a damaged checkpoint"),
    "no counts": ({"state": {"counts": None}}, "a damaged checkpoint"),
    "a half that is more": ({"state": {"partial": {"next_row": 1001, "counts": {}}}}, "its next_row is 1001"),
    "another history": ({"state": {"history_fields": ["what"]}}, "a damaged checkpoint"),
    "unknown coder": ({"order": {"coder": "best"}}, "its order 0 is none"),
    "a rule that is none": ({"order": {"max_atoms": 0.5}}, "a damaged checkpoint"),
    "no prices": ({"order_0_bit_prices": None}, "a damaged checkpoint"),
    "atoms of another width": ({"order_1_atoms": np.zeros((3, 2), np.uint64)}, "40 columns take 1 words per row"),
    "bits past the end": ({"order_1_atoms": np.full((3, 1), 1 << 40, np.uint64)}, "ones past column 40"),
    "atoms of floats": ({"order_1_atoms": np.zeros((3, 1))}, "a damaged checkpoint"),
    "two biases": ({"order_0_bias": np.zeros((2, 1), np.uint64)}, "its order 0 is none"),
    "places out of reach": ({"order_1_kept": np.array([0, 2, 5])}, "its order 1 kept has values that cannot be"),
    "places twice": ({"order_1_kept": np.array([0, 2, 2])}, "its order 1 is none"),
    "places of the first": (
        {"order": {"goes_on": True}, "order_0_kept": np.arange(5)},
        "its order 0 kept has values that cannot be",
    ),
    "prices of nothing": ({"order_0_bit_prices": np.zeros(40, np.int32)}, "has values that cannot be"),
    "prices too short": ({"order_0_use_prices": np.zeros(5, np.int32)}, "its order 0 use prices is of shape (5,)"),
    "counts of another shape": ({"counts_free": np.zeros((3, 40), np.uint8)}, "is of shape (3, 40) and type uint8"),
    "counts too large": ({"counts_wrong": np.full(40, 1001)}, "its counts wrong has values that cannot be"),
    "counts below zero": ({"partial_uses": np.full(3, -1)}, "its partial uses has values that cannot be"),
    "counts that are none": ({"counts_ones": None}, "a damaged checkpoint"),
    "floats": ({"counts_ones": np.zeros(40)}, "a damaged checkpoint"),
    "a pickle": ({"counts_ones": np.array([None] * 40)}, "contains Python objects, which are never unpickled"),
    "a random generator that is none": ({"about": {"random": {"bit_generator": "os"}}}, "a damaged checkpoint"),
    "random numbers out of place": ({"about": {"random": MT}}, "or out of place"),
    "random numbers of an unknown kind": ({"about": {"random": PCG | {"bit_generator": "beta"}}}, "'beta'"),
    "random numbers too few": ({"about": {"random": PCG | {"state": {}}}}, "a damaged checkpoint"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_damaged_checkpoint_is_refused_and_named(case, folder):
    changes, part = CHANGED[case]
    rewritten(folder, **changes)
    refused(folder, "state.npz: ", part, "; move this file away, or choose another folder, to begin anew")


def test_other_files_of_that_name_are_refused_whatever_is_asked(tmp_path):
    for content in (b"", b"PK", b"\x80\x04K\x01.", b"a,b\n1,0\n"):
        (tmp_path / "state.npz").write_bytes(content)
        for resume in (False, True):
            refused(tmp_path, "state.npz: corrupt, or not a file of the format 'npz'", resume=resume)
            assert (tmp_path / "state.npz").read_bytes() == content


def test_a_file_cut_short_anywhere_is_refused(folder):
    whole = (folder / "state.npz").read_bytes()
    for length in (*range(0, len(whole), 41), *range(len(whole) - 60, len(whole))):
        (folder / "state.npz").write_bytes(whole[:length])
        refused(folder, "state.npz: ")


@settings(max_examples=60, deadline=None)
@given(place=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_changed_byte_is_refused_or_makes_no_difference(tmp_path_factory, place, byte):
    folder = tmp_path_factory.mktemp("fuzz") / "fit"
    with Checkpoint(folder, call_of(), resume=False) as checkpoint:
        checkpoint.save(a_state())
    data = bytearray((folder / "state.npz").read_bytes())
    data[int(place * (len(data) - 1))] = byte
    (folder / "state.npz").write_bytes(data)
    state = outcome(loaded, folder)
    if state is not None:
        assert_equal(state, a_state())


# ---- one process at a time


def test_a_folder_in_use_is_refused_until_it_is_let_go(folder):
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        refused(folder, "another fit is using this folder; wait until it or its process ends")
        checkpoint.save(a_state())
    with Checkpoint(folder, call_of(), resume=True):
        pass
    refused(folder, "holds an unfinished fit", resume=False)  # which lets go of it
    with Checkpoint(folder, call_of(), resume=True):
        pass


HOLD = """
import sys
from bitatoms.rows.checkpoint import Checkpoint
checkpoint = Checkpoint(sys.argv[1], {"n_samples": 1, "n_features": 1}, resume=False)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_dies_with_its_process(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "fit")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        refused(tmp_path / "fit", "another fit is using this folder")
        process.kill()
    with Checkpoint(tmp_path / "fit", call_of(), resume=True):
        pass


def test_where_nothing_can_be_locked_it_is_said_and_done(folder, monkeypatch, caplog):
    def unable(file):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(checkpoints, "_lock", unable)
    assert_equal(loaded(folder), a_state())
    assert "no file can be locked there" in caplog.text


# ---- a full disk


def no_space(*arguments, **named):
    raise OSError(errno.ENOSPC, "No space left on device")


def no_space_later(function, times):
    """A function after whose first so many calls the disk is full."""
    calls = []

    def full(*arguments, **named):
        calls.append(1)
        return function(*arguments, **named) if len(calls) <= times else no_space()

    return full


POINTS = {
    "making a folder": ("bitatoms.io.atomic.tempfile.mkdtemp", no_space),
    "opening": ("bitatoms.rows.checkpoint.zipfile.ZipFile", no_space),
    "the first array": ("bitatoms.rows.checkpoint.npy.write_array", no_space),
    "a later array": ("bitatoms.rows.checkpoint.npy.write_array", no_space_later(np.lib.format.write_array, 7)),
    "the list of arrays": ("bitatoms.rows.checkpoint.zipfile.ZipFile._write_end_record", no_space),
    "flushing": ("bitatoms.rows.checkpoint.os.fsync", no_space),
    "renaming": ("bitatoms.io.atomic.os.replace", no_space),
}


@pytest.mark.parametrize("point", POINTS)
def test_on_a_full_disk_the_last_good_checkpoint_is_there(point, folder, monkeypatch):
    with Checkpoint(folder, call_of(), resume=True) as checkpoint:
        with monkeypatch.context() as patched:
            patched.setattr(*POINTS[point])
            with pytest.raises(ba.FileError, match="No space left on device") as caught:
                checkpoint.save(a_state(finished=True))
        message = str(caught.value)
        assert message.startswith(f"{folder / 'state.npz'}: cannot be written")
        assert "the last good checkpoint is still there; go on from it with resume=True" in message
        assert_equal(checkpoint.load(), a_state())
        assert sorted(path.name for path in folder.iterdir()) == ["lock", "state.npz"]
        checkpoint.save(a_state(finished=True))  # when there is room again
        assert_equal(checkpoint.load(), a_state(finished=True))


def test_a_disk_that_was_full_from_the_start_holds_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("bitatoms.rows.checkpoint.os.fsync", no_space)
    with Checkpoint(tmp_path / "fit", call_of(), resume=False) as checkpoint, pytest.raises(ba.FileError) as caught:
        checkpoint.random(np.random.default_rng())
    assert "No space left on device" in str(caught.value)
    assert "last good checkpoint" not in str(caught.value)


LIMITED = """
import resource, sys
sys.path[:0] = [sys.argv[2], f"{sys.argv[2]}/rows"]
from test_checkpoint import Checkpoint, a_state, call_of
with Checkpoint(sys.argv[1], call_of(), resume=True) as checkpoint:
    size = (checkpoint.folder / "state.npz").stat().st_size
    for share in (0, 0.01, 0.5, 0.9, 1 - 1 / size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size * share), resource.RLIM_INFINITY))
        try:
            checkpoint.save(a_state())
        except ValueError as error:
            print(error)
"""


def test_a_file_that_the_system_does_not_let_grow_leaves_the_one_before(folder):
    pytest.importorskip("resource", reason="Windows has no such limits")
    before = (folder / "state.npz").read_bytes()
    command = [sys.executable, "-c", LIMITED, str(folder), str(Path(__file__).parents[1])]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stderr == ""
    assert told.stdout.count("cannot be written: File too large; nothing was changed: the last good checkpoint") == 5
    assert (folder / "state.npz").read_bytes() == before
    assert_equal(loaded(folder), a_state())


def test_the_file_can_be_read_with_numpy_and_json_alone(folder):
    with zipfile.ZipFile(folder / "state.npz") as file:
        assert file.testzip() is None
    with np.load(folder / "state.npz") as file:
        about = json.loads(file["bitatoms"].tobytes())
        np.testing.assert_array_equal(file["counts free"], a_state().counts.free)
    assert (about["format"], about["call"]["n_components"]) == (checkpoints.KIND, 20)


# ---- a fit that is stopped


class Stopped(Exception):
    """Raised by a callback in the middle of a fit."""


@pytest.mark.parametrize("algebra", ["xor", "or"])
@pytest.mark.parametrize("n_components", [6, "mdl"])
def test_a_fit_stopped_at_every_pass_ends_with_the_bits_of_one_that_was_not(algebra, n_components, tmp_path):
    data = ba.datasets.planted(N_ROWS, 65, 6, algebra=algebra, code_density=0.3, noise=0.03, random_state=1)
    workers = Workers(1, chunk_rows=320)
    rows = MemoryRows(BitMatrix.from_dense(data.X), workers)
    how = {"n_components": n_components, "algebra": algebra, "search_rows": 200, "workers": workers}
    undisturbed = learned(rows, seed=3, **how)
    passes = [row.round for row in undisturbed.history if "pass" in row.move]
    assert len(passes) > 1
    goes = [1, *passes]  # rounds in which it is stopped: in the sample, then at the end of each pass
    for number, stop in enumerate(goes):

        def stopped(row, stop=stop):
            if row.round == stop:
                raise Stopped

        with Checkpoint(tmp_path / "fit", call_of(65), resume=number > 0) as checkpoint:
            assert (checkpoint.load() is None) == (number < 2)
            with pytest.raises(Stopped):
                stopped_or_done(rows, checkpoint, how, stopped, seed=3 + number)
    with Checkpoint(tmp_path / "fit", call_of(65), resume=True) as checkpoint:
        resumed = stopped_or_done(rows, checkpoint, how, None, seed=9)
        assert checkpoint.load().finished
    assert_same(resumed, undisturbed)
    assert [row[:-2] for row in resumed.history] == [row[:-2] for row in undisturbed.history]  # all but the seconds
    with Checkpoint(tmp_path / "fit", call_of(65), resume=True) as checkpoint:
        assert_same(stopped_or_done(rows, checkpoint, how, None, seed=9), undisturbed)


def stopped_or_done(rows, checkpoint, how, callback, seed):
    """A fit with the checkpoint's random numbers; the seed is of no consequence but in the first call."""
    random = checkpoint.random(np.random.default_rng(seed))
    return learned(rows, seed=random, journal=checkpoint, callbacks=callback, **how)


def test_rows_that_were_changed_anywhere_are_others(tmp_path):
    """In memory and in a store; on a cluster however they are cut."""
    X = random_bits(0, 3000, 70, 0.3)
    other = X.copy()
    other[1234, 5] ^= 1

    def prints(table, name):
        store = ba.pack(table, tmp_path / f"{name}.zarr")
        yield MemoryRows(BitMatrix.from_dense(table), Workers()).fingerprint()
        yield StoreRows(store, Workers()).fingerprint()
        for size in (3000, 700):
            yield DaskRows(da.from_array(table, chunks=(size, 70))).fingerprint()

    before, again, after = (list(prints(table, name)) for name, table in (("a", X), ("b", X), ("c", other)))
    assert before == again
    assert before[2] == before[3]
    assert all(one != two for one, two in zip(before, after, strict=True))
