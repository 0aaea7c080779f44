"""The search for a CUDA device, with stand-ins for CuPy; the parameter ``device``; arrays on devices."""

import logging
import pickle
import subprocess
import sys
from copy import copy
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.columns.table import as_bits
from bitatoms.device_choice import MIN_CELLS, workers_for
from bitatoms.errors import InputError
from bitatoms.frames import on_host
from bitatoms.kernels.gpu.device import Device, DeviceMemoryError, NoDeviceError, find_device, import_cupy
from bitatoms.parallel import Workers
from bitatoms.parameters import declarations
from bitatoms.report import report_data
from bitatoms.run_options import RunOptions
from bitatoms.sparse_bits import SparseBits
from support.devices import FOUND, CupyArray, DeviceTensor, Tensor, fake_cupy, found_device, installed_cupy
from support.parameters import nested

pytestmark = pytest.mark.usefixtures("few_trials")

X = ba.datasets.planted(90, 24, 3, code_density=0.4, noise=0.02, random_state=0).X
INCOMPLETE = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
PICTURE = np.tile(ba.datasets.dither(np.full((4, 4), 0.6)), (4, 4))
ON_DEVICE = {"device": "cuda", "random_state": 0}


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, "bitatoms")
    return caplog


@pytest.fixture(scope="module")
def model():
    return ba.BinaryDictionaryLearning(3, algebra="xor", random_state=0).fit(X)


# --- the choice


def test_cuda_requires_a_device_and_the_default_does_not():
    with installed_cupy(None):
        assert workers_for(2) == Workers(2)
        assert workers_for(2).device is None
        with pytest.raises(NoDeviceError, match=r'^device="cuda" is not available: CuPy is not installed; install it'):
            workers_for(1, "cuda", 4)
    error = RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    with installed_cupy(fake_cupy(error=error)), pytest.raises(NoDeviceError, match=f"CUDA device \\({error}\\)"):
        ba.factorize(X, device="cuda", algebra="xor")
    with installed_cupy(fake_cupy()):
        assert workers_for(1, "cuda", 4).device.name == "NVIDIA H200"


def test_auto_takes_a_device_for_large_tables(log):
    with installed_cupy(fake_cupy()):
        assert workers_for(1, "auto", MIN_CELLS).device.name == "NVIDIA H200"
        assert workers_for(1, "auto").device.name == "NVIDIA H200"  # rows that are not in memory
        assert workers_for(1, "auto", MIN_CELLS - 1).device is None
    assert log.messages == [
        "computing on the device NVIDIA H200",
        "computing on the device NVIDIA H200",
        "computing on the CPU: a table of 134217727 cells is too small to gain by a device",
    ]


def test_cupy_is_not_imported_before_a_device_is_looked_for():
    code = (
        "import sys; import bitatoms as ba; from bitatoms.device_choice import workers_for; "
        "workers_for(2), ba.BitMatrix.from_any([[1, 0]]), ba.factorize; "
        "assert not [name for name in sys.modules if name.startswith('cupy')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- what it does not change


def test_a_model_and_a_checkpoint_do_not_depend_on_it(model, tmp_path):
    with found_device():
        other = ba.BinaryDictionaryLearning(3, **nested(**ON_DEVICE)).fit(X)
        codes = other.transform(X)
    model.save(tmp_path / "cpu.npz")
    other.save(tmp_path / "cuda.npz")
    with np.load(tmp_path / "cpu.npz") as first, np.load(tmp_path / "cuda.npz") as second:
        assert first.files == second.files
        assert b"cuda" not in b"".join(second[name].tobytes() for name in second.files)
    loaded = ba.load(tmp_path / "cuda.npz")
    assert loaded.device == "cpu"
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.transform(X), codes)
    assert declarations(RunOptions)["device"][1].is_run_setting
    assert "device" in ba.BinaryDictionaryLearning().get_params()
    how = {"search_rows": 40, "random_state": 0, "checkpoint": tmp_path / "checkpoint"}
    with found_device():
        first = ba.factorize(X, 3, **nested(device="cuda", **how))
    assert ba.factorize(X, 3, **nested(resume=True, **how)).atoms == first.atoms


def test_an_estimator_is_unpickled_without_a_device():
    with found_device():
        sent = pickle.dumps(ba.BinaryDictionaryLearning(3, **nested(**ON_DEVICE)).fit(X))
    with installed_cupy(None):
        model = pickle.loads(sent)
        assert model.device == "cuda"
        assert len(model.patterns()) == 3
        with pytest.raises(NoDeviceError, match="CuPy is not installed"):
            model.transform(X)
        assert model.set_params(device="cpu").transform(X).shape == (90, 3)


# --- where it goes


def search(how):
    return lambda model: ba.factorize(X, **nested(**how, **ON_DEVICE))


