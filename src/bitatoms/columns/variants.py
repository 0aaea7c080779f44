"""Columns of genotypes: the variant, allele and number of copies of a column, and how those of two tables match.

The annotations of such columns have the fields of `FIELDS`. A variant of diploid samples has two columns that are
tied: whether a sample carries the allele, and whether it carries two copies. A variant of haplotypes has the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..errors import Cell, InputError, InvalidCell, Parameter
from ..formatting import counted, have
from .annotations import Annotations, Labels

# The allele is the one whose copies are counted (ALT of a VCF file, the first one of a .bim file); missing: unknown.
FIELDS = ("chromosome", "position", "id", "allele", "other", "copies")

_MIN_ORDERED = 2048  # columns of tables whose atoms are described by stretches; these tables are searched by windows
_SEX_CHROMOSOMES = {"23": "X", "24": "Y", "25": "XY", "26": "MT"}  # as PLINK numbers them


def are_variants(data: Annotations | None) -> TypeGuard[Annotations]:
    """Return whether columns with these annotations are genotypes: they have all fields, of the types of these."""
    if data is None or not all(name in data for name in FIELDS):
        return False
    values = [data.values_of(name) for name in FIELDS]
    numbers = [each for each in values if not isinstance(each, Labels)]
    is_integer = all(each.dtype.kind in "iu" and not isinstance(each, np.ma.MaskedArray) for each in numbers)
    return is_integer and [isinstance(each, Labels) for each in values] == [True, False, True, True, True, False]


def column_names(
    names: Iterable[str], alleles: Iterable[str | None], most_copies: int, unknown: str = "0"
) -> list[str]:
    """Return the names of the columns of variants: ``rs1:A`` and, for two copies, ``rs1:AA``.

    An allele that is unknown is written as in a .bim file by default.
    """
    columns = []
    for name, given in zip(names, alleles, strict=True):
        allele = unknown if given is None else given
        columns.append(f"{name}:{allele}")
        if most_copies == 2:
            columns.append(f"{name}:{allele}{allele}")
    return columns


def column_data(variants: Annotations, most_copies: int) -> Annotations:
    """Return the annotations of the columns of variants, from one value per variant of all fields but ``copies``."""
    repeated = variants.take(np.repeat(np.arange(variants.n), most_copies))
    return repeated.updated(copies=np.tile(np.arange(1, most_copies + 1, dtype=np.int8), variants.n))


def from_names(names: Sequence[str]) -> Annotations | None:
    """Return what the names of columns tell about the variants of diploid samples, if all of them are named so."""
    if len(names) % 2 or not names:
        return None
    ids, alleles = [], []
    for first, second in zip(names[0::2], names[1::2], strict=True):
        allele = second[len(first) :]
        name = first[: max(0, len(first) - len(allele) - 1)]
        if not (name and allele) or [first, second] != column_names([name], [allele], 2):
            return None
        ids.append(name)
        alleles.append(allele)
    return dosage_columns(ids, Annotations({"allele": alleles}, len(ids)))[1]


def dosage_columns(names: Sequence[str], data: Annotations | None = None) -> tuple[tuple[str, ...], Annotations]:
    """Return the names and the annotations of the two columns of each variant of a table of numbers of copies.

    The alleles and positions are those of the annotations, if they are there. An allele that is not is written as +.
    """
    nothing = Labels.of([None] * len(names))
    known = {} if data is None else {name: data.values_of(name) for name in data}
    fields = {"chromosome": nothing, "position": np.zeros(len(names), np.int64), "allele": nothing, "other": nothing}
    for name in fields.keys() & known.keys():  # others may mean something else by these names
        values = known[name]
        if isinstance(values, Labels) != (name != "position") or np.asarray(values).dtype.kind not in "iuO":
            del known[name]
    variants = Annotations({**fields, **known, "id": Labels.of(names)}, len(names))
    return tuple(column_names(names, variants["allele"], 2, "+")), column_data(variants, 2)


def pack_dosages(values: Any, missing: str) -> BitMatrix:
    """Return numbers of copies, 0, 1 and 2, as two columns each: one copy or more, two copies; others are rounded."""
    handled = "refuse" if missing == "refuse" else "unknown"
    is_number, carries, carries_two, is_more = (
        BitMatrix.from_any(values, least - 0.5, missing=handled) for least in range(4)
    )
    known = np.repeat(BitMatrix.from_dense(np.ones((1, carries.n_cols), bool)).words, len(carries), axis=0)
    if carries.unknown is not None:
        known &= ~carries.unknown.words
    wrong = BitMatrix.from_words(is_more.words | (known & ~is_number.words), carries.n_cols)
    if rows := np.flatnonzero(wrong.words.any(axis=1)).tolist():
        cell = Cell(rows[0], int(np.argmax(wrong[rows[0]])), "a negative number, or more than 2")
        raise InvalidCell("X", cell, "contains {problem} {where}", "numbers of copies are 0, 1 or 2")
    both = interleaved(carries.T, carries_two.T).T
    return both if missing == "unknown" else both.filled()


def interleaved(first: BitMatrix, second: BitMatrix) -> BitMatrix:
    """Return the rows of two tables in turn."""
    order = np.arange(2 * len(first)).reshape(2, -1).T.ravel()
    return stack_rows([first, second], first.n_cols)[order]


def variant_names(data: Annotations, names: Sequence[str], columns: NDArray[np.intp]) -> list[str]:
    """Return what variants with these pairs of columns are called.

    A variant is called by its id, or by the name of its first column if several variants have this id.
    """
    ids, firsts = data["id"].tolist(), columns[:, 0].tolist()
    counts = Counter(ids[first] for first in firsts)
    return [names[first] if ids[first] is None or counts[ids[first]] > 1 else ids[first] for first in firsts]


def variants_of(data: Annotations) -> tuple[Annotations, NDArray[np.intp]]:
    """Return the variants of columns, one value each of all fields but ``copies``, and the two columns of each.

    A column that is absent is -1.
    """
    copies = np.asarray(data["copies"])
    values = [each.codes if isinstance(each, Labels) else each for each in map(data.values_of, FIELDS[:-1])]
    is_pair = (copies[:-1] == 1) & (copies[1:] == 2) if data.n else np.zeros(0, bool)
    for each in values:
        is_pair &= each[:-1] == each[1:]
    is_second = np.zeros(data.n, bool)
    is_second[1:] = is_pair
    start = np.flatnonzero(~is_second)
    columns = np.full((len(start), 2), -1, np.intp)
    columns[np.arange(len(start)), np.where(copies[start] == 2, 1, 0)] = start
    paired = np.flatnonzero(is_second[np.minimum(start + 1, data.n - 1)] & (start + 1 < data.n))
    columns[paired, 1] = start[paired] + 1
    kept = Annotations({name: data.values_of(name) for name in data if name != "copies"}, data.n)
    return kept.take(start), columns


def genotype_data(data: Annotations | None, names: Sequence[str] | None) -> Annotations | None:
    """Return the annotations of columns that are genotypes, None for others.

    Columns without annotations are genotypes if all of them are named as `column_names` does.
    """
    data = from_names(names) if data is None and names is not None else data
    return data if are_variants(data) else None


def pairs(data: Annotations | None) -> NDArray[np.intp]:
    """Return the two tied columns of each variant that has both; none if columns are not genotypes."""
    if not are_variants(data):
        return np.zeros((0, 2), np.intp)
    columns = variants_of(data)[1]
    return columns[(columns >= 0).all(axis=1)]


def regions(data: Annotations | None) -> tuple[NDArray[np.intp], ...] | None:
    """Return the columns of each chromosome in the order of their positions; None unless all columns have one.

    Columns of the same position are in the order of their alleles and copies: the order does not depend on that of the
    columns.
    """
    if not are_variants(data) or not data.n:
        return None
    chromosomes, position = chromosomes_of(data), np.asarray(data["position"])
    if (chromosomes.codes < 0).any() or (position <= 0).any():
        return None
    names = plain_chromosomes(chromosomes.categories)
    numbers = {name: number for number, name in enumerate(sorted(set(names), key=lambda name: (len(name), name)))}
    group = np.array([numbers[name] for name in names])[chromosomes.codes]
    alleles = Labels.of(data["allele"].tolist())
    rank_of_allele = np.append(np.argsort(np.argsort(np.array(alleles.categories, str))), -1)  # -1: a missing one
    order = np.lexsort((np.asarray(data["copies"]), rank_of_allele[alleles.codes], position, group))
    return tuple(np.split(order, np.flatnonzero(np.diff(group[order])) + 1))


def ranks_in(regions: Sequence[NDArray[np.intp]] | None) -> NDArray[np.int64] | None:
    """Return the rank of each column in the order of regions, by which the codelength describes atoms by stretches.

    None for narrow tables and for columns without positions, whose atoms are described by strings.
    """
    order = np.concatenate(regions) if regions else np.zeros(0, np.intp)
    if len(order) < _MIN_ORDERED:
        return None
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def match_variants(
    learned: Annotations, given: Annotations
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None, tuple[str, ...]]:
    """Find the columns of variants in another table: by id and alleles, or by position and alleles.

    A variant whose alleles are swapped is the same variant: who carries no copy of one carries two of the other.

    Returns
    -------
    indices : ndarray of int64
        For each column, its index in the other table, or -1.
    swapped : ndarray of bool or None
        Whether that column counts the other allele, so that its bits are inverted; None if none does.
    notes : tuple of str
        How many variants have swapped alleles, and how many have other alleles, so that they are not matched.
    """
    is_diploid, given_is_diploid = (bool((np.asarray(data["copies"]) == 2).any()) for data in (learned, given))
    if is_diploid != given_is_diploid:
        rows = ("samples", "haplotypes") if is_diploid else ("haplotypes", "samples")
        raise InputError(
            f"the model was learned from {rows[0]}, but the rows of the table are {rows[1]}; read it with ",
            Parameter("phased", not is_diploid),
        )
    variants, columns = variants_of(given)
    alleles = list(zip(variants["allele"], variants["other"], strict=True))
    numbers: dict[Any, list[int]] = {}  # of the variants with an id, or at a locus
    for number, keys in enumerate(zip(variants["id"], _loci(variants), strict=True)):
        for key in keys:
            numbers.setdefault(key, []).append(number)
    numbers.pop(None, None)
    own, own_columns = variants_of(learned)
    indices, swapped = np.full(learned.n, -1, np.int64), np.zeros(learned.n, bool)
    n_swapped = n_other = 0
    own_alleles = zip(own["allele"], own["other"], strict=True)
    for name, locus, pair, (first, second) in zip(own["id"], _loci(own), own_alleles, own_columns, strict=True):
        candidates = numbers.get(name, [])
        found = _same_alleles(pair, candidates, alleles)
        if not found:
            others = [number for number in numbers.get(locus, ()) if number not in candidates]
            found, candidates = _same_alleles(pair, others, alleles), [*candidates, *others]
        if len(found) > 1 and all(alleles[number] == pair for number, _ in found):
            where = name if locus is None else f"{name or 'variant'} at {locus[0]}:{locus[1]}"
            raise InputError(f"two variants of the table are {where} with the same alleles; remove one of them")
        number, is_swapped = found[0] if len(found) == 1 else (-1, False)
        if is_swapped and sum(alleles[each][1] == alleles[number][1] for each in candidates) > 1:
            number = -1  # of three alleles, those that are not one of them are not all the other one
        if number < 0:
            n_other += bool(candidates)
            continue
        given_columns = columns[number][::-1] if is_swapped and is_diploid else columns[number]
        for column, index in zip((first, second), given_columns, strict=True):
            if column >= 0 and index >= 0:
                indices[column], swapped[column] = index, is_swapped
        n_swapped += is_swapped
    notes: tuple[str, ...] = (f"alleles swapped of {counted(n_swapped, 'variant')}",) if n_swapped else ()
    if n_other:
        notes += (f"{counted(n_other, 'variant')} {have(n_other)} other alleles and cannot be used",)
    return indices, swapped if n_swapped else None, notes


Alleles = tuple[str | None, str | None]  # the one that is counted, and the other one


def _same_alleles(own: Alleles, candidates: Iterable[int], alleles: Sequence[Alleles]) -> list[tuple[int, bool]]:
    """Return the candidates that have the same two alleles, and whether these are swapped.

    Alleles that are missing may be any, but only if no candidate has exactly the same ones.
    """
    ways = [(number, False, alleles[number]) for number in candidates]
    ways += [(number, True, (other, allele)) for number, _, (allele, other) in ways if (allele, other) != (None, None)]
    exact = [(number, swapped) for number, swapped, pair in ways if pair == own]
    possible = [(number, swapped) for number, swapped, pair in ways if _compatible(own, pair)]
    return exact or [each for each in possible if not each[1]] or possible


def _compatible(own: Alleles, given: Alleles) -> bool:
    """Return whether two pairs of alleles may be the same: one that is missing is any, if the other one is not."""
    same = [a == b for a, b in zip(own, given, strict=True) if a is not None and b is not None]
    return bool(same) and all(same)


def have_equal_alleles(learned: Annotations, given: Annotations) -> bool:
    """Return whether the columns of two tables count the same alleles, and none is known to have another one."""
    pairs = zip(learned["allele"], learned["other"], given["allele"], given["other"], strict=True)
    return learned.n == given.n and all(a == c and (b == d or None in (b, d)) for a, b, c, d in pairs)


def _loci(variants: Annotations) -> list[tuple[str, int] | None]:
    """Return chromosome and position of variants, None where these are unknown."""
    labels = chromosomes_of(variants)
    names = plain_chromosomes(labels.categories)
    numbers = zip(labels.codes.tolist(), np.asarray(variants["position"]).tolist(), strict=True)
    return [(names[code], position) if code >= 0 and position > 0 else None for code, position in numbers]


def chromosomes_of(data: Annotations) -> Labels:
    """Return the chromosomes of variants or columns, which may be numbers."""
    values = data.values_of("chromosome")
    return values if isinstance(values, Labels) else Labels.of(values.tolist())


def plain_chromosomes(names: Sequence[str]) -> list[str]:
    """Return the chromosomes of a table without the prefix that some files use.

    The letters X, Y and MT replace the numbers 23 to 26, which PLINK uses for them, unless the table has higher ones,
    as of animals with more chromosomes.
    """
    plain = [(name[3:] if name[:3].lower() == "chr" else name).upper() for name in names]
    plain = ["MT" if name == "M" else name for name in plain]
    has_more = any(name.isdigit() and int(name) > 26 for name in plain)
    return plain if has_more else [_SEX_CHROMOSOMES.get(name, name) for name in plain]
