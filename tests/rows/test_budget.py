"""Chunk sizes and memory limits."""

import re
import tracemalloc
from bisect import bisect_left
from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.engine import passes as pass_spec
from bitatoms.errors import InputError, Parameter
from bitatoms.model.model import Model
from bitatoms.parallel import Workers
from bitatoms.rows.budget import MemoryBudget, chunk_rows, coding_rows
from bitatoms.rows.code_file import CodeFile
from bitatoms.rows.out_of_core import StoreRows
from bitatoms.rows.passes import PassResult
from bitatoms.rows.source import MemoryRows
from bitatoms.rows.store import check_memory
from bitatoms.rows.subsample import learn
from bitatoms.validation import as_generator
from support.sources import assert_same, assert_same_counts, learned, params_for, write_store
from support.strategies import random_bits


def least_memory(store, workers, n_searched, n_atoms):
    """Return the least limit that `check_memory` accepts."""

    def accepts(limit):
        try:
            check_memory(store, workers, limit, n_searched, n_atoms)
        except InputError:
            return False
        return True

    return bisect_left(range(1 << 30), True, key=accepts)


def test_rows_per_chunk_by_width_and_by_the_number_of_threads():
    widths = {0: 32768, 1: 32768, 1000: 32768, 1025: 30784, 10**5: 1024, 10**7: 1024}
    assert {width: chunk_rows(width) for width in widths} == widths
    limit, rows = 100 << 20, {1: 2048, 2: 2048, 8: 512}  # a chunk in progress takes 4.5 times its rows under XOR
    budgets = {n_threads: MemoryBudget(limit, 1 << 14, n_threads, read_bytes=1 << 20) for n_threads in rows}
    assert {n_threads: budget.chunk_rows(n_atoms=4) for n_threads, budget in budgets.items()} == rows
    assert all(4.5 * n_threads * n_rows * (1 << 14) / 8 <= limit for n_threads, n_rows in rows.items())


def test_the_limit_changes_only_where_codes_are_kept(bits, stores):
    params = params_for(n_components=11, search_rows=200)
    expected = learn(MemoryRows(bits, Workers()), params, Workers(), as_generator(0))
    assert isinstance(expected, PassResult)
    least = least_memory(stores[0], Workers(), 200, 20)
    for limit, kind in ((None, ba.BitMatrix), (4 * least, ba.BitMatrix), (least, CodeFile)):
        rows = StoreRows(stores[0], Workers(), max_memory=limit)
        found = learn(rows, params, Workers(), as_generator(0))
        assert_same(found.result, expected.result)
        assert isinstance(found.codes, kind)
        if kind is ba.BitMatrix:  # files are removed after the last pass
            assert found.codes[:3001] == expected.codes
        rows.close()


def test_rows_with_unknown_cells_take_twice_the_memory():
    budgets = [MemoryBudget(100 << 20, 1 << 14, 2, 1 << 20, has_unknown) for has_unknown in (False, True)]
    assert budgets[1].chunk_rows(n_atoms=4) < budgets[0].chunk_rows(n_atoms=4)
    least, least_unknown = (budget.needed(10**5, 4) for budget in budgets)
    assert least_unknown == 2 * least - 3 * (1 << 20)  # the reads have the given size


def test_votes_of_many_atoms_on_many_features_take_memory_in_proportion_to_those_listed():
    least = [MemoryBudget(0, 100_000, 1, 0).needed(0, n_atoms) for n_atoms in (20, 2000, 4000)]
    assert least[0] < least[1] < least[2] < 4 * least[0]  # votes on all features would take 40 GB
    budget = MemoryBudget(least[2], 100_000, 1, 0)
    assert budget.chunk_rows(4000, n_listed=1 << 20) > budget.chunk_rows(4000) == 64
    with pytest.raises(InputError, match="is too small for 4000 atoms"):
        budget.chunk_rows(4000, n_listed=1 << 22)


def test_atoms_that_are_coded_by_groups_take_memory_in_proportion_to_the_largest_group():
    budget = MemoryBudget(2 << 30, 10**6, 16, 0)
    with pytest.raises(InputError, match="is too small for 130000 atoms"):
        budget.chunk_rows(130_000, n_listed=10**7)
    assert budget.chunk_rows(130_000, n_listed=10**7, largest_group=(200, 1000)) >= 64
    assert budget.chunk_rows(130_000, counts_votes=False, largest_group=(200, 1000)) >= 512


def test_rows_in_memory_are_coded_within_the_limit(bits, model, monkeypatch):
    """The limit changes how many are coded at a time, and nothing else."""
    expected, sizes = model.codes(bits, Workers()), []
    coded = pass_spec.row_codes
    monkeypatch.setattr(pass_spec, "row_codes", lambda *given: sizes.append(len(given[0])) or coded(*given))
    with pytest.raises(InputError, match=r"max_memory=1000 is too small for \d+ atoms") as caught:
        coding_rows(bits, model, 1000)
    least = int(re.search(r"at least (\d+) bytes", str(caught.value))[1])
    max_rows = coding_rows(bits, model, least)
    assert model.codes(bits, Workers(), max_rows) == expected
    assert max(sizes) == max_rows == 64
    np.testing.assert_array_equal(
        model.row_bits(bits, expected, Workers(), max_rows), model.row_bits(bits, expected, Workers())
    )
    assert coding_rows(bits, model, None) is None


