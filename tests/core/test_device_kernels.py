"""`DeviceKernels` gives, bit for bit, what `HostKernels` gives on the same block.

The device is an emulated one, unless TEST_DEVICE selects another.
"""

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.core.atoms import fit_each, grow, update_each
from bitatoms.core.block import Block
from bitatoms.core.coding import code, code_by_beam, code_from_scratch, code_from_subsets, coding_rule, pursue
from bitatoms.core.device_kernels import DeviceKernels
from bitatoms.core.exact import update_exactly
from bitatoms.core.host_kernels import HostKernels
from bitatoms.core.information_sets import draw_columns
from bitatoms.core.removal import AtomRemoval
from bitatoms.core.trials import run_trials
from bitatoms.kernels.structs import TrialPlan
from bitatoms.parallel import Workers
from support import devices
from support.blocks import bits_of, block_of, packed, priced_rule, prices_of
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
    monkeypatch.setattr(DeviceKernels, "min_chunk_rows", 48)
    monkeypatch.setattr("bitatoms.kernels.gpu.beam._ROWS_PER_LAUNCH", 40)


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
tables_of_xor = tables("one row", "xor, unknown", "xor")
tables_without_prices = tables("one row", "xor", "or, unknown")
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
    assert [type(block.kernels) for block in blocks] == [HostKernels, DeviceKernels]
    return blocks


def rule_of(table, n_atoms=None, seed=0, most=(5, 9), **limits):
    """Return a rule at small prices, at which many codes cost the same, or at others."""
    algebra, _, m, p, _ = TABLES[table]
    return priced_rule(algebra, random_prices(seed, m, n_atoms or p, most), **limits)


def assert_same(host, device):
    """Assert that two blocks have the same atoms, rows and counts."""
    assert host.atoms() == device.atoms()
    rows, others = host.rows_on_host(), device.rows_on_host()
    for name in ("errors", "codes", "users", "covered", "twice", "unknown"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(others, name), name)
    np.testing.assert_array_equal(host.wrong(), device.wrong())
    np.testing.assert_array_equal(host.uses(), device.uses())
    assert host.data() == device.data()


def assert_equal_results(found, expected):
    """Assert that all arrays and numbers of two results are equal."""
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for own, other in zip(found, expected, strict=True):
            assert_equal_results(own, other)
    else:
        np.testing.assert_array_equal(found, expected)


def assert_both(blocks, operation):
    """Assert that an operation gives the same on both, and leaves the same blocks; return what it gives."""
    expected, found = (operation(block) for block in blocks)
    assert_equal_results(found, expected)
    assert_same(*blocks)
    return expected


# --- coding


@tables_without_prices
@pytest.mark.parametrize("limits", [{}, {"max_atoms": 2, "residual_limit": 9}], ids=str)
def test_stale_rows_are_coded(table, limits):
    algebra, _, m, p, _ = TABLES[table]
    blocks, rule = blocks_of(table), coding_rule("greedy", algebra, **limits)
    assert assert_both(blocks, lambda block: code(block, rule)).codes > 0 or table == "one row"
    flips = np.zeros((p, BitMatrix.zeros(1, m).words.shape[1]), np.uint64)
    flips[1, 0] = 5  # a few rows are stale, and others are not
    assert_both(blocks, lambda block: block.flip(flips))
    assert_both(blocks, lambda block: code(block, rule))
    assert not any(block.kernels.to_host(block._rows.stale).any() for block in blocks)


@every_table
@pytest.mark.parametrize("operation", [code, code_from_scratch])
@pytest.mark.parametrize(
    ("most", "limits"), [((1, 0), {}), ((255, 300), {"max_atoms": 2, "residual_limit": 9})], ids=["ties", "limits"]
)
def test_rows_are_coded_at_prices(table, operation, most, limits):
    blocks, rule = blocks_of(table), rule_of(table, most=most, **limits)
    assert assert_both(blocks, lambda block: operation(block, rule)).codes > 0 or limits or table == "one row"
    assert_both(blocks, lambda block: block.row_costs(rule.prices))


