"""Random sequences of operations on a block, each compared with its oracle bit for bit, for any chunks and threads.

What a block remembers (stale rows and atoms, tables, cover masks, counts) must not outlive a step of another kind.
"""

import numpy as np
import pytest
from hypothesis import Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import naive
from bitatoms.bits import BitMatrix
from bitatoms.engine.block import Block, Change
from bitatoms.engine.coding import (
    code,
    code_exactly,
    code_from_nearest,
    code_from_scratch,
    code_from_subsets,
    coding_rule,
    pursue,
    would_use,
)
from bitatoms.engine.device_rows import DeviceRows
from bitatoms.engine.host_rows import HostRows
from bitatoms.engine.information_sets import code_from_information_sets
from bitatoms.engine.update import fit_each, update_each, update_exactly, update_together
from bitatoms.parallel import Workers
from support.blocks import (
    LIMITS,
    WORKERS,
    assert_consistent,
    assert_step,
    bits_of,
    changes_without,
    factors,
    packed,
    priced_rule,
    prices_of,
    unpacked,
)
from support.devices import DEVICE
from support.emulated_device import COMPILER, EmulatedDevice
from support.strategies import SEEDS, factorisations, random_bits, random_prices

# Rows, features and atoms: none, one, and around the sizes of words, bytes and lanes. Many atoms with few rows, because
# the oracles are slow.
SHAPES = (
    (0, 5, 2), (1, 1, 1), (6, 8, 0), (5, 63, 3), (17, 64, 5), (65, 9, 4), (64, 65, 2), (130, 7, 3), (9, 130, 17),
    (5, 200, 16), (6, 300, 15), (4, 65, 63), (3, 64, 64), (3, 65, 65), (2, 130, 130), (2, 200, 128),
)  # fmt: skip
DEVICE_SHAPES = ((1, 63, 9), (65, 64, 5), (70, 130, 4))  # few, because each needs kernels of its own
DENSITIES = st.sampled_from((0.0, 0.05, 0.3, 1.0))
RESIDUALS = st.sampled_from((0, 0, 3))
HIGHEST = st.sampled_from(((1, 0), (1, 2), (3, 5), (255, 300), (255, 20000)))  # prices of errors and of uses
# What fails is reported as it is found: to shrink sequences takes minutes.
HOW = settings(phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False)
REFUSED = 1 << 27  # the price of a use that no row pays


def without_bias(X, bias):
    """Return the data less the bias; unknown cells stay unknown."""
    return np.where(X > 1, X, X ^ bias).astype(np.uint8)


