"""Columns of genotypes: names, tied pairs, dosages, and how variants of two tables match."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy.sparse import csr_array

import bitatoms as ba
import naive
from bitatoms import BitMatrix, Table
from bitatoms.columns.annotations import Annotations
from bitatoms.columns.matching import match_columns
from bitatoms.columns.variants import (
    are_variants,
    column_data,
    column_names,
    from_names,
    genotype_data,
    match_variants,
    pairs,
    ranks_in,
    regions,
    variants_of,
)
from bitatoms.errors import InputWarning
from support.strategies import SEEDS

pytestmark = pytest.mark.usefixtures("few_trials")

ALLELES = ("A", "C", "G", None)


def variants(rows):
    """Return annotations of variants from (id, chromosome, position, allele, other)."""
    names = ("id", "chromosome", "position", "allele", "other")
    columns = zip(*rows, strict=True) if rows else ([],) * 5
    fields = dict(zip(names, columns, strict=True))
    return Annotations({**fields, "position": np.array(fields["position"], np.int64)}, len(rows))


def table_of(copies, about, rows=None):
    """Return a table of dosages with annotated columns."""
    copies = np.asarray(copies)
    bits = np.stack([copies >= 1, copies == 2], axis=2).reshape(len(copies), -1)
    return Table(
        BitMatrix.from_dense(bits),
        rows,
        column_names([row[0] or f"{row[1]}:{row[2]}" for row in about], [row[3] for row in about], 2),
        column_data=column_data(variants(about), 2),
    )


def test_names_of_columns_are_understood():
    names = column_names(["rs1", "20:5:C", "rs2"], ["A", "A:T", None], 2)
    assert names == ["rs1:A", "rs1:AA", "20:5:C:A:T", "20:5:C:A:TA:T", "rs2:0", "rs2:00"]
    data = from_names(names)
    assert data["id"].tolist() == ["rs1", "rs1", "20:5:C", "20:5:C", "rs2", "rs2"]
    assert data["allele"].tolist() == ["A", "A", "A:T", "A:T", "0", "0"]
    assert data["copies"].tolist() == [1, 2] * 3
    for other in ([], names[:-1], ["milk", "bread"], names[1:] + names[:1]):
        assert from_names(other) is None
    assert column_names(["rs1", "rs2"], ["A", "C"], 1) == ["rs1:A", "rs2:C"]


def test_pairs_of_tied_columns():
    data = column_data(variants([("rs1", "1", 5, "A", "C"), ("rs2", "1", 7, "A", "C"), ("rs2", "1", 7, "G", "C")]), 2)
    assert pairs(data).tolist() == [[0, 1], [2, 3], [4, 5]]
    kept = data.take([1, 2, 3, 4])  # without the first column of the first, and the second of the last
    assert pairs(kept).tolist() == [[1, 2]]
    assert variants_of(kept)[1].tolist() == [[-1, 0], [1, 2], [3, -1]]
    assert pairs(data.take([1, 0])).tolist() == []
    assert pairs(column_data(variants([("rs1", "1", 5, "A", "C")] * 2), 1)).tolist() == []
    assert pairs(None).tolist() == pairs(Annotations({}, 4)).tolist() == []
    assert (
        genotype_data(None, ["a", "b"]) is genotype_data(None, None) is genotype_data(Annotations({}, 2), None) is None
    )
    assert pairs(genotype_data(None, ["rs1:A", "rs1:AA"])).tolist() == [[0, 1]]
    assert genotype_data(data, None) is data
    assert pairs(column_data(variants([]), 2)).tolist() == []
    assert are_variants(data)
    assert not are_variants(variants([]))


def test_regions_are_chromosomes_in_the_order_of_positions():
    rows = [("a", "2", 7, "A", "C"), ("b", "chr1", 9, "A", "C"), ("c", "1", 3, "A", "C"), ("d", "2", 7, "G", "C")]
    data = column_data(variants(rows), 2)
    assert [columns.tolist() for columns in regions(data)] == [[4, 5, 2, 3], [0, 1, 6, 7]]
    assert regions(None) is regions(Annotations({}, 3)) is regions(column_data(variants([]), 2)) is None
    animals = [("a", "23", 5, "A", "C"), ("b", "X", 5, "A", "C"), ("c", "29", 5, "A", "C")]
    assert len(regions(column_data(variants(animals), 2))) == 3  # 23 is X only if there are no more than 26
    assert len(regions(column_data(variants(animals[:2]), 2))) == 1
    for unknown in (("e", None, 7, "A", "C"), ("e", "1", 0, "A", "C")):
        assert regions(column_data(variants([*rows, unknown]), 2)) is None


@given(SEEDS)
def test_the_order_of_regions_does_not_depend_on_that_of_columns(seed):
    random = np.random.default_rng(seed)
    names = ["chr10", "2", "X", "MT", "1"]
    rows = [(f"s{i}", names[i % 5], 1 + i // 15, "ACG"[i // 5 % 3], "T") for i in range(60)]
    data, shuffled = column_data(variants(rows), 2), random.permutation(120)
    expected = [columns.tolist() for columns in regions(data)]
    assert [shuffled[columns].tolist() for columns in regions(data.take(shuffled))] == expected
    assert [names.index(rows[columns[0] // 2][1]) for columns in expected] == [4, 1, 2, 0, 3]


def test_wide_tables_with_positions_have_ranks():
    rows = [(f"s{i}", "2" if i % 2 else "1", 5000 - i, "A", "C") for i in range(1024)]
    found = regions(column_data(variants(rows), 2))
    assert ranks_in(found)[np.concatenate(found)].tolist() == [*range(2048)]
    assert ranks_in(None) is ranks_in(regions(column_data(variants(rows[1:]), 2))) is None


@st.composite
def cohorts(draw):
    """Two lists of variants, of which some are the same."""
    locus = st.tuples(
        st.sampled_from(("rs1", "rs2", "rs3", None)), st.sampled_from(("1", "X", None)), st.integers(0, 3)
    )
    alleles = st.tuples(st.sampled_from(ALLELES[:3]), st.sampled_from(ALLELES)).filter(lambda two: two[0] != two[1])
    rows = st.lists(st.tuples(locus, alleles).map(lambda row: (*row[0], *row[1])), max_size=6, unique=True)
    return draw(rows), draw(rows)


@given(cohorts(), SEEDS)
def test_variants_are_matched_by_id_or_position_and_alleles(lists, seed):
    own, given_rows = lists
    learned, other = column_data(variants(own), 2), column_data(variants(given_rows), 2)
    expected = []
    for row in own:
        ranks = [naive.same_variant(row, each) for each in given_rows]
        by_id = [rank if row[0] and row[0] == each[0] else None for rank, each in zip(ranks, given_rows, strict=True)]
        ranks = by_id if any(rank is not None for rank in by_id) else ranks
        best = min((rank for rank in ranks if rank is not None), default=None)
        group = (0, 1) if best in (0, 1) else (best,)
        chosen = [number for number, rank in enumerate(ranks) if rank is not None and rank in group]
        expected.append((chosen[0], ranks[chosen[0]] in (1, 3)) if len(chosen) == 1 else None)
    try:
        indices, swapped, _ = match_variants(learned, other)
    except ba.InputError:  # two variants of the table are the same
        reject()
    swapped = np.zeros(len(indices), bool) if swapped is None else swapped
    copies = np.random.default_rng(seed).integers(0, 3, (5, len(given_rows)))
    bits = np.stack([copies >= 1, copies == 2], axis=2).reshape(5, -1)
    for number, found in enumerate(expected):
        columns = indices[2 * number : 2 * number + 2]
        if found is None:
            assert columns.tolist() == [-1, -1]
        elif columns.tolist() != [-1, -1]:
            source = copies[:, found[0]]
            read = bits[:, columns] ^ swapped[2 * number : 2 * number + 2]
            assert read.sum(axis=1).tolist() == (2 - source if found[1] else source).tolist()
        else:  # a record of three alleles cannot be turned around
            assert found[1]
            assert sum(each[4] == given_rows[found[0]][4] for each in given_rows) > 1


A_G, A_C = ("rs1", "1", 5, "A", "G"), ("rs1", "1", 5, "A", "C")
SWAPPED, OTHER = "alleles swapped of 1 variant", "1 variant has other alleles and cannot be used"
MATCHES = {  # learned variants and copies, given ones, expected columns, which of them are swapped, and notes
    "the exact one, and none of two that are possible": (
        [A_G, ("rs2", "1", 7, None, "G")], 2,
        [("rs1", "1", 5, None, "G"), A_G, ("rs2", "1", 7, "A", "G"), ("rs2", "1", 7, "T", "G")], 2,
        [2, 3, -1, -1], None, (OTHER,),
    ),
    "three alleles are not turned around": (
        [A_G], 2, [("rs1", "1", 5, "G", "A"), ("rs1", "1", 5, "T", "A")], 2, [-1, -1], None, (OTHER,),
    ),
    "chromosomes with and without prefix": (
        [(None, "chr20", 5, "A", "C"), (None, "23", 7, "A", "C"), (None, "chrM", 9, "G", "T")], 2,
        [(None, "MT", 9, "G", "T"), (None, "20", 5, "A", "C"), (None, "X", 7, "C", "A")], 2,
        [2, 3, 5, 4, 0, 1], [2, 3], (SWAPPED,),
    ),
    "haplotypes with swapped alleles": ([A_C], 1, [("rs1", "1", 5, "C", "A")], 1, [0], [0], (SWAPPED,)),
}  # fmt: skip


@pytest.mark.parametrize("case", MATCHES)
def test_matches_of_few_variants(case):
    own, n_own, given_rows, n_given, indices, swapped, notes = MATCHES[case]
    match = match_variants(column_data(variants(own), n_own), column_data(variants(given_rows), n_given))
    assert match[0].tolist() == indices
    assert (None if match[1] is None else np.flatnonzero(match[1]).tolist()) == swapped
    assert match[2] == notes


def test_names_of_variants_without_and_with_alleles():
    """Equal names with other alleles are not the same variant."""
    dosages = Table.from_any(pd.DataFrame([[0, 2], [1, 1]], columns=["rs1", "rs2"]), dosage=True)
    turned = Table.from_any(pd.DataFrame([[2, 0], [1, 1]], columns=["rs2", "rs1"]), dosage=True)
    assert match_columns(dosages.header, turned.header).indices.tolist() == [2, 3, 0, 1]
    one, other = (table_of([[0, 1]], [("rs1", "1", 5, "A", base), ("rs2", "1", 6, "A", "C")]) for base in "GT")
    assert one.columns == other.columns
    assert match_columns(one.header, other.header, "auto").indices.tolist() == [-1, -1, 2, 3]


def test_a_column_without_its_partner_is_turned_around_into_the_other_one():
    own, both = (column_data(variants([("rs1", "1", 5, *two), ("rs2", "1", 6, *two)]), 2) for two in ("AG", "GA"))
    indices, _, _ = match_variants(own, both.take([0, 2, 3]))  # carries G, but not twice, of rs1
    assert indices.tolist() == [-1, 0, 2, 1]


def test_haplotypes_and_samples_are_not_mixed():
    samples, haplotypes = (
        Table(
            BitMatrix.zeros(2, n), columns=column_names(["rs1"], ["A"], n), column_data=column_data(variants([A_G]), n)
        )
        for n in (2, 1)
    )
    with pytest.raises(ba.InputError, match=r"learned from haplotypes, but the rows of .* are samples.*phased=True"):
        match_columns(haplotypes.header, samples.header)
    with pytest.raises(ba.InputError, match="phased=False"):
        match_columns(samples.header, haplotypes.header)


def test_other_fields_of_these_names_are_no_variants():
    good = column_data(variants([("rs1", "1", 5, "A", "G")]), 2)
    for field, values in {"position": ["5", "5"], "chromosome": [1, 1], "copies": [1.0, 2.0]}.items():
        assert not are_variants(good.updated(**{field: values}))
    frame = pd.DataFrame({"position": [1.5, np.nan], "chromosome": [1, 2]}, index=["g1", "g2"])
    anndata = pytest.importorskip("anndata")
    table = Table.from_any(anndata.AnnData(np.array([[0.0, 2.0], [1.0, 1.0]]), var=frame), dosage=True)
    assert pairs(table.column_data).tolist() == [[0, 1], [2, 3]]


def test_other_alleles_are_counted_and_not_used():
    own = table_of([[0, 1]], [("rs1", "1", 5, "A", "C"), ("rs2", "1", 6, "A", "C")])
    given_table = table_of([[0, 1]], [("rs1", "1", 5, "G", "T"), ("rs2", "1", 6, "C", "A")])
    match = match_columns(own.header, given_table.header, "auto")
    assert match.absent == ("rs1:A", "rs1:AA")
    with pytest.warns(InputWarning) as caught:
        match.warn_differences("cohort")
    assert str(caught[0].message) == (
        "cohort: ignored 2 columns that the model was not fitted on: 'rs1:G', 'rs1:GG'; 2 absent columns are unknown: "
        "'rs1:A', 'rs1:AA'; alleles swapped of 1 variant; 1 variant has other alleles and cannot be used"
    )
    gathered = match.gather_table(given_table)
    assert gathered.columns == own.columns
    assert gathered.column_data == own.column_data
    assert gathered.bits.unknown.to_dense().tolist() == [[1, 1, 0, 0]]
    assert gathered.bits.filled().to_dense().tolist() == [[0, 0, 1, 0]]


def moved(table, rng, n_extra, n_absent, share):
    """Return genotypes as another cohort has them: more and fewer variants, in another order, some alleles swapped."""
    about, columns = variants_of(table.column_data)
    copies = table.to_dense().reshape(len(table), -1, 2).sum(axis=2)
    kept = rng.permutation(len(columns))[n_absent:]
    fields = ("id", "chromosome", "position", "allele", "other")
    rows = list(zip(*(about[name].tolist() for name in fields), strict=True))
    swapped = rng.random(len(columns)) < share
    made = [(*rows[n][:3], *(rows[n][:2:-1] if swapped[n] else rows[n][3:])) for n in kept]
    made += [(f"extra{extra}", "1", 10**6 + extra, "A", "C") for extra in range(n_extra)]
    numbers = np.where(swapped, 2 - copies, copies)[:, kept]
    numbers = np.hstack([numbers, rng.integers(0, 3, (len(table), n_extra))])
    return table_of(numbers, made, table.row_names), np.setdiff1d(np.arange(len(columns)), kept)


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_a_model_codes_another_cohort_like_aligned_data(tmp_path, algebra):
    genotypes = ba.datasets.genotypes(240, 60, random_state=0)
    learned, half = genotypes[:120], genotypes[120:]
    other, absent = moved(half, np.random.default_rng(0), n_extra=5, n_absent=9, share=0.2)
    unknown = np.zeros(half.shape, bool)
    unknown[:, [2 * number + bit for number in absent for bit in (0, 1)]] = True
    aligned = half.with_bits(half.bits.with_unknown(BitMatrix.from_dense(unknown)))
    model = ba.BinaryDictionaryLearning(8, algebra=algebra, random_state=0, search="fast").fit(learned)
    expected = model.transform(aligned)
    assert expected.any()
    ba.write(other, tmp_path / "other.bed")
    ba.pack(other, tmp_path / "other.zarr")
    model.save(tmp_path / "model.npz")
    for coder in (model, ba.load(tmp_path / "model.npz")):
        for cohort in (other, tmp_path / "other.bed", tmp_path / "other.zarr"):
            with pytest.warns(InputWarning, match=r"18 absent columns are unknown.*alleles swapped of \d+ variants"):
                assert np.array_equal(coder.transform(cohort), expected)


@given(st.integers(0, 70), st.integers(0, 70), SEEDS)
def test_dosages_become_two_bits(n_rows, n_variants, seed):
    copies = np.random.default_rng(seed).integers(0, 3, (n_rows, n_variants)).astype(float)
    copies[np.random.default_rng(seed + 1).random(copies.shape) < 0.1] = np.nan
    table = Table.from_any(copies, dosage=True)
    for start, bits in ((0, copies >= 1), (1, copies == 2)):
        np.testing.assert_array_equal(table.to_dense(float)[:, start::2], np.where(np.isnan(copies), np.nan, bits))
    assert pairs(table.column_data).tolist() == [[2 * number, 2 * number + 1] for number in range(n_variants)]


def test_dosages_of_other_types():
    copies = np.array([[0, 1, 2], [2, 0, 1]])
    frame = pd.DataFrame(copies, ["ann", "bob"], ["rs1", "rs2", "rs3"])
    table = Table.from_any(frame, dosage=True)
    assert table.columns == ("rs1:+", "rs1:++", "rs2:+", "rs2:++", "rs3:+", "rs3:++")
    assert table.row_names == ("ann", "bob")
    for X in (copies, csr_array(copies), copies + 0.4, copies - 0.4):
        assert Table.from_any(X, dosage=True).bits == table.bits
    filled = Table.from_any(np.where(copies == 1, np.nan, copies), dosage=True, missing="zero")
    assert filled.to_dense().tolist() == [[0, 0, 0, 0, 1, 1], [1, 1, 0, 0, 0, 0]]
    for wrong in (3, -1):
        with pytest.raises(ba.InputError, match="a negative number, or more than 2 at row 1, column 2"):
            Table.from_any(np.where(np.arange(6).reshape(2, 3) == 5, wrong, copies), dosage=True)
    with pytest.raises(ba.InputError, match="cannot be thresholded; omit binarize"):
        Table.from_any(copies, dosage=True, binarize=0.5)
    with pytest.raises(ValueError, match="missing value"):
        Table.from_any([[np.nan]], dosage=True, missing="refuse")


def test_a_model_of_dosages_reconstructs_only_possible_genotypes():
    copies = np.random.default_rng(0).integers(0, 3, (60, 20))
    table = Table.from_any(copies, dosage=True)
    model = ba.BinaryDictionaryLearning(6, algebra="xor", random_state=0, search="paper").fit(table)
    codes = np.random.default_rng(1).integers(0, 2, (50, model.n_components_))
    plain = model.as_model().reconstruct(BitMatrix.from_dense(codes)).to_dense()
    assert (plain[:, 1::2] > plain[:, 0::2]).any()
    made = model.inverse_transform(codes)
    assert not (made[:, 1::2] > made[:, 0::2]).any()
