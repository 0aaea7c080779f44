"""Whole fits on an emulated device: the bits of the CPU."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.kernels.gpu import device as gpu
from bitatoms.kernels.gpu.variants import common_variants
from support.emulated_device import COMPILER, EmulatedDevice
from support.plans import use_windows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.skipif(COMPILER is None, reason="the emulated device needs a C++ compiler"),
]

COMMON = {*common_variants()}


class Device(EmulatedDevice):
    """A device that checks that `bitatoms.warm_up` compiles what fits launch."""

    n_launches_in_memory = 1 << 60  # for more of them, it has no memory

    def launch(self, file, kernel, *arguments, shared=0, **macros):
        assert (file, kernel, tuple(sorted(macros.items()))) in COMMON
        if self.n_launches >= self.n_launches_in_memory:
            raise gpu.DeviceMemoryError("the memory of the emulated device is too small")
        super().launch(file, kernel, *arguments, shared=shared, **macros)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """The device that is found."""
    device = Device()
    monkeypatch.setattr(gpu, "find_device", lambda: device)
    return device


def table(algebra, unknown=False, n=64, m=20):
    """Return planted rows; most of them have the first features, which the bias therefore sets.

    They are so few that searches for the shortest codelength start with up to 32 atoms: each further 32 atoms would
    need other variants of the kernels.
    """
    X = ba.datasets.planted(n, m, 3, algebra=algebra, code_density=0.4, noise=0.03, random_state=0).X.astype(float)
    random = np.random.default_rng(0)
    X[:, :3] = random.random((n, 3)) < 0.9
    return np.where(random.random(X.shape) < 0.05, np.nan, X) if unknown else X


def assert_same_result(found, expected):
    """Assert that two results have the same factors, counts and codelength."""
    assert found.atoms == expected.atoms
    assert found.codes == expected.codes
    assert found.codelength == expected.codelength
    assert found.ended == expected.ended
    for name in ("bias", "n_known", "wrong", "uses", "saved", "ones", "missed", "complete", "lacking", "rows_hash"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


@pytest.mark.parametrize(
    ("algebra", "data", "how"),
    [
        pytest.param("xor", table("xor"), {}, id="mdl"),
        pytest.param("xor", table("xor", True), {"search_rows": 50}, id="mdl, sample, unknown cells"),
        pytest.param("or", table("or", True), {"n_components": 3, "search_rows": 50}, id="k, sample, unknown cells"),
    ],
)
def test_a_search_finds_what_it_finds_on_the_cpu(device, algebra, data, how):
    expected, found = (
        ba.factorize(data, algebra=algebra, device=each, random_state=0, **how) for each in ("cpu", "cuda")
    )
    assert device.n_launches
    assert_same_result(found, expected)
    assert found.bias.any() == ("n_components" not in how)
    assert len(found.atoms) >= 2


@pytest.mark.parametrize("n_launches", [0, 100])
@pytest.mark.parametrize("how", ["a number of atoms", "windows"])
def test_a_search_for_which_a_device_has_no_memory_is_made_on_the_cpu(device, caplog, monkeypatch, how, n_launches):
    X, fit = table("xor"), {"random_state": 0, "algebra": "xor"}
    if how == "windows":
        use_windows(monkeypatch, min_features=30, width=20)
        X = np.hstack([X, X[::-1]])
    else:
        fit["n_components"] = 4
    expected = ba.factorize(X, **fit)
    device.n_launches_in_memory = n_launches
    with caplog.at_level("WARNING", "bitatoms"):
        found = ba.factorize(X, device="cuda", **fit)
    assert_same_result(found, expected)
    assert "searching on the CPU, because the memory of emulated device is too small" in caplog.text


@pytest.mark.parametrize("is_last", [False, True])
def test_passes_for_which_a_device_has_no_memory_end_with_an_error(device, is_last):
    X, fit = table("xor"), {"random_state": 0, "n_components": 4, "algebra": "xor", "search_rows": 40}
    device.min_rows = 41  # only the passes use the device
    found = ba.factorize(X, device="cuda", **fit)
    assert sum("over all rows" in each.move for each in found.history) > 1
    device.n_launches_in_memory = device.n_launches + (device.n_launches - 1 if is_last else 0)
    with pytest.raises(MemoryError, match="memory of the emulated device is too small"):
        ba.factorize(X, device="cuda", **fit)
