"""`DeviceRows` gives, bit for bit, what `HostRows` gives on the same block.

`test_block_machine.py` compares most operations on a device with the oracles; here is what has no oracle.

The device is an emulated one, unless TEST_DEVICE selects another.
"""

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.engine.block import Block
from bitatoms.engine.coding import code, code_from_scratch, coding_rule
from bitatoms.engine.device_rows import DeviceRows
from bitatoms.engine.exchange import run_trials
from bitatoms.engine.host_rows import HostRows
from bitatoms.engine.update import grow
from bitatoms.kernels.structs import TrialPlan
from bitatoms.parallel import Workers
from support import devices
from support.blocks import bits_of, block_of, priced_rule
from support.emulated_device import COMPILER, EmulatedDevice
from support.strategies import planted, random_bits, random_prices

DEVICE = devices.DEVICE or EmulatedDevice()
pytestmark = pytest.mark.skipif(
    COMPILER is None and isinstance(DEVICE, EmulatedDevice), reason="the emulated device needs a C++ compiler"
)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    """Let a device process few rows at a time, so that most tables are processed in several chunks."""
    monkeypatch.setattr(DEVICE, "work_bytes", 1)
    monkeypatch.setattr(DeviceRows, "min_chunk_rows", 48)
    monkeypatch.setattr("bitatoms.kernels.gpu.coding._ROWS_PER_LAUNCH", 40)


# Algebra, rows, features, atoms, some unknown; the bias sets some features, except in the first table. The sizes are
# such that few variants of the kernels are compiled: with up to 32 atoms, and with 65 to 96.
TABLES = {
    "one row": ("xor", 1, 63, 31, False),
    "xor": ("xor", 130, 130, 32, False),
    "xor, unknown": ("xor", 65, 64, 32, True),
    "or": ("or", 64, 65, 31, False),
    "or, unknown": ("or", 70, 130, 65, True),
}


def tables(*names):
    """Parametrize a test; only the last table is in the first tier, because each has kernels that are compiled."""
    slow = [pytest.param(name, marks=pytest.mark.slow) for name in names[:-1]]
    return pytest.mark.parametrize("table", [*slow, names[-1]])


every_table = tables(*TABLES)
tables_of_few_variants = tables("xor", "or, unknown")


def blocks_of(table, n_atoms=None):
    """Return a block on the host and the same one on a device."""
    algebra, n, m, p, unknown = TABLES[table]
    X, atoms, codes = planted(n + m, n, m, n_atoms or p, algebra)
    if unknown:
        X[random_bits(3, n, m, 0.1) == 1] = 2
    bias = BitMatrix.from_dense(random_bits(4, 1, m, 0.2 if n > 1 else 0))
    given = bits_of(X) ^ bias, BitMatrix.from_dense(atoms), BitMatrix.from_dense(codes), algebra == "or"
    blocks = [Block(*given, workers, bias) for workers in (Workers(), Workers(device=DEVICE))]
    assert [type(block.rows) for block in blocks] == [HostRows, DeviceRows]
    return blocks


def assert_same(host, device):
    """Assert that two blocks have the same atoms, rows and counts."""
    assert host.atoms() == device.atoms()
    rows, others = host.rows.on_host(), device.rows.on_host()
    for name in ("errors", "codes", "users", "covered", "twice", "unknown"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(others, name), name)
    np.testing.assert_array_equal(host.wrong(), device.wrong())
    np.testing.assert_array_equal(host.uses(), device.uses())
    assert host.data() == device.data()


def assert_both(blocks, operation):
    """Assert that an operation gives the same on both, and leaves the same blocks; return what it gives."""
    expected, found = (operation(block) for block in blocks)
    np.testing.assert_equal(found, expected)
    assert_same(*blocks)
    return expected


@every_table
@pytest.mark.parametrize("operation", [code, code_from_scratch])
def test_rows_are_coded_at_prices_with_many_atoms(table, operation):
    algebra, _, m, p, _ = TABLES[table]
    blocks, rule = blocks_of(table), priced_rule(algebra, random_prices(0, m, p))
    assert assert_both(blocks, lambda block: operation(block, rule)).codes > 0 or table == "one row"


@pytest.mark.slow
@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_sums_that_may_not_be_exact_are_not_computed_as_products(algebra):
    """Those of very wide tables at the highest price of an error."""
    m, p = (1 << 24) // (2 * 255) + 100, 5
    X, atoms, codes = planted(0, 2, m, p, algebra)
    prices = np.full(m, 255), np.full(p, 1 << 18)
    rule = priced_rule(algebra, prices)
    blocks = [block_of(X, atoms, codes, algebra, workers) for workers in (Workers(), Workers(device=DEVICE))]
    tables = blocks[1].rows.priced(blocks[1]._atoms.words, rule.prices)
    assert tables.shared is None
    lower = priced_rule(algebra, (prices[0] - 1, prices[1]))
    assert blocks[1].rows.priced(blocks[1]._atoms.words, lower.prices).shared is not None
    assert_both(blocks, lambda block: code_from_scratch(block, rule))
    assert_both(blocks, lambda block: block.row_costs(rule.prices))
    assert blocks[1].uses().any()


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(lambda block, rule: grow(block, block.targets()[-1], rule), id="grow"),
        pytest.param(
            lambda block, rule: run_trials(block, rule, TrialPlan(8, 2, 3, 0.01), block.targets()[:9], 0, False)[1:],
            id="trials",
        ),
    ],
)
@tables_of_few_variants
def test_a_block_moves_to_the_host_for_what_no_device_has(table, operation):
    blocks, rule = blocks_of(table, n_atoms=5), coding_rule("greedy", TABLES[table][0])
    for block in blocks:
        code(block, rule)
    assert_both(blocks, lambda block: operation(block, rule))
    assert isinstance(blocks[1].rows, HostRows)
    assert_both(blocks, lambda block: code(block, rule))
