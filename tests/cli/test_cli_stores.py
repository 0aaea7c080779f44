"""The command line on packed stores: the same files as for a table in memory, and resuming."""

import io
import json
import re

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")
pytest.importorskip("zarr")

from bitatoms.cli.output import SearchProgress
from bitatoms.rows.budget import parse_memory_limit
from bitatoms.rows.store import Store
from bitatoms.sparse_bits import SparseBits

pytestmark = pytest.mark.usefixtures("few_trials")

SEARCH = ("--search-rows", "200", "--max-atoms", "4", "--algebra", "or")


@pytest.fixture(autouse=True)
def table(put):
    """The table of the files table.csv and rows.zarr, whose model is model.npz."""
    return put("or").table


@pytest.fixture(autouse=True)
def store(table, tmp_path):
    return ba.pack(tmp_path / "table.csv", tmp_path / "rows.zarr")


def files(folder):
    """Return the contents of the files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# --- pack and show


def test_pack_describes_the_store_and_suggests_the_next_command(bitatoms, table):
    first, last = bitatoms.output("pack", "table.csv", "-o", "new.zarr").splitlines()
    head = f"new.zarr: 300 rows of 40 columns, packed, rows and columns have names, {table.bits.density:.1%} ones, "
    assert re.fullmatch(re.escape(head) + r"[\d.]+ kB on disk", first)
    assert last == "Next: bitatoms fit new.zarr -o model.npz"
    assert ba.read("new.zarr") == table
    assert bitatoms("pack", "table.csv", "-o", "quiet.zarr", "-q") == (0, "", "")
    printed = json.loads(bitatoms("pack", "table.csv", "-o", "new.zarr", "--json")[1])
    assert (printed["rows"], printed["columns"], printed["ones"]) == (300, 40, table.bits.count())
    assert printed["about"]["source"] == "table.csv"


def test_pack_reads_with_options_from_files_and_the_standard_input(bitatoms, monkeypatch, tmp_path):
    (tmp_path / "counts.csv").write_text("a,b,total\n3,0,3\n1,5,6\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "counts.csv").read_bytes())))
    for source in ("counts.csv", "-"):
        assert bitatoms("pack", source, "-o", "counts.zarr", "--binarize", "2", "--without", "total", "-q")[0] == 0
        packed = ba.read("counts.zarr")
        assert (packed.columns, packed.to_dense().tolist()) == (("a", "b"), [[1, 0], [0, 1]])
        shown = bitatoms.output("show", "counts.zarr")
        assert "2 rows of 2 columns, packed, columns have names" in shown
        assert ("packed from counts.csv, read with --binarize 2.0\n" in shown) == (source != "-")


# --- the same as in memory


@pytest.mark.parametrize("how", [SEARCH, ("--max-atoms", "3", "--algebra", "or")], ids=["by sample", "all rows"])
def test_fit_of_store_and_table_write_the_same_files(bitatoms, tmp_path, how):
    outputs = ("-o", "m.npz", "--codes", "codes.zarr", "--atoms-to", "atoms.csv", "--report", "r.html")
    for folder, data in (("of table", "table.csv"), ("of store", "rows.zarr")):
        (tmp_path / folder).mkdir()
        given = [str(tmp_path / folder / word) if "." in word else word for word in outputs]
        assert bitatoms("fit", data, *given, *how, "-q", "--jobs", "2") == (0, "", "")
    of_table, of_store = (files(tmp_path / folder) for folder in ("of table", "of store"))
    assert of_store.pop("r.html").replace(b"rows.zarr", b"table.csv") == of_table.pop("r.html")
    assert of_store == of_table
    assert ba.read(tmp_path / "of store/codes.zarr") == ba.read(tmp_path / "of table/codes.zarr")


def test_a_sparse_store_gives_the_files_of_the_table(bitatoms, put, tmp_path):
    table = put("sparse").table
    assert bitatoms("pack", "table.npz", "-o", "sparse.zarr", "-q") == (0, "", "")
    described = "sparse.zarr: 1000 rows of 2100 columns, sparse, without names, 0.34% ones, "
    assert described in bitatoms("show", "sparse.zarr")[1]
    shown = json.loads(bitatoms("show", "sparse.zarr", "--json")[1])
    assert (shown["sparse"], shown["ones"]) == (True, table.data.count())
    assert repr(SparseBits.from_bits(table.bits)) == f"SparseBits(1000 x 2100, density {shown['ones'] / 2_100_000:.3g})"
    for data in ("table.npz", "sparse.zarr"):
        assert bitatoms("transform", "model.npz", data, "-o", f"{data}.csv", "-q") == (0, "", "")
    assert (tmp_path / "sparse.zarr.csv").read_bytes() == (tmp_path / "table.npz.csv").read_bytes()


def test_commands_on_a_store_write_what_they_write_for_the_table(bitatoms, tmp_path):
    for command, output in (
        ("transform", "codes.zarr"), ("transform", "codes.csv"), ("transform --soft", "soft.csv"),
        ("reconstruct", "made.npz"), ("report", "page.html"),
    ):  # fmt: skip
        of_table, of_store = (
            bitatoms.output(*command.split(), "model.npz", data, "-o", f"{data[:5]}-{output}")
            for data in ("table.csv", "rows.zarr")
        )
        assert of_table.replace("table", "") == of_store.replace("rows.", "")
        of_table, of_store = (tmp_path / f"{data}-{output}" for data in ("table", "rows."))
        if output.endswith((".csv", ".html")):
            assert of_table.read_text() == of_store.read_text().replace("rows.zarr", "table.csv")
        else:
            assert ba.read(of_table) == ba.read(of_store)
    assert Store(tmp_path / "rows.-codes.zarr").about["source"] == "rows.zarr"
    assert bitatoms("transform", "model.npz", "rows.zarr")[1] == (tmp_path / "table-codes.csv").read_text()
    assert bitatoms("convert", "rows.zarr", "again.csv", "-q")[0] == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "table.csv").read_bytes()


def test_model_remembers_options_of_packing(bitatoms, tmp_path):
    (tmp_path / "counts.csv").write_text("a,b,c\n" + "5,0,3\n0,2,0\n" * 40)
    assert bitatoms("pack", "counts.csv", "-o", "counts.zarr", "--binarize", "2", "-q")[0] == 0
    assert bitatoms("fit", "counts.zarr", "-k", "1", "-o", "s.npz", "-q")[0] == 0
    assert bitatoms("fit", "counts.csv", "-k", "1", "-o", "t.npz", "-q", "--binarize", "2")[0] == 0
    assert (tmp_path / "s.npz").read_bytes() == (tmp_path / "t.npz").read_bytes()
    code, stdout, stderr = bitatoms("transform", "s.npz", "counts.zarr")
    assert code == 0
    assert "Note:" not in stderr  # nothing is made of ones and zeros once more
    assert stdout == bitatoms("transform", "s.npz", "counts.csv")[1] == "atom1\n" + "1\n0\n" * 40


def test_rows_of_a_store_may_be_pictures(bitatoms, tmp_path):
    assert bitatoms("fit", "rows.zarr", "-k", "2", "--tile", "5x8", "-o", "m.npz", "-q")[0] == 0
    assert ba.load("m.npz").as_model().picture.tile == (5, 8)
    ba.write(np.tile(np.arange(38) // 4 % 2, (50, 1)), "picture.pbm")
    assert bitatoms("pack", "picture.pbm", "--blocks", "8x8", "-o", "blocks.zarr", "-q")[0] == 0
    assert bitatoms("show", "blocks.zarr")[1].endswith("packed from picture.pbm, read with --blocks 8x8\n")
    for data in (("blocks.zarr",), ("picture.pbm", "--blocks", "8x8")):
        assert bitatoms("fit", *data, "-k", "1", "--algebra", "xor", "-o", f"{data[0][:5]}.npz", "-q")[0] == 0
    assert (tmp_path / "block.npz").read_bytes() == (tmp_path / "pictu.npz").read_bytes()


# --- interrupt and resume


@pytest.fixture
def interrupt_at(monkeypatch):
    """Return a function that makes the next fit raise KeyboardInterrupt at the n-th call of a progress method."""
    monkeypatch.setattr("bitatoms.rows.budget.chunk_rows", lambda *_: 64)
    monkeypatch.setattr("bitatoms.rows.out_of_core.StoreRows.save_interval", 0.0)

    def stop(method, count):
        left = [count]
        original = getattr(SearchProgress, method)

        def observed(self, argument):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            original(self, argument)

        monkeypatch.setattr(SearchProgress, method, observed)

    return stop


def test_an_interrupted_fit_is_resumed(bitatoms, interrupt_at, tmp_path):
    command = ["fit", "rows.zarr", *SEARCH, "-o", "m.npz", "--checkpoint", "so far", "--codes", "codes.csv"]
    for number, stop in enumerate([("__call__", 2), ("update_rows", 3)]):  # in the search, and in a pass
        interrupt_at(*stop)
        code, _, stderr = bitatoms(*command, *(["--resume"] if number else []))
        assert code == 130
        assert stderr.startswith("bitatoms: interrupted; ")
        assert stderr.endswith("; repeat the command with --resume to resume from so far\n")
        assert not (tmp_path / "codes.csv").exists()
    code, _, stderr = bitatoms(*command)
    assert (code, (tmp_path / "m.npz").exists()) == (2, True)  # the best so far
    assert "so far: this folder contains an unfinished fit; pass --resume to resume it" in stderr
    code, _, stderr = bitatoms(*command, "--resume", "--seed", "1")
    assert (code, "contains the fit of a different call: --seed was 0 and is 1" in stderr) == (2, True)
    models = []
    for _ in range(2):  # also when it is done
        assert bitatoms(*command, "--resume", "-q") == (0, "", "")
        models.append((tmp_path / "m.npz").read_bytes())
    assert models[0] == models[1]
    assert sorted(path.name for path in (tmp_path / "so far").iterdir()) == ["lock", "state.npz"]


def stopped(*arguments, **options):
    raise KeyboardInterrupt


def test_interrupt_while_codes_are_written_keeps_the_model(bitatoms, monkeypatch, tmp_path):
    monkeypatch.setattr("bitatoms.cli.stores.write_codes", stopped)
    outputs = ("-o", "m.npz", "--atoms-to", "atoms.csv", "--codes", "codes.zarr")
    code, _, stderr = bitatoms("fit", "rows.zarr", *SEARCH, *outputs)
    assert (code, stderr) == (130, "bitatoms: interrupted; only m.npz, atoms.csv was written\n")
    assert [(tmp_path / name).exists() for name in ("m.npz", "atoms.csv", "codes.zarr")] == [True, True, False]


def test_interrupt_after_packing_keeps_the_store(bitatoms, monkeypatch, table):
    monkeypatch.setattr("bitatoms.cli.stores.count_ones", stopped)
    code, stdout, stderr = bitatoms("pack", "table.csv", "-o", "new.zarr")
    assert (code, stdout) == (130, "")
    assert stderr.startswith("bitatoms: interrupted; new.zarr was written, but not read back")
    assert ba.read("new.zarr") == table


def test_outputs_that_exceed_memory_are_reported_before_the_fit(bitatoms, monkeypatch):
    monkeypatch.setattr("bitatoms.estimators.BinaryDictionaryLearning.fit", None)
    for options, parts in (
        ("--max-memory 4kB --report r.html", ("rows.zarr: a report needs the entire", "half of --max-memory 4000")),
        ("--max-memory 4kB --codes c.csv", ("c.csv: writing the codes of 300 rows takes ", ".zarr store")),
        ("--report r.html", ("more than half of the memory of this machine; omit --report",)),
    ):
        if "--max-memory" not in options:
            monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 4000)
        code, _, stderr = bitatoms("fit", "rows.zarr", *options.split())
        assert (code, [part for part in parts if part not in stderr]) == (2, [])


def test_max_memory_units():
    amounts = {"500MB": 500 * 10**6, "2 GiB": 2 << 30, "1.5G": 1_500_000_000, "123456": 123456, "7 b": 7, ".5kib": 512}
    assert {text: parse_memory_limit(text) for text in amounts} == amounts
    for text in ("", "much", "-5MB", "5 XB", "0.2", "0", "1e9", "inf", "5iB", "5 MB B"):
        with pytest.raises(ValueError, match="max_memory must be an amount"):
            parse_memory_limit(text)
