"""Passes and codes of a model on an emulated device: the bits of the host, also if its memory is small."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.engine import passes as pass_spec
from bitatoms.engine.block import Block
from bitatoms.engine.counts import voted_bits
from bitatoms.engine.device_rows import DeviceRows
from bitatoms.engine.host_rows import HostRows
from bitatoms.engine.information_sets import code_from_information_sets
from bitatoms.engine.passes import PassSpec, RowCounts, run_pass
from bitatoms.kernels.gpu.device import DeviceMemoryError
from bitatoms.model.model import Model
from bitatoms.parallel import Workers
from bitatoms.rows.budget import MemoryBudget, chunk_rows
from bitatoms.rows.source import MemoryRows
from bitatoms.sparse_bits import SparseBits
from support.blocks import bits_of, priced_rule
from support.devices import FOUND
from support.emulated_device import COMPILER, EmulatedDevice
from support.sources import assert_same_counts, learned
from support.strategies import planted, random_bits, random_prices

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="the emulated device needs a C++ compiler")
N_ROWS = 300


class SmallDevice(EmulatedDevice):
    """A device with memory for so many rows; ``sizes`` are the different numbers of rows of tables on it."""

    def __init__(self, max_rows=1 << 60):
        super().__init__()
        self._max_rows = max_rows
        self.sizes, self.n_released = set(), 0

    def resident(self, words):
        if len(words) > self._max_rows:
            raise DeviceMemoryError(f"the memory of {self.name} is too small: for {len(words)} rows")
        self.sizes |= {len(words)} if len(words) else set()
        return super().resident(words)

    def release(self):
        self.n_released += 1


def pass_of(algebra, coder, unknown, n_features=65):
    """Return rows with a bias, codes that they may start from, and a pass."""
    p = 7
    X, atoms, codes = planted(0, N_ROWS, n_features, p, algebra)
    if unknown:
        X[random_bits(1, *X.shape, 0.1) == 1] = 2
    bias = BitMatrix.from_dense(random_bits(2, 1, n_features, 0.2))
    rule = priced_rule(algebra, random_prices(3, n_features, p, (9, 20)))._replace(typical=40.0)
    remembered = BitMatrix.from_dense(codes[:20]) if coder == "beam" else None
    kept = None if coder == "beam" else np.arange(p)
    spec = PassSpec(BitMatrix.from_dense(atoms), bias, coder, rule, kept, remembered)
    return bits_of(X) ^ bias, BitMatrix.from_dense(codes), spec


def assert_same_pass(found, expected):
    assert found[0] == expected[0]
    assert_same_counts(found[1], expected[1])


@needs_compiler
@pytest.mark.parametrize(
    ("algebra", "coder", "unknown", "max_rows", "sizes"),
    [
        ("xor", "mdl", True, N_ROWS, {300}),
        ("or", "mdl", True, 128, {128, 64, 108}),
        ("xor", "beam", False, 299, {192, 108}),
    ],
)
def test_a_pass_codes_and_counts_as_on_the_host(algebra, coder, unknown, max_rows, sizes):
    data, codes, spec = pass_of(algebra, coder, unknown)
    device = SmallDevice(max_rows)
    found = run_pass(data, codes, spec, Workers(device=device))
    assert_same_pass(found, run_pass(data, codes, spec, Workers()))
    assert found[1].uses.any()
    assert device.sizes == sizes
    assert device.n_released == len(sizes) - 1  # before each attempt with fewer rows


@needs_compiler
@pytest.mark.parametrize("from_codes", [True, False])
def test_stuck_rows_are_coded_again_as_on_the_host(from_codes):
    """From draws and by beam; before, those that start from no codes, from the nearest of the remembered ones."""
    data, codes, spec = pass_of("xor", "mend", False)
    spec = replace(spec, rule=spec.rule._replace(typical=20.0))
    if not from_codes:
        codes, spec = None, replace(spec, kept=None, remembered=codes[:5])
    with mock.patch("bitatoms.engine.coding.code_from_information_sets", wraps=code_from_information_sets) as draws:
        found = run_pass(data, codes, spec, Workers(device=SmallDevice(N_ROWS)))
    assert draws.call_args.args[0].n_rows > 0
    assert_same_pass(found, run_pass(data, codes, spec, Workers()))
    assert_same_pass(found, run_pass(data, codes, spec, Workers(2, 64)))


@needs_compiler
@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_a_pass_by_groups_of_atoms_is_run_in_chunks(algebra):
    atoms = np.kron(np.eye(3, dtype=np.uint8), random_bits(0, 4, 30, 0.4))
    codes = random_bits(1, N_ROWS, 12, 0.2)
    data = BitMatrix.from_dense((codes @ atoms % 2) ^ random_bits(2, N_ROWS, 90, 0.05))
    rule = priced_rule(algebra, random_prices(3, 90, 12, (9, 20)))._replace(typical=40.0)
    bits, bias = BitMatrix.from_dense(atoms), BitMatrix.zeros(1, 90)
    with mock.patch.multiple(pass_spec, _MIN_SPLIT=1, _GROUP_COLUMNS=30):
        priced_by = RowCounts(N_ROWS, np.full(90, N_ROWS), np.full(90, 9), np.full(12, 30))
        with mock.patch.multiple("bitatoms.engine.counts", _MIN_FEATURES=0, MAX_VOTES=atoms.size - 1):
            voted = voted_bits(bits)
        spec = PassSpec(SparseBits.from_bits(bits), bias, "mdl", rule, voted=voted, priced_by=priced_by)
        assert spec.is_split
        device = SmallDevice(200)
        assert_same_pass(run_pass(data, None, spec, Workers(device=device)), run_pass(data, None, spec, Workers()))
    assert max(device.sizes) <= 200


@needs_compiler
def test_an_error_states_that_the_memory_of_the_device_is_too_small():
    data, codes, spec = pass_of("xor", "mdl", False)  # parts of fewer than 128 rows are not tried
    with pytest.raises(MemoryError, match="the memory of emulated device is too small") as caught:
        run_pass(data, codes, spec, Workers(device=SmallDevice(50)))
    assert isinstance(caught.value, DeviceMemoryError)


@needs_compiler
@pytest.mark.parametrize(("algebra", "as_ones"), [("xor", True), ("or", False)])
def test_codes_of_a_model_are_found_in_parts(algebra, as_ones):
    data = BitMatrix.from_dense(planted(0, N_ROWS, 65, 7, algebra)[0])
    model = Model.from_factorization(learned(MemoryRows(data, Workers()), n_components=5, algebra=algebra))
    given, device = SparseBits.from_bits(data) if as_ones else data, SmallDevice(150)
    codes = model.codes(given, Workers(device=device))
    assert codes == model.codes(data, Workers())
    assert codes.count()
    assert device.sizes
    assert max(device.sizes) <= 150
    with pytest.raises(DeviceMemoryError, match="is too small"):
        model.codes(given, Workers(device=SmallDevice(50)))


# --- chunks


@pytest.mark.parametrize(
    ("n_features", "expected"), [(0, 2097152), (256, 2097152), (257, 1677696), (784, 645248), (10**6, 1024)]
)
def test_chunks_of_a_device_have_more_rows(n_features, expected):
    assert chunk_rows(n_features, on_device=True) == expected
    assert chunk_rows(n_features) <= expected


def test_rows_in_memory_are_processed_in_the_chunks_of_a_device(chunk_sizes):
    data = BitMatrix.from_dense(np.zeros((40_000, 3), np.uint8))
    rule = priced_rule("xor", (np.ones(3), np.ones(1)))
    spec = PassSpec(BitMatrix.from_dense([[1, 0, 1]]), BitMatrix.zeros(1, 3), "mdl", rule)
    for workers, expected in ((Workers(), [32_768, 7232]), (Workers(device=FOUND), [40_000])):
        MemoryRows(data, workers).run_pass(spec)
        assert chunk_sizes == expected
        chunk_sizes.clear()


def test_the_chunks_of_a_device_keep_to_a_memory_limit():
    def rows(limit, on_device):
        return MemoryBudget(limit, 256, 2, read_bytes=1 << 20, on_device=on_device).chunk_rows(n_atoms=64)

    assert rows(20 << 20, True) == rows(20 << 20, False) < chunk_rows(256)
    assert chunk_rows(256) == rows(1 << 30, False) < rows(1 << 30, True) < rows(1 << 40, True) == 1 << 21


# --- blocks that stay on the host


def rows_of(device, n_rows=64, n_features=65):
    data, atoms = BitMatrix.zeros(n_rows, n_features), BitMatrix.zeros(3, n_features)
    return type(Block(data, atoms, None, True, Workers(device=device)).rows)


@needs_compiler
def test_a_block_is_on_the_device_if_it_fits_and_has_enough_rows():
    n_bytes = 64 * 8 * (10 * 2 + 6 * 1)
    assert rows_of(EmulatedDevice(free_bytes=2 * n_bytes)) is DeviceRows
    assert rows_of(EmulatedDevice(free_bytes=2 * n_bytes - 2)) is HostRows
    device = EmulatedDevice()
    assert rows_of(device, 2, 64 * 1023) is DeviceRows
    assert rows_of(device, 2, 64 * 1023 + 1) is HostRows  # too wide for the memory that threads share
    device.min_rows = 65
    assert rows_of(device) is HostRows
    assert rows_of(device, n_rows=65) is DeviceRows
