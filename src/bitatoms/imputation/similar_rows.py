"""Similar rows predict cells: each votes with a weight that falls with the cells in which the two rows differ.

Rows may resemble each other only along a part of the columns, as haplotypes do along a genome. A word of 64 columns is
therefore predicted from the words up to a radius from it. The radius, and how fast the weights fall, are those that
predict hidden cells of a few rows with the lowest log loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu.similar_rows import VoterScratch, VoterWords, count_votes
from ..parallel import Workers
from .hidden_cells import CellScores, shares_of, without_cells

_UNIT = 1 << 24  # weight of the nearest row
_STEPS = 4  # of a distance, per differing cell
_WORD_COST, _VOTE_COST = 0.7, 0.7  # nanoseconds per word that is compared, and per vote


class NeighbourPlan(NamedTuple):
    """How the settings of similar rows are chosen."""

    most_rows: int = 10_000  # a sample of this many rows votes
    least_rows: int = 24  # rows of which cells are hidden,
    judged_words: int = 1 << 22  # or so many that these words are compared
    judged_cells: int = 4000  # of the hidden cells
    hidden_share: float = 0.1  # of the cells of these rows, at most
    least_share: float = 0.002  # of unknown cells in a table; with fewer, cells are hidden at random
    decays: tuple[float, ...] = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
    priors: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


PLAN = NeighbourPlan()


class Settings(NamedTuple):
    """How rows vote."""

    radius: int  # words on either side that are compared
    decay: float  # the weight of a row falls by exp(-decay) per differing cell
    prior: float  # votes, each as heavy as that of the nearest row, for the shares of ones in the columns


@dataclass(frozen=True, eq=False)
class SimilarRows:
    """Rows that vote on the cells of other rows, and of their own."""

    rows: BitMatrix
    settings: Settings
    scores: CellScores  # of the settings, on the cells by which they were chosen
    n_iter: int = 1

    def cell_probabilities(self, data: BitMatrix, workers: Workers) -> NDArray[np.float64]:
        """Return the probability of a one in every cell; that of a known cell is its value."""
        probabilities = data.filled().to_dense(np.float64)
        if data.unknown is not None:
            radius, decay, prior = self.settings
            votes = _Voters.of(self.rows).votes(data, data.unknown, radius, decay, workers)
            probabilities[data.unknown.to_dense(bool)] = votes.probabilities(prior)
        return probabilities


class _Votes(NamedTuple):
    """Weights of the rows that have a one, and a known value, in some cells; the shares of ones in their columns."""

    ones: NDArray[np.float64]
    total: NDArray[np.float64]
    shares: NDArray[np.float64]

    def probabilities(self, prior: float) -> NDArray[np.float64]:
        """Return the probabilities of ones, with this many votes for the shares of the columns."""
        return (self.ones + prior * self.shares) / (self.total + prior)


@dataclass(frozen=True, eq=False)
class _Voters:
    """Rows as the kernel takes them."""

    bits: NDArray[np.uint64]  # (n_words, n)
    known: NDArray[np.uint64]  # (n_words, n)
    shares: NDArray[np.float64]  # of ones in the columns

    @classmethod
    def of(cls, rows: BitMatrix) -> _Voters:
        """Return these rows."""
        bits, known = (np.ascontiguousarray(words.T) for words in (rows.words, ~_unknown_words(rows)))
        return cls(bits, known, shares_of(rows))

    def votes(self, data: BitMatrix, wanted: BitMatrix, radius: int, decay: float, workers: Workers) -> _Votes:
        """Return the votes on each wanted cell, row by row; the nearest row has one vote."""
        n_words, n_voters = self.bits.shape
        most_steps = int(np.log(2 * _UNIT) / decay * _STEPS) + 1  # after these, a weight is 0
        table = np.rint(_UNIT * np.exp(-decay / _STEPS * np.arange(1 + most_steps))).astype(np.int32)
        steps = (_STEPS / _window_shares(self.known, radius)).astype(np.float32)
        voters = VoterWords(self.bits, self.known, steps)
        known = ~_unknown_words(data)

        def run(start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            rows, cells = slice(start, stop), wanted[start:stop]
            ones, total = np.zeros((2, cells.count()), np.int64)
            scratch = VoterScratch(np.empty(n_voters, np.int32), np.empty(n_voters, np.int32))
            shares = np.ascontiguousarray(_window_shares(known[rows].T, radius).T.astype(np.float32))
            given = data.words[rows], known[rows], shares, cells.words, voters, radius, table
            count_votes(*given, scratch, ones, total)
            return ones, total

        row_cost = n_voters * (_WORD_COST * n_words + _VOTE_COST * wanted.count() / max(1, data.n_rows))
        chunks = workers.map_rows(run, data.n_rows, row_cost)
        ones, total = (np.concatenate(parts) / _UNIT for parts in zip(*chunks, strict=True))
        return _Votes(ones, total, self.shares[wanted.to_sparse().indices])


def _window_shares(known: NDArray[np.uint64], radius: int) -> NDArray[np.float64]:
    """Return the share of known cells, at least one cell, in the words up to a radius from each; axis 0 are words."""
    n_words = len(known)
    sums = np.zeros((n_words + 1, known.shape[1]), np.int64)
    np.cumsum(np.bitwise_count(known), axis=0, dtype=np.int64, out=sums[1:])
    words = np.arange(n_words)
    first, last = np.maximum(words - radius, 0), np.minimum(words + radius + 1, n_words)
    return np.maximum(sums[last] - sums[first], 1) / (64 * (last - first))[:, np.newaxis]


def fit_similar_rows(
    data: BitMatrix, random: np.random.Generator, workers: Workers, plan: NeighbourPlan = PLAN
) -> SimilarRows:
    """Choose how the rows of an incomplete table vote on its unknown cells."""
    rows = data
    if data.n_rows > plan.most_rows:
        rows = data[np.sort(random.choice(data.n_rows, plan.most_rows, replace=False))]
    hidden = _hidden_cells(rows, random, plan)
    visible = without_cells(rows, hidden)
    judged = np.flatnonzero(hidden.words.any(axis=1))
    wanted = _sampled_cells(hidden[judged], plan.judged_cells, random)
    truth = rows.filled()[judged].to_dense(bool)[wanted.to_dense(bool)]
    voters, queries = _Voters.of(visible), visible[judged]
    scored: dict[int, tuple[CellScores, Settings]] = {}
    start = 0
    for radius in _radii(rows.words.shape[1]):
        # The narrower the window, the faster the weights fall.
        for index in range(start, len(plan.decays)):
            decay = plan.decays[index]
            votes = voters.votes(queries, wanted, radius, decay, workers)
            scores = [CellScores.of(truth, votes.probabilities(prior)) for prior in plan.priors]
            best = min(range(len(scores)), key=lambda number: scores[number].log_loss)
            if radius in scored and not scores[best].log_loss < scored[radius][0].log_loss:
                break
            scored[radius], start = (scores[best], Settings(radius, decay, plan.priors[best])), index
    best_scores, settings = min(scored.values(), key=lambda each: each[0].log_loss)
    return SimilarRows(rows, settings, best_scores)


def _radii(n_words: int) -> list[int]:
    """Return the radii to try: the first one covers all words, each other one a third of the one before."""
    radii = [max(0, n_words - 1)]
    while radii[-1]:
        radii.append(radii[-1] // 3)
    return radii


def _hidden_cells(data: BitMatrix, random: np.random.Generator, plan: NeighbourPlan) -> BitMatrix:
    """Return a mask of known cells of some rows: those that are unknown in other rows.

    Cells that are unknown together, such as the two bits of a genotype, are hidden together. Of the words of a row,
    as many are left as they are that no more than a share of the cells is hidden.
    """
    n_words = data.words.shape[1]
    n_rows = min(data.n_rows, max(plan.least_rows, plan.judged_words // max(1, data.n_rows * n_words)))
    rows = np.sort(random.choice(data.n_rows, n_rows, replace=False))
    share = data.n_unknown / max(1, data.n_rows * data.n_cols)
    if share < plan.least_share:
        mask = BitMatrix.from_dense(random.random((n_rows, data.n_cols)) < plan.hidden_share).words
    else:
        mask = _unknown_words(data)[random.integers(data.n_rows, size=n_rows)]
        mask = np.where(random.random(mask.shape) * share < plan.hidden_share, mask, np.uint64(0))
    words = np.zeros_like(data.words)
    words[rows] = mask & ~_unknown_words(data)[rows]
    return BitMatrix.from_words(words, data.n_cols, check=False)


def _sampled_cells(mask: BitMatrix, most: int, random: np.random.Generator) -> BitMatrix:
    """Return a mask of at most about this many of the cells."""
    n_cells = mask.count()
    if n_cells <= most:
        return mask
    drawn = BitMatrix.from_dense(random.random(mask.shape) * n_cells < most)
    return BitMatrix.from_words(mask.words & drawn.words, mask.n_cols, check=False)


def _unknown_words(data: BitMatrix) -> NDArray[np.uint64]:
    """Return the mask of unknown cells."""
    return np.zeros_like(data.words) if data.unknown is None else data.unknown.words
