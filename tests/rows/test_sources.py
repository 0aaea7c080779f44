"""The estimator learns the same bits from rows in memory, in a store and on a cluster, for any chunks."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse

import bitatoms as ba
from bitatoms import dask as on_dask
from support.chaos import chaos
from support.cluster import local_cluster
from support.faults import ctrl_c_when
from support.sources import write_store

da = pytest.importorskip("dask.array")
pytest.importorskip("zarr")

N, M, SAMPLE = 500, 70, 120
TABLES = {
    algebra: ba.datasets.planted(N, M, 7, code_density=0.25, noise=0.02, algebra=algebra, random_state=0).X
    for algebra in ("xor", "or")
}
UNKNOWN = np.random.default_rng(1).random((N, M)) < 0.2
UNKNOWN[130:430] = False  # all of a partition, and of chunks of a store, is known
TABLES |= {f"{algebra} unknown": np.where(UNKNOWN, np.nan, TABLES[algebra]) for algebra in ("xor", "or")}
CALLS = [
    {"algebra": "xor", "n_components": 7},
    {"algebra": "xor", "n_components": 20, "search": "thorough"},
    {"algebra": "xor", "n_components": "mdl"},
    {"algebra": "or", "n_components": 7, "search": "thorough"},
    {"algebra": "or", "n_components": "mdl", "search": "thorough", "unknown": True},
    {"algebra": "or", "n_components": 20, "unknown": True},
    {"algebra": "or", "n_components": "mdl"},
    # Single toggles miss codes that the search found: such models remember them.
    {"algebra": "xor", "n_components": "mdl", "coder": "mdl", "unknown": True},
    {"algebra": "xor", "n_components": 20, "coder": "mdl", "objective": "codelength"},
]
COUNTS = ("wrong", "uses", "saved", "ones", "missed", "known", "complete", "lacking", "atom_known")
AWKWARD = (0, 1, 129, 0, 300, 1, 69, 0)  # rows per partition


pytestmark = pytest.mark.filterwarnings("ignore:max_iter ended the search")  # a few rounds suffice for a comparison


def table_name(call):
    return f"{call['algebra']} unknown" if "unknown" in call else call["algebra"]


def table_of(call):
    """Return the table of a call; NaN is unknown."""
    return TABLES[table_name(call)]


def estimator(call, **more):
    parameters = {name: value for name, value in call.items() if name != "unknown"}
    return ba.BinaryDictionaryLearning(**parameters, search_rows=SAMPLE, max_iter=4, random_state=0, **more)


def learned(model, rows):
    """Return what must be equal: atoms, bias, codelength, counts, remembered codes, and the codes of all rows."""
    codes = model.transform(rows)
    codes = codes.compute() if hasattr(codes, "compute") else codes
    inner = model.as_model()
    counts = [getattr(inner, name) for name in COUNTS]
    arrays = [model.components_, model.bias_, codes, *counts]
    return arrays, model.codelength_, model.algebra_, inner.rows_hash, inner.remembered


@pytest.fixture(scope="module")
def expected():
    """The results of dense rows in memory, for each call; some models remember codes."""
    found = [learned(estimator(call).fit(table_of(call)), table_of(call)) for call in CALLS]
    assert sum(remembered is not None for *_, remembered in found) >= 2
    return found


def assert_same(expected, number, model, rows):
    arrays, *others = learned(model, rows)
    theirs, *those = expected[number]
    assert others == those
    for mine, other in zip(arrays, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)


SIZES = {None: None, 700: 700, "ones": 2000}  # of chunks, in bytes


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The tables in stores with large and with small chunks, and by their ones."""
    folder = tmp_path_factory.mktemp("stores")
    for (name, X), (size, chunk_bytes) in product(TABLES.items(), SIZES.items()):
        bits = ba.BitMatrix.from_any(X, missing="unknown")
        by_ones = size == "ones" and not bits.n_unknown
        write_store(folder / f"{name}-{size}.zarr", bits, chunk_bytes=chunk_bytes, by_ones=by_ones)
    return folder


