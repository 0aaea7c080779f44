"""Models, codes and scores have the same bits on a CUDA device as on the CPU, and arrays on it are read."""

import hashlib

import numpy as np
import pytest
import scipy.sparse

import bitatoms as ba
from bitatoms import device_choice
from bitatoms.device_choice import workers_for
from support.documentation import code_of

pytestmark = pytest.mark.usefixtures("device")

X = ba.datasets.planted(700, 130, 8, code_density=0.3, noise=0.02, random_state=0).X
INCOMPLETE = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
SEARCHES = {
    "mdl": {},
    "mdl or": {"algebra": "or"},
    "k": {"n_components": 6},
    "k or": {"n_components": 6, "algebra": "or"},
    "thorough": {"search": "thorough", "constraints": ba.Constraints(max_components=8)},
    "passes": {"search_rows": 256},
    "passes or": {"search_rows": 256, "n_components": 6, "algebra": "or"},
}


def hash_of(*arrays):
    """Return a hash of arrays."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def hash_of_model(model):
    return hash_of(model.components_, model.bias_, str(model.codelength_).encode())


def test_auto_takes_it_for_large_tables(device, monkeypatch):
    assert device.name
    assert workers_for(1, "cuda").device is device
    monkeypatch.setattr(device_choice, "MIN_CELLS", 1000)
    assert workers_for(1, "auto", 1000).device is device
    assert workers_for(1, "auto", 999).device is None


@pytest.mark.parametrize("data", [X, INCOMPLETE], ids=["known", "unknown cells"])
@pytest.mark.parametrize("search", SEARCHES)
def test_factorize(search, data):
    how = {"algebra": "xor"} | SEARCHES[search] | {"random_state": 0}
    first, second = (ba.factorize(data, **how, device=device) for device in ("cpu", "cuda"))
    assert first.atoms == second.atoms
    assert first.codes == second.codes
    assert first.codelength == second.codelength


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_methods_of_an_estimator(algebra):
    def results(device):
        model = ba.BinaryDictionaryLearning(algebra=algebra, device=device, random_state=0).fit(X)
        methods = ("transform", "decision_function", "score_samples", "predict_cell_proba", "complete")
        return [hash_of_model(model), *(hash_of(getattr(model, name)(INCOMPLETE)) for name in methods)]

    assert results("cpu") == results("cuda")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32"])
def test_arrays_and_sparse_matrices_of_cupy_are_read(cupy, dtype):
    sparse = pytest.importorskip("cupyx.scipy.sparse").csr_matrix(scipy.sparse.csr_matrix(X.astype(np.float32)))
    for given in (cupy.asarray(X.astype(dtype)), sparse):
        assert ba.BitMatrix.from_any(given) == ba.BitMatrix.from_dense(X)
    read = ba.BitMatrix.from_any(cupy.asarray(INCOMPLETE), missing="unknown")
    assert read == ba.BitMatrix.from_any(INCOMPLETE, missing="unknown")


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("place", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32"])
def test_tensors_of_pytorch_are_read(dtype, place):
    torch = pytest.importorskip("torch")
    tensor = torch.asarray(X).to(getattr(torch, dtype)).to(place)
    assert ba.BitMatrix.from_any(tensor) == ba.BitMatrix.from_dense(X)


@pytest.mark.parametrize("given", ["cpu", "cuda"])
def test_a_fit_of_an_array_of_cupy(cupy, given):
    model = ba.BinaryDictionaryLearning(6, algebra="xor", device=given, random_state=0).fit(cupy.asarray(X))
    assert hash_of_model(model) == hash_of_model(ba.BinaryDictionaryLearning(6, algebra="xor", random_state=0).fit(X))
    np.testing.assert_array_equal(model.transform(cupy.asarray(X)), model.transform(X))


def test_the_code_of_the_page_runs():
    names = {"model": ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(X), "X": X, "__name__": "page"}
    blocks = code_of("docs/tutorials/gpu.md", "python cuda")
    assert blocks
    expected = names["model"].transform(X)
    for block in blocks:
        exec(compile(block, "docs/tutorials/gpu.md, cuda", "exec"), names)
    assert np.array_equal(names["codes"], expected)
