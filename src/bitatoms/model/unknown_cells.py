"""Unknown cells filled in, and known cells hidden from a model, by which its predictions are judged.

Columns that are tied are always unknown together, and not all combinations of their values are possible: those of a
question with several answers, of which a row has at most one, or those of a genotype. A genotype is 0, 1 or 2 copies of
an allele, in two cells: the first is a one with at least one copy, the second with two. Filled in one by one, tied
columns may contradict each other, or miss the most probable combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bits import BitMatrix, either, stack_rows
from ..columns.encoding import ColumnTies
from ..columns.table import Header

_LEAST_UNKNOWN = 2  # cells of columns that are tied: one could be unknown in both by chance
_LEAST_KNOWN = 20  # rows in which some combination does not occur
_CHUNK_CELLS = 1 << 20  # cells drawn at a time
_N_BINS = 10  # of probabilities, when their calibration is judged
_LEAST = 1e-12  # probability: a prediction that is certain and wrong costs about 40 bits

Convert = Callable[[NDArray[np.float64], BitMatrix], BitMatrix]  # of the probabilities of rows, and the rows


class Exclusive(NamedTuple):
    """Groups of equally many columns, of which a row has at most one."""

    columns: NDArray[np.intp]  # a row for each group
    may_be_none: NDArray[np.bool_]  # whether a row may have none of a group


class TiedColumns(NamedTuple):
    """Columns that are filled in together; a column is in one group at most."""

    nested: NDArray[np.intp]  # pairs: a row has the second column only if it has the first
    exclusive: tuple[Exclusive, ...]

    def most_probable(self, probabilities: NDArray[np.float64], rows: BitMatrix) -> NDArray[np.bool_]:
        """Return the most probable values of rows, given the probability of a one in each cell; a zero on a tie.

        Of the combinations of tied columns, those that known cells exclude are not chosen.
        """
        values, given = probabilities > 0.5, rows.to_dense(float)  # NaN where a cell is unknown
        first, second = self.nested.T
        of_each = genotype_probabilities(probabilities[:, first], probabilities[:, second])
        is_zero, is_one = given[:, first] == 0, given[:, first] == 1
        is_not_two, is_two = given[:, second] == 0, given[:, second] == 1
        of_each[is_one | is_two, 0] = of_each[is_zero | is_two, 1] = of_each[is_zero | is_not_two, 2] = -1.0
        copies = of_each.argmax(axis=-1)
        values[:, first], values[:, second] = copies >= 1, copies == 2
        for columns, may_be_none in self.exclusive:
            known, of_each = given[:, columns], probabilities[:, columns]
            has_one = (known == 1).any(axis=2)
            none = np.where(may_be_none & ~has_one, np.maximum(1 - of_each.sum(axis=2), 0), -1.0)
            of_each = np.where((known == 0) | (has_one[:, :, np.newaxis] & (known != 1)), -2.0, of_each)
            best = np.concatenate([none[:, :, np.newaxis], of_each], axis=2).argmax(axis=2)
            values[:, columns] = best[:, :, np.newaxis] == np.arange(1, columns.shape[1] + 1)
        return values


def known_ties(columns: Header) -> TiedColumns:
    """Return the columns that are tied by what they stand for: copies of an allele, or values of a variable."""
    ties = ColumnTies.of(columns)
    return TiedColumns(ties.nested, tuple(Exclusive(each, np.zeros(len(each), bool)) for each in ties.exclusive))


def tied_columns(
    data: BitMatrix, pairs: NDArray[np.intp] | None = None, exclusive: Sequence[Exclusive] = ()
) -> TiedColumns:
    """Find the columns that are tied.

    Parameters
    ----------
    data : BitMatrix
        The table learned from. Neighbouring columns that are unknown in the same rows, at least two, are tied if some
        combinations of their values do not occur in the other rows, at least twenty.
    pairs : ndarray of shape (n_pairs, 2), optional
        Columns that are known to be tied: two copies of an allele, the second column, are also one, the first.
    exclusive : sequence of Exclusive
        Columns of which a row is known to have at most one, or exactly one.
    """
    known_pairs = np.zeros((0, 2), np.intp) if pairs is None else pairs
    if data.unknown is None:
        return TiedColumns(known_pairs, tuple(exclusive))
    columns, unknown = data.T.words, data.unknown.T.words
    n_unknown = np.bitwise_count(unknown).sum(axis=1, dtype=np.int64)
    is_free = (n_unknown >= _LEAST_UNKNOWN) & (len(data) - n_unknown >= _LEAST_KNOWN)
    for known in (known_pairs, *(each.columns for each in exclusive)):
        is_free[known.ravel()] = False
    same = (unknown[1:] == unknown[:-1]).all(axis=1) & is_free[1:] & is_free[:-1]
    starts = np.flatnonzero(np.concatenate(([True], ~same)))
    sizes = np.diff(np.append(starts, data.n_cols))
    all_rows = BitMatrix.from_dense(np.ones((1, len(data)), bool)).words
    nested, found = [known_pairs], list(exclusive)
    for size in np.unique(sizes[sizes > 1]).tolist():
        group = starts[sizes == size, np.newaxis] + np.arange(size)
        seen, twice = np.zeros((2, len(group), columns.shape[1]), np.uint64)
        for column in group.T:
            twice |= seen & columns[column]
            seen |= columns[column]
        is_exclusive = ~twice.any(axis=1)
        may_be_none = np.asarray((all_rows & ~unknown[group[:, 0]] & ~seen).any(axis=1))
        found += [Exclusive(group[is_exclusive], may_be_none[is_exclusive])] if is_exclusive.any() else []
        if size == 2:
            for first, second in (group.T, group.T[::-1]):
                is_nested = ~is_exclusive & ~(columns[second] & ~columns[first]).any(axis=1)
                nested.append(np.stack([first, second], axis=1)[is_nested])
    return TiedColumns(_distinct(np.concatenate(nested)), tuple(found))


def _distinct(pairs: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return pairs without those of the same two columns in the other order, which are equal."""
    return pairs[np.unique(pairs.min(axis=1), return_index=True)[1]] if len(pairs) else pairs