def transformed(method, data=X):
    """Return a call of a method of a fitted estimator."""
    return lambda model: getattr(model.set_params(device="cuda"), method)(data)


def sampled(method):
    """Return a call of a method of an estimator with so many atoms that codes are sampled."""
    planted = ba.datasets.planted(60, 24, 12, code_density=0.2, random_state=0).X
    cells = np.where(planted[:5] > 0, np.nan, 0)
    return lambda model: transformed(method, cells)(
        ba.BinaryDictionaryLearning(12, algebra="xor", random_state=0).fit(planted)
    )


SEARCHES = {
    "mdl": {},
    "k": {"n_components": 3},
    "thorough": {"search": "thorough", "max_components": 3},
    "paper": {"n_components": 3, "search": "paper"},
    "fixed atoms": {"n_components": 3, "fixed_atoms": X[:1]},
    "passes": {"n_components": 3, "search_rows": 40},
    "weights": {"n_components": 3, "sample_weight": np.arange(90) % 3},
}
METHODS = ("transform", "decision_function", "score_samples", "recommend", "worst_rows")
BLOCKS = {"block_sizes": 4, "stride": 4, **ON_DEVICE}
CALLS = {
    **{name: search(how) for name, how in SEARCHES.items()},
    **{method: transformed(method) for method in METHODS},
    **{method: sampled(method) for method in ("predict_cell_proba", "complete")},
    "fit": lambda model: ba.BinaryDictionaryLearning(3, **nested(**ON_DEVICE)).fit(X),
    "report": lambda model: report_data(model, X, device="cuda"),
    "stability of a new model": lambda model: ba.stability(X, **nested(n_components=2, n_resamples=2, **ON_DEVICE)),
    "stability": lambda model: ba.stability(X, model, **nested(n_resamples=2, **ON_DEVICE)),
    "cross_validate_cells": lambda model: ba.cross_validate_cells(X, [2], **nested(n_folds=2, **ON_DEVICE)),
    "imputer": lambda model: ba.BinaryImputer(2, **nested(method="atoms", **ON_DEVICE)).fit(INCOMPLETE),
    "classifier": lambda model: ba.BinaryDictionaryClassifier(2, **nested(n_models=1, **ON_DEVICE)).fit(X, X[:, 0]),
    "denoise": lambda model: ba.denoise(PICTURE, **BLOCKS),
    "inpaint": lambda model: ba.inpaint(PICTURE, np.eye(16), **BLOCKS),
}


@pytest.mark.parametrize("name", CALLS)
def test_all_rows_are_processed_on_it(name, model):
    with found_device() as devices:
        CALLS[name](copy(model))
    assert FOUND in devices
    assert set(devices) <= {FOUND, None}  # errors of coded rows are read on the host


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_stores_are_processed_on_it(device, model, tmp_path):
    pytest.importorskip("zarr")
    store = ba.pack(X, tmp_path / "rows.zarr")
    with found_device() as devices:
        fitted = ba.BinaryDictionaryLearning(3, device=device, search_rows=40, algebra="xor", random_state=0).fit(store)
        for method in METHODS:
            getattr(fitted, method)(store)
    assert FOUND in devices


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_workers_of_dask_find_their_own(device, log):
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(30, 24))
    how = {"search_rows": 40, "random_state": 0}
    expected = ba.BinaryDictionaryLearning(3, **nested(**how)).fit(rows)
    with found_device() as devices:
        fitted = ba.BinaryDictionaryLearning(3, **nested(device=device, **how)).fit(rows)
        lazy = [getattr(fitted, name)(rows) for name in ("transform", "decision_function", "score_samples")]
        pickle.dumps(lazy)
        computed = [each.compute() for each in lazy]
    assert FOUND in devices
    np.testing.assert_array_equal(fitted.components_, expected.components_)
    np.testing.assert_array_equal(computed[0], expected.transform(X))
    with installed_cupy(None):
        if device == "cuda":  # a worker without a device
            with pytest.raises(NoDeviceError, match="CuPy is not installed"):
                lazy[0].compute()
        else:
            log.clear()
            np.testing.assert_array_equal(lazy[0].compute(), computed[0])
            assert {message.partition(":")[0] for message in log.messages} == {"computing on the CPU"}
    with pytest.raises(ValueError, match="device='gpu' is not available"):
        ba.BinaryDictionaryLearning(3, device="gpu", algebra="xor").fit(rows)


# --- arrays on devices


BITS = ba.BitMatrix.from_dense(X)


class CupySparse:
    """A sparse matrix of CuPy."""

    __module__ = "cupyx.scipy.sparse._csr"

    def __init__(self, matrix):
        self._matrix = matrix
        self.shape, self.dtype = matrix.shape, matrix.dtype

    def get(self):
        return self._matrix.copy()


