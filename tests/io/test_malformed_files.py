"""Files that are broken, mislabelled or malicious, in every format, through the command line: one line, exit code 2,
and nothing written, followed or run."""

import gzip
import io
import json
import os
import pickle
import shutil
import struct
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.io.formats import FORMATS

pytest.importorskip("typer")

from bitatoms.cli.app import run

SNPS = 6
ROWS = tuple(f"person{row}" for row in range(11))
COLUMNS = tuple(f"rs{snp}:{allele}" for snp in range(SNPS) for allele in ("A", "AA"))  # which .bed takes as well
FIRST = np.random.default_rng(0).integers(0, 2, (len(ROWS), SNPS), np.uint8)
FIRST[0] = 1  # no column without a one, which lists of items would not tell of
X = np.stack([FIRST, FIRST & np.roll(FIRST, 3, axis=0) | (np.arange(11) == 0)[:, None]], axis=2).reshape(len(ROWS), -1)
BITS = ba.BitMatrix.from_dense(X)
WITHOUT_NAMES = ("npy", "fimi", "pbm")


class Payload:
    """Unpickled, it leaves a file behind."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


def table(format):
    """The table as a format can hold it."""
    if format in WITHOUT_NAMES:
        return ba.Table(BITS)
    return ba.Table(BITS, None if format == "baskets" else ROWS, COLUMNS)


@pytest.fixture(scope="session")
def good(tmp_path_factory):
    """Copies a good file of a format, and what lies beside it, into a folder; skips a format that is not installed."""
    folder = tmp_path_factory.mktemp("good")

    def copied(format, place):
        about = FORMATS[format]
        if about.library is not None and find_spec(about.library) is None:
            pytest.skip(f"{about.library} is not installed")
        name = f"table{about.extensions[0]}"
        if not (folder / name).exists():
            ba.write(table(format), folder / name)
        for beside in [name] + ["table.bim", "table.fam"] * (format == "bed"):
            copy = shutil.copytree if (folder / beside).is_dir() else shutil.copy
            copy(folder / beside, place / beside)
        return place / name

    return copied


@pytest.fixture
def convert(capsys, monkeypatch, tmp_path):
    """Converts a file; gives the exit code, what was said and complained, and what is new in the folder."""
    monkeypatch.chdir(tmp_path)

    def command(name, *arguments):
        before = set(tmp_path.rglob("*"))
        with pytest.raises(SystemExit) as ended:
            run(["convert", name, "made.npz", *arguments])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err, {path.name for path in set(tmp_path.rglob("*")) - before}

    return command


def assert_refused(outcome, name):
    """One line that begins with the name of the file, and nothing else happened."""
    code, said, complaint, new = outcome
    assert complaint.startswith(f"bitatoms: {name}: "), complaint
    assert "Traceback" not in complaint
    assert complaint.count("\n") == 1
    assert len(complaint) < 600
    assert (code, said, new) == (2, "", set())


def assert_read(outcome):
    """The file can be read, as far as it goes."""
    code, _, complaint, new = outcome
    assert (code, complaint, new) == (0, "", {"made.npz"})


def largest(path):
    """The file that holds the bits: of a store, the largest one in it."""
    return (
        path if path.is_file() else max(path.rglob("c/**/*"), key=lambda file: file.is_file() and file.stat().st_size)
    )


def rewrite(path, change):
    """Change the bytes of the file that holds the bits."""
    file = largest(path)
    file.write_bytes(change(file.read_bytes()))


# Where a file is cut off. Lists of items do not tell that one is missing, nor does text of its last end of a line; and
# the first byte of our CSV is a comma, as of a table without a one.
CUTS = {"its first byte left": 1, "a third left": 1 / 3, "most of it left": 0.9, "a byte lost": -1}
WHOLE_ENOUGH = {
    *((format, cut) for format in ("fimi", "baskets") for cut in CUTS),
    *((format, "a byte lost") for format in ("csv", "tsv", "mtx")),
    *((format, "its first byte left") for format in ("csv", "tsv")),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_cut_off_is_refused(good, convert, tmp_path, format, cut):
    path, length = good(format, tmp_path), CUTS[cut]
    rewrite(path, lambda data: data[: int(len(data) * length) if isinstance(length, float) else length])
    outcome = convert(path.name)
    if (format, cut) in WHOLE_ENOUGH:
        assert_read(outcome)
    else:
        assert_refused(outcome, path.name)


# What can be read as something else than it is: text may be lists of names, and what separates cells is told from it.
TAKEN_FOR = {("csv", "baskets"), ("tsv", "baskets"), ("fimi", "baskets"), ("tsv", "csv")}


@pytest.mark.parametrize("content", FORMATS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_file_of_another_format_under_this_ending_is_refused(good, convert, tmp_path, format, content):
    if format == content:
        return
    (tmp_path / "elsewhere").mkdir()
    found, path = good(content, tmp_path / "elsewhere"), tmp_path / f"table{FORMATS[format].extensions[0]}"
    found.rename(path)
    outcome = convert(path.name)
    if (content, format) in TAKEN_FOR:
        assert_read(outcome)
    else:
        assert_refused(outcome, path.name)


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_file_is_refused(good, convert, tmp_path, format):
    path = good(format, tmp_path)
    rewrite(path, lambda data: b"")
    assert_refused(convert(path.name), path.name)


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_is_refused(convert, tmp_path, format):
    path = tmp_path / f"table{FORMATS[format].extensions[0]}"
    path.mkdir()
    assert_refused(convert(path.name), path.name)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_may_not_be_read_is_refused(good, convert, tmp_path, format):
    path = good(format, tmp_path)
    largest(path).chmod(0)
    assert_refused(convert(path.name), path.name)


@pytest.mark.parametrize("protocol", [0, 5])
@pytest.mark.parametrize("format", [format for format in FORMATS if format != "zarr"])
def test_a_pickle_is_never_loaded_whatever_its_ending(good, convert, tmp_path, format, protocol):
    path = good(format, tmp_path)
    path.write_bytes(pickle.dumps(Payload(), protocol))
    outcome = convert(path.name)
    assert not (tmp_path / "unpickled").exists()
    if (format, protocol) == ("baskets", 0):  # which is text
        assert_read(outcome)
    else:
        assert_refused(outcome, path.name)


def npy(array, **options):
    """The bytes of an .npy file."""
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npz(**members):
    """The bytes of an .npz file of such members, arrays or bytes as they are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content if isinstance(content, bytes) else npy(content))
    return file.getvalue()


