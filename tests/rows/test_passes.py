"""Passes over all rows: what they improve, when they end, and what identifies the rows."""

import itertools
from dataclasses import astuple, replace

import dask.array as da
import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.model.join_columns import ColumnFactors, join_columns
from bitatoms.parallel import Workers
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.dask import DaskRows
from bitatoms.rows.dask_transform import hash_positions
from bitatoms.rows.out_of_core import StoreRows
from bitatoms.rows.passes import initial_state, run_passes
from bitatoms.rows.source import MemoryRows
from bitatoms.sparse_bits import SparseBits, packed
from support.checkpoints import N_ROWS, call_of
from support.sources import assert_same, assert_same_counts, learned, params_for
from support.strategies import random_bits


def after_the_first_pass(row):
    """A callback that ends a fit."""
    return "pass" in row.move


@pytest.fixture
def few_votes(monkeypatch):
    """Count votes on few bits of the atoms, as in wide tables with many atoms."""
    monkeypatch.setattr("bitatoms.engine.counts._MIN_FEATURES", 1)
    monkeypatch.setattr("bitatoms.engine.counts.MAX_VOTES", 100)


@pytest.fixture
def small_groups(few_votes, monkeypatch):
    """Code rows by groups of atoms that share columns, as in wide tables with many atoms."""
    monkeypatch.setattr("bitatoms.engine.passes._MIN_SPLIT", 1)
    monkeypatch.setattr("bitatoms.engine.passes._GROUP_COLUMNS", 1)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_passes_by_groups_of_atoms_improve_the_model_of_a_sample_wherever_the_rows_are(algebra, tmp_path):
    parts = [
        ba.datasets.planted(N_ROWS, 31, 4, algebra=algebra, code_density=0.3, noise=0.1, random_state=seed).X
        for seed in range(3)
    ]
    X = np.hstack([*parts, random_bits(9, N_ROWS, 5, 0.1)])
    params = params_for(algebra=algebra)
    side = [ba.factorize(part[:60], 4, algebra=algebra, max_iter=1, random_state=0) for part in parts]
    columns = np.split(np.arange(93), 3)
    rest = ba.factorize(X[:60, 93:], algebra=algebra, random_state=0)
    sample = join_columns([*map(ColumnFactors, columns, side), ColumnFactors(np.arange(93, 98), rest)], 60, 98)
    start = initial_state(replace(sample, atoms=SparseBits.from_bits(packed(sample.atoms))), params)
    assert len(start.specs[0].groups) >= 3
    bits, store = BitMatrix.from_dense(X), ba.pack(X, tmp_path / "rows.zarr")
    found = run_passes(MemoryRows(bits, Workers(1, 320)), start, params)
    costs = [row.bits for row in found.result.history if row.rows == N_ROWS]
    assert min(costs) < costs[0]
    assert isinstance(found.result.atoms, SparseBits)
    codes = found.codes.to_dense()[:, found.indices]
    atoms, bias = found.result.atoms.to_dense(), found.result.bias
    assert astuple(found.result.codelength) == naive.codelength(X, atoms, codes, algebra, bias)
    others = (
        MemoryRows(bits, Workers(3)),
        StoreRows(store, Workers(2, 192)),
        DaskRows(da.from_array(X, chunks=(300, 98))),
    )
    for rows in others:
        assert_same(run_passes(rows, start, params).result, found.result)
    for callbacks, resume in (((after_the_first_pass,), False), ((), True)):
        with Checkpoint(tmp_path / "fit", call_of(98), resume=resume) as checkpoint:
            own, state = replace(params, callbacks=callbacks), checkpoint.load(params) or start
            last = run_passes(MemoryRows(bits, Workers()), state, own, checkpoint=checkpoint)
    assert_same(last.result, found.result)


@pytest.mark.usefixtures("few_votes")
def test_a_checkpoint_with_votes_on_few_bits_is_read_as_it_was_saved(tmp_path):
    X = BitMatrix.from_dense(ba.datasets.planted(N_ROWS, 65, 6, code_density=0.3, noise=0.05, random_state=1).X)
    how = {"n_components": 6, "search_rows": 60, "callbacks": after_the_first_pass}
    saved = []
    with pytest.MonkeyPatch.context() as patch, Checkpoint(tmp_path, call_of(65), resume=False) as checkpoint:
        save = checkpoint.save
        patch.setattr(checkpoint, "save", lambda state: saved.append(state) or save(state))
        learned(MemoryRows(X, Workers()), checkpoint.random(np.random.default_rng(0)), checkpoint, **how)
    with Checkpoint(tmp_path, call_of(65), resume=True) as checkpoint:
        state = checkpoint.load(params_for(n_components=6))
    assert state.specs[0].voted == state.counts.voted is not None
    assert_same_counts(state.counts, saved[-1].counts)
    assert state.counts.free.shape == (state.counts.voted.count(),)


