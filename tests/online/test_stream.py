"""Learning from a stream: steps and counts against the oracle, the sample, decay and drift."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import factorize
from bitatoms.bits import BitMatrix
from bitatoms.datasets import planted
from bitatoms.engine.counts import Counts
from bitatoms.engine.objective import Objective
from bitatoms.model.model import Model
from bitatoms.online.state import DecayedCounts, Reservoir
from bitatoms.online.stream import StreamLearner, StreamTuning
from bitatoms.parallel import Workers
from bitatoms.validation import as_generator
from support.blocks import ALGEBRAS, bits_of, block_of, packed, within
from support.chaos import chaos
from support.contexts import assert_held_out, context_of_search
from support.sources import assert_same, params_for
from support.strategies import SEEDS, UNKNOWN, factorisations, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

both_algebras = pytest.mark.parametrize("algebra", ["xor", "or"])
ALONE = Workers(1)
some_rows = factorisations(n_rows=st.integers(1, 40), n_cols=st.integers(1, 12), n_atoms=st.integers(1, 6))
some_unknown = pytest.mark.parametrize("unknown", [0.0, 0.2], ids=["all known", "some unknown"])


def learner(forget=0.0, seed=0, **given):
    return StreamLearner(params_for(**given), forget, as_generator(seed))


def streamed(X, size=512, forget=0.0, seed=0, workers=ALONE, **given):
    """Return a learner that got rows in batches of one size; cells above 1 are unknown."""
    online, rows = learner(forget, seed, **given), X if isinstance(X, BitMatrix) else bits_of(X)
    for start in range(0, len(rows), size):
        online.partial_fit(rows[start : start + size], workers)
    return online


def with_unknown(X, share):
    """Return a table with this share of the cells unknown."""
    return np.where(random_bits(9, *X.shape, share) == 1, np.uint8(UNKNOWN), X)


def fresh_block(online, X):
    return Model.from_factorization(online.as_result()).code(BitMatrix.from_any(X), ALONE)


def wrong_share(online, X):
    return fresh_block(online, X).wrong().sum() / X.size


def found_again(online, atoms):
    """Return how many of these atoms were learned."""
    known = {atom.tobytes() for atom in online.as_result().atoms.to_dense()}
    return sum(atom.tobytes() in known for atom in atoms)


# The first batch.


@settings(max_examples=10)
@given(
    factorisations(st.sampled_from((1, 5, 65)), n_atoms=st.sampled_from((1, 3, 6, 18))),
    ALGEBRAS,
    st.sampled_from(("codelength", "errors")),
    st.booleans(),
)
def test_one_batch_from_given_atoms_is_one_step_of_the_oracle(problem, algebra, objective, from_codes):
    """Rows are coded at flat prices or, up to 16 atoms, by the best of all codes; then all atoms are updated."""
    X, atoms, codes = problem
    p, none = len(atoms), np.zeros_like(codes)
    init, codes = ((atoms, codes), codes) if from_codes else (atoms, none)
    online = streamed(X, len(X), algebra=algebra, n_components=p, init=init, objective=objective)
    if objective == "errors" and p <= 16:
        codes = naive.exact_code(X, atoms, codes, algebra)
    else:
        prices = np.ones(X.shape[1], int), np.zeros(p, int)
        if objective == "codelength":
            flat = Objective(True, algebra).rule(block_of(X, atoms, none, algebra), flat=True).prices
            prices = flat.bits, flat.uses[:p]
        codes = naive.priced_code(X, atoms, codes, algebra, prices, swaps=False)
    np.testing.assert_array_equal(online.state.sample.codes.to_dense(), codes)
    np.testing.assert_array_equal(online.state.atoms.to_dense(), naive.update_together(X, atoms, codes, algebra))


# The counts of rows that are gone.


def counts_of(X, atoms, codes, algebra, bias=None):
    """Return all counts by the oracle."""
    bias = np.zeros(X.shape[1], np.uint8) if bias is None else bias
    wrong = naive.errors(X, atoms, codes, algebra, bias)
    votes = [naive.free_and_wrong(X ^ bias, atoms, codes, k, algebra) for k in range(len(atoms))]
    free, bad = np.array(votes, np.int64).reshape(len(atoms), 2, X.shape[1]).transpose(1, 0, 2)
    pairs = np.tril(codes.T.astype(int) @ codes)
    n_known = naive.known(X).sum(axis=0)
    per_column = wrong.sum(axis=0), (X == 1).sum(axis=0), (X & wrong).sum(axis=0)
    sums = n_known, codes.sum(axis=0), per_column[0], free, bad, pairs, *per_column[1:]
    return Counts(len(X), *(np.asarray(table, np.int64) for table in sums), codes_changed=0)


def assert_counts(found, wanted, names=("n_rows", "known", "uses", "wrong", "free", "bad", "pairs", "ones", "missed")):
    for name in names:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def one_flip_per_column(atoms, seed):
    rng = np.random.default_rng(seed)
    flips = np.zeros_like(atoms)
    columns = np.flatnonzero(rng.random(atoms.shape[1]) < 0.6)
    flips[rng.integers(len(atoms), size=len(columns)), columns] = 1
    return flips


def flipped_counts(X, atoms, codes, algebra, flips, bias):
    before = DecayedCounts.of(counts_of(X, atoms, codes, algebra, bias))
    return before.flipped(
        BitMatrix.from_dense(atoms), packed(flips), algebra == "or" or None, BitMatrix.from_dense(bias[np.newaxis])
    ).rounded()


@settings(max_examples=30)
@given(some_rows, ALGEBRAS, SEEDS, st.booleans(), st.booleans())
def test_one_flip_per_column_keeps_all_counts_exact_but_votes_on_other_atoms(problem, algebra, seed, biased, is_apart):
    """Where no row uses two atoms, these are exact, too."""
    X, atoms, codes = problem
    if is_apart:
        codes = within(codes, 1)
    bias, flips = random_bits(seed, 1, X.shape[1], 0.3 * (biased and is_apart))[0], one_flip_per_column(atoms, seed)
    found = flipped_counts(X, atoms, codes, algebra, flips, bias)
    wanted = counts_of(X, atoms ^ flips, codes, algebra, bias)
    if is_apart:
        assert_counts(found, wanted)
    assert_counts(found, wanted, ("n_rows", "known", "uses", "wrong", "pairs", "ones"))
    assert_counts(found, wanted, ("missed",) if algebra == "or" else ("free",))
    np.testing.assert_array_equal(found.free[flips == 1], wanted.free[flips == 1])
    np.testing.assert_array_equal(found.bad[flips == 1], wanted.bad[flips == 1])


def assert_within_bounds(counts, all_free):
    n, known, users = counts.n_rows, counts.known, counts.uses[:, np.newaxis]
    for table in (counts.uses, counts.wrong, counts.free, counts.bad, counts.pairs, counts.ones, counts.missed, known):
        assert ((table >= 0) & (table <= n)).all()
    assert (counts.bad <= counts.free).all()
    assert (counts.free <= users).all()
    assert (counts.bad <= counts.wrong).all()
    assert (counts.wrong - counts.bad <= known - counts.free).all()
    assert (counts.missed <= counts.ones).all()
    assert (counts.missed <= counts.wrong).all()
    assert (counts.wrong - counts.missed <= known - counts.ones).all()
    assert (np.diag(counts.pairs) == counts.uses).all()
    assert (counts.pairs <= np.minimum(users, counts.uses)).all()
    if all_free:
        assert (counts.free == users).all()


@given(some_rows, ALGEBRAS, SEEDS, st.floats(0, 1))
def test_counts_stay_within_bounds(problem, algebra, seed, kept):
    X, atoms, codes = problem
    rng = np.random.default_rng(seed)
    bias = random_bits(seed, 1, X.shape[1], 0.2)
    all_free = algebra == "xor" and not (X > 1).any()  # no cell is unknown
    decayed = DecayedCounts.of(counts_of(X, atoms, codes, algebra, bias[0]), 1 + 100 * rng.random())
    for step in range(4):
        flips = random_bits(seed + step, *atoms.shape, 0.3)
        decayed = decayed.flipped(
            BitMatrix.from_dense(atoms), packed(flips), algebra == "or" or None, BitMatrix.from_dense(bias)
        )
        assert_within_bounds(decayed.rounded(), all_free)
        atoms = atoms ^ flips
        others = codes ^ random_bits(seed + step, *codes.shape, 0.2)
        before, after = (counts_of(X, atoms, some, algebra, bias[0]) for some in (codes, others))
        decayed = decayed.decayed(kept).plus(before).recoded(DecayedCounts.of(before), after)
        assert_within_bounds(decayed.rounded(), all_free)
        codes = others


@both_algebras
@some_unknown
def test_counts_are_those_of_all_rows_while_all_are_kept(algebra, unknown):
    """Right after a search, the counts are those of the codes of the sample."""
    X = with_unknown(planted(1024, 30, 6, algebra=algebra, random_state=2).X, unknown)
    online = streamed(X, 512, algebra=algebra, n_components=6, max_iter=8)
    state, result = online.state, online.as_result()
    assert state.sample.rows == bits_of(X)
    factors = state.atoms.to_dense(), state.sample.codes.to_dense()
    assert_counts(state.counts.rounded(), counts_of(X, *factors, algebra))
    assert result.codelength.total == sum(naive.codelength(X, *factors, algebra))
    assert result.n_samples == 1024


@pytest.mark.parametrize(("algebra", "forget"), [("xor", 0.0), ("or", 0.001)])
def test_the_bias_is_settled_after_every_batch(algebra, forget):
    X, online = random_bits(3, 300, 40, 0.5), learner(forget, algebra=algebra)
    X[:, :20] = X[:, :1] ^ random_bits(4, 300, 20, 0.05)
    for batch in np.array_split(X, 3):
        online.partial_fit(bits_of(batch), ALONE)
        result = online.as_result()
        assert (2 * result.wrong <= result.n_samples).all()
        assert online.state.bias.to_dense()[0].tolist() == result.bias.tolist()
    assert online.state.bias.count()


# What is decayed.


def test_every_row_is_equally_likely_in_the_sample():
    random, hits = np.random.default_rng(0), np.zeros(64, int)
    rows = BitMatrix.from_dense(np.eye(64, dtype=np.uint8))
    for _ in range(600):
        kept = Reservoir.empty(64, 0)
        for start in range(0, 64, 7):
            batch = rows[start : start + 7]
            kept = kept.with_batch(batch, BitMatrix.zeros(len(batch), 0), 0.0, 16, random)
        assert len(kept.rows) == 16
        hits += kept.rows.column_weights()
    assert abs(hits - 150).max() < 5 * np.sqrt(150 * 0.75)
    only_last = kept.with_batch(rows[:7], BitMatrix.zeros(7, 0), 1.0, 16, random)  # earlier rows have no weight
    assert only_last.rows == rows[:7]


def test_callbacks_are_called_for_every_batch_and_the_history_keeps_the_last():
    rows, rounds = BitMatrix.from_dense(planted(100, 20, 3, random_state=0).X), []
    params = params_for(n_components=3, max_iter=2, callbacks=rounds.append)
    online = StreamLearner(params, 0.0, as_generator(0), StreamTuning(max_history=3))
    for start in range(0, 100, 20):
        online.partial_fit(rows[start : start + 20], ALONE)
    assert [(row.round, row.rows) for row in rounds] == [(1, 20), (2, 40), (3, 60), (4, 80), (5, 100)]
    assert online.as_result().history == tuple(rounds[2:])


# Batches.


@pytest.mark.parametrize(
    ("how", "algebra", "unknown", "seed"),
    [
        *[({"n_components": 6}, "xor", 0.0, 0), ({}, "or", 0.2, 2)],
        ({"n_components": 6, "objective": "codelength"}, "or", 0.2, 1),
    ],
)
def test_chunks_and_threads_do_not_change_the_result(how, algebra, unknown, seed):
    X = with_unknown(planted(400, 30, 6, algebra=algebra, random_state=0).X, unknown)
    given = {**how, "algebra": algebra, "max_iter": 3}
    expected = streamed(X, 130, 1e-3, **given).as_result()
    with chaos(seed) as n_jobs:
        found = streamed(X, 130, 1e-3, workers=Workers(n_jobs), **given).as_result()
    assert_same(found, expected)
    assert [row[:-1] for row in found.history] == [row[:-1] for row in expected.history]


@pytest.mark.parametrize(
    ("n_components", "forget", "algebra"), [(3, 1.0, "xor"), ("mdl", 0.05, "xor"), ("mdl", 1.0, "or")]
)
def test_batches_may_be_single_rows_or_all_zeros(n_components, forget, algebra):
    X = np.vstack([np.zeros((3, 9), np.uint8), planted(20, 9, 3, algebra=algebra, random_state=0).X])
    online = streamed(X, 1, forget, algebra=algebra, n_components=n_components, max_iter=4)
    result = online.as_result()
    assert result.n_samples == round(sum((1 - forget) ** age for age in range(23)))
    assert result.atoms.n_rows <= 3 or n_components == "mdl"
    assert fresh_block(online, X).n_rows == 23


def test_the_first_batch_may_have_fewer_rows_than_atoms_and_limits_hold():
    X = planted(400, 30, 8, random_state=0).X
    online = learner(n_components=8, max_iter=8, max_atoms_per_sample=2)
    online.partial_fit(BitMatrix.from_dense(X[:3]), ALONE)
    assert online.as_result().atoms.n_rows <= 3
    online.partial_fit(BitMatrix.from_dense(X[3:]), ALONE)
    assert online.as_result().atoms.n_rows == 8
    assert online.state.sample.codes.row_weights().max() == 2


def test_both_algebras_are_tried_while_there_are_few_rows():
    X = planted(600, 30, 3, algebra="or", atom_density=0.3, code_density=0.4, random_state=0).X
    online = streamed(X[:160], 80, algebra="auto")
    assert set(online.as_result().codelengths) == {"or", "xor"}
    online.partial_fit(BitMatrix.from_dense(X[160:]), ALONE)  # codelengths of other algebras refer to other rows
    result = online.as_result()
    assert result.codelengths == {"or": result.codelength.total}


def test_or_is_preferred_in_a_stream():
    X = planted(300, 40, 4, algebra="or", atom_density=0.3, code_density=0.4, random_state=0).X
    searched = streamed(X, 300, algebra="auto").as_result()
    assert searched.algebra == "or"
    assert list(searched.codelengths) == ["or", "xor"]
    atoms = np.eye(3, 40, dtype=np.uint8)  # with disjoint atoms both algebras are the same
    for wanted in ("mdl", 3):
        given = streamed(X, 300, algebra="auto", n_components=wanted, init=atoms).as_result()
        assert given.algebra == "or"
        assert set(given.compared) == (set() if wanted == "mdl" else {"or", "xor"})


def test_invalid_batches_and_parameters_raise():
    online = learner(n_components=2)
    with pytest.raises(ValueError, match="nothing has been learned yet"):
        online.as_result()
    with pytest.raises(ValueError, match="no rows"):
        online.partial_fit(BitMatrix.zeros(0, 5), ALONE)
    online.partial_fit(BitMatrix.from_dense(np.eye(5, dtype=np.uint8)), ALONE)
    with pytest.raises(ValueError, match="6 features"):
        online.partial_fit(BitMatrix.zeros(3, 6), ALONE)
    with pytest.raises(ValueError, match="all rows at once"):
        learner(n_components=2, search="paper")
    with pytest.raises(ValueError, match="forget must be between 0 and 1"):
        learner(forget=-0.1)


# Searches of the sample.


@pytest.mark.parametrize(("algebra", "n_before"), [("xor", 0), ("or", 300)])
def test_a_search_of_a_sample_holds_rows_out(algebra, n_before, monkeypatch):
    """The first search, and a later one."""
    rows, tuning = bits_of(random_bits(1, 600, 40, 0.3)), StreamTuning(90, 90, scratch_rows=100)
    params, batch = params_for(algebra=algebra, max_iter=1), rows[n_before : n_before + 300]
    online, twin = (StreamLearner(params, 0.0, np.random.default_rng(0), tuning) for _ in range(2))
    for each in (online, twin):
        if n_before:
            each.partial_fit(rows[:n_before], ALONE)
    context = context_of_search(monkeypatch, lambda: online.partial_fit(batch, ALONE))
    twin.partial_fit(batch, ALONE)
    assert_held_out(context, twin.state.sample.rows)
    assert context.holdout.n_all == n_before + 300
    assert context.objective.share == 80 / (n_before + 300)


# How well it learns.


def test_a_stream_is_described_about_as_shortly_as_by_fit():
    made = planted(640, 32, 8, algebra="or", random_state=0)
    how = {"n_components": 9, "objective": "codelength", "algebra": "or", "max_iter": 20}
    block = fresh_block(streamed(made.X, 160, **how), made.X)
    whole = factorize(made.X, random_state=0, **how)
    assert block.codelength(block.wrong()).total <= 1.015 * whole.codelength.total


@pytest.mark.parametrize("n_components", [6, "mdl"])
@both_algebras
def test_atoms_are_replaced_between_searches(n_components, algebra):
    """Atoms grow from the errors of the latest rows: as many as are missing, or as many as save bits."""
    made = planted(1024, 40, 6, algebra=algebra, atom_density=0.2, noise=0.01, random_state=0)
    init = np.vstack([made.atoms[:3], np.zeros((3 if n_components == 6 else 0, 40), np.uint8)])
    tuning = StreamTuning(rows_per_replacement=256, growth_per_search=1e9, growth_per_search_of_all=1e9)
    params = params_for(n_components=n_components, algebra=algebra, init=init)
    online = StreamLearner(params, 0.0, as_generator(0), tuning)
    for start in range(0, 1024, 128):
        online.partial_fit(BitMatrix.from_dense(made.X[start : start + 128]), ALONE)
    assert found_again(online, made.atoms) == len(online.state.atoms) == 6
    assert wrong_share(online, made.X) < 0.0105  # 1 % noise


def test_rows_of_a_batch_start_from_codes_of_earlier_rows():
    """Rows that use many atoms, whose codes are not found from scratch."""
    atoms, codes = random_bits(0, 40, 100, 0.3), random_bits(1, 100, 40, 0.2)[np.arange(600) % 100]
    X = naive.product(codes, atoms, "xor") ^ random_bits(2, 600, 100, 0.03)
    online = learner(n_components=40, objective="codelength", init=(atoms, codes[:300]))
    for batch in (X[:300], X[300:500]):
        online.partial_fit(bits_of(batch), ALONE)
    result = online.as_result()
    assert result.remembered.shape == (len(result.remembered), 40)
    assert result.wrong_bits / X[:500].size < 0.035
    assert wrong_share(online, X[500:]) < 0.035