def test_a_limit_that_is_too_small_raises_with_the_least_that_works(stores):
    with pytest.raises(InputError, match=r"max_memory=1000 is too small for 1 atom and 1 thread with 70 features"):
        StoreRows(stores[0], Workers(), max_memory=1000)
    for not_an_amount in (True, 1.5):
        with pytest.raises(TypeError, match="max_memory must be a number of bytes"):
            StoreRows(stores[0], Workers(), max_memory=not_an_amount)
    least = least_memory(stores[0], Workers(), 200, 20)
    with pytest.raises(InputError, match=f"pass at least {least} bytes"):
        check_memory(stores[0], Workers(), least - 1, 200, 20)
    rows = StoreRows(stores[0], Workers(), max_memory=least)
    with pytest.raises(InputError, match=r"a search of 3001 rows .* pass a smaller ") as caught:
        learned(rows, search_rows=None)
    assert [part.name for part in caught.value.args if isinstance(part, Parameter)] == ["max_memory", "search_rows"]


def test_as_many_rows_are_searched_as_fit(bits, stores):
    """A limit that is given applies to tables in memory, which it counts, and to stores."""
    needed = MemoryBudget(0, 70, 1, 0).needed(3001, 0)
    found = {}
    for share in (1.0, 0.5):
        limit = int(share * needed) + bits.words.nbytes
        for rows in (MemoryRows(bits, Workers(), limit), StoreRows(stores[0], Workers(), limit)):
            learn_all = learned(rows, n_components=5, max_iter=1)
            found.setdefault(share, []).append({row.rows for row in getattr(learn_all, "result", learn_all).history})
    assert found[1.0][0] == {3001}
    in_memory = found[0.5][0]
    assert min(in_memory) in range(1024 * 8 // 9, 3001 * 8 // 9)  # one in nine is held out
    assert max(in_memory) == 3001
    with pytest.raises(InputError, match=r"too small for a search of 1024 rows .*") as caught:
        learned(MemoryRows(bits, Workers(), 100_000))
    assert f"pass at least {14 * 16 * 1024 + bits.words.nbytes} bytes" in str(caught.value)
    with pytest.raises(InputError, match="too small for a search of 3001 rows"):
        learned(MemoryRows(bits, Workers(), needed // 2), search_rows=None)


def test_the_chunks_of_a_pass_in_memory_keep_to_the_limit(bits, chunk_sizes):
    spec = Model.from_factorization(learned(MemoryRows(bits[:300], Workers()), n_components=5)).pass_spec
    expected_codes, expected = MemoryRows(bits, Workers()).run_pass(spec)
    budget = MemoryBudget(0, 70, 1, 0, held=bits.words.nbytes)
    rows = MemoryRows(bits, Workers(), budget.held + budget.needed(0, 5) + 100_000)
    chunk_sizes.clear()
    codes, counts = rows.run_pass(spec)
    assert 1 < len(chunk_sizes) <= 3001 // 64 + 1
    assert codes == expected_codes
    np.testing.assert_array_equal(counts.free, expected.free)
    following, before = replace(spec, kept=np.arange(5)), ba.BitMatrix.from_dense(random_bits(0, 3001, 5, 0.5))
    (again, changes), (_, expected) = (each.run_pass(following, before) for each in (rows, MemoryRows(bits, Workers())))
    assert again == codes
    assert_same_counts(changes, expected)


def test_a_pass_stays_within_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("bitatoms.io.store.packed_rows._READ_BYTES", 1 << 17)
    words = np.random.default_rng(0).integers(0, 1 << 62, (23_000, 16), np.uint64)
    unknown = ba.BitMatrix.from_words(words & np.roll(words, 1, axis=0), 1024, check=False)
    bits = ba.BitMatrix.from_words(words, 1024, check=False).with_unknown(unknown)
    store = write_store(tmp_path / "large.zarr", bits, chunk_bytes=1 << 17)
    given = {"n_components": 5, "init": "samples", "objective": "codelength", "max_iter": 1, "algebra": "or"}
    found = learned(MemoryRows(bits[:300], Workers()), **given)
    spec = replace(Model.from_factorization(found).pass_spec, coder="mend")
    _, expected = MemoryRows(bits, Workers()).run_pass(spec)
    limit = 2 * least_memory(store, Workers(2), 0, 5)
    assert limit < 2 * bits.words.nbytes
    bits = words = unknown = None
    rows = StoreRows(store, Workers(2), limit, code_folder=tmp_path)
    rows.run_pass(spec)  # imports and compilation are not measured
    tracemalloc.start()
    _, counts = rows.run_pass(spec)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_same_counts(counts, expected)
    assert peak < limit, (peak, limit)
