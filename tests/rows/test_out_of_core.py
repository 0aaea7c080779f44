"""Codes between passes: files that are resumed, discarded, corrupt, or on a full disk."""

import gc
import os
import tempfile

import pytest

import bitatoms as ba
from bitatoms.parallel import Workers
from bitatoms.rows.out_of_core import StoreRows
from bitatoms.rows.source import PassRun
from support.faults import FullDisk
from support.sources import assert_same_counts


def test_a_stopped_pass_resumes_to_the_same_counts_and_codes(stores, tmp_path, passes, monkeypatch):
    saved = []

    def save(partial):
        saved.append(partial)
        if len(saved) == 3:
            raise KeyboardInterrupt

    (first_spec, _, first_counts), (spec, expected_codes, expected_counts) = passes
    first, write = StoreRows(stores[0], Workers(2, 448), code_folder=tmp_path), os.write
    first.save_interval = 0
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:100]))  # a system may write less
    codes, counts = first.run_pass(first_spec)
    assert_same_counts(counts, first_counts)
    with pytest.raises(KeyboardInterrupt):
        first.run_pass(spec, codes, PassRun(2, save=save))
    assert [partial.next_row for partial in saved] == [448, 896, 1344]
    before = [array.copy() for array in (saved[-1].counts.free, saved[-1].counts.wrong)]
    second = StoreRows(stores[1], Workers(1, 320), code_folder=tmp_path)  # another process with other chunks
    assert second.load_codes(2, spec.atoms.n_rows) is None
    starts, read_chunks = [], stores[1].chunks
    monkeypatch.setattr(stores[1], "chunks", lambda size, start: starts.append(start) or read_chunks(size, start))
    loaded = second.load_codes(1, first_spec.atoms.n_rows)
    codes, counts = second.run_pass(spec, loaded, PassRun(2, saved[-1], save))
    assert starts == [1344]  # earlier rows are not coded again
    assert_same_counts(counts, expected_counts)
    assert codes[:3001] == expected_codes
    assert (saved[2].counts.free == before[0]).all()  # the saved counts are not added to
    assert (saved[2].counts.wrong == before[1]).all()
    loaded = StoreRows(stores[0], Workers(), code_folder=tmp_path).load_codes(2, spec.atoms.n_rows)
    assert loaded[5:1005] == codes[5:1005]


def test_a_partial_pass_with_corrupt_codes_starts_again(stores, tmp_path, passes):
    saved = []
    spec, _, expected = passes[0]
    rows = StoreRows(stores[0], Workers(1, 448), code_folder=tmp_path)
    rows.save_interval = 0
    rows.run_pass(spec, run=PassRun(save=saved.append))
    file = tmp_path / "codes-1.bin"
    content = file.read_bytes()
    flipped = content[:60] + bytes([content[60] ^ 1]) + content[61:]  # a bit of the codes of an early row
    for corrupt in (content[:-8], content[:700], b"", b"other" + content[5:], flipped):
        file.write_bytes(corrupt)
        assert rows.load_codes(1, spec.atoms.n_rows) is None
        _, counts = rows.run_pass(spec, run=PassRun(partial=saved[-1]))
        assert_same_counts(counts, expected)
        assert file.read_bytes() == content
    file.unlink()
    assert rows.load_codes(1, spec.atoms.n_rows) is None
    rows.run_pass(spec, run=PassRun(partial=saved[-1]))
    assert file.read_bytes() == content
    assert StoreRows(stores[0], Workers()).load_codes(1, spec.atoms.n_rows) is None


def test_unused_codes_are_removed(stores, tmp_path, passes):
    rows = StoreRows(stores[0], Workers(), code_folder=tmp_path)
    (tmp_path / "codes-9.bin").write_bytes(b"of an earlier fit")
    (tmp_path / "state.npz").write_bytes(b"no codes")
    codes = {number: rows.run_pass(passes[0][0], None, PassRun(number))[0] for number in range(1, 5)}
    rows.discard_codes({2, 4})
    assert sorted(os.listdir(tmp_path)) == ["codes-2.bin", "codes-4.bin", "state.npz"]
    assert codes[2][:10] == codes[4][:10]


@pytest.mark.parametrize("is_closed", [False, True])
def test_the_temporary_folder_is_removed_on_errors(stores, passes, tmp_path, monkeypatch, is_closed):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("bitatoms.rows.budget.MemoryBudget.holds_codes", lambda *_: False)
    rows, spec = StoreRows(stores[0], Workers(2, 448)), passes[0][0]
    codes, _ = rows.run_pass(spec)
    assert len(os.listdir(tmp_path)) == 1
    with monkeypatch.context() as patch:
        FullDisk(patch, at=1)
        with pytest.raises(ba.FileError, match="No space left on device; free some space"):
            rows.run_pass(spec, codes, PassRun(2))
    if is_closed:
        rows.close()
    del rows, codes
    gc.collect()
    assert not os.listdir(tmp_path)