def turned(array):
    """The bytes of an .npy file that says the other byte order than it has."""
    data = npy(array.astype("<i8"))
    assert b"<i8" in data
    return data.replace(b"<i8", b">i8")


def claimed(shape, n_bytes=1000):
    """An .npy file that says it has this shape."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(n_bytes)


def about_changed(data, **changes):
    """One of our .npz files that says something else of itself."""
    with np.load(io.BytesIO(data)) as file:
        members = dict(file)
    about = json.loads(members["bitatoms"].tobytes()) | changes
    return npz(**members | {"bitatoms": np.frombuffer(json.dumps(about).encode(), np.uint8)})


def text(old, new):
    """Puts other text in the place of some."""

    def change(path):
        data = path.read_bytes()
        assert old in data
        path.write_bytes(data.replace(old, new, 1))

    return change


def content(data):
    """Puts other bytes in the place of all."""
    return lambda path: path.write_bytes(data)


def changed(change):
    """Puts what is made of the bytes in their place."""
    return lambda path: path.write_bytes(change(path.read_bytes()))


def beside(ending, change):
    """Changes the file of this ending that lies beside."""
    return lambda path: change(path.with_suffix(ending))


def arrow(columns):
    """A Parquet or Feather file of these columns."""

    def change(path):
        import pyarrow as pa
        from pyarrow import feather, parquet

        write = parquet.write_table if path.suffix == ".parquet" else feather.write_feather
        write(pa.Table.from_arrays([pa.array(values) for _, values in columns], [name for name, _ in columns]), path)

    return change


def hdf(change):
    """Changes an .h5ad file by what h5py gives of it."""

    def changed(path):
        import h5py

        with h5py.File(path, "a") as file:
            change(file)

    return changed


def replaced(name, **new):
    """Puts another array into the place of one."""

    def change(file):
        del file[name]
        file.create_dataset(name, **new)

    return hdf(change)


def linked(name, target):
    """Puts a link to another file into the place of an element of an .h5ad file."""

    def change(file):
        import h5py

        del file[name]
        file[name] = h5py.ExternalLink(target, "/X")

    return hdf(change)


def store(value=None, **options):
    """A store that is an array as zarr writes it, with this value, if there is one, in all cells."""

    def change(path):
        import zarr

        shutil.rmtree(path)
        array = zarr.create_array(path, **{"shape": (4, 4), "chunks": (4, 4), "dtype": "uint8"} | options)
        if value is not None:
            array[:] = value

    return change


def metadata(old, new, *folders):
    """Changes what a store, or an array in it, says of itself."""

    def change(path):
        text(old, new)(path.joinpath(*folders, "zarr.json"))

    return change


def led_out(path):
    """A chunk of a store that lies elsewhere."""
    chunk = largest(path)
    shutil.move(chunk, path.parent / "elsewhere")
    chunk.symlink_to(path.parent / "elsewhere")


MTX = b"%%MatrixMarket matrix coordinate integer general\n2 2 2\n"
LONG = gzip.compress(b"0" * (5 << 20), 9)  # one line, were lines so long
TWO = np.where(np.eye(5, dtype=np.int32), 2, 0)
SPARSE = {"format": np.array(b"csr"), "shape": np.array([3, 4]), "data": np.ones(3), "indptr": np.arange(4)}

BAD = {
    "csv": {
        "not binary": text(b",1", b",2"),
        "ragged": text(b",1", b",1,1"),
        "a name twice": text(b"rs1:A,", b"rs0:A,"),
        "wide characters": changed(lambda data: data.decode().encode("utf-16-be")),
        "a bomb": content(LONG),
        "an open quote": text(b"person5", b'"person5'),
    },
    "npy": {
        "not binary": content(npy(TWO)),
        "the other byte order": content(turned(TWO // 2)),
        "a bomb": content(claimed((10**9, 10**9))),
        "a bomb of nothing": content(claimed((10**15, 0), 0)),
        "negative lengths": content(claimed((-1, -1000))),
        "three dimensions": content(npy(np.zeros((2, 2, 2)))),
        "objects": content(npy(np.array([[Payload()]]), allow_pickle=True)),
    },
    "npz": {
        "not binary": content(npz(X=TWO)),
        "the other byte order": content(npz(X=turned(TWO // 2))),
        "ragged": changed(lambda data: about_changed(data, rows=list(ROWS[:-1]))),
        "a name twice": changed(lambda data: about_changed(data, columns=[*COLUMNS[:-1], "rs0:A"])),
        "names that are numbers": changed(lambda data: about_changed(data, columns=list(range(len(COLUMNS))))),
        "a picture that does not fit": changed(lambda data: about_changed(data, picture=[[5, 5], None])),
        "a newer version": changed(lambda data: about_changed(data, version=99)),
        "a bomb": content(npz(X=bytes(1 << 24))),
        "a bomb in its claims": content(npz(X=claimed((10**9, 10**9)))),
        "more rows than memory": changed(lambda data: about_changed(data, n_rows=10**14)),
        "objects": content(npz(X=npy(np.array([[Payload()]]), allow_pickle=True))),
        "sparse, beyond its shape": content(npz(**SPARSE, indices=np.array([0, 1, 4]))),
        "sparse, negative": content(npz(**SPARSE, indices=np.array([0, 1, -4]))),
        "sparse, the other byte order": content(npz(**SPARSE, indices=turned(np.arange(3)))),
        "sparse, objects": content(npz(**SPARSE, indices=npy(np.array([Payload()] * 3), allow_pickle=True))),
        "sparse, twice the same": content(npz(**SPARSE | {"indptr": [0, 3, 3, 3]}, indices=np.array([1, 1, 1]))),
    },
    "parquet": {
        "not binary": arrow([("a", [0, 1, 2])]),
        "a name twice": arrow([("a", [0, 1]), ("a", [1, 0])]),
        "missing": arrow([("a", [True, None]), ("b", [True, False])]),
        "lists": arrow([("a", [[1], [0]])]),
        "dates": arrow([("a", np.array(["2020-01-01", "2020-01-02"], "datetime64[s]"))]),
        "no footer": changed(lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1"),
    },
    "mtx": {
        "not binary": content(MTX + b"1 1 1\n2 2 2\n"),
        "ragged": content(MTX + b"1 1 1\n2 2\n"),
        "a name twice": text(b'"rs1:A"', b'"rs0:A"'),
        "beyond its shape": content(MTX + b"1 1 1\n3 2 1\n"),
        "from 0 on": content(MTX + b"0 0 1\n1 1 1\n"),
        "too many entries": content(MTX + b"1 1 1\n1 2 1\n2 2 1\n"),
        "the same entry twice": content(MTX + b"1 1 1\n1 1 1\n"),
        "wide characters": changed(lambda data: data.decode().encode("utf-16-le")),
        "a bomb": content(MTX.replace(b"2 2 2", b"999999999999999 999999999999999 0")),
        "a bomb of text": content(gzip.compress(MTX + b"0" * (5 << 20), 9)),
    },
    "fimi": {
        "negative": content(b"1 2\n-3 4\n"),
        "not whole": content(b"1 2\n3.5 4\n"),
        "names": content(b"1 2\nmilk bread\n"),
        "too large": content(b"1 2\n99999999999999999999\n"),
        "wide characters": content("1 2\n3\n".encode("utf-16")),
        "a bomb": content(LONG),
    },
    "baskets": {
        "an open quote": content(b'a,b\nc,"d\n'),
        "wide characters": content("a,b\nc\n".encode("utf-16")),
        "a bomb": content(LONG),
    },
    "pbm": {
        "not binary": content(b"P1\n2 2\n0 1 2 0\n"),
        "ragged": content(b"P1\n2 2\n0 1\n0\n"),
        "too much": changed(lambda data: data + b"\0"),
        "gray": content(b"P5\n2 2\n255\n" + bytes(4)),
        "no pixels": content(b"P4\n0 5\n"),
        "a bomb": content(b"P4\n999999999 999999999\n" + bytes(100)),
        "a packed bomb": content(gzip.compress(b"P4\n999999999 999999999\n" + bytes(1 << 20))),
    },
    "h5ad": {
        "not binary": replaced("X", data=TWO),
        "of another size": replaced("X", data=np.ones((3, 3), np.float32)),
        "the other byte order": replaced("X", data=X.astype("<f4").view(">f4")),
        "a bomb": replaced("X", shape=(10**9, 10**7), chunks=(1000, 1000), dtype="f4"),
        "a link to another file": linked("X", "other.h5ad"),
        "a link behind which are names": linked("var", "other.h5ad"),
        "values in another file": replaced("X", shape=X.shape, dtype="u1", external=[("other.bin", 0, X.size)]),
        "a name twice": hdf(lambda file: file["var/_index"].__setitem__(1, "rs0:A")),
        "objects": replaced("X", data=np.void(pickle.dumps(Payload()))),
    },
    "bed": {
        "missing": changed(lambda data: data[:3] + b"\x55" + data[4:]),
        "ragged": beside(".fam", text(b" 0 0 0 0", b" 0 0 0")),
        "a row lost": beside(".fam", changed(lambda data: data.split(b"\n", 5)[5])),
        "a name twice": beside(".bim", text(b"rs1", b"rs0")),
        "the other byte order": changed(lambda data: b"\x1b\x6c" + data[2:]),
        "the other order": changed(lambda data: data[:2] + b"\0" + data[3:]),
        "no names": beside(".bim", lambda path: path.unlink()),
        "a list of places": content(b"chr1\t100\t200\n"),
        "a bomb": beside(".fam", changed(lambda data: data * 300)),
    },
    "zarr": {
        "not binary": store(value=2),
        "ragged": metadata(b'"n_cols": 12', b'"n_cols": 20'),
        "a name twice": metadata(b'"rs1:A"', b'"rs0:A"'),
        "the other byte order": store(dtype=">i4", value=1 << 24),
        "a bomb": store(shape=(10**9, 10**7), chunks=(1000, 1000)),
        "a link to another file": led_out,
        "a strange codec": metadata(b'"zstd"', b'"pickle"', "bits"),
        "a lost chunk": lambda path: largest(path).unlink(),
        "not complete": metadata(b'"complete": true', b'"complete": false'),
    },
}
BAD["tsv"] = BAD["csv"] | {
    "not binary": text(b"\t1", b"\t2"),
    "ragged": text(b"\t1", b"\t1\t1"),
    "a name twice": text(b"rs1:A\t", b"rs0:A\t"),
}
BAD["feather"] = BAD["parquet"] | {"no footer": changed(lambda data: data[:-10] + b"\xff\xff\xff\x7fARROW1")}


@pytest.mark.parametrize(("format", "kind"), [(format, kind) for format in FORMATS for kind in BAD[format]])
def test_a_bad_file_is_refused_in_one_line(good, convert, monkeypatch, tmp_path, format, kind):
    monkeypatch.setattr(
        "bitatoms.io.text_numbers._LONGEST_LINE", 1 << 22
    )  # so that what is longer need not be that long
    (tmp_path / "other.bin").write_bytes(X.tobytes())
    path = good(format, tmp_path)
    if format == "h5ad":
        shutil.copy(path, tmp_path / "other.h5ad")
    BAD[format][kind](path)
    assert_refused(convert(path.name), path.name)
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize(
    ("about", "arrays"),
    [
        ({"codelength": 5}, {}),
        ({"picture": []}, {}),
        ({"picture": [[], None]}, {}),
        ({"columns": ["\ud800"] * len(COLUMNS)}, {}),
        ({"reading": {"blocks": 5}}, {}),
        ({"reading": {"binarize": "0"}}, {}),
        ({"reading": {"missing": "guess"}}, {}),
        ({"reading": 7}, {}),
        ({"max_atoms_per_sample": 2**70}, {}),
        ({"residual_limit": -1}, {}),
        ({"n_samples": 2**70}, {}),
        ({"n_features": -3}, {}),
        ({}, {"uses": npy(np.array([Payload()] * 2), allow_pickle=True)}),
        ({}, {"atoms": claimed((10**9, 10**9))}),
    ],
)
@pytest.mark.parametrize("command", ["show MODEL", "transform MODEL table.csv -o made.csv"])
def test_a_bad_model_is_refused_in_one_line(capsys, monkeypatch, tmp_path, good, model, command, about, arrays):
    monkeypatch.chdir(tmp_path)
    good("csv", tmp_path)
    with np.load(model) as file:
        members = dict(file)
    entries = json.loads(members["bitatoms"].tobytes()) | about
    (tmp_path / "model.npz").write_bytes(
        npz(**members | arrays | {"bitatoms": np.frombuffer(json.dumps(entries).encode(), np.uint8)})
    )
    if about.get("columns"):
        command = "show MODEL --patterns patterns.md"  # which is text, and this is none
    before = set(tmp_path.rglob("*"))
    with pytest.raises(SystemExit) as ended:
        run(command.replace("MODEL", "model.npz").split())
    said = capsys.readouterr()
    new = {path.name for path in set(tmp_path.rglob("*")) - before}
    name = "patterns.md" if about.get("columns") else "model.npz"
    assert_refused((ended.value.code, said.out, said.err, new), name)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A model of the table."""
    path = tmp_path_factory.mktemp("model") / "model.npz"
    ba.BinaryDictionaryLearning(n_components=2, algebra="or", random_state=0).fit(table("csv")).save(path)
    return path