class BlockMachine(RuleBasedStateMachine):
    """A block, and the atoms and codes that the oracles lead to; ``X`` is the data less the bias."""

    algebra, shapes, workers = "xor", SHAPES, WORKERS
    max_atoms = 140

    @initialize(data=st.data(), seed=SEEDS, bias=DENSITIES, max_atoms=LIMITS, residual=RESIDUALS)
    def make(self, data, seed, bias, max_atoms, residual):
        self.limits = max_atoms, residual  # the same as long as a block remembers which rows were coded within them
        n, m, p = data.draw(st.sampled_from(self.shapes))
        problem = data.draw(factorisations(st.just(n), st.just(m), st.just(p)))
        workers, (X, self.atoms, self.codes) = data.draw(self.workers), problem
        bias = random_bits(seed, 1, X.shape[1], bias)
        tables = [bits_of(table) for table in problem]
        self.block = Block(*tables, self.algebra == "or", workers, BitMatrix.from_dense(bias))
        self.X, self.saved = without_bias(X, bias), None

    def after(self, change, atoms=None, codes=None):
        """Assert that a step led to these atoms and codes, and counted what it changed."""
        before = self.atoms, self.codes
        self.atoms, self.codes = (old if new is None else new for old, new in zip(before, (atoms, codes), strict=True))
        if change is not None:
            assert_step(self.block, change, self.X, before, (self.atoms, self.codes), self.algebra)

    def prices(self, seed, highest):
        return random_prices(seed, self.X.shape[1], len(self.atoms), highest)

    def own_prices(self, seed, n_atoms):
        """Return even prices of missed and of added ones, of uses, and forbidden columns."""
        random, m = np.random.default_rng(seed), self.X.shape[1]
        missed, added = 2 * random.integers(1, 12, (2, m))
        return missed, random.integers(0, 20, n_atoms), added, random.random(m) < random.choice([0, 0.1, 1])

    def few_atoms(self, most):
        return len(self.atoms) <= most

    @invariant()
    def the_state_is_that_of_the_oracles(self):
        for found, wanted in zip(factors(self.block), (self.atoms, self.codes), strict=True):
            np.testing.assert_array_equal(found, wanted)
        assert_consistent(self.block, self.X, self.algebra)

    # --- coding

    @rule(coder=st.sampled_from(("greedy", "bmp")))
    def code(self, coder):
        change = code(self.block, coding_rule(coder, self.algebra, *self.limits))
        self.after(change, codes=naive.code(self.X, self.atoms, self.codes, coder, self.algebra, *self.limits))

    @precondition(lambda self: self.algebra == "xor")
    @rule()
    def pursue(self):
        """The second time, rows that did not change are skipped; another coder would have to code them."""
        for _ in range(2):
            change = pursue(self.block, coding_rule("bmp", "xor", *self.limits))
            self.after(change, codes=naive.pursue(self.X, self.atoms, self.codes, "xor", *self.limits))
        self.block.mark_stale()

    @rule(seed=SEEDS, highest=HIGHEST, max_atoms=LIMITS, residual=RESIDUALS, afresh=st.booleans(), swaps=st.booleans())
    def code_at_prices(self, seed, highest, max_atoms, residual, afresh, swaps):
        prices = self.prices(seed, highest)
        prices[1][seed % 7 :: 7] = REFUSED if seed % 2 else 0
        how = priced_rule(self.algebra, prices, max_atoms, residual)
        limits = max_atoms, residual or -1  # a row without errors may be coded for less
        if afresh:
            change = code_from_scratch(self.block, how)
            expected = naive.code_from_scratch(self.X, self.atoms, self.codes, self.algebra, prices, *limits)
        else:
            change = code(self.block, how._replace(swaps=swaps))
            expected = naive.priced_code(self.X, self.atoms, self.codes, self.algebra, prices, *limits, swaps)
        self.after(change, codes=expected)

    @precondition(lambda self: self.algebra == "or")
    @rule(seed=SEEDS, max_atoms=LIMITS, afresh=st.booleans())
    def code_at_prices_of_missed_and_added_ones(self, seed, max_atoms, afresh):
        prices = self.own_prices(seed, len(self.atoms))
        how, start = priced_rule("or", prices, max_atoms), self.codes
        if afresh:
            allowed = [~naive.forbidden_atoms(x, self.atoms, prices) for x in self.X]
            start = self.codes * np.array(allowed, np.uint8).reshape(self.codes.shape)
        (code_from_scratch if afresh else code)(self.block, how)
        oracle = naive.code_from_scratch if afresh else naive.priced_code
        self.after(None, codes=oracle(self.X, self.atoms, start, "or", prices, max_atoms))
        assert self.block.row_costs(how.prices).tolist() == naive.costs(self.X, self.atoms, self.codes, "or", prices)
        errors = naive.errors(self.X, self.atoms, self.codes, "or")
        added = errors & (self.X ^ self.block.bias.to_dense() == 0)
        np.testing.assert_array_equal(self.block.added(), added.sum(axis=0))

    @precondition(lambda self: self.algebra == "xor")
    @rule(
        seed=SEEDS, highest=HIGHEST, max_atoms=LIMITS, residual=RESIDUALS,
        width=st.sampled_from((1, 4, 9)), patience=st.integers(1, 3),
    )  # fmt: skip
    def code_by_beam(self, seed, highest, max_atoms, residual, width, patience):
        assume(0 < len(self.atoms) and self.few_atoms(17))
        prices, rows = self.prices(seed, highest), self.block.rows
        how = priced_rule("xor", prices, max_atoms, residual)
        self.block.mark_stale()
        codes, errors = rows.code_by_beam(rows.priced(self.block.atoms().words, how.prices), how, width, patience)
        self.block.mark_stale()
        limits = max_atoms, residual or -1
        expected = naive.beam_pass(self.X, self.atoms, self.codes, prices, width, patience, *limits)
        self.after(Change(codes=codes, errors=errors), codes=expected)

    @precondition(lambda self: self.algebra == "xor")
    @rule(seed=SEEDS, highest=HIGHEST, max_atoms=LIMITS)
    def code_from_information_sets(self, seed, highest, max_atoms):
        prices, random = self.prices(seed, highest), np.random.default_rng(seed)
        how = priced_rule("xor", prices, max_atoms)
        change, codes = code_from_information_sets(self.block, how, np.random.default_rng(seed), 2), self.codes
        for _ in range(2 if 0 < len(self.atoms) <= 128 and len(self.X) else 0):
            order, columns = random.permutation(len(self.atoms)), random.permutation(self.X.shape[1])
            codes = naive.information_set_code(self.X, self.atoms, codes, order, columns, prices, max_atoms)
        self.after(change, codes=codes)

    @precondition(lambda self: self.algebra == "or")
    @rule(seed=SEEDS, highest=HIGHEST, max_atoms=LIMITS, residual=RESIDUALS, chunk_rows=st.sampled_from((1, 9)))
    def code_from_subsets(self, seed, highest, max_atoms, residual, chunk_rows):
        prices = self.prices(seed, highest)
        change = code_from_subsets(self.block, priced_rule("or", prices, max_atoms, residual), chunk_rows)
        if residual:
            assert not change
            return
        subsets = np.array([[not (a & (x == 0)).any() for a in self.atoms] for x in self.X], np.uint8)
        subsets = subsets.reshape(self.codes.shape)
        subsets[subsets.sum(axis=1) > (len(self.atoms) if max_atoms is None else max_atoms)] = 0
        coded = naive.priced_code(self.X, self.atoms, subsets, "or", prices, max_atoms)
        self.after(change, codes=naive.cheaper(self.X, self.atoms, self.codes, coded, "or", prices))

    @rule(seed=SEEDS, highest=HIGHEST, max_atoms=LIMITS, n=st.sampled_from((1, 17)))
    def code_from_nearest(self, seed, highest, max_atoms, n):
        prices, remembered = self.prices(seed, highest), random_bits(seed, n, len(self.atoms), 0.3)
        remembered = np.vstack([self.codes[::3], remembered])
        how = priced_rule(self.algebra, prices, max_atoms)
        change = code_from_nearest(self.block, how, BitMatrix.from_dense(remembered))
        nearest = naive.nearest_code(self.X, self.atoms, remembered, self.algebra, prices, max_atoms)
        coded = naive.priced_code(self.X, self.atoms, nearest, self.algebra, prices, max_atoms)
        self.after(change, codes=naive.cheaper(self.X, self.atoms, self.codes, coded, self.algebra, prices))

    @precondition(lambda self: self.few_atoms(6))
    @rule(max_atoms=LIMITS, residual=RESIDUALS)
    def code_exactly(self, max_atoms, residual):
        change = code_exactly(self.block, coding_rule("exact", self.algebra, max_atoms, residual))
        self.after(change, codes=naive.exact_code(self.X, self.atoms, self.codes, self.algebra, max_atoms, residual))

    @rule(seed=SEEDS, highest=HIGHEST, own=st.booleans())
    def remove_an_atom(self, seed, highest, own):
        """What that would change is counted first, for all atoms, and leaves no trace."""
        assume(len(self.atoms))
        own &= self.algebra == "or"
        prices, tested = self.prices(seed, highest), np.arange(len(self.atoms))
        if own:
            prices = self.own_prices(seed, len(tested))
            self.block.mark_stale()
            code(self.block, priced_rule("or", prices))
            self.after(None, codes=naive.priced_code(self.X, self.atoms, self.codes, "or", prices))
        removal, expected = self.block.removal(priced_rule(self.algebra, prices)), None
        counts = [changes_without(self.block, removal, k, own) for k in tested]
        before, uses = naive.errors(self.X, self.atoms, self.codes, self.algebra).astype(int), self.codes
        for k in {0, seed % len(tested)}:
            refused = prices[0], np.where(tested == k, REFUSED, prices[1]), *prices[2:]
            users, expected = np.flatnonzero(self.codes[:, k]), self.codes.copy()
            expected[users] = naive.priced_code(self.X[users], self.atoms, self.codes[users], self.algebra, refused)
            more = naive.errors(self.X, self.atoms, expected, self.algebra) - before
            np.testing.assert_array_equal(counts[k].wrong, more.sum(axis=0))
            assert not own or counts[k].added.tolist() == (more * (self.X == 0)).sum(axis=0).tolist()
            np.testing.assert_array_equal(counts[k].uses, expected.sum(axis=0, dtype=int) - uses.sum(axis=0, dtype=int))
        self.the_state_is_that_of_the_oracles()
        removal.code_without(k)
        self.block.mark_stale()
        self.after(None, codes=expected)

    # --- atoms

    @rule()
    def update_each(self):
        change = update_each(self.block)
        expected = naive.mob_sweep(self.X, self.atoms, self.codes, self.algebra)
        assert change.atoms == (expected != self.atoms).sum()
        self.after(None, expected)

    @rule()
    def fit_each(self):
        fit_each(self.block, coding_rule("greedy", self.algebra, *self.limits))
        self.after(None, *naive.kprox_sweep(self.X, self.atoms, self.codes, self.algebra, *self.limits))

    @rule()
    def update_together(self):
        change = update_together(self.block)
        self.after(change, naive.update_together(self.X, self.atoms, self.codes, self.algebra))

    @precondition(lambda self: self.few_atoms(4))
    @rule()
    def update_exactly(self):
        change = update_exactly(self.block)
        expected = naive.exact_atoms(self.X, self.atoms, self.codes, self.algebra)
        assert change.atoms == (expected != self.atoms).sum()
        self.after(None, expected)

    @rule(seed=SEEDS, density=DENSITIES, times=st.integers(1, 2))
    def flip(self, seed, density, times):
        """Some atoms stay as they are; twice in a row, other atoms are changed the second time."""
        for first in range(times):
            flips = random_bits(seed, *self.atoms.shape, density)
            flips[(seed + first) % 2 :: 2] = 0
            change = self.block.flip(packed(flips))
            assert change.atoms == 0  # those who ask for flips count them
            self.after(Change(atoms=int(flips.sum())) + change, self.atoms ^ flips)

    @rule(coder=st.sampled_from(("greedy", "bmp")), seed=SEEDS)
    def alternate(self, coder, seed):
        """Until little is stale, and then again after a few bits of an atom changed."""
        for _ in range(2):
            self.code(coder)
            self.update_each()
        self.flip(seed, 0.05, 2)
        self.code(coder)
        self.update_each()

    @rule(seed=SEEDS, n=st.sampled_from((1, 2, 15, 60)), density=DENSITIES)
    def append(self, seed, n, density):
        assume(len(self.X) <= 9 or len(self.atoms) + n <= 20)
        assume(len(self.atoms) + n <= self.max_atoms)
        new = random_bits(seed, n, self.X.shape[1], density)
        self.block.append(packed(new))
        self.atoms = np.vstack([self.atoms, new])
        self.codes = np.hstack([self.codes, np.zeros((len(self.X), n), np.uint8)])
        self.saved = None

    @rule(seed=SEEDS)
    def append_a_row(self, seed):
        assume(len(self.X) and len(self.atoms) < self.max_atoms)
        row = seed % len(self.X)
        self.block.append_row_as_atom(row)
        self.atoms = np.vstack([self.atoms, self.X[row] == 1]).astype(np.uint8)
        self.codes = np.hstack([self.codes, np.zeros((len(self.X), 1), np.uint8)])
        self.codes[row] = np.arange(len(self.atoms)) == len(self.atoms) - 1
        self.saved = None

    @rule(seed=SEEDS, share=st.sampled_from((0.0, 0.4, 0.4, 1.0)))
    def discard(self, seed, share):
        dropped = np.random.default_rng(seed).random(len(self.atoms)) < share
        self.block.discard(dropped)
        self.atoms, self.codes, self.saved = self.atoms[~dropped], self.codes[:, ~dropped], None

    @precondition(lambda self: self.algebra == "xor" and not self.few_atoms(1))
    @rule(seed=SEEDS)
    def change_basis(self, seed):
        """An atom is added to another one, and the users of the other one use it in addition."""
        one, other = np.random.default_rng(seed).permutation(len(self.atoms))[:2]
        self.atoms, self.codes = self.atoms.copy(), self.codes.copy()
        self.atoms[other] ^= self.atoms[one]
        self.codes[:, one] ^= self.codes[:, other]
        self.block.change_basis(packed(self.atoms), packed(self.codes.T.copy()))

    # --- states, samples and other biases

    @rule()
    def save(self):
        self.saved = self.block.save(), self.atoms, self.codes

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restore(self):
        state, self.atoms, self.codes = self.saved
        self.block.restore(state)

    @rule(seed=SEEDS)
    def code_a_sample(self, seed):
        rows = np.flatnonzero(random_bits(seed, 1, len(self.X), 0.5)[0])
        sample = self.block.sample(rows)
        assert (sample.data(), sample.bias) == (self.block.data()[rows], self.block.bias)
        np.testing.assert_array_equal(sample.n_known, (self.X[rows] < 2).sum(axis=0))
        code(sample, coding_rule("greedy", self.algebra, *self.limits))
        self.the_state_is_that_of_the_oracles()  # the block has its own atoms and codes

    @rule(seed=SEEDS, density=DENSITIES)
    def change_the_bias(self, seed, density):
        flips = random_bits(seed, 1, self.X.shape[1], density)
        atoms, codes = self.block.factors()
        self.block = self.block.with_factors(atoms, codes, self.block.bias ^ BitMatrix.from_dense(flips))
        self.X, self.saved = without_bias(self.X, flips), None

    # --- what changes nothing

    @rule(seed=SEEDS, highest=HIGHEST)
    def count(self, seed, highest):
        X, atoms, codes, block = self.X, self.atoms, self.codes, self.block
        errors = naive.errors(X, atoms, codes, self.algebra)
        prices = self.prices(seed, highest)
        assert block.row_costs(prices_of(*prices)).tolist() == naive.costs(X, atoms, codes, self.algebra, prices)
        np.testing.assert_array_equal(block.n_known, naive.known(X).sum(axis=0))
        np.testing.assert_array_equal(block.targets(), packed(X == 1))
        np.testing.assert_array_equal(block.rows.pairs(), np.tril(codes.T.astype(int) @ codes))
        np.testing.assert_array_equal(block.in_use(), codes.any(axis=0) & atoms.any(axis=1))
        data = np.where(X > 1, 0, X ^ block.bias.to_dense())
        np.testing.assert_array_equal(block.missed(block.data()), (data & errors).sum(axis=0))
        length, bias, given = block.codelength(block.wrong()), block.bias.to_dense()[0], np.where(X > 1, X, data)
        expected = naive.codelength(given, atoms, codes, self.algebra, bias)
        assert (length.errors, length.codes, length.atoms) == expected
        np.testing.assert_array_equal(block.ones(block.data()), (given == 1).sum(axis=0))
        assert block.rows.count_changed_codes(BitMatrix.zeros(*codes.shape)) == codes.sum()
        first = seed % (len(atoms) + 1)
        for number, votes in enumerate(zip(*block.votes(first, len(atoms)), strict=True)):
            np.testing.assert_array_equal(votes, naive.free_and_wrong(X, atoms, codes, first + number, self.algebra))
        block.wrong()[:], block.uses()[:] = 77, 77  # counts belong to who asks for them

    @rule(seed=SEEDS, max_atoms=LIMITS, residual=RESIDUALS)
    def list_fixable_errors(self, seed, max_atoms, residual):
        errors = naive.errors(self.X, self.atoms, self.codes, self.algebra)
        fixable = errors if self.algebra == "xor" else errors & (naive.product(self.codes, self.atoms, "or") == 0)
        rows = np.flatnonzero(random_bits(seed, 1, len(self.X), 0.5)[0])
        features = np.random.default_rng(seed).permutation(self.X.shape[1])[:5]
        np.testing.assert_array_equal(self.block.rows.fixable_errors(rows), packed(fixable[rows]))
        np.testing.assert_array_equal(self.block.rows.fixable_at(features), packed(fixable[:, features].T.copy()))
        may = fixable.any(axis=1) & (errors.sum(axis=1) > residual)
        may &= self.codes.sum(axis=1) < (len(self.atoms) + 1 if max_atoms is None else max_atoms)
        how = coding_rule("greedy", self.algebra, max_atoms, residual)
        assert np.flatnonzero(self.block.rows.improvable(how)).tolist() == np.flatnonzero(may).tolist()

    @rule(seed=SEEDS, highest=HIGHEST, n=st.sampled_from((1, 3, 17)), density=DENSITIES)
    def offer_atoms(self, seed, highest, n, density):
        """Errors that new atoms would fix, rows that would use them, and the votes of given users on them."""
        offered, users = random_bits(seed, n, self.X.shape[1], density), random_bits(seed, n, len(self.X), 0.4)
        offered[0] = self.X[0] == 1 if len(self.X) else 0
        prices = random_prices(seed, self.X.shape[1], n, highest)
        if self.algebra == "or" and seed % 2:
            prices = self.own_prices(seed, n)
        given = self.X, self.atoms, self.codes, offered, self.algebra
        found = would_use(self.block, packed(offered), priced_rule(self.algebra, prices))
        np.testing.assert_array_equal(unpacked(found, len(self.X)), naive.who_gains(*given, prices))
        free, wrong = self.block.rows.votes_of(packed(users))
        fixed, nothing = [], np.zeros((1, self.X.shape[1]), np.uint8)
        for number, atom in enumerate(offered):
            with_users = np.hstack([self.codes, users[number][:, np.newaxis]])
            larger = np.vstack([self.atoms, nothing])
            expected = naive.free_and_wrong(self.X, larger, with_users, len(self.atoms), self.algebra)
            np.testing.assert_array_equal((free[number], wrong[number]), expected)
            fixed.append(naive.errors_fixed_by(atom, self.X, self.atoms, self.codes, self.algebra))
        assert self.block.rows.errors_fixed_by(packed(offered)).tolist() == fixed


