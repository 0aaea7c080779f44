"""Files of numbers of copies of an allele, 0, 1 and 2, that are not files of genotypes."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.errors import InputWarning
from support.commands import runner
from support.files import assert_read_error
from support.formats import use_small_chunks
from support.genotypes import variants

pytestmark = pytest.mark.usefixtures("few_trials")
pd = pytest.importorskip("pandas")


def make_frame(n_rows=40, n_variants=35):
    """Return copies of two ancestors each, with a missing one; together more than 64 columns of bits."""
    random = np.random.default_rng(0)
    ancestors = random.integers(0, 2, (3, n_variants))
    copies = ancestors[random.integers(0, 3, (2, n_rows))].sum(axis=0).astype(float)
    copies[1, 2] = np.nan
    names = [f"rs{number}" for number in range(n_variants)]
    return pd.DataFrame(copies, [f"s{number}" for number in range(n_rows)], names)


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def expected(frame):
    return ba.Table.from_any(frame, dosage=True)


@pytest.fixture(scope="module")
def model(expected):
    return learn(expected)


def test_copies_of_known_alleles_and_haplotypes(frame):
    """A data frame does not state which allele is counted, so that the advice is not to pass one."""
    table = ba.datasets.genotypes(20, 5)
    model = learn(table, 1)
    message = rf"5 features, .* 10 .* copies of '{table.columns[0]}', .*, in this order, pass Table\.from_any.*\.bits$"
    with pytest.raises(ba.InputError, match=message):
        model.transform(table.to_dosages())
    with pytest.raises(ValueError, match="5 features"), pytest.warns(UserWarning, match="feature names"):
        model.transform(ba.BitMatrix.from_dense(np.eye(5)))
    about = variants(2).updated(copies=np.array([1, 1]))
    table = ba.Table(ba.BitMatrix.from_dense(np.eye(2)), columns=["rs0:G", "rs1:T"], column_data=about)
    with pytest.raises(ba.InputError, match="no column that the model was fitted on"):
        learn(table, 1).transform(pd.DataFrame({"rs0": [0, 1], "rs1": [1, 0]}))


def write_frame(frame, path):
    """Write a frame in the format of a path; a text file has integers."""
    if path.suffix == ".csv":
        frame.astype("Int64").to_csv(path)
    elif path.suffix == ".tsv":
        frame.to_csv(path, sep="\t", na_rep="NA")  # 0.0, 1.0 and 2.0
    elif path.suffix == ".xlsx":
        frame.to_excel(path)
    else:
        (frame.to_parquet if path.suffix == ".parquet" else frame.to_feather)(path)
    return path


@pytest.mark.parametrize("extension", [".csv", ".tsv", ".xlsx", ".parquet", ".feather"])
@pytest.mark.filterwarnings("ignore:.*1 missing value is read as an unknown cell")
def test_files_are_read_as_data_frames_are(tmp_path, monkeypatch, frame, expected, extension):
    path = write_frame(frame, tmp_path / f"copies{extension}")
    table = ba.read(path, dosage=True)
    assert table == expected
    assert table.column_data == expected.column_data
    assert ba.read(path, dosage=True, missing="zero") == ba.Table.from_any(frame, dosage=True, missing="zero")
    use_small_chunks(monkeypatch)  # a few columns at a time
    path = write_frame(make_frame(5, 130), tmp_path / f"wide{extension}")
    assert ba.read(path, dosage=True) == ba.Table.from_any(make_frame(5, 130), dosage=True)


def test_variants_may_be_lines(tmp_path, frame, expected):
    path = write_frame(frame.T, tmp_path / "variants.csv")
    with pytest.warns(InputWarning, match="1 missing value"):
        assert ba.read(path, dosage=True, transpose=True) == expected
    pytest.importorskip("zarr")
    with pytest.warns(InputWarning, match="1 missing value"):
        ba.pack(path, tmp_path / "rows.zarr", dosage=True, transpose=True)
    ba.pack(frame, tmp_path / "frame.zarr", dosage=True)
    ba.pack(iter([frame[:30], frame[30:]]), tmp_path / "frames.zarr", dosage=True)
    for name in ("rows", "frame", "frames"):
        with pytest.warns(InputWarning, match="2 missing values"):
            assert ba.read(tmp_path / f"{name}.zarr") == expected


def test_numbers_are_rounded_and_others_are_errors(file):
    path = file("id,a,b\n7001,0.2,1.9\n7002,,0.6\n7003,?,1\n")  # numbers of samples are names
    with pytest.warns(InputWarning, match="2 missing values are read as unknown cells"):
        table = ba.read(path, dosage=True)
    assert table.row_names == ("7001", "7002", "7003")
    np.testing.assert_array_equal(table.to_dense(float), [[0, 0, 1, 1], [np.nan, np.nan, 1, 0], [np.nan, np.nan, 1, 0]])
    missing = "2 values are missing, the first at line 3, column 'a'"
    assert_read_error(path, missing, dosage=True, missing="refuse")
    with pytest.warns(InputWarning, match="1 missing value"):  # a blank cell is not 0, even if no cell is 0
        assert ba.read(file("a,b\n1,\n2,1\n"), dosage=True).bits.n_unknown == 2
    for cell in ("3", "-1", "yes", "inf"):
        problem = (
            f"line 3, column 'b': '{cell}' is not a number of copies, 0, 1 or 2; a missing genotype is blank or NA"
        )
        assert_read_error(file(f"id,a,b\ns,0,2\nt,1,{cell}\n"), problem, dosage=True)
    path = file("a,b\n0,2\n")
    for other in ({"binarize": 0}, {"long": "a,b"}, {"categories": True}):
        assert_read_error(path, "dosage=True", "cannot be combined with", dosage=True, **other)
    advice = "2 is neither 0 nor 1; for counts, pass binarize=0", "allele (0, 1 and 2), pass dosage=True"
    assert_read_error(path, "line 2, column 'b'", *advice)
    with pytest.raises(ba.InputError, match=r"for counts, pass binarize=0 .*pass Table.from_any\(X, dosage=True\)"):
        ba.BinaryDictionaryLearning(algebra="xor").fit([[0, 2], [1, 1]])
    path = file(b"", "bits.npz")
    assert_read_error(path, "dosage applies to csv, tsv, xlsx, parquet, feather", dosage=True)


def test_a_model_codes_copies(tmp_path, frame, expected, model):
    codes = model.transform(expected)
    path = write_frame(frame, tmp_path / "copies.csv")
    for rows in (frame, frame.iloc[:, ::-1], expected, expected.to_pandas()):
        np.testing.assert_array_equal(model.transform(rows), codes)
    with pytest.warns(InputWarning, match="1 missing value"):
        np.testing.assert_array_equal(model.transform(path), codes)
    ba.write(expected, tmp_path / "bits.csv")  # one column of 0 and 1 per number of copies
    with pytest.warns(InputWarning, match="2 missing values"):
        np.testing.assert_array_equal(model.transform(tmp_path / "bits.csv"), codes)
    ba.write_report(model, frame, tmp_path / "report.html")
    problem = r"35 features, .* 70 .*'rs4' and 30 more, .* frame .*dosage=True\)\.bits"
    for X in (frame.to_numpy(), frame.to_numpy().tolist(), frame.set_axis(range(35), axis=1)):
        with pytest.raises(ba.InputError, match=problem):
            model.transform(X)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            np.testing.assert_array_equal(model.transform(ba.Table.from_any(X, dosage=True).bits), codes)
    for call, message in (
        (lambda: model.transform(frame + 1), r"more than 2 at row 0, column 10 \('rs10'\); numbers"),
        (
            lambda: ba.BinaryDictionaryLearning(algebra="xor").fit(frame),
            r"first: 2 at row 0, column 10 \('rs10'\)\); for counts",
        ),
    ):
        with pytest.raises(ba.InputError, match=message):
            call()


def test_columns_of_copies_are_matched_by_name(tmp_path, frame, expected, model):
    both = expected.to_pandas().assign(rs1="a column that is named as a variant")
    with pytest.warns(InputWarning, match="ignored 1 column .*: 'rs1'"):
        np.testing.assert_array_equal(model.transform(both), model.transform(expected))
    other = frame.drop(columns="rs3").assign(ill="yes")
    other.to_csv(tmp_path / "other.csv")
    note = "ignored 1 column .*: 'ill'; 1 absent column is unknown: 'rs3'"
    with pytest.warns(InputWarning, match=note):
        codes = model.transform(other)
    with pytest.warns(InputWarning, match="1 missing value"), pytest.warns(InputWarning, match=note):
        np.testing.assert_array_equal(model.transform(tmp_path / "other.csv"), codes)


def of_dtype(frame, name):
    """Return a frame of another library or dtype, and the dtype of its completed columns."""
    if name.startswith("polars"):
        pl = pytest.importorskip("polars")
        return pl.from_pandas(frame.astype("Int64" if name.endswith("Int64") else float)), getattr(pl, name[7:])
    return frame.astype(pd.SparseDtype(float) if name == "sparse" else name), None


@pytest.mark.parametrize("name", ["float32", "Int64", "object", "category", "sparse", "polars Int64", "polars Float64"])
def test_completed_frames_of_copies_are_frames_of_copies(frame, expected, model, name):
    filled = model.complete(expected).to_dosages()
    incomplete, dtype = of_dtype(frame.iloc[:, ::-1], name)
    completed = model.complete(incomplete)
    assert type(completed) is type(incomplete)
    assert list(completed.columns) == list(frame.columns)
    np.testing.assert_array_equal(completed.to_numpy().astype(float), filled)
    if dtype is not None:
        assert set(completed.dtypes) == {dtype}
        return
    assert completed.index.equals(frame.index)
    types = incomplete[frame.columns].dtypes
    if name == "category":  # the number may be none of the categories
        types["rs2"] = object
    assert list(completed.dtypes) == list(types)


def test_known_copies_stay_as_they_are(frame, expected, model):
    given = frame.clip(0.25, 1.75).drop(columns="rs3").assign(ill="yes")  # probabilities, rounded only for the model
    given["rs4"] = (frame["rs4"] > 0).astype("boolean").mask(frame.index == "s5")
    with pytest.warns(InputWarning, match="ignored 1 column .*: 'ill'; 1 absent column is unknown: 'rs3'"):
        completed = model.complete(given)
    assert list(completed.columns) == list(frame.columns)
    assert set(completed["rs3"]) <= {0, 1, 2}
    assert completed["rs4"].dtype == "UInt8"
    assert not completed.isna().any(axis=None)
    for name in given.columns.drop("ill"):
        known = given[name].notna()
        assert completed[name][known].tolist() == given[name][known].tolist()
    pa = pytest.importorskip("pyarrow")
    table = model.complete(pa.Table.from_pandas(frame))
    pd.testing.assert_frame_equal(table.to_pandas(), model.complete(frame))
    assert ba.Encoding.of(model).decode(model.complete(expected)) == model.complete(frame).to_dict("list")
    np.testing.assert_array_equal(expected.to_dosages(), frame)
    assert expected[2:].to_dosages().dtype == np.uint8
    np.testing.assert_array_equal(ba.Table.from_any(expected.to_pandas()).to_dosages(), frame)
    with pytest.raises(ba.InputError, match=r"no numbers of copies.*dosage=True"):
        ba.Table.from_any([[0, 1]]).to_dosages()


def test_copies_without_names(tmp_path, frame):
    copies = frame.fillna(0).to_numpy()
    table = ba.Table.from_any(copies, dosage=True)
    model = learn(table)
    codes = model.transform(table)
    np.testing.assert_array_equal(model.transform(copies), codes)
    incomplete = frame.to_numpy()
    filled = model.complete(ba.Table.from_any(incomplete, dosage=True)).to_dosages()
    unnamed, masked = frame.set_axis(range(35), axis=1), np.ma.array(copies.astype(int), mask=np.isnan(incomplete))
    arrays = [incomplete.astype(kind) for kind in (float, np.float32, object)]
    for X in (*arrays, csr_array(incomplete), unnamed, masked):
        completed = model.complete(X)
        assert getattr(completed, "dtype", None) == getattr(X, "dtype", None)
        assert isinstance(X, type(completed))
        dense = completed.toarray() if isinstance(completed, csr_array) else np.asarray(completed)
        np.testing.assert_array_equal(dense.astype(float), filled)
    assert np.isnan(incomplete[1, 2])
    np.savetxt(tmp_path / "copies.csv", copies, fmt="%d", delimiter=",")
    np.testing.assert_array_equal(model.transform(tmp_path / "copies.csv"), codes)
    np.savetxt(tmp_path / "bits.csv", table.to_dense(), fmt="%d", delimiter=",")
    with pytest.warns(InputWarning, match="the columns of X have no names"):
        np.testing.assert_array_equal(model.transform(tmp_path / "bits.csv"), codes)
    with pytest.warns(UserWarning, match="feature names"), pytest.raises(ValueError, match="34 features"):
        model.transform(copies[:, 1:])


def learn(table, n_components=3):
    return ba.BinaryDictionaryLearning(n_components, algebra="or", search="paper", random_state=0).fit(table)


@pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning")  # the command line prints them
def test_commands_read_copies(tmp_path, capsys, monkeypatch, frame):
    pytest.importorskip("click")
    monkeypatch.chdir(tmp_path)

    def bitatoms(command):
        return runner(capsys)(*command.split())

    write_frame(frame, tmp_path / "copies.csv")
    write_frame(frame.T, tmp_path / "variants.csv")
    code, _, stderr = bitatoms("fit copies.csv")
    assert (code, "pass --dosage" in stderr) == (2, True)
    code, stdout, _ = bitatoms("fit copies.csv --dosage -k 3 --search paper -o model.npz")
    assert (code, stdout.splitlines()[-1]) == (0, "Next: bitatoms report model.npz copies.csv -o report.html")
    assert bitatoms("report model.npz copies.csv -q") == (0, "", "")
    for command in ("transform", "reconstruct", "complete", "score"):
        assert bitatoms(f"{command} model.npz copies.csv -o {command}.csv -q") == (0, "", "")
    with pytest.warns(InputWarning, match="1 missing value"):
        codes = ba.load("model.npz").transform("copies.csv")
    np.testing.assert_array_equal(ba.read("transform.csv").to_dense(), codes)
    np.savetxt("plain.csv", pd.read_csv("complete.csv", index_col=0), fmt="%d", delimiter=",")
    named = Path("copies.csv").read_text().removeprefix(",")
    Path("copies.csv").write_text(f"sample,{named}")
    code, stdout, _ = bitatoms("complete model.npz copies.csv --decode -o filled.csv")
    assert (code, stdout.splitlines()[0]) == (0, "filled.csv: 40 rows of 35 columns, 1 missing value filled in")
    filled = pd.read_csv("filled.csv", index_col="sample").rename_axis(None)
    pd.testing.assert_frame_equal(frame.fillna(filled).astype(int), filled)
    for other, index in (("complete.csv", 0), ("plain.csv", None), ("variants.csv --transpose", 0)):
        assert bitatoms(f"complete model.npz {other} --decode -o again.csv -q") == (0, "", "")
        np.testing.assert_array_equal(pd.read_csv("again.csv", index_col=index), filled)
    message = "variants.csv: its rows are the variants of the model, such as 'rs0'; read it with --transpose"
    assert bitatoms("complete model.npz variants.csv --decode -o again.csv") == (2, "", f"bitatoms: {message}\n")