def test_members_of_an_archive_are_never_unpacked_to_where_they_say(convert, tmp_path):
    (tmp_path / "table.npz").write_bytes(npz(**{"../../outside": X}))
    assert_read(convert("table.npz"))
    assert ba.read(tmp_path / "made.npz").bits == BITS
    assert not list(Path(tmp_path).parent.parent.glob("outside*"))


@pytest.mark.parametrize("format", FORMATS)
def test_the_good_files_are_good(good, convert, tmp_path, format):
    assert_read(convert(good(format, tmp_path).name))
    again, expected = ba.read(tmp_path / "made.npz"), table(format)
    if format == "baskets":  # in the order in which they come first, which is that of the first row
        assert again.columns == COLUMNS
    assert again == expected


def test_nothing_is_written_over_what_is_read_nor_two_things_to_one_place(capsys, monkeypatch, tmp_path, good, model):
    monkeypatch.chdir(tmp_path)
    good("csv", tmp_path)
    shutil.copy(model, "model.npz")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for command, name in (
        ("fit table.csv -o table.csv", "table.csv"),
        ("fit table.csv -o ./model.csv --codes model.csv", "model.csv"),
        ("fit table.csv --codes new.csv --atoms-to new.csv", "new.csv"),
        ("fit table.csv -o -", "standard output"),
        ("transform model.npz table.csv -o model.npz", "model.npz"),
        ("transform model.npz table.csv -o table.csv", "table.csv"),
        ("reconstruct model.npz --codes table.csv -o table.csv", "table.csv"),
        ("report model.npz table.csv -o table.csv", "table.csv"),
        ("report model.npz table.csv -o -", "standard output"),
        ("show model.npz --atoms-to model.npz", "model.npz"),
    ):
        with pytest.raises(SystemExit) as ended:
            run(command.split())
        said = capsys.readouterr()
        assert_refused((ended.value.code, said.out, said.err, set()), name)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_of_files_and_columns_are_told_as_they_are(convert, tmp_path):
    (tmp_path / "row_names.csv").write_text("max_time,n_jobs\n" + "1,2\n" * 3)
    complaint = convert("row_names.csv")[2]
    assert complaint.startswith("bitatoms: row_names.csv: line 2, column 'n_jobs': 2 is neither 0 nor 1")


