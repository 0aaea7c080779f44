"""The parameter ``device``: what it requires, how "auto" chooses, and that it reaches all rows and no model file."""

import logging
import pickle
import subprocess
import sys
from copy import copy

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.device_choice import MIN_CELLS, workers_for
from bitatoms.kernels.gpu.device import NoDeviceError
from bitatoms.parallel import Workers
from bitatoms.parameters import EstimatorKwargs, declarations
from bitatoms.report import report_data
from support.devices import FOUND, fake_cupy, found_device, installed_cupy

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
    return ba.BinaryDictionaryLearning(3, random_state=0).fit(X)


# --- the choice


def test_cuda_requires_a_device_and_the_default_does_not():
    with installed_cupy(None):
        assert workers_for(2) == Workers(2)
        assert workers_for(2).device is None
        with pytest.raises(NoDeviceError) as caught:
            workers_for(1, "cuda", 4)
    assert str(caught.value).startswith('device="cuda" is not available: CuPy is not installed; install it with pip')
    assert isinstance(caught.value, ba.InputError)
    error = RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    with installed_cupy(fake_cupy(error=error)), pytest.raises(NoDeviceError, match=f"CUDA device \\({error}\\)"):
        ba.factorize(X, device="cuda")
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


@pytest.mark.parametrize("device", ["gpu", None, 0, "CUDA"])
def test_other_choices_are_errors(device):
    message = f"device={device!r} is not available; choose from 'cpu', 'cuda', 'auto'"
    for call in (
        lambda: workers_for(1, device),
        lambda: ba.BinaryDictionaryLearning(device=device).fit(X),
        lambda: ba.BinaryDictionaryClassifier(device=device).fit(X, X[:, 0]),
        lambda: ba.BinaryImputer(device=device).fit(X),
        lambda: ba.stability(X, device=device),
        lambda: ba.denoise(PICTURE, device=device),
    ):
        with pytest.raises(ValueError, match=message):
            call()


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
        other = ba.BinaryDictionaryLearning(3, **ON_DEVICE).fit(X)
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
    assert declarations(EstimatorKwargs)["device"][1].is_run_setting
    assert "device" in ba.BinaryDictionaryLearning().get_params()
    how = {"search_rows": 40, "random_state": 0, "checkpoint": tmp_path / "checkpoint"}
    with found_device():
        first = ba.factorize(X, 3, device="cuda", **how)
    assert ba.factorize(X, 3, resume=True, **how).atoms == first.atoms


def test_an_estimator_is_unpickled_without_a_device():
    with found_device():
        sent = pickle.dumps(ba.BinaryDictionaryLearning(3, **ON_DEVICE).fit(X))
    with installed_cupy(None):
        model = pickle.loads(sent)
        assert model.device == "cuda"
        assert len(model.patterns()) == 3
        with pytest.raises(NoDeviceError, match="CuPy is not installed"):
            model.transform(X)
        assert model.set_params(device="cpu").transform(X).shape == (90, 3)


# --- where it goes


def search(how):
    return lambda model: ba.factorize(X, **how, **ON_DEVICE)


def transformed(method, data=X):
    """Return a call of a method of a fitted estimator."""
    return lambda model: getattr(model.set_params(device="cuda"), method)(data)


def sampled(method):
    """Return a call of a method of an estimator with so many atoms that codes are sampled."""
    planted = ba.datasets.planted(60, 24, 12, code_density=0.2, random_state=0).X
    cells = np.where(planted[:5] > 0, np.nan, 0)
    return lambda model: transformed(method, cells)(ba.BinaryDictionaryLearning(12, random_state=0).fit(planted))


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
    "fit": lambda model: ba.BinaryDictionaryLearning(3, **ON_DEVICE).fit(X),
    "report": lambda model: report_data(model, X, device="cuda"),
    "stability of a new model": lambda model: ba.stability(X, n_components=2, n_resamples=2, **ON_DEVICE),
    "stability": lambda model: ba.stability(X, model, n_resamples=2, **ON_DEVICE),
    "cross_validate_cells": lambda model: ba.cross_validate_cells(X, [2], n_folds=2, **ON_DEVICE),
    "imputer": lambda model: ba.BinaryImputer(2, method="atoms", **ON_DEVICE).fit(INCOMPLETE),
    "classifier": lambda model: ba.BinaryDictionaryClassifier(2, n_models=1, **ON_DEVICE).fit(X, X[:, 0]),
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
        fitted = ba.BinaryDictionaryLearning(3, device=device, search_rows=40, random_state=0).fit(store)
        for method in METHODS:
            getattr(fitted, method)(store)
    assert FOUND in devices


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_workers_of_dask_find_their_own(device, log):
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(30, 24))
    how = {"search_rows": 40, "random_state": 0}
    expected = ba.BinaryDictionaryLearning(3, **how).fit(rows)
    with found_device() as devices:
        fitted = ba.BinaryDictionaryLearning(3, device=device, **how).fit(rows)
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
        ba.BinaryDictionaryLearning(3, device="gpu").fit(rows)