class ConvertibleTensor(Tensor):
    """A tensor whose library converts more than NumPy can read by DLPack, such as booleans in some versions."""

    def __dlpack__(self, **_):
        raise BufferError("booleans are not exchanged")

    def __array__(self, dtype=None, copy=None):
        return self._values


class CudaArray:
    """An array with CUDA's interface only, such as those of numba."""

    __module__ = "numba.cuda"
    __cuda_array_interface__ = {}  # noqa: RUF012

    def __init__(self, values):
        self._values = values

    def on_device(self):
        return self._values


@pytest.fixture
def cupy():
    with installed_cupy(fake_cupy()):
        yield


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("kind", [CupyArray, Tensor, ConvertibleTensor, DeviceTensor, CudaArray])
def test_arrays_are_packed(kind, dtype):
    given = kind(X.astype(dtype))
    assert on_host(given).dtype == dtype
    assert ba.BitMatrix.from_any(given) == BITS
    assert ba.BitMatrix.from_dense(given) == BITS
    assert as_bits(given) == BITS
    assert ba.Table.from_any(given).bits == BITS
    sparse = CupySparse(csr_array(X.astype(dtype)))
    assert ba.BitMatrix.from_any(sparse) == ba.BitMatrix.from_sparse(sparse) == BITS
    wide = csr_array(([1.0, 1.0], ([0, 1], [5, 3000])), shape=(3, 4000))
    assert isinstance(as_bits(CupySparse(wide)), SparseBits)


@pytest.mark.parametrize("given", [X, BITS, csr_array(X), [[1, 0]], "table.csv", None, 3])
def test_others_stay_as_they_are(given):
    assert on_host(given) is given


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("kind", [CupyArray, Tensor, DeviceTensor])
def test_estimators_and_functions_take_them(kind):
    expected = ba.BinaryDictionaryLearning(3, algebra="xor", random_state=0).fit(X)
    model = ba.BinaryDictionaryLearning(3, algebra="xor", random_state=0).fit(kind(X))
    np.testing.assert_array_equal(model.components_, expected.components_)
    codes = model.transform(kind(X))
    np.testing.assert_array_equal(codes, expected.transform(X))
    np.testing.assert_array_equal(model.inverse_transform(kind(codes)), expected.inverse_transform(codes))
    np.testing.assert_array_equal(model.score_samples(kind(X)), expected.score_samples(X))
    hidden = np.where(np.eye(*X.shape) > 0, np.nan, X)
    np.testing.assert_array_equal(model.complete(kind(hidden)), expected.complete(hidden))
    imputer = ba.BinaryImputer(2, method="profiles", algebra="xor", random_state=0).fit(kind(hidden))
    np.testing.assert_array_equal(imputer.transform(kind(hidden)), imputer.transform(hidden))
    mask, weights = X[::-1] > 0, np.arange(len(X)) % 3
    found = ba.factorize(kind(X), 3, mask=kind(mask), sample_weight=kind(weights), algebra="xor", random_state=0)
    assert found.atoms == ba.factorize(X, 3, mask=mask, sample_weight=weights, algebra="xor", random_state=0).atoms
    picture = np.tile(ba.datasets.dither(np.full((4, 4), 0.6)), (3, 3))
    image = ba.denoise(kind(picture), block_sizes=4, stride=4, random_state=0).image
    assert (image == ba.denoise(picture, block_sizes=4, stride=4, random_state=0).image).all()


OTHER = type("OtherTensor", (Tensor,), {"__module__": "torch", "place": 7})  # on a device of another kind
MESSAGE = "X is a torch {}which cannot be read as a NumPy array{}; convert it first, in PyTorch with X.detach"


def test_what_cannot_be_read_is_an_error(monkeypatch):
    with pytest.raises(TypeError, match=MESSAGE.format("OtherTensor, ", "")):
        ba.factorize(OTHER(X), algebra="xor")
    with pytest.raises(TypeError, match="mask is a torch OtherTensor"):
        ba.factorize(X, mask=OTHER(X > 0), algebra="xor")
    not_installed = MESSAGE.format("DeviceTensor, on a CUDA device, ", r" \(CuPy is not .*\)")
    with installed_cupy(None), pytest.raises(TypeError, match=not_installed):
        ba.BinaryDictionaryLearning().fit(DeviceTensor(X))
    monkeypatch.setattr(CupyArray, "get", mock.Mock(side_effect=MemoryError("out of memory")))
    with installed_cupy(fake_cupy()), pytest.raises(MemoryError, match="out of memory"):
        ba.BitMatrix.from_any(DeviceTensor(X))


# --- the search for a device, and its memory


INSTALL = 'install it with pip install "bitatoms[cuda12]" or "bitatoms[cuda13]"'