class OrMachine(BlockMachine):
    """The same under OR."""

    algebra = "or"


class DeviceMachine(BlockMachine):
    """The same on a device, which processes few rows at a time; the next step after one on the host is there again."""

    shapes, workers, max_atoms = DEVICE_SHAPES, st.just(Workers(device=DEVICE or EmulatedDevice())), 30

    @invariant()
    def the_rows_are_on_the_device(self):
        if isinstance(self.block.rows, HostRows):
            self.block = self.block.with_factors(*self.block.factors())
            self.saved = None
        assert isinstance(self.block.rows, DeviceRows)


class OrDeviceMachine(DeviceMachine):
    """The same on a device under OR."""

    algebra = "or"


@pytest.mark.parametrize("machine", [BlockMachine, OrMachine], ids=["xor", "or"])
def test_any_sequence_of_operations_equals_the_oracles(machine):
    how = settings(HOW, stateful_step_count=30, max_examples=max(32, settings.default.max_examples))
    run_state_machine_as_test(machine, settings=how)


@pytest.mark.skipif(COMPILER is None and DEVICE is None, reason="the emulated device needs a C++ compiler")
@pytest.mark.parametrize("n_examples", [5, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("machine", [DeviceMachine, OrDeviceMachine], ids=["xor", "or"])
def test_any_sequence_of_operations_on_a_device_equals_the_oracles(machine, n_examples, monkeypatch):
    monkeypatch.setattr(EmulatedDevice, "work_bytes", 1)
    monkeypatch.setattr("bitatoms.kernels.gpu.coding._WORK_BYTES", 1)  # memory for one block of threads only
    monkeypatch.setattr(DeviceRows, "min_chunk_rows", 48)
    monkeypatch.setattr("bitatoms.kernels.gpu.coding._ROWS_PER_LAUNCH", 40)
    run_state_machine_as_test(machine, settings=settings(HOW, stateful_step_count=20, max_examples=n_examples))