def partitioned(number):
    """Return a Dask array in awkward partitions: for some calls sparse, for others of unknown sizes."""
    X = da.from_array(table_of(CALLS[number]), chunks=(AWKWARD, (50, 20)))
    if number % 2:
        X = X.map_blocks(scipy.sparse.csr_array)
    elif number % 4 == 0 and "unknown" in CALLS[number]:
        X = da.ma.masked_invalid(X)
    elif number % 3 == 0:
        X = X[da.ones(N, dtype=bool, chunks=(AWKWARD,))]
    return X


@pytest.mark.parametrize("source", ["memory", "store", "dask"])
@pytest.mark.parametrize("number", range(len(CALLS)), ids=[str(list(call.values())) for call in CALLS])
def test_rows_of_any_source_give_the_same_bits_however_work_is_divided(expected, stores, number, source):
    call = CALLS[number]
    name, X = table_name(call), table_of(call)
    assert expected[number][0][0].shape[0] > 4
    if source == "memory":
        rows, coded = scipy.sparse.csr_array(X), scipy.sparse.csc_array(X)
    elif source == "store":
        rows = stores / f"{name}-{[*SIZES][number % 3]}.zarr"
        coded = ba.Store(rows)
    else:
        rows = coded = partitioned(number)
    with chaos(number) as n_jobs, pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitatoms.rows.budget.chunk_rows", lambda *_: 64 * (1 + number))
        assert_same(expected, number, estimator(call, n_jobs=n_jobs).fit(rows), coded)


def test_rows_on_a_cluster_of_threads_give_the_same_bits(expected):
    with local_cluster(2, processes=False, threads_per_worker=2) as client:
        for number in (1, 5, 6):
            X, call = partitioned(number), CALLS[number]
            assert_same(expected, number, on_dask.fit(estimator(call), X, client), table_of(call))
        with client.as_current():
            assert_same(expected, number, estimator(CALLS[number]).fit(X), X)


def test_a_store_is_accepted_as_path_text_store_and_zarr_group(expected, stores):
    import zarr

    path = stores / "xor-None.zarr"
    for given in (str(path), path, ba.Store(path), zarr.open_group(path, mode="r")):
        assert_same(expected, 0, estimator(CALLS[0]).fit(given), given)


@pytest.mark.parametrize("table", ["xor", "xor unknown"])
def test_scores_and_codes_of_a_store_equal_those_in_memory(stores, tmp_path, table):
    path = stores / f"{table}-700.zarr"
    X = TABLES[table]
    model = estimator(CALLS[0]).fit(X)
    np.testing.assert_array_equal(model.score_samples(path), model.score_samples(X))
    assert model.score(path) == model.score(X)
    written = model.transform(path, output=tmp_path / "codes.zarr")
    np.testing.assert_array_equal(ba.read(written.path).to_dense(), model.transform(X))
    np.testing.assert_array_equal(estimator(CALLS[0]).fit_transform(path), model.transform(X))


def test_codes_that_do_not_fit_into_memory_need_an_output(stores, monkeypatch):
    path = stores / "xor-700.zarr"
    model = estimator(CALLS[0]).fit(path)
    monkeypatch.setattr(ba.Store, "__len__", lambda store: 10**12)
    with pytest.raises(ValueError, match=r'pass output="codes\.zarr"'):
        model.transform(path)
    with pytest.raises(ValueError, match="output= is for packed stores"):
        model.transform(TABLES["xor"], output="codes.zarr")