def fill_unknown(
    data: BitMatrix, tied: TiedColumns, predict: Callable[[BitMatrix, Convert], list[BitMatrix]]
) -> BitMatrix:
    """Return the data with the most probable values in unknown cells.

    ``predict`` is called with the rows that have such cells. It calls a function with the probabilities of ones in each
    chunk of these rows, and with this chunk, and returns a list of the results.
    """
    if data.unknown is None:
        return data
    rows = np.flatnonzero(data.unknown.words.any(axis=1))
    values = predict(data[rows], lambda shares, chunk: BitMatrix.from_dense(tied.most_probable(shares, chunk)))
    words = data.words.copy()
    words[rows] |= stack_rows(values, data.n_cols).words & data.unknown.words[rows]
    return BitMatrix.from_words(words, data.n_cols, check=False)


def genotype_probabilities(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return the probabilities of 0, 1 and 2 copies, on a last axis, from those of ones in the two cells.

    A known cell has the probability 0 or 1, and is kept.
    """
    first, second = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    carries = np.where(second == 1, 1.0, first)
    two = np.minimum(carries, second)
    return np.stack([1 - carries, carries - two, two], axis=-1)


def nearest_genotypes(bits: BitMatrix, pairs: NDArray[np.intp], wrong: NDArray[np.int64]) -> tuple[BitMatrix, int]:
    """Return samples of which every genotype is possible, and the number of genotypes that were not.

    A reconstruction may contain two copies of an allele but not one. No copy and two copies both differ from that in
    one bit. The bit that is changed is the one that the model gets wrong more often: the first, which gives two copies,
    or else, also on a tie, the second, which gives no copy.

    Parameters
    ----------
    bits : BitMatrix
        Samples without unknown cells.
    pairs : ndarray of shape (n_variants, 2)
        The columns of each variant: carries the allele, carries two copies.
    wrong : ndarray of shape (n_cols,)
        Number of training rows in which the model gets each column wrong.
    """
    if not len(pairs):
        return bits, 0
    columns = bits.T.words.copy()
    first, second = pairs.T
    impossible = columns[second] & ~columns[first]
    n_impossible = int(np.bitwise_count(impossible).sum())
    if not n_impossible:
        return bits, 0
    changes_first = (wrong[first] > wrong[second])[:, np.newaxis]
    columns[first] |= np.where(changes_first, impossible, np.uint64(0))
    columns[second] &= ~np.where(changes_first, np.uint64(0), impossible)
    return BitMatrix.from_words(columns, len(bits), check=False).T, n_impossible


def hidden_folds(
    data: BitMatrix, n_folds: int, share: float, random: np.random.Generator, first: NDArray[np.intp] | None = None
) -> Iterator[BitMatrix]:
    """Yield masks, each of about this share of the known cells; they are disjoint if ``n_folds * share`` is up to 1.

    ``first`` is for each column the first one of those that are hidden together in a row (see `ColumnTies`).
    """
    together = slice(None) if first is None else first
    seed = int(random.integers(2**63))
    for fold in range(n_folds):
        draws = np.random.default_rng(seed)  # each cell has the same number in every fold
        rows = max(1, _CHUNK_CELLS // max(1, data.n_cols))
        masks = []
        for start in range(0, data.n_rows, rows):
            chunk = data[start : start + rows]
            hidden = BitMatrix.from_dense((draws.random(chunk.shape)[:, together] - fold * share) % 1 < share)
            known = hidden.words if chunk.unknown is None else hidden.words & ~chunk.unknown.words
            masks.append(BitMatrix.from_words(known, data.n_cols, check=False))
        yield stack_rows(masks, data.n_cols)


def hidden_genotypes(data: BitMatrix, pairs: NDArray[np.intp], share: float, random: np.random.Generator) -> BitMatrix:
    """Return a mask of about this share of the known cells; the two columns of a pair are hidden together."""
    partner = np.arange(data.n_cols)
    partner[pairs[:, 1]] = pairs[:, 0]
    unknown = np.zeros(data.shape, bool) if data.unknown is None else data.unknown.to_dense(bool)
    is_hidden = (random.random(data.shape) < share)[:, partner] & ~unknown
    both = is_hidden[:, pairs[:, 0]] & is_hidden[:, pairs[:, 1]]
    is_hidden[:, pairs[:, 0]] = is_hidden[:, pairs[:, 1]] = both
    return BitMatrix.from_dense(is_hidden)


def without_cells(data: BitMatrix, hidden: BitMatrix) -> BitMatrix:
    """Return the data with more unknown cells."""
    return data.with_unknown(either(data.unknown, hidden))


class CellScores(NamedTuple):
    """How well probabilities predict hidden cells."""

    n_cells: int
    accuracy: float  # share of the cells predicted right
    log_loss: float  # bits per cell: the mean of minus log2 of the probability of the value found
    calibration_error: float  # mean difference of probability and share of ones, in ten bins of equal width

    @classmethod
    def of_hidden(
        cls, data: BitMatrix, hidden: BitMatrix, predict: Callable[[BitMatrix], NDArray[np.float64]]
    ) -> CellScores:
        """Return the scores of what a function predicts for cells that are hidden from it, given all other cells."""
        cells = hidden.to_dense(bool)
        return cls.of(data.filled().to_dense(bool)[cells], predict(without_cells(data, hidden))[cells])

    @classmethod
    def of(cls, truth: NDArray[np.bool_], probabilities: NDArray[np.float64]) -> CellScores:
        """Return the scores of the probabilities of ones in cells with these values; NaN without cells."""
        if not len(truth):
            return cls(0, float("nan"), float("nan"), float("nan"))
        found = np.where(truth, probabilities, 1 - probabilities)
        bins = np.minimum((probabilities * _N_BINS).astype(np.int64), _N_BINS - 1)
        excess = np.bincount(bins, probabilities - truth, _N_BINS)
        log_loss = -float(np.log2(np.maximum(found, _LEAST)).mean())
        right = float(((probabilities > 0.5) == truth).mean())
        return cls(len(truth), right, log_loss, float(np.abs(excess).sum() / len(truth)))


class GenotypeScores(NamedTuple):
    """How well hidden genotypes are predicted; of haplotypes, their single cells."""

    n_genotypes: int
    concordance: float  # share of the genotypes predicted exactly
    dosage_r2: float  # squared correlation of true and expected numbers of copies

    @classmethod
    def of(
        cls,
        truth: NDArray[np.bool_],
        probabilities: NDArray[np.float64],
        predicted: NDArray[np.bool_],
        hidden: NDArray[np.bool_],
        pairs: NDArray[np.intp],
    ) -> GenotypeScores:
        """Return the scores of predictions of hidden cells, arrays of the same shape; pairs are hidden together."""
        first, second = pairs.T
        is_single = np.ones(truth.shape[1], bool)
        is_single[pairs.ravel()] = False
        of_pair, of_cell = hidden[:, first], hidden[:, is_single]
        copies = [values[:, first].astype(np.int8) + values[:, second] for values in (truth, predicted)]
        of_copies = genotype_probabilities(probabilities[:, first], probabilities[:, second])
        expected = of_copies[..., 1] + 2 * of_copies[..., 2]
        true = np.concatenate([copies[0][of_pair], truth[:, is_single][of_cell]])
        found = np.concatenate([copies[1][of_pair], predicted[:, is_single][of_cell]])
        dosage = np.concatenate([expected[of_pair], probabilities[:, is_single][of_cell]])
        return cls(len(true), concordance(true, found), dosage_r2(true, dosage))


def concordance(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return the share of genotypes, or cells, predicted exactly; NaN without any."""
    equal = np.equal(truth, predicted)
    return float(equal.mean()) if equal.size else float("nan")


def dosage_r2(truth: ArrayLike, dosage: ArrayLike) -> float:
    """Return the squared correlation of true and expected numbers of copies; NaN if one of them does not vary."""
    truth, dosage = (np.asarray(values, np.float64).ravel() for values in (truth, dosage))
    if not len(truth) or np.ptp(truth) == 0 or np.ptp(dosage) == 0:
        return float("nan")
    return float(np.corrcoef(truth, dosage)[0, 1] ** 2)
