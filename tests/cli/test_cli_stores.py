"""The command line on packed stores: the same files as for a table in memory, resuming, and one-line errors."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

import bitatoms as ba

pytest.importorskip("typer")
pytest.importorskip("zarr")

import zarr

from bitatoms.cli.progress import SearchProgress
from bitatoms.core.result import Round
from bitatoms.rows.budget import parse_memory_limit
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.store import Store
from support.bundles import table_with_bundles
from support.commands import runner
from support.sources import write_store

pytestmark = pytest.mark.usefixtures("few_trials")

ROWS, COLUMNS = 1201, 70
HOW = ["--search-rows", "300", "--max-atoms", "5", "--algebra", "xor"]


@pytest.fixture(scope="module")
def table():
    data = ba.datasets.planted(ROWS, COLUMNS, 6, code_density=0.3, noise=0.02, random_state=1)
    rows = [f"customer {i}" for i in range(ROWS)]
    return ba.Table(ba.BitMatrix.from_dense(data.X), rows, [f"item {j}" for j in range(COLUMNS)])


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """Create a folder with a table as text and as a packed store, and a model of it."""
    place = tmp_path_factory.mktemp("scale")
    ba.write(table, place / "table.csv")
    ba.pack(place / "table.csv", place / "rows.zarr")
    ba.BinaryDictionaryLearning(max_components=5, search_rows=300, random_state=0).fit(table).save(place / "model.npz")
    return place


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return runner(capsys)


# --- pack


def test_pack_describes_the_store_and_suggests_the_next_command(bitatoms, table, tmp_path):
    code, stdout, _ = bitatoms("pack", "table.csv", "-o", tmp_path / "rows.zarr")
    assert code == 0
    assert f"{tmp_path / 'rows.zarr'}: 1201 rows of 70 columns, packed, rows and columns have names" in stdout
    assert f"{table.bits.density:.1%} ones, " in stdout
    assert re.search(r"[\d.]+ kB on disk\n", stdout)
    assert stdout.endswith(f"Next: bitatoms fit {tmp_path / 'rows.zarr'} -o model.npz\n")
    assert ba.read(tmp_path / "rows.zarr") == table


def test_pack_json_and_quiet(bitatoms, table, tmp_path):
    assert bitatoms("pack", "table.csv", "-o", tmp_path / "quiet.zarr", "-q") == (0, "", "")
    stdout = json.loads(bitatoms("pack", "table.csv", "-o", tmp_path / "rows.zarr", "--json")[1])
    assert (stdout["rows"], stdout["columns"], stdout["ones"]) == (ROWS, COLUMNS, table.bits.count())
    assert stdout["about"]["source"] == "table.csv"


def test_pack_reads_any_format_with_options(bitatoms, table, tmp_path):
    ba.write(table, tmp_path / "table.npz")
    assert bitatoms("pack", tmp_path / "table.npz", "-o", tmp_path / "rows.zarr", "-q")[0] == 0
    assert ba.read(tmp_path / "rows.zarr") == table
    (tmp_path / "counts.csv").write_text("a,b,total\n3,0,3\n1,5,6\n")
    options = ["--binarize", "2", "--without", "total", "-q"]
    assert bitatoms("pack", tmp_path / "counts.csv", "-o", tmp_path / "counts.zarr", *options)[0] == 0
    packed = ba.read(tmp_path / "counts.zarr")
    assert (packed.columns, packed.to_dense().tolist()) == (("a", "b"), [[1, 0], [0, 1]])
    code, stdout, _ = bitatoms("show", tmp_path / "counts.zarr")
    assert code == 0
    assert "2 rows of 2 columns, packed, columns have names" in stdout
    assert "packed from counts.csv, read with --binarize 2.0\n" in stdout


def test_pack_from_the_standard_input(folder, table, tmp_path):
    """It is bytes, so this needs a process of its own."""
    command = [sys.executable, "-m", "bitatoms", "pack", "-", "-o", str(tmp_path / "rows.zarr"), "-q"]
    subprocess.run(command, input=(folder / "table.csv").read_bytes(), check=True)
    assert ba.read(tmp_path / "rows.zarr") == table


# --- fit and transform: the same as in memory


@pytest.mark.parametrize("how", [HOW, ["--max-atoms", "3", "--algebra", "or"]], ids=["by sample", "all rows"])
def test_fit_of_store_and_table_write_the_same_files(bitatoms, tmp_path, how):
    for data in ("table.csv", "rows.zarr"):
        place = tmp_path / data[:4]
        place.mkdir()
        options = ["--codes", place / "codes.zarr", "--atoms-to", place / "atoms.csv", "--report", place / "r.html"]
        options += ["--patterns", place / "p.md", "-q", "--jobs", "2"]
        assert bitatoms("fit", data, "-o", place / "m.npz", *how, *options) == (0, "", "")
    for name in ("m.npz", "atoms.csv", "p.md"):
        assert (tmp_path / "rows" / name).read_bytes() == (tmp_path / "tabl" / name).read_bytes()
    assert ba.read(tmp_path / "rows/codes.zarr") == ba.read(tmp_path / "tabl/codes.zarr")
    page = (tmp_path / "rows/r.html").read_text().replace("rows.zarr", "table.csv")
    assert page == (tmp_path / "tabl/r.html").read_text()


def test_a_sparse_store_gives_the_files_of_the_table(bitatoms, tmp_path):
    table = ba.Table.from_any(csr_array(table_with_bundles()))
    ba.write(table, tmp_path / "table.mtx")
    assert bitatoms("pack", tmp_path / "table.mtx", "-o", tmp_path / "rows.zarr", "-q") == (0, "", "")
    described = "rows.zarr: 1000 rows of 2100 columns, sparse, without names, 0.34% ones, "
    assert described in bitatoms("show", tmp_path / "rows.zarr")[1]
    shown = json.loads(bitatoms("show", tmp_path / "rows.zarr", "--json")[1])
    assert (shown["sparse"], shown["ones"]) == (True, table.data.count())
    for data in ("table.mtx", "rows.zarr"):
        name, how = tmp_path / data[:4], ("--algebra", "or", "-q", "--jobs", "1")
        assert bitatoms("fit", tmp_path / data, "-o", f"{name}.npz", "--codes", f"{name}.csv", *how) == (0, "", "")
        new = ("transform", f"{name}.npz", tmp_path / data, "-o", f"{name}.new.csv", "-q")
        assert bitatoms(*new) == (0, "", "")
    for ending in ("npz", "csv", "new.csv"):
        assert (tmp_path / f"rows.{ending}").read_bytes() == (tmp_path / f"tabl.{ending}").read_bytes()
    assert ba.load(tmp_path / "rows.npz").n_components_ == 8


def test_fit_of_store_describes_it_and_suggests_the_next_command(bitatoms, tmp_path):
    code, stdout, _ = bitatoms("fit", "rows.zarr", "-o", tmp_path / "m.npz", *HOW, "--max-memory", "100 MB")
    assert code == 0
    assert stdout.startswith("rows.zarr: 1201 rows of 70 columns, packed, rows and columns have names\n")
    assert "5 atoms (XOR) describe 1201 samples of 70 features" in stdout
    assert f"Next: bitatoms transform {tmp_path / 'm.npz'} rows.zarr -o codes.zarr --max-memory '100 MB'\n" in stdout
    assert json.loads(bitatoms("fit", "rows.zarr", *HOW, "--json")[1])["samples"] == ROWS


def test_transform_of_store_equals_that_of_table(bitatoms, tmp_path):
    for output in ("codes.zarr", "codes.csv"):
        written = []
        for data in ("table.csv", "rows.zarr"):
            path = tmp_path / data / output
            path.parent.mkdir(exist_ok=True)
            code, stdout, _ = bitatoms("transform", "model.npz", data, "-o", path)
            assert code == 0
            assert "codes of 1201 rows by 5 atoms, " in stdout
            written.append((ba.read(path), stdout.replace(data, "")))
        assert written[0] == written[1]
    assert Store(tmp_path / "rows.zarr/codes.zarr").about["source"] == "rows.zarr"
    assert bitatoms("transform", "model.npz", "rows.zarr")[1] == (tmp_path / "rows.zarr/codes.csv").read_text()


def test_soft_codes_of_a_store_are_those_of_the_table(bitatoms):
    of_table, of_store = (bitatoms("transform", "model.npz", data, "--soft") for data in ("table.csv", "rows.zarr"))
    assert of_table[0] == 0
    assert of_store[:2] == of_table[:2]


def test_model_remembers_options_of_packing(bitatoms, folder, tmp_path):
    (tmp_path / "counts.csv").write_text("a,b,c\n" + "5,0,3\n0,2,0\n" * 40)
    data, store = tmp_path / "counts.csv", tmp_path / "counts.zarr"
    assert bitatoms("pack", data, "-o", store, "--binarize", "2", "-q")[0] == 0
    assert bitatoms("fit", store, "-k", "1", "-o", tmp_path / "s.npz", "-q")[0] == 0
    assert bitatoms("fit", data, "-k", "1", "-o", tmp_path / "t.npz", "-q", "--binarize", "2")[0] == 0
    assert (tmp_path / "s.npz").read_bytes() == (tmp_path / "t.npz").read_bytes()
    code, stdout, stderr = bitatoms("transform", tmp_path / "s.npz", store)
    assert code == 0
    assert "Note:" not in stderr  # nothing is made of ones and zeros once more
    assert stdout == bitatoms("transform", tmp_path / "s.npz", data)[1] == "atom1\n" + "1\n0\n" * 40
    code, _, stderr = bitatoms("report", tmp_path / "s.npz", store, "-o", tmp_path / "r.html")
    assert (code, stderr) == (0, "")


def test_other_commands_read_a_store(bitatoms, folder, table, tmp_path):
    assert bitatoms("convert", "rows.zarr", tmp_path / "again.csv", "-q")[0] == 0
    assert (tmp_path / "again.csv").read_bytes() == (folder / "table.csv").read_bytes()
    for data in ("rows.zarr", "table.csv"):
        assert bitatoms("reconstruct", "model.npz", data, "-o", tmp_path / f"{data}.npz", "-q")[0] == 0
        assert bitatoms("report", "model.npz", data, "-o", tmp_path / f"{data}.html", "-q")[0] == 0
    assert ba.read(tmp_path / "rows.zarr.npz") == ba.read(tmp_path / "table.csv.npz")
    found = json.loads(bitatoms("show", "rows.zarr", "--json")[1])
    assert (found["rows"], found["columns"], found["row_names"], found["column_names"]) == (
        ROWS,
        COLUMNS,
        True,
        True,
    )


def test_show_states_whether_cells_of_a_store_are_unknown(bitatoms, tmp_path):
    bits = ba.BitMatrix.from_dense(np.eye(5, 9))
    for name, table, unknown in (("known", bits, False), ("unknown", bits.with_unknown(bits), True)):
        path = write_store(tmp_path / f"{name}.zarr", table).path
        assert (", some cells unknown" in bitatoms("show", path)[1]) == unknown
        assert json.loads(bitatoms("show", path, "--json")[1])["has_unknown"] == unknown


def test_rows_of_a_store_may_be_pictures(bitatoms, tmp_path):
    model = tmp_path / "m.npz"
    assert bitatoms("fit", "rows.zarr", *HOW, "--tile", "7x10", "-o", model, "-q")[0] == 0
    assert ba.load(model).as_model().picture.tile == (7, 10)


def test_plain_zarr_array_is_read(bitatoms, table, tmp_path):
    zarr.save_array(tmp_path / "array.zarr", table.to_dense())
    assert bitatoms("convert", tmp_path / "array.zarr", tmp_path / "array.npz", "-q")[0] == 0
    np.testing.assert_array_equal(ba.read(tmp_path / "array.npz").to_dense(), table.to_dense())
    code, stdout, _ = bitatoms("fit", tmp_path / "array.zarr", *HOW)
    assert code == 0
    assert f"{table.bits.density:.1%} ones, without names" in stdout


def test_packed_picture_gives_the_same_model(bitatoms, tmp_path):
    stripes = np.tile(np.repeat([[0, 1]], 4, axis=1), (50, 5)).astype(np.uint8)[:, :38]
    picture, store = tmp_path / "picture.pbm", tmp_path / "blocks.zarr"
    ba.write(stripes, picture)
    blocks = ["--blocks", "8x8"]
    assert bitatoms("pack", picture, *blocks, "-o", store, "-q")[0] == 0
    assert bitatoms("show", store)[1].endswith("packed from picture.pbm, read with --blocks 8x8\n")
    assert bitatoms("fit", store, "-k", "1", "--algebra", "xor", "-o", tmp_path / "s.npz", "-q")[0] == 0
    assert bitatoms("fit", picture, *blocks, "-k", "1", "--algebra", "xor", "-o", tmp_path / "p.npz", "-q")[0] == 0
    assert (tmp_path / "s.npz").read_bytes() == (tmp_path / "p.npz").read_bytes()


# --- interrupt and resume


@pytest.fixture
def interrupt_at(monkeypatch):
    """Return a function that makes the next fit raise KeyboardInterrupt at the n-th call of a progress method."""
    monkeypatch.setattr("bitatoms.rows.budget.chunk_rows", lambda *_: 192)
    monkeypatch.setattr("bitatoms.rows.store.StoreRows.save_interval", 0.0)

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


@pytest.mark.parametrize("data", ["rows.zarr", "table.csv"])
def test_interrupted_fit_resumes_to_the_same_file(bitatoms, interrupt_at, tmp_path, data):
    undisturbed, model, kept = tmp_path / "undisturbed.npz", tmp_path / "model.npz", tmp_path / "so far"
    assert bitatoms("fit", data, *HOW, "-o", undisturbed, "-q")[0] == 0
    command = ["fit", data, *HOW, "-o", model, "--checkpoint", kept, "--codes", tmp_path / "codes.csv"]
    n_rounds = len(ba.load(undisturbed).history_)
    n_searched = sum(row.rows < ROWS for row in ba.load(undisturbed).history_)
    stops = [("__call__", 2), ("__call__", n_searched + 1)]
    stops += [("update_rows", 3), ("update_rows", 5)] if data == "rows.zarr" else []
    assert n_rounds > n_searched + 1
    for number, (method, count) in enumerate(stops):
        interrupt_at(method, count)
        code, _, stderr = bitatoms(*command, *(["--resume"] if number else []))
        assert code == 130
        assert stderr.startswith("bitatoms: interrupted; ")
        assert f"; repeat the command with --resume to resume from {kept}\n" in stderr
        assert not (tmp_path / "codes.csv").exists()
    code, _, stderr = bitatoms(*command)
    assert (code, model.exists()) == (2, True)  # the best so far
    assert f"{kept}: this folder contains an unfinished fit; pass --resume to resume it" in stderr
    code, _, stderr = bitatoms(*command, "--resume", "--seed", "1")
    assert (code, "contains the fit of a different call: --seed was 0 and is 1" in stderr) == (2, True)
    for _ in range(2):  # also when it is done
        assert bitatoms(*command, "--resume", "-q") == (0, "", "")
        assert model.read_bytes() == undisturbed.read_bytes()
    assert sorted(path.name for path in kept.iterdir()) == ["lock", "state.npz"]


@pytest.mark.parametrize("data", ["rows.zarr", "table.csv"])
def test_interrupted_search_of_all_rows_resumes_to_the_same_file(bitatoms, interrupt_at, tmp_path, data):
    undisturbed, model, kept = tmp_path / "undisturbed.npz", tmp_path / "model.npz", tmp_path / "so far"
    command = ["fit", data, "-k", "3"]
    assert bitatoms(*command, "-o", undisturbed, "-q")[0] == 0
    interrupt_at("__call__", 2)
    command += ["-o", model, "--checkpoint", kept]
    code, _, stderr = bitatoms(*command)
    assert code == 130
    assert stderr.endswith(f"; repeat the command with --resume to resume from {kept}\n")
    assert "contains an unfinished fit; pass --resume to resume it" in bitatoms(*command)[2]
    assert bitatoms(*command, "--resume", "-q") == (0, "", "")
    assert model.read_bytes() == undisturbed.read_bytes()


def test_interrupt_while_codes_are_written_keeps_the_model(bitatoms, monkeypatch, tmp_path):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bitatoms.cli.commands.write_codes", stopped)
    files = [tmp_path / name for name in ("m.npz", "atoms.csv", "codes.zarr")]
    options = ["-o", files[0], "--atoms-to", files[1], "--codes", files[2]]
    code, _, stderr = bitatoms("fit", "rows.zarr", *HOW, *options)
    assert (code, stderr) == (130, f"bitatoms: interrupted; only {files[0]}, {files[1]} was written\n")
    assert [file.exists() for file in files] == [True, True, False]


def test_interrupt_after_packing_keeps_the_store(bitatoms, monkeypatch, table, tmp_path):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("bitatoms.cli.stores._count_ones", stopped)
    code, stdout, stderr = bitatoms("pack", "table.csv", "-o", tmp_path / "rows.zarr")
    assert (code, stdout) == (130, "")
    assert stderr.startswith(f"bitatoms: interrupted; {tmp_path / 'rows.zarr'} was written, but not read back")
    assert ba.read(tmp_path / "rows.zarr") == table


def test_progress_distinguishes_subsample_and_all_rows(monkeypatch):
    shown = []
    monkeypatch.setattr(SearchProgress, "update", lambda self, text, hint="": shown.append(text.rpartition(", ")[0]))
    progress = SearchProgress(20000, quiet=False, status=None, keeps_model=False)
    figures = dict.fromkeys(Round._fields, 0) | {"atoms": 7, "algebra": "xor"}
    progress(Round(**figures | {"move": "grow", "rows": 500, "bits": 5000}))
    progress.update_rows(5000)
    progress(Round(**figures | {"move": "pass 1 over all rows", "rows": 20000, "bits": 240000}))
    progress.update_rows(20000)
    assert shown == [
        "Searching 500 of 20000 rows: 7 atoms (XOR), 10.00 bits per row",
        "Processing all rows: 25% of 20000 rows",
        "Pass 1 over all rows: 7 atoms (XOR), 12.00 bits per row",
        "Processing all rows: 100% of 20000 rows; after pass 1: 7 atoms (XOR), 12.00 bits per row",
    ]


# --- invalid input

FIT = ["fit", "rows.zarr", *HOW]
INVALID = {
    "no amount": ([*FIT, "--max-memory", "lots"], "--max-memory must be an amount such as '500 MB', '2 GiB'"),
    "no memory": ([*FIT, "--max-memory", "0"], "--max-memory must be an amount"),
    "too little memory": ([*FIT, "--max-memory", "1 kB"], "--max-memory 1000 is too small for a search of 300 rows"),
    "too little for so many atoms": (
        ["fit", "rows.zarr", "--search-rows", "300", "-k", "5000", "--max-memory", "20MB"],
        "--max-memory 20000000 is too small for 5000 atoms",
    ),
    "too little to code": (
        ["transform", "model.npz", "rows.zarr", "-o", "c.zarr", "--max-memory", "1kB"],
        "1000 is too small",
    ),
    "a limit for what is read": (
        ["fit", "table.csv", "--max-memory", "1kB"],
        "--max-memory 1000 is too small for a search of",
    ),
    "a limit for what is coded whole": (
        ["transform", "model.npz", "table.csv", "--max-memory", "1kB"],
        "--max-memory 1000 is too small for",
    ),
    "nowhere to go on from": ([*FIT, "--resume"], "--resume requires --checkpoint, the folder to resume from"),
    "a checkpoint nowhere": ([*FIT, "--checkpoint", "no/where"], "no/where: there is no folder 'no'; create it first"),
    "a file as a checkpoint": (
        [*FIT, "--checkpoint", "table.csv"],
        "table.csv: this is a file, but a checkpoint",
    ),
    "a store as a checkpoint": (
        [*FIT, "--checkpoint", "rows.zarr"],
        "rows.zarr: this command already reads or writes this file",
    ),
    "no number of rows": (["fit", "rows.zarr", "--search-rows", "few"], "--search-rows is 'few'; pass an integer, all"),
    "too few rows": (["fit", "rows.zarr", "--search-rows", "1"], "--search-rows must be at least 2"),
    "the paper's search": (["fit", "rows.zarr", "--search", "paper"], "--search paper needs all rows in memory"),
    "transposed": ([*FIT, "--transpose"], "can be transposed only by bitatoms pack; omit --transpose"),
    "columns left out": ([*FIT, "--without", "item 1"], "can be left out only by bitatoms pack; omit --without"),
    "a threshold": ([*FIT, "--binarize", "3"], "a packed store contains only 0 and 1; omit --binarize"),
    "a header": (
        [*FIT, "--header"],
        "rows.zarr: --header applies to csv, tsv, xlsx, pairs, baskets, not to 'zarr'; omit it",
    ),
    "a tile that does not fit": ([*FIT, "--tile", "4x4"], "an image of 4 x 4 has 16 pixels"),
    "a store of others": (["fit", "others.zarr"], "others.zarr: the array has shape (3, 3, 3)"),
    "other columns": (["transform", "model.npz", "narrow.zarr"], "narrow.zarr has 2 columns, but the model"),
    "a damaged chunk": (
        ["fit", "damaged.zarr", *HOW, "-o", "m.npz"],
        "damaged.zarr: its chunk 'bits/c/0/0' is corrupt",
    ),
    "a damaged chunk, coded": (
        ["transform", "model.npz", "damaged.zarr", "-o", "c.zarr"],
        "damaged.zarr: its chunk 'bits",
    ),
    "no ending": (["pack", "table.csv", "-o", "rows.npz"], "rows.npz: a packed store is a folder; use the extension"),
    "a store on a stream": (["pack", "table.csv", "-o", "-"], "standard output: a store cannot be written to a stream"),
    "a store over itself": (
        ["pack", "rows.zarr", "-o", "rows.zarr"],
        "rows.zarr: this command already reads or writes this file",
    ),
    "nothing to pack": (["pack", "none.csv", "-o", "x.zarr"], "none.csv: there is no such file"),
    "nothing binary to pack": (
        ["pack", "counts.csv", "-o", "x.zarr"],
        "counts.csv: line 2, column 'b': 7 is",
    ),
    "too little memory to pack": (
        ["pack", "table.csv", "-o", "x.zarr", "--max-memory", "1kB"],
        "--max-memory 1000 is too small to pack a table; pass at least 50331648 bytes",
    ),
    "a tile to pack": (["pack", "table.csv", "-o", "x.zarr", "--tile", "7x10"], "pass --tile to bitatoms fit instead"),
    "no store to write": (["pack", "table.csv"], "--output"),
    "patterns of a store": (
        ["show", "rows.zarr", "--patterns", "p.md"],
        "rows.zarr: this is a packed store, not",
    ),
    "codes over the rows": (
        [*FIT, "--codes", "rows.zarr"],
        "rows.zarr: this command already reads or writes this file",
    ),
}


@pytest.fixture(scope="module")
def wrong(folder, table):
    """Add invalid stores and files to the folder."""
    (folder / "counts.csv").write_text("a,b\n1,7\n3,0\n")
    zarr.save_array(folder / "others.zarr", np.zeros((3, 3, 3)))
    ba.pack([[1, 0]], folder / "narrow.zarr")
    ba.pack(ba.Table(table.bits, None, table.columns[::-1]), folder / "turned.zarr")
    ba.pack(table, folder / "damaged.zarr")
    chunk = next(path for path in (folder / "damaged.zarr/bits/c").rglob("*") if path.is_file())
    spoilt = bytearray(chunk.read_bytes())
    spoilt[len(spoilt) // 2] ^= 0xFF
    chunk.write_bytes(spoilt)


@pytest.mark.parametrize("case", INVALID)
def test_invalid_input_is_reported_in_one_line_and_nothing_is_written(bitatoms, folder, wrong, case):
    before = sorted(file.name for file in folder.iterdir())
    arguments, part = INVALID[case]
    code, stdout, stderr = bitatoms(*arguments)
    assert code == 2
    assert part in " ".join(stderr.replace("│", " ").split())
    assert "Traceback" not in stderr + stdout
    assert sorted(file.name for file in folder.iterdir()) == before


def test_checkpoint_in_use_is_not_changed(bitatoms, tmp_path):
    with Checkpoint(tmp_path / "kept", {"n_samples": 1, "n_features": 1}, resume=False):
        code, _, stderr = bitatoms(*FIT, "--checkpoint", tmp_path / "kept")
    assert code == 2
    assert f"{tmp_path / 'kept'}: another fit is using this folder; wait until" in stderr


def test_outputs_that_exceed_memory_are_reported_before_the_fit(bitatoms, monkeypatch, tmp_path):
    def never(*arguments):
        raise AssertionError("it was learned")

    monkeypatch.setattr("bitatoms.estimators.BinaryDictionaryLearning.fit", never)
    small = [*FIT, "--max-memory", "30kB"]
    code, _, stderr = bitatoms(*small, "--report", tmp_path / "r.html")
    assert code == 2
    assert "rows.zarr: a report needs the entire table in memory" in stderr
    assert "more than half of --max-memory 30000" in stderr
    code, _, stderr = bitatoms(*small, "--codes", tmp_path / "c.csv")
    assert code == 2
    assert "c.csv: writing the codes of 1201 rows takes " in stderr
    assert "write them to a .zarr store" in stderr
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 30000)
    code, _, stderr = bitatoms(*FIT, "--report", tmp_path / "r.html")
    assert code == 2
    assert "more than half of the memory of this machine" in stderr


def test_max_memory_units():
    amounts = {"500MB": 500 * 10**6, "2 GiB": 2 << 30, "1.5G": 1_500_000_000, "123456": 123456, "7 b": 7, ".5kib": 512}
    assert {text: parse_memory_limit(text) for text in amounts} == amounts
    for text in ("", "much", "-5MB", "5 XB", "0.2", "1e9", "inf", "5iB", "5 MB B"):
        with pytest.raises(ValueError, match="max_memory must be an amount"):
            parse_memory_limit(text)


def test_help_mentions_the_options(bitatoms):
    for command, options in {
        "fit": ("--max-memory", "--checkpoint", "--resume", "--search-rows"),
        "transform": ("--max-memory",),
        "pack": ("--output", "--binarize", "--max-memory", "bitatoms pack big.csv.gz -o rows.zarr"),
    }.items():
        code, stdout, _ = bitatoms(command, "--help")
        assert code == 0
        assert [option for option in options if option not in stdout] == []