@pytest.mark.parametrize("operation", [code, code_from_scratch])
@pytest.mark.parametrize("forbids", [False, True])
def test_rows_are_coded_where_missed_and_added_ones_have_prices(operation, forbids):
    _, _, m, p, _ = TABLES["or"]
    random, blocks = np.random.default_rng(0), blocks_of("or")
    forbidden = (random.random(m) < 0.3) & forbids
    prices = prices_of(random.integers(1, 300, m), random.integers(0, 50, p), random.integers(1, 90, m), forbidden)
    rule = coding_rule("mdl", "or", prices=prices)
    assert assert_both(blocks, lambda block: operation(block, rule)).codes > 0
    assert_both(blocks, lambda block: block.row_costs(prices))
    assert_both(blocks, lambda block: block.added())
    atoms, removals = np.arange(0, p, 4), [AtomRemoval(block, rule) for block in blocks]
    changes = [removal.changes(atoms, removal.users_of(atoms)) for removal in removals]
    assert_equal_results(changes[1], changes[0])
    assert changes[0].added.any()


@tables_of_xor
@pytest.mark.parametrize(("width", "patience", "max_atoms"), [(4, 2, None), (1, 1, 2), (40, 3, None)])
def test_rows_are_coded_by_a_beam(table, width, patience, max_atoms):
    blocks, rule = blocks_of(table), rule_of(table, max_atoms=max_atoms)

    def code_some(block):
        block._rows.stale[::2] = 0
        tables = block.kernels.priced(block._atoms.words, rule.prices)
        return block.kernels.code_by_beam(tables, rule, width, patience)

    assert_both(blocks, code_some)


def test_rows_are_coded_by_beams_of_several_widths():
    blocks, rule = blocks_of("xor"), rule_of("xor")
    for block in blocks:
        code(block, rule)
    assert_both(blocks, lambda block: code_by_beam(block.sample(np.arange(20)), rule))


@tables_of_xor
@pytest.mark.parametrize("slack", [0, 2])
def test_rows_are_coded_from_draws(table, slack):
    blocks, rule, random = blocks_of(table), rule_of(table), np.random.default_rng(0)
    draws = [draw_columns(blocks[0], random) for _ in range(5)]
    assert_both(blocks, lambda block: block.kernels.code_from_draws(draws, block._targets(), rule, slack))


@tables_of_few_variants
def test_rows_are_coded_exactly(table):
    blocks, rule = blocks_of(table, n_atoms=9), coding_rule("exact", TABLES[table][0], max_atoms=4)
    assert min(assert_both(blocks, lambda block: block.kernels.code_exactly(rule))) > 0


@tables("or", "or, unknown")
def test_rows_are_coded_from_subsets(table):
    blocks, rule = blocks_of(table), rule_of(table)
    atoms = blocks[0]._atoms.words
    for most in (0, 1, 3, 100):

        def codes(block, most=most):
            targets = block.kernels.asarray(block.targets() | block.unknown.words if block.unknown else block.targets())
            return block.kernels.to_host(block.kernels.subset_codes(targets, atoms, most))

        assert assert_both(blocks, codes).any() == (most > 0)
    assert_both(blocks, lambda block: code_from_subsets(block, rule))


@every_table
def test_atoms_are_offered(table):
    blocks, m, rule = blocks_of(table), TABLES[table][2], rule_of(table, n_atoms=31)
    offered = np.vstack([blocks[0].targets()[:1], packed(random_bits(0, 30, m, 0.1))])

    def offer(block):
        return block.kernels.offer(block.kernels.priced(offered, rule.prices), rule)

    assert assert_both(blocks, offer).any() or table == "one row"


