"""A fit that is cut at any chunk, pass or write gives a correct result, no worse than before, and can be resumed.

It is cut by its time, by a lack of memory, by Ctrl-C, by a full disk, or by the end of its process. Passes over all
rows are resumed to the same bits; a search that is resumed ends no worse.
"""

import os
import pickle
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import NamedTuple

import dask
import dask.array as da
import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms.api import with_columns_of
from bitatoms.bits import BitMatrix, stack_rows
from bitatoms.columns.table import Header
from bitatoms.online.stream import StreamLearner, StreamTuning
from bitatoms.parallel import Workers
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.dask import DaskRows
from bitatoms.rows.out_of_core import StoreRows
from bitatoms.rows.passes import PassResult, with_codes
from bitatoms.rows.source import MemoryRows
from bitatoms.rows.store import Store
from bitatoms.rows.subsample import learn
from bitatoms.sparse_bits import SparseBits
from bitatoms.validation import as_generator
from support.blocks import bits_of
from support.faults import FaultAtChunk, FullDisk, Kills
from support.sources import assert_same, params_for, write_store
from support.strategies import UNKNOWN, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

N, M, SAMPLE = 400, 30, 90
WORKERS = Workers(1, 128)
TABLES = {
    algebra: ba.datasets.planted(N, M, 5, algebra=algebra, code_density=0.3, noise=0.04, random_state=1).X
    for algebra in ("xor", "or")
}
TABLES["or"] = np.where(random_bits(2, N, M, 0.1) == 1, np.uint8(UNKNOWN), TABLES["or"])
SOURCES = {  # algebra, number of atoms, and the rows searched: a sample, or all
    "memory": ("xor", "mdl", SAMPLE),
    "all in memory": ("or", "mdl", None),
    "sparse": ("xor", 5, SAMPLE),
    "store": ("or", "mdl", SAMPLE),
    "a store of few atoms": ("xor", 5, SAMPLE),
    "dask": ("or", 18, SAMPLE),
}
FAULTS = {"time": None, "memory": MemoryError("no memory"), "ctrl-c": KeyboardInterrupt()}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The tables in stores of several chunks."""
    folder = tmp_path_factory.mktemp("stores")
    return {name: write_store(folder / name, bits_of(X), chunk_bytes=700).path for name, X in TABLES.items()}


class Fit:
    """A fit of one source; its result has the codes of the rows. It keeps the rounds and the indices of the sample."""

    def __init__(self, source, stores):
        self.source, (self.algebra, self.n_components, self.search_rows) = source, SOURCES[source]
        self.X, self.store = TABLES[self.algebra], stores[self.algebra]

    def rows(self, folder):
        bits = bits_of(self.X)
        if "store" in self.source:
            rows = StoreRows(Store(self.store), WORKERS, code_folder=folder)
            rows.save_interval = 0.0  # after every chunk
            return rows
        if self.source == "dask":
            return DaskRows(da.from_array(bits.to_dense(float), chunks=((1, 250, 149), (M,))))
        return MemoryRows(SparseBits.from_bits(bits) if self.source == "sparse" else bits, WORKERS)

    def __call__(self, folder, resume=False):
        params = params_for(
            algebra=self.algebra,
            n_components=self.n_components,
            search_rows=self.search_rows,
            max_time=1000.0,
            callbacks=lambda row: self.rounds.append(row),
        )
        self.rounds = []
        call = {"n_samples": N, "n_features": M}
        with dask.config.set(scheduler="synchronous"), Checkpoint(folder, call, resume) as self.checkpoint:
            states = self.checkpoint.states
            self.saved = states.load(f"{self.algebra} 1", lambda saved: saved.states[0].cost)
            states.is_due = lambda name: True
            rows, self.taken = self.rows(folder), []
            take = rows.take
            rows.take = lambda wanted: self.taken.append(wanted) or take(wanted)
            random = self.checkpoint.random(as_generator(0))
            params = with_columns_of(params, Header(M))
            found = learn(rows, params, WORKERS, random, self.checkpoint, keeps_codes=True)
        if not isinstance(found, PassResult):
            return found
        codes = found.codes[:] if self.source != "dask" else found.codes
        if self.source == "dask":
            codes = stack_rows(dask.compute(*found.codes), found.spec.atoms.n_rows)
        return with_codes(replace(found, codes=codes))

    def assert_matches_oracle(self, found):
        """Assert that all counts are those of the codes: of all rows, or, before the first pass, of the sample."""
        X = self.X if found.n_samples == N else self.X[self.taken[-1]]
        factors = found.atoms.to_dense(), found.codes.to_dense(), found.algebra, found.bias
        wrong = naive.errors(X, *factors)
        assert found.n_samples == len(X) == len(found.codes)
        assert astuple(found.codelength) == naive.codelength(X, *factors)
        np.testing.assert_array_equal(found.wrong, wrong.sum(axis=0))
        np.testing.assert_array_equal(found.uses, factors[1].sum(axis=0))
        np.testing.assert_array_equal(found.ones, (X == 1).sum(axis=0))
        np.testing.assert_array_equal(found.missed, ((X == 1) & (wrong == 1)).sum(axis=0))

    def costs(self, history):
        """Return what each pass, or each round of a search of all rows, reached."""
        by_bits = self.n_components == "mdl"
        return [row.bits if by_bits else row.wrong_bits for row in history if row.rows == N]

    def cost(self, found):
        return found.codelength.total if self.n_components == "mdl" else found.wrong_bits


class Uninterrupted(NamedTuple):
    """A fit that is not cut: its result, the number of chunks after the search and after each pass, and its folder.

    The folder is that of the end of the search.
    """

    result: ba.Factorization
    ends: list
    folder: Path


@pytest.fixture(scope="module")
def uninterrupted(stores, tmp_path_factory):
    """Return a function that makes an uninterrupted fit of a source once."""

    @cache
    def fitted(source):
        fit, ends, folder = Fit(source, stores), [], tmp_path_factory.mktemp("uninterrupted")
        with pytest.MonkeyPatch.context() as patch:
            work, save = FaultAtChunk(patch), Checkpoint.save

            def recorded(self, state):
                save(self, state)
                if not ends:
                    copytree(folder, f"{folder} after the search")
                if state.partial is None:
                    ends.append(work.n_chunks)

            patch.setattr(Checkpoint, "save", recorded)
            result = fit(folder)
        fit.assert_matches_oracle(result)
        assert result.ended == "converged"
        assert fit.cost(result) <= min(fit.costs(result.history))
        return Uninterrupted(result, ends or [work.n_chunks], Path(f"{folder} after the search"))

    return fitted


def cut(fit, folder, at, fault, **how):
    """Return the result of a fit that is cut at a chunk, or None if there is none yet."""
    with pytest.MonkeyPatch.context() as patch:
        FaultAtChunk(patch, at, FAULTS[fault])
        try:
            return fit(folder, **how)
        except ba.Interrupted as interrupted:
            assert fault == "ctrl-c"
            return interrupted.result
        except MemoryError:
            assert fault == "memory"
            return None


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("source", [source for source in SOURCES if SOURCES[source][2]])
def test_passes_cut_at_any_chunk_keep_the_best_one_and_are_resumed(uninterrupted, stores, tmp_path, source, fault):
    expected, ends, after_search = uninterrupted(source)
    costs, ends = Fit(source, stores).costs(expected.history), np.array(ends[1:]) - ends[0]
    assert len(ends) == len(costs) > 1
    for at in (1, ends[0], ends[0] + (ends[1] - ends[0]) // 2, ends[-1]):
        fit, folder = Fit(source, stores), tmp_path / str(at)
        copytree(after_search, folder)
        found = cut(fit, folder, at, fault, resume=True)
        n_done = sum(ends < at)
        if fault == "time":  # the first pass is always completed; others are where nothing is left, or no one asks
            n_done += n_done == 0 or at in ends or source == "dask"
        assert (found is None) == (n_done == 0)
        if found is not None:
            ended = {"time": "max_time", "memory": "max_memory", "ctrl-c": "interrupted"}[fault]
            assert found.ended == (ended if n_done < len(costs) else "converged")
            assert fit.costs(found.history) == costs[:n_done]
            assert fit.cost(found) <= min(costs[:n_done])
            if fault != "ctrl-c":
                fit.assert_matches_oracle(found)
        resumed = fit(folder, resume=True)
        assert_same(resumed, expected)
        assert resumed.codes == expected.codes
        assert fit.costs(resumed.history) == costs


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("source", ["all in memory", "sparse", "store", "dask"])
def test_a_search_cut_at_any_chunk_keeps_its_best_state_and_is_resumed(uninterrupted, stores, tmp_path, source, fault):
    """Before its first round there is none: if the time is up then, a result is made at once."""
    n_chunks = uninterrupted(source).ends[0]
    for at in (1, n_chunks * 2 // 3, n_chunks):
        fit, folder = Fit(source, stores), tmp_path / str(at)
        found = cut(fit, folder, at, fault)
        assert (found is None) == (not fit.rounds)
        if found is not None:
            fit.assert_matches_oracle(found)
            assert fit.cost(found) <= min([fit.cost(found), *fit.costs(fit.rounds)])
        resumed = fit(folder, resume=True)
        fit.assert_matches_oracle(resumed)
        if found is not None and found.n_samples == N:
            assert fit.cost(resumed) <= fit.cost(found)


@pytest.mark.parametrize(("source", "in_passes"), [("store", False), ("store", True), ("memory", True)])
def test_a_fit_that_finds_the_disk_full_is_resumed(uninterrupted, stores, tmp_path, caplog, source, in_passes):
    """The error names the remedy, is raised once, and leaves nothing but the previous checkpoint."""
    expected, _, after_search = uninterrupted(source)

    def begin(folder):
        if in_passes:
            copytree(after_search, folder)
        return Fit(source, stores)

    with pytest.MonkeyPatch.context() as patch:
        disk = FullDisk(patch)
        begin(tmp_path / "counted")(tmp_path / "counted", resume=in_passes)
    n_events = disk.n_events
    for at in {1, 2, n_events // 2, n_events - 2, n_events - 1}:
        folder = tmp_path / str(at)
        fit = begin(folder)
        with pytest.MonkeyPatch.context() as patch:
            FullDisk(patch, at)
            with pytest.raises(ba.FileError, match="No space left on device") as caught:
                fit(folder, resume=in_passes)
        has_state, message = (folder / "state.npz").exists(), str(caught.value)
        assert has_state or not in_passes
        if "the codes of all rows" not in message:
            assert message.startswith(f"{folder}{os.sep}")
            intact = "The previous checkpoint is intact; fix the problem, then pass resume=True"
            assert (intact in message) == has_state
        assert not list(folder.glob(".*.part"))
        assert caplog.messages == []
        resumed = fit(folder, resume=True)
        fit.assert_matches_oracle(resumed)
        if in_passes or fit.saved is None:
            assert_same(resumed, expected)
            assert resumed.codes == expected.codes


@pytest.mark.parametrize("source", ["all in memory", "sparse", "store"])
def test_a_fit_killed_at_any_event_is_resumed(uninterrupted, stores, tmp_path, source):
    """Also within a write, or if the fit that resumes it is killed: passes to the same bits, searches no worse."""
    expected = uninterrupted(source).result

    def killed(folder, chosen):
        fit = Fit(source, stores)
        with pytest.MonkeyPatch.context() as patch:
            kills = Kills(patch, folder, chosen)
            found = fit(folder, resume=True)
        fit.assert_matches_oracle(found)
        if fit.saved is None:  # nothing, or the passes that follow the search
            assert_same(found, expected)
            assert found.codes == expected.codes
        elif found.n_samples == N and fit.search_rows is None:
            assert fit.cost(found) <= fit.saved
        return kills

    n_events = killed(tmp_path / "counted", ()).n_events
    left = killed(tmp_path / "fit", np.linspace(1, n_events, 5).astype(int)).left
    assert len(left) == 5
    for number, folder in enumerate(left):
        for again in killed(folder, (7 + 9 * number,)).left:
            killed(again, ())


BATCHES = [
    BitMatrix.from_dense(ba.datasets.planted(240, 16, 3, random_state=0).X[i : i + 60]) for i in range(0, 240, 60)
]


def stream(algebra="xor", n_components=3, callbacks=None):
    """Return a learner that searches from scratch, refines, and replaces atoms in these batches."""
    params = params_for(n_components=n_components, algebra=algebra, max_iter=2, callbacks=callbacks)
    return StreamLearner(params, 0.001, as_generator(3), StreamTuning(scratch_rows=100, rows_per_replacement=60))


@pytest.mark.parametrize(("algebra", "n_components"), [("xor", 3), ("or", "mdl")])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError()], ids=repr)
def test_a_batch_cut_at_any_chunk_is_not_learned(algebra, n_components, error):
    """A learner to which batches are passed again after errors learns the same as one without errors."""
    online, undisturbed = stream(algebra, n_components), stream(algebra, n_components)
    for batch in BATCHES:
        with pytest.MonkeyPatch.context() as patch:
            work = FaultAtChunk(patch)
            undisturbed.partial_fit(batch, WORKERS)
        for at in sorted({1, work.n_chunks // 2, work.n_chunks}):
            before = online.state, pickle.dumps(online)
            with pytest.MonkeyPatch.context() as patch:
                FaultAtChunk(patch, at, error)
                with pytest.raises(type(error)):
                    online.partial_fit(batch, WORKERS)
            assert (online.state is before[0], pickle.dumps(online)) == (True, before[1])
        online.partial_fit(batch, WORKERS)
        assert_same(online.as_result(), undisturbed.as_result())
        found, expected = online.state, undisturbed.state
        assert (found.recent, found.sample.rows, found.sample.codes) == (
            expected.recent,
            expected.sample.rows,
            expected.sample.codes,
        )


def test_a_batch_whose_callback_fails_is_not_learned():
    def fail(row):
        if row.round == 2:
            raise MemoryError

    online = stream(callbacks=fail)
    online.partial_fit(BATCHES[0], WORKERS)
    before = online.state
    with pytest.raises(MemoryError):
        online.partial_fit(BATCHES[1], WORKERS)
    assert online.state is before