def test_the_fingerprint_changes_with_any_row(tmp_path):
    """In memory, in a store, and on a cluster with any partitions."""
    X = random_bits(0, 3000, 70, 0.3)
    flipped, swapped = X.copy(), X.copy()
    flipped[1234, 5] ^= 1
    swapped[[1234, 2345]] = X[[2345, 1234]]

    def fingerprints(table, name):
        store = ba.pack(table, tmp_path / f"{name}.zarr")
        yield MemoryRows(BitMatrix.from_dense(table), Workers()).fingerprint()
        yield StoreRows(store, Workers()).fingerprint()
        for size in (3000, 700):
            yield DaskRows(da.from_array(table, chunks=(size, 70))).fingerprint()

    before, again = (list(fingerprints(X, name)) for name in "ab")
    assert before == again
    assert before[2] == before[3]
    for name, table in (("c", flipped), ("d", swapped), ("e", X[:2999])):
        assert all(one != two for one, two in zip(before, fingerprints(table, name), strict=True))


@pytest.mark.parametrize("n_cols", [0, 1, 64, 65, 130])
def test_hashes_of_partitions_add_up(n_cols):
    bits = BitMatrix.from_dense(random_bits(1, 300, n_cols, 0.5))
    for edges in ((0, 300), (0, 1, 64, 299, 300), (0, 100, 200, 300)):
        parts = [hash_positions(bits[start:stop], start) for start, stop in itertools.pairwise(edges)]
        assert sum(parts) % 2**64 == hash_positions(bits, 0)


def test_passes_end_at_the_least_gain_and_at_max_iter():
    X = BitMatrix.from_dense(ba.datasets.planted(N_ROWS, 65, 20, code_density=0.3, noise=0.1, random_state=1).X)
    params = params_for(n_components=20, objective="codelength")
    start = initial_state(ba.factorize(X[:150], 20, algebra="xor", max_iter=1, random_state=0), params)

    def pass_costs(least_gain, max_iter=100):
        limited = replace(params, plan=replace(params.plan, least_gain=least_gain, max_rounds=max_iter))
        history = run_passes(MemoryRows(X, Workers()), start, limited).result.history
        return [row.bits for row in history if row.rows == N_ROWS]

    costs = pass_costs(0.0)
    gains = [1 - after / before for before, after in itertools.pairwise(costs)]
    assert len(costs) == 6  # the most
    assert min(gains) > 0
    for least_gain in (0.999 * min(gains), 1.001 * min(gains), 0.999 * max(gains), 1.001 * max(gains)):
        too_small = [number for number, gain in enumerate(gains, 2) if gain < least_gain]
        assert pass_costs(least_gain) == costs[: too_small[0] if too_small else 6]
    for max_iter in (1, 2, 5):
        assert pass_costs(0.0, max_iter) == costs[:max_iter]


class States(list):
    """A journal in memory: all states that were saved."""

    load = None
    save = list.append


def test_the_best_pass_of_an_earlier_process_has_its_codes(monkeypatch):
    """Also if it is not the last one: later ones had too few users for an atom."""
    monkeypatch.setattr("bitatoms.rows.passes._Passes._is_allowed", lambda passes, counts: not passes.state.best)
    X = BitMatrix.from_dense(ba.datasets.planted(N_ROWS, 65, 20, code_density=0.3, noise=0.1, random_state=1).X)
    params = params_for(n_components=20, objective="codelength")
    start, saved = initial_state(ba.factorize(X[:150], 20, algebra="xor", max_iter=1, random_state=0), params), States()
    expected = run_passes(MemoryRows(X, Workers()), start, params, checkpoint=saved)
    assert saved[2].best == 1
    for state in saved:
        resumed = run_passes(MemoryRows(X, Workers()), state, params)
        assert_same(resumed.result, expected.result)
        assert resumed.codes == expected.codes


@pytest.mark.parametrize(("n_features", "kept"), [(24, 0), (8, 1)])
def test_the_next_pass_has_only_atoms_that_save_more_bits_than_they_cost(n_features, kept):
    """In the wider table, the only atom saves as many bits as it costs."""
    atoms, codes = np.eye(1, n_features, dtype=np.uint8), np.zeros((64, 1), np.uint8)
    atoms[0, 1] = codes[:4] = 1
    X = codes @ atoms
    found = ba.factorize(X, 1, search="paper", init=(atoms, codes))
    assert found.wrong_bits == 0
    assert (found.saved > 0).tolist() == [kept == 1]
    states, params = States(), params_for()
    run_passes(MemoryRows(BitMatrix.from_dense(X), Workers()), initial_state(found, params), params, checkpoint=states)
    assert [len(spec.atoms) for spec in states[-1].specs] == [1, kept]


class ChangingRows(MemoryRows):
    """Rows of which one cell changes after each pass."""

    def run_pass(self, *arguments):
        result = super().run_pass(*arguments)
        self._data = self._data ^ BitMatrix.from_dense(np.eye(*self._data.shape, dtype=np.uint8))
        return result


def test_rows_that_change_between_passes_raise():
    data = BitMatrix.from_dense(random_bits(0, N_ROWS, 70, 0.3))
    with pytest.raises(ValueError, match="the rows changed between two passes over them; fit again"):
        learned(ChangingRows(data, Workers()), n_components=5, search_rows=200)
