"""Coding by beam, from information sets and exhaustively on a device, bit for bit as on the processor."""

import numpy as np
import pytest

from bitatoms.core.information_sets import draw_columns
from bitatoms.kernels.cpu import beam, gf2
from bitatoms.kernels.gpu import beam as gpu_beam
from bitatoms.kernels.gpu import information_sets as gpu_information_sets
from bitatoms.kernels.gpu.coding import atom_tables
from bitatoms.kernels.structs import RowArrays, beam_scratch, candidate_scratch, coding_scratch
from support.blocks import block_of, priced_rule
from support.emulated_device import COMPILER, EmulatedDevice

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None, reason="the emulated device needs a C++ compiler"),
]


@pytest.fixture(scope="module")
def device():
    return EmulatedDevice()


def test_kernels_are_compiled_in_a_folder_that_is_removed(device, tmp_path, monkeypatch):
    """A file with a predictable name in the folder for temporary files could be anybody's."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    device.prepare("rows.cu", "transpose", COVERS=0, UNKNOWN=0, COMPILED_BY_THIS_TEST=1)
    assert not list(tmp_path.iterdir())


def random_block(random, n, m, p, algebra, unknown=False, noise=0.05):
    """Return a block of noisy sums of atoms with random codes, and its atoms; some atoms and rows are alike."""
    atoms = random.random((p, m)) < random.choice([0.1, 0.5])
    if p > 4:
        atoms[2], atoms[4] = atoms[1], False
    true_codes = (random.random((n, p)) < 3 / p).astype(int)
    X = true_codes @ atoms > 0 if algebra == "or" else true_codes @ atoms % 2 == 1
    X = (X ^ (random.random((n, m)) < noise)).astype(np.uint8)
    X[n // 2 :: 3] = X[0]
    if unknown:
        X[random.random((n, m)) < 0.1] = 2
    codes = (random.random((n, p)) < 2 / p).astype(np.uint8)
    codes[n // 3 :: 2] = 0
    return block_of(X, atoms.astype(np.uint8), codes, algebra), atoms.astype(np.int32)


def random_rule(random, m, p, max_atoms, residual_limit=0):
    """Return a rule at prices; half of them are those with most ties."""
    if random.random() < 0.5:
        return priced_rule("xor", (np.ones(m), np.ones(p)), max_atoms, residual_limit)
    prices = random.integers(1, 6, m), random.integers(0, 12, p)
    return priced_rule("xor", prices, max_atoms, residual_limit)


def copied(rows):
    return RowArrays(*(np.array(array) for array in rows))


def assert_same_rows(rows, others):
    for name in ("errors", "codes", "covered", "twice", "stale"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(others, name), name)


def priced_tables(block, atoms, prices):
    """Return the tables of the processor for these atoms, listed by column."""
    lanes = len(block._atoms.weights)
    weights, overlaps = np.zeros(lanes, np.int32), np.zeros((len(atoms), lanes), np.int32)
    weights[: len(atoms)] = atoms @ prices.bits
    overlaps[:, : len(atoms)] = 2 * (atoms * prices.bits) @ atoms.T
    starts = np.concatenate([[0], np.cumsum(atoms.sum(axis=0))]).astype(np.int64)
    listed = np.nonzero(atoms.T)[1].astype(np.int32)
    slices = np.empty((0, lanes), np.uint8)
    return block._atoms._replace(
        weights=weights, slices=slices, overlaps=overlaps, column_starts=starts, column_atoms=listed
    )


def beam_both(device, block, atoms, rule, width, patience):
    """Beam-code rows on both; return those of the device, and whether the numbers of changed bits are the same."""
    rows, tables = copied(block._rows), priced_tables(block, atoms, rule.prices)
    fingerprints = np.empty(len(atoms), np.uint64)
    beam.fingerprint_atoms(block._atoms.words, fingerprints)
    scratches = (coding_scratch(block._rows, tables) for _ in range(2))
    work = beam_scratch(block._rows, tables, width), *scratches
    given = block._rows, tables, rule, fingerprints, patience, 0, block.n_rows
    changes = beam.beam_rows(*given, *work)
    on_device = atom_tables(device, block._atoms.words, block.n_features, False, rule.prices)
    assert gpu_beam.beam_rows(device, rows, on_device, rule, fingerprints, width, patience) == changes
    assert_same_rows(rows, block._rows)
    return changes


# Rows, features, atoms, width, patience, most atoms, most errors left, some unknown: four variants of the kernel.
BEAMS = [
    (1, 63, 63, 4, 2, None, 0, False),
    (12, 65, 33, 32, 2, None, 0, False),
    (12, 130, 64, 1, 1, None, 3, False),
    (12, 64, 48, 8, 2, 2, 0, False),
    (12, 63, 64, 31, 3, 3, 0, True),
    (9, 130, 65, 33, 1, None, 0, False),
    (9, 1, 1, 4, 2, None, 0, True),
    (9, 64, 65, 50, 3, None, 0, False),
    (9, 33, 120, 64, 2, None, 0, False),
]


@pytest.mark.parametrize("case", BEAMS, ids=str)
def test_beam_codes_rows_as_the_processor_does(device, case):
    n, m, p, width, patience, max_atoms, residual_limit, unknown = case
    random = np.random.default_rng(BEAMS.index(case))
    block, atoms = random_block(random, n, m, p, "xor", unknown)
    block._rows.stale[:] = random.random(n) < 0.8
    rule = random_rule(random, m, p, max_atoms, residual_limit)
    codes, errors = beam_both(device, block, atoms, rule, width, patience)
    assert (codes > 0 and errors > 0) or m == 1 or n == 1


@pytest.mark.parametrize("width", [2, 40])
def test_beam_adds_gains_to_sums_of_more_than_32_bits(device, width):
    atoms = np.kron(np.eye(13, dtype=np.uint8), np.ones((1, 10), np.uint8))
    X = np.random.default_rng(0).random((5, 130)) < 0.9
    block = block_of(X.astype(np.uint8), atoms, np.zeros((5, 13), np.uint8), "xor")
    rule = priced_rule("xor", (np.full(130, 1 << 26), np.arange(13)))
    codes, _ = beam_both(device, block, atoms.astype(np.int32), rule, width, 3)
    assert codes == np.count_nonzero(X.reshape(5, 13, 10).sum(axis=2) > 5)


def test_beam_needs_memory_for_one_block_of_threads_only():
    random, device = np.random.default_rng(0), EmulatedDevice(free_bytes=0)
    block, atoms = random_block(random, 40, 64, 64, "xor")
    assert beam_both(device, block, atoms, random_rule(random, 64, 64, None), 4, 2)[0] > 0


# Rows, features, atoms, draws, slack, most atoms, some unknown.
DRAWS = [
    (1, 63, 31, 3, 2, None, False),
    (20, 64, 32, 8, 0, None, False),
    (20, 130, 65, 4, 0, 5, False),
    (20, 1, 5, 2, 0, None, False),
    (20, 65, 63, 8, 0, None, True),
    (20, 64, 9, 8, 2, 1, True),
]


def code_both_from_draws(device, block, rule, draws, slack):
    """Code rows from draws on both; return the number of code bits that changed."""
    rows, targets, candidates = copied(block._rows), block.targets(), candidate_scratch(block._rows)
    before = rows.codes.copy()
    for draw in draws:
        given = block._rows, block._atoms, targets, rule, draw, slack, 0, block.n_rows
        gf2.code_from_columns(*given, candidates)
    gpu_information_sets.code_from_columns(device, rows, targets, rule, draws, slack)
    assert_same_rows(rows, block._rows)
    return int(np.bitwise_count(rows.codes ^ before).sum())


@pytest.mark.parametrize("case", DRAWS, ids=str)
def test_information_sets_code_rows_as_the_processor_does(device, case):
    n, m, p, n_draws, slack, max_atoms, unknown = case
    random = np.random.default_rng(DRAWS.index(case))
    block, _ = random_block(random, n, m, p, "xor", unknown, noise=0.01)
    draws = [draw_columns(block, random) for _ in range(n_draws)]
    n_changed = code_both_from_draws(device, block, random_rule(random, m, p, max_atoms), draws, slack)
    assert n_changed > 0 or n == 1


def test_information_sets_of_empty_atoms_code_rows_without_them(device):
    block = block_of(np.eye(7, 9, dtype=np.uint8), np.zeros((3, 9), np.uint8), np.ones((7, 3), np.uint8), "xor")
    draws = [draw_columns(block, np.random.default_rng(0))]
    assert len(draws[0].pivots) == 0
    rule = priced_rule("xor", (np.ones(9), np.ones(3)))
    assert code_both_from_draws(device, block, rule, draws, slack=2) == 21


# Algebra, rows, features, atoms, most atoms, most errors left, some unknown: two variants of the kernel.