@every_table
def test_the_nearest_pattern_is_found(table):
    _, n, m, _, _ = TABLES[table]
    blocks, rule = blocks_of(table), rule_of(table)
    patterns = BitMatrix.from_words(np.vstack([blocks[0].targets()[::3], packed(random_bits(0, 5, m, 0.2))])[:32], m)
    uses = prices_of([], np.random.default_rng(0).integers(0, 20, len(patterns))).uses
    (part,), (other,) = ([part.block for part in block.uncoded_chunks(n)] for block in blocks)
    found = [block.kernels.to_host(block.kernels.nearest(patterns, rule, uses)) for block in (part, other)]
    np.testing.assert_array_equal(*found)
    assert (found[0] >= 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_sums_that_may_not_be_exact_are_not_computed_as_products(algebra):
    """Those of very wide tables at the highest price of an error."""
    m, p = (1 << 24) // (2 * 255) + 100, 5
    X, atoms, codes = planted(0, 2, m, p, algebra)
    prices = np.full(m, 255), np.full(p, 1 << 18)
    rule = priced_rule(algebra, prices)
    blocks = [block_of(X, atoms, codes, algebra, workers) for workers in (Workers(), Workers(device=DEVICE))]
    tables = blocks[1].kernels.priced(blocks[1]._atoms.words, rule.prices)
    assert tables.shared is None
    lower = priced_rule(algebra, (prices[0] - 1, prices[1]))
    assert blocks[1].kernels.priced(blocks[1]._atoms.words, lower.prices).shared is not None
    assert_both(blocks, lambda block: code_from_scratch(block, rule))
    assert_both(blocks, lambda block: block.row_costs(rule.prices))
    assert blocks[1].uses().any()


# --- rows


@every_table
def test_rows_are_restored(table):
    blocks, n = blocks_of(table), TABLES[table][1]
    indices = np.random.default_rng(0).permutation(n)[: 1 + n // 3]
    before = blocks[0].rows_on_host()
    codes, errors = before.codes[indices].copy(), before.errors[indices].copy()
    for block in blocks:
        code(block, rule_of(table))
    assert n == 1 or (blocks[0].rows_on_host().codes[indices] != codes).any()

    def restore(block):
        block.kernels.restore_rows(*(block.kernels.asarray(array) for array in (indices, codes, errors)))

    assert_both(blocks, restore)
    np.testing.assert_array_equal(blocks[1].rows_on_host().codes[indices], codes)


@every_table
def test_flips_of_atoms_are_followed(table):
    blocks, (_, _, m, p, _) = blocks_of(table), TABLES[table]
    flips = packed(random_bits(9, p, m, 0.05))
    flips[::3] = 0
    assert assert_both(blocks, lambda block: block.flip(flips)).errors > 0


@every_table
def test_atoms_are_removed(table):
    blocks, p = blocks_of(table), TABLES[table][3]
    removals = [AtomRemoval(block, rule_of(table)) for block in blocks]
    tested = np.arange(0, p, 3)
    for _ in range(2):
        changes = [removal.changes(tested, removal.users_of(tested)) for removal in removals]
        assert_equal_results(changes[1], changes[0])
        assert_same(*blocks)
        for removal in removals:
            removal.remove(0)
        assert_same(*blocks)
    assert changes[0].uses.any()
    assert not blocks[1].uses()[0]


# --- counts


@every_table
def test_rows_are_counted(table):
    blocks, (algebra, n, m, p, _) = blocks_of(table), TABLES[table]
    data, rule = blocks[0].data(), rule_of(table, max_atoms=3)
    users = packed(random_bits(5, 7, n, 0.3))
    patterns = packed(random_bits(6, 31, m, 0.1))
    for operation in (
        lambda block: block.kernels.uses(),
        lambda block: block.kernels.column_weights(block._read_rows.errors),
        lambda block: block.votes(0, p),
        lambda block: block.votes(p // 3, p // 2),
        lambda block: block.votes_of(users),
        lambda block: block.pairs(),
        lambda block: block.kernels.members(data),
        lambda block: block.kernels.ones(data),
        lambda block: block.kernels.hash_rows(data),
        lambda block: block.missed(data),
        lambda block: block.row_costs(rule.prices),
        lambda block: block.kernels.improvable(rule),
        lambda block: block.kernels.improvable(rule._replace(residual_limit=9)),
        lambda block: block.fixable_errors(np.arange(0, n, 2)),
        lambda block: block.rows_fixable_at(np.array([m - 1, 0, m // 2])),
        lambda block: block.count_changed_codes(BitMatrix.zeros(n, p)),
    ):
        assert_both(blocks, operation)
    if table != "xor, unknown" and table != "or":
        fixed = assert_both(blocks, lambda block: block.errors_fixed_by(patterns))
        assert fixed.any() or algebra == "or" or n == 1


# --- operations of blocks


@every_table
def test_atoms_are_appended_and_discarded(table):
    blocks, (_, n, m, p, _) = blocks_of(table), TABLES[table]
    assert_both(blocks, lambda block: block.append(packed(random_bits(7, 64 - p % 64 + 1, m, 0.1))))
    assert_both(blocks, lambda block: block.append_row_as_atom(n // 2))
    dropped = np.random.default_rng(0).random(blocks[0].n_atoms) < 0.4
    assert_both(blocks, lambda block: block.discard(dropped))
    assert_both(blocks, lambda block: block.discard(np.ones(block.n_atoms, bool)))


@every_table
def test_a_state_is_restored(table):
    blocks = blocks_of(table)
    states, before = [block.save() for block in blocks], blocks[0].factors()
    for block in blocks:
        code(block, rule_of(table))
    assert_both(blocks, lambda block: block.flip(packed(random_bits(9, *block.atoms().shape, 0.05))))
    for block, state in zip(blocks, states, strict=True):
        block.restore(state)
    assert_same(*blocks)
    assert blocks[1].factors() == before


@every_table
def test_codes_of_a_sample_are_taken(table):
    blocks, n = blocks_of(table), TABLES[table][1]
    rows = np.random.default_rng(1).permutation(n)[: 1 + n // 2]

    def take(block):
        sample = block.sample(rows)
        assert type(sample.kernels) is type(block.kernels)
        code(sample, rule_of(table))
        block.take_codes(rows, sample)
        return sample.codes().words

    assert_both(blocks, take)


@tables_of_xor
def test_the_basis_is_changed(table):
    blocks = blocks_of(table)
    atoms, users = blocks[0]._atoms.words.copy(), blocks[0].users()
    atoms[0] ^= atoms[1]  # whoever used the first atom now uses both
    users[1] ^= users[0]
    assert_both(blocks, lambda block: block.change_basis(atoms, users))
    errors = blocks[1].rows_on_host().errors.copy()
    blocks[1].recompute_cover()
    assert_both(blocks, lambda block: block.restore(block.save()))
    np.testing.assert_array_equal(blocks[1].rows_on_host().errors, errors)


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(lambda block, rule: update_each(block), id="mob"),
        pytest.param(fit_each, id="k-prox"),
        pytest.param(lambda block, rule: grow(block, block.targets()[-1], rule), id="grow"),
        pytest.param(lambda block, rule: update_exactly(block), id="exact"),
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
    assert isinstance(blocks[1].kernels, HostKernels)
    assert_both(blocks, lambda block: code(block, rule))


@tables_of_few_variants
def test_a_block_that_moved_to_the_host_is_coded_as_one_that_was_there(table):
    blocks, rule = blocks_of(table), coding_rule("greedy", TABLES[table][0])
    assert_both(blocks, lambda block: code(block, rule))
    assert_both(blocks, update_each)
    assert all(isinstance(block.kernels, HostKernels) for block in blocks)
    assert_both(blocks, lambda block: code(block, rule))


def test_pursuit_moves_a_block_to_the_host():
    blocks, rule = blocks_of("xor"), coding_rule("bmp", "xor")
    assert assert_both(blocks, lambda block: pursue(block, rule)).codes > 0
    assert isinstance(blocks[1].kernels, HostKernels)