def message_of(call):
    with pytest.raises(NoDeviceError) as caught:
        call()
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, RuntimeError)
    return str(caught.value)


def test_a_device_is_found_once():
    module = fake_cupy()
    with installed_cupy(module):
        found = find_device()
        assert found.name == "NVIDIA H200"
        module.cuda.runtime.getDeviceCount = None  # not called again
        assert find_device() is found


def of_another_device():
    module = fake_cupy(n_devices=2)
    module.cuda.runtime.getDevice = lambda: 1
    return module


OLD = RuntimeError("cudaErrorInsufficientDriver: the driver version is insufficient")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (None, f"CuPy is not installed; {INSTALL}, whichever CUDA version the driver supports"),
        (fake_cupy(n_devices=0), "CuPy finds no CUDA device"),
        (fake_cupy(error=OLD), f"CuPy finds no CUDA device ({OLD}); check the driver with nvidia-smi"),
        (fake_cupy(error=RuntimeError()), "CuPy finds no CUDA device (RuntimeError); check the driver with nvidia-smi"),
        (of_another_device(), "device 1 of CuPy is selected; select it with CUDA_VISIBLE_DEVICES=1"),
    ],
)
def test_there_is_no_device(module, message):
    with installed_cupy(module):
        assert message_of(find_device) == message_of(find_device) == message
        assert module is not None or message_of(import_cupy) == message


BROKEN = {
    "raise ImportError('====\\nlibnvrtc.so.12: cannot open shared object file\\n')": "libnvrtc.so.12: cannot open",
    "import fastrlock_of_cupy": "No module named 'fastrlock_of_cupy')",
}


@pytest.mark.parametrize("source", BROKEN)
def test_cupy_is_broken(tmp_path, monkeypatch, source):
    (tmp_path / "cupy.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with installed_cupy(None):
        monkeypatch.delitem(sys.modules, "cupy")
        assert message_of(find_device).startswith(f"CuPy cannot be imported ({BROKEN[source]}")


class OutOfMemoryError(MemoryError):
    """CuPy's error."""


def test_an_error_of_a_session_states_that_the_memory_is_too_small():
    module = fake_cupy()
    module.cuda.Stream = lambda non_blocking: mock.MagicMock()
    module.cuda.memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    device = Device(module)
    for _ in range(9):  # more often than there are sessions at a time
        with pytest.raises(DeviceMemoryError) as caught, device.session(), device.session():
            raise OutOfMemoryError("Out of memory allocating 4,096 bytes")
    assert str(caught.value) == (
        "the memory of NVIDIA H200 is too small (Out of memory allocating 4,096 bytes); compute on the CPU, or let "
        "CuPy use more memory"
    )
    assert isinstance(caught.value, MemoryError)


@pytest.fixture
def numpy_device():
    """A device whose arrays are NumPy's."""
    module = fake_cupy()
    module.asarray = np.array
    module.cuda.get_current_stream = module.cuda.Device = mock.MagicMock
    module.get_default_memory_pool = lambda: mock.MagicMock(get_limit=lambda: 0)
    return Device(module)


def words_of(n_bytes, is_read_only=True):
    words = np.arange(n_bytes // 8, dtype=np.uint64).reshape(-1, 4)
    words.flags.writeable = words.base.flags.writeable = not is_read_only
    return words


def test_words_that_cannot_change_are_copied_to_a_device_once(numpy_device):
    words = words_of(1 << 22)
    first = numpy_device.resident(words)
    np.testing.assert_array_equal(first, words)
    assert numpy_device.resident(words) is numpy_device.resident(words[:]) is first
    half = numpy_device.resident(words[: 1 << 16])
    np.testing.assert_array_equal(half, words[: 1 << 16])
    assert numpy_device.resident(words[: 1 << 16]) is half
    del words, first, half
    assert not numpy_device._resident  # the memory of the device is free as soon as that of the host is
    few = words_of(1 << 10)
    assert numpy_device.resident(few) is not numpy_device.resident(few)


def test_words_that_can_change_are_copied_each_time(numpy_device):
    words = words_of(1 << 22, is_read_only=False)
    view = words.view()
    view.flags.writeable = False
    numpy_device.resident(view)
    words[0, 0] = 77
    assert numpy_device.resident(view)[0, 0] == 77


def test_tables_stay_on_a_device_in_a_part_of_its_memory(numpy_device):
    numpy_device._n_bytes = 1 << 24
    tables = [words_of(1 << 21) for _ in range(3)]
    kept = [numpy_device.resident(table) for table in tables]
    is_kept = [numpy_device.resident(table) is array for table, array in zip(tables, kept, strict=True)]
    assert is_kept == [True, True, False]
    numpy_device.release()
    assert not numpy_device._resident