@pytest.mark.parametrize("columns", [("x", "y"), ("0", "1"), ("a", "x"), ("NA", ""), ("1",), ('say "x"', "yes")])
@pytest.mark.parametrize("rows", [None, ("ann", "bob"), ("1", "0"), ("x", "x"), ("", "a,b")])
@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_names_that_could_be_ones_and_zeros_come_back_from_text(tmp_path, format, columns, rows):
    for ones in (0, 5, 6, 15):
        bits = [[ones >> place & 1 for place in range(row, row + len(columns))] for row in (0, len(columns))]
        named = ba.Table(ba.BitMatrix.from_dense(bits), rows, columns)
        ba.write(named, tmp_path / f"table.{format}")
        assert ba.read(tmp_path / f"table.{format}") == named


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        (("", "b"), "the first column has no name"),
        (("a\rb", "b"), "keeps no name such as 'a\\rb'"),
        (("a", "b\0"), "keeps no name such as 'b\\x00'"),
        (("a", "\ud800"), "which cannot be encoded"),
    ],
)
def test_names_that_text_cannot_keep_are_refused(tmp_path, columns, part):
    with pytest.raises(ba.FileError) as refused:
        ba.write(ba.Table(ba.BitMatrix.from_dense([[1, 0]]), None, columns), tmp_path / "table.csv")
    assert part in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_a_missing_value_is_no_one_also_where_zeros_are(tmp_path):
    (tmp_path / "dense.csv").write_text("a,b\nnan,0\n-2,3\n")
    np.save(tmp_path / "dense.npy", [[np.nan, 0], [-2, 3]])
    (tmp_path / "sparse.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 nan\n2 1 -2\n2 2 3\n"
    )
    for file in tmp_path.iterdir():
        table = ba.read(file, binarize=-1, missing="zero")
        np.testing.assert_array_equal(table.to_dense(), [[0, 1], [0, 1]])


def test_text_is_told_apart_where_it_is_easily_mistaken(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\nx,x,\nx,,\n")  # no names of rows, which R leaves out of the header, but an end to each line
    assert ba.read(path) == ba.Table(ba.BitMatrix.from_dense([[1, 1], [1, 0]]), None, ["a", "b"])
    path.write_text("a,b\ninf,0\n1,3\n")
    with pytest.raises(ba.FileError, match="line 2, column 'a': 'inf' is not a finite number"):
        ba.read(path, binarize=0)
    path.write_text('"a"::"b"\n1::0\n')
    with pytest.raises(ba.FileError, match="what separates cells is one character"):
        ba.read(path, separator="::")
