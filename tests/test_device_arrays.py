"""Arrays of CuPy and tensors with DLPack's interface are read as tables, with stand-ins for these libraries."""

from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.sparse_bits import SparseBits, as_bits
from bitatoms.validation import on_host
from support.devices import CupyArray, DeviceTensor, Tensor, fake_cupy, installed_cupy

pytestmark = pytest.mark.usefixtures("few_trials")

X = ba.datasets.planted(80, 20, 3, code_density=0.4, noise=0.02, random_state=0).X
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
    expected = ba.BinaryDictionaryLearning(3, random_state=0).fit(X)
    model = ba.BinaryDictionaryLearning(3, random_state=0).fit(kind(X))
    np.testing.assert_array_equal(model.components_, expected.components_)
    codes = model.transform(kind(X))
    np.testing.assert_array_equal(codes, expected.transform(X))
    np.testing.assert_array_equal(model.inverse_transform(kind(codes)), expected.inverse_transform(codes))
    np.testing.assert_array_equal(model.score_samples(kind(X)), expected.score_samples(X))
    hidden = np.where(np.eye(*X.shape) > 0, np.nan, X)
    np.testing.assert_array_equal(model.complete(kind(hidden)), expected.complete(hidden))
    imputer = ba.BinaryImputer(2, method="profiles", random_state=0).fit(kind(hidden))
    np.testing.assert_array_equal(imputer.transform(kind(hidden)), imputer.transform(hidden))
    mask, weights = X[::-1] > 0, np.arange(len(X)) % 3
    found = ba.factorize(kind(X), 3, mask=kind(mask), sample_weight=kind(weights), random_state=0)
    assert found.atoms == ba.factorize(X, 3, mask=mask, sample_weight=weights, random_state=0).atoms
    picture = np.tile(ba.datasets.dither(np.full((4, 4), 0.6)), (3, 3))
    image = ba.denoise(kind(picture), block_sizes=4, stride=4, random_state=0).image
    assert (image == ba.denoise(picture, block_sizes=4, stride=4, random_state=0).image).all()


OTHER = type("OtherTensor", (Tensor,), {"__module__": "torch", "place": 7})  # on a device of another kind
MESSAGE = "X is a torch {}which cannot be read as a NumPy array{}; convert it first, in PyTorch with X.detach"


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("kind", [CupyArray, Tensor, DeviceTensor])
def test_cells_are_checked(kind):
    assert ba.BitMatrix.from_any(kind(np.array([[1, np.nan]])), missing="unknown").n_unknown == 1
    assert ba.BitMatrix.from_any(kind(np.array([[0.2, 3]])), binarize=1).count() == 1
    for cells, message in (
        ([[0, 2], [1, 1]], "X contains values other than 0 and 1 \\(first: 2 at row 0, column 1\\)"),
        ([0, 1], "Expected 2D array, got 1D array instead"),
    ):
        with pytest.raises(ValueError, match=message):
            ba.factorize(kind(np.array(cells)))


def test_what_cannot_be_read_is_an_error(monkeypatch):
    with pytest.raises(TypeError, match=MESSAGE.format("OtherTensor, ", "")):
        ba.factorize(OTHER(X))
    with pytest.raises(TypeError, match="X is a torch OtherTensor"):
        ba.factorize(X, mask=OTHER(X > 0))
    not_installed = MESSAGE.format("DeviceTensor, on a CUDA device, ", r" \(CuPy is not .*\)")
    with installed_cupy(None), pytest.raises(TypeError, match=not_installed):
        ba.BinaryDictionaryLearning().fit(DeviceTensor(X))
    monkeypatch.setattr(CupyArray, "get", mock.Mock(side_effect=MemoryError("out of memory")))
    with installed_cupy(fake_cupy()), pytest.raises(MemoryError, match="out of memory"):
        ba.BitMatrix.from_any(DeviceTensor(X))
