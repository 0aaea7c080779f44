"""Equal rows are coded once, and get the codes that they would get if all rows were coded."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.engine import distinct_rows
from bitatoms.engine import passes as pass_spec
from bitatoms.engine.distinct_rows import row_hashes
from bitatoms.engine.passes import PassSpec, coded_block, row_codes, run_pass
from bitatoms.parallel import Workers
from support.blocks import ALGEBRAS, bits_of, priced_rule
from support.strategies import SEEDS, factorisations, priced_factorisations, random_bits

CODERS = ("mdl", "mend", "beam")
find_distinct = partial(distinct_rows.find_distinct, max_share=3 / 4)


@st.composite
def repeated_tables(draw):
    """Draw rows of which many are equal, in any order, with atoms, codes and prices."""
    X, atoms, codes, prices = draw(priced_factorisations(n_rows=st.sampled_from((1, 5, 17)), n_cols=st.just(65)))
    rows = np.random.default_rng(draw(SEEDS)).integers(len(X), size=draw(st.sampled_from((64, 130))))
    if draw(st.booleans()):
        rows = np.sort(rows)
    return X[rows], atoms, codes[rows], prices


@pytest.fixture(scope="module", autouse=True)
def small_tables():
    """Let rows of small tables be compared, whatever the coder."""
    with pytest.MonkeyPatch.context() as patch:
        for limits in ("_WITH_FAST_CODER", "_WITH_SLOW_CODER"):
            patch.setattr(pass_spec, limits, (1, 3 / 4))
        yield


@given(repeated_tables(), ALGEBRAS, st.sampled_from(CODERS), st.booleans(), st.booleans())
def test_rows_coded_once_have_the_codes_of_all_rows_coded(table, algebra, coder, starts, remembers):
    X, atoms, codes, prices = table
    data, rule = bits_of(X), priced_rule(algebra, prices)._replace(typical=20.0)
    bias, remembered = BitMatrix.from_dense(random_bits(len(X), 1, 65, 0.1)), BitMatrix.from_dense(codes[:3])
    spec = PassSpec(BitMatrix.from_dense(atoms), bias, coder, rule, remembered=remembered if remembers else None)
    start = BitMatrix.from_dense(codes) if starts else None
    if starts:
        spec = PassSpec(spec.atoms, bias, coder, rule, kept=np.arange(len(atoms)))
    assert find_distinct(data, start) is not None
    once, counts = run_pass(data, start, spec, Workers())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pass_spec, "find_distinct", lambda *tables, max_share: None)
        everywhere, expected = run_pass(data, start, spec, Workers())
        by_chunks = [
            coded_block(data[first : first + 7], start and start[first : first + 7], spec, Workers())
            for first in range(0, len(data), 7)
        ]
    assert once == everywhere
    assert ba.bits.stack_rows([block.codes() for block in by_chunks], len(atoms)) == everywhere
    for name in ("uses", "wrong", "free", "bad", "pairs", "missed", "codes_changed"):
        np.testing.assert_array_equal(getattr(counts, name), getattr(expected, name))


# --- find_distinct


@given(st.integers(1, 40), SEEDS, st.booleans())
def test_distinct_rows_are_those_of_numpy(n_kinds, seed, has_unknown):
    kinds = random_bits(seed, n_kinds, 130, 0.3) + random_bits(seed + 1, n_kinds, 130, 0.2 * has_unknown) * 2
    rows = np.random.default_rng(seed).integers(n_kinds, size=1500)
    X = np.minimum(kinds, 2)[rows]
    distinct = find_distinct(bits_of(X))
    np.testing.assert_array_equal(X[distinct.rows][distinct.numbers], X)
    assert len(distinct.rows) == len(np.unique(X, axis=0))


@pytest.mark.parametrize(
    ("coder", "n_atoms", "least"),
    [("greedy", 3, 1 << 14), ("beam", 3, 1 << 8), ("exact", 3, 1 << 14), ("exact", 9, 1 << 8)],
)
def test_few_rows_are_compared_only_if_coding_them_takes_long(coder, n_atoms, least, monkeypatch):
    compared = []
    monkeypatch.setattr(pass_spec, "_WITH_FAST_CODER", (1 << 14, 1 / 4))
    monkeypatch.setattr(pass_spec, "_WITH_SLOW_CODER", (1 << 8, 3 / 4))
    monkeypatch.setattr(pass_spec, "find_distinct", lambda data, codes, max_share: compared.append(len(data)))
    rule = priced_rule("or", (np.ones(9), np.zeros(n_atoms)))
    spec = PassSpec(BitMatrix.from_dense(random_bits(0, n_atoms, 9, 0.4)), BitMatrix.zeros(1, 9), coder, rule)
    for n_rows in (least - 1, least):
        row_codes(BitMatrix.zeros(n_rows, 9), spec, Workers())
    assert compared == [least]


@pytest.mark.parametrize(("repetitions", "expected"), [(1, False), (2, True), (5, True)])
@pytest.mark.parametrize("n_rows", [1000, 30_000])
@pytest.mark.parametrize("order", ["in turn", "in a run"])
def test_whether_it_pays_is_found_from_few_rows(repetitions, expected, n_rows, order):
    """Whether equal rows follow each other, as weighted ones do, or not."""
    words = np.random.default_rng(0).integers(2**63, size=(n_rows // repetitions, 2)).astype(np.uint64)
    words = np.repeat(words, repetitions, axis=0) if order == "in a run" else np.tile(words, (repetitions, 1))
    assert (find_distinct(BitMatrix.from_words(words, 128)) is not None) == expected


@given(factorisations())
def test_hashes_are_those_of_the_oracle(given):
    X = given[0]
    assert row_hashes(bits_of(X)).tolist() == [naive.row_hash(x) for x in X]


def test_rows_with_equal_hashes_are_compared(monkeypatch):
    data = BitMatrix.from_dense(np.repeat(random_bits(0, 2, 20, 0.5), 50, axis=0))
    monkeypatch.setattr(distinct_rows, "row_hashes", lambda table: np.zeros(len(table), np.uint64))
    assert find_distinct(data) is None
    assert find_distinct(data[:1][np.zeros(100, int)]) is not None