def test_invalid_calls_with_rows_out_of_core(stores, tmp_path):
    path = stores / "xor-700.zarr"
    model = estimator(CALLS[0]).fit(path)
    with pytest.raises(ValueError, match="a packed store contains only 0 and 1, none of which is above binarize=3"):
        estimator(CALLS[0], binarize=3).fit(path)
    np.testing.assert_array_equal(estimator(CALLS[0], binarize=0).fit(path).components_, model.components_)
    with pytest.raises(ValueError, match="use to_zarr to write the codes of a Dask array"):
        model.transform(da.from_array(TABLES["xor"], chunks=(100, M)), output=tmp_path / "codes.zarr")
    with pytest.raises(ba.FileError, match="this is a Zarr store; a checkpoint needs a folder of its own"):
        estimator(CALLS[0], resources=ba.Resources(checkpoint=path)).fit(path)
    with pytest.raises(ba.FileError, match=r"there is no folder .* create it first"):
        estimator(CALLS[0], resources=ba.Resources(checkpoint=tmp_path / "no" / "there")).fit(path)
    with pytest.raises(ValueError, match="resume=True requires checkpoint, the folder to resume from"):
        estimator(CALLS[0], resources=ba.Resources(resume=True)).fit(path)
    searches = "paper", ba.PaperSearch(update="k-prox")
    for rows, search in product((path, da.from_array(TABLES["xor"], chunks=(100, M))), searches):
        with pytest.raises(ValueError, match="needs all rows in memory; pass"):
            ba.BinaryDictionaryLearning(7, search=search).fit(rows)
    with pytest.raises(TypeError, match=r"whose rows are not in memory; pass it to BinaryDictionaryLearning\.fit"):
        ba.factorize(ba.Store(path), algebra="xor")
    empty = ba.pack(TABLES["xor"][:0], tmp_path / "empty.zarr")
    for method in (model.transform, model.score, estimator(CALLS[0]).fit):
        with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
            method(empty)


OTHER_CALLS = [  # a call, another one, and the parameter that differs
    ({"random_state": np.int64(0)}, {"random_state": np.int64(7)}, ""),
    ({"random_state": [1, 2]}, {"random_state": [3, 4]}, ""),
    ({"n_init": 1}, {"n_init": 2}, "n_init was"),
    ({"init": "auto"}, {"init": "spread"}, "init was"),
    ({"false_positive_cost": np.linspace(1, 9, M)}, {"false_positive_cost": 2}, "costs was"),
    (
        {"constraints": ba.Constraints(fixed_atoms=TABLES["or"][:2], max_features_per_atom=6)},
        {"constraints": ba.Constraints(max_features_per_atom=6)},
        "fixed_atoms was",
    ),
]


@pytest.mark.parametrize(("given", "other", "differs"), OTHER_CALLS)
def test_only_the_same_call_resumes(stores, tmp_path, given, other, differs):
    path, how = stores / "or-700.zarr", {"algebra": "or", "search_rows": SAMPLE, "max_iter": 4}

    def fit(**more):
        return ba.BinaryDictionaryLearning(**{"random_state": 0, **how, **more}).fit(path)

    saved = ba.Resources(checkpoint=tmp_path / "checkpoint")
    resumed = replace(saved, resume=True)
    with pytest.raises(ba.Interrupted):
        fit(**given, resources=saved, callbacks=ctrl_c_when(lambda row: row.rows == N))
    with pytest.raises(ba.FileError, match=f"contains the fit of a different call: .*{differs}"):
        fit(**other, resources=resumed)
    if differs in ("costs was", "fixed_atoms was"):  # which are arrays
        again, whole = fit(**given, resources=resumed), fit(**given)
        np.testing.assert_array_equal(again.components_, whole.components_)
        assert again.codelength_ == whole.codelength_


def test_parameters_are_checked_before_rows_are_read(stores, tmp_path):
    def never(part):
        raise AssertionError("a partition was read")

    X = da.from_array(TABLES["xor"], chunks=(100, M)).map_blocks(never, dtype=np.uint8)
    for fit in (lambda model: model.fit(X), lambda model: on_dask.fit(model, X)):
        with pytest.raises(ValueError, match="search='slow' is not available"):
            fit(ba.BinaryDictionaryLearning(algebra="xor", search="slow"))
    with pytest.raises(ValueError, match="n_components must be at least 1"):
        ba.BinaryDictionaryLearning(-3, algebra="xor", resources=ba.Resources(checkpoint=tmp_path / "never")).fit(
            stores / "xor-700.zarr"
        )
    assert not (tmp_path / "never").exists()
