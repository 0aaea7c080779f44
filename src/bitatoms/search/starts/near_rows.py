"""Atoms of a long table from pairs of near rows, which nearly use the same atoms.

Few rows of a sample have nearly the same code if codes are dense and atoms are many; among all rows, many do. Hashes of
some columns find them. The sum of two such rows is a sum of one or two atoms and noise. This is a table of its own,
with much sparser codes, in which atoms are found one after the other, from the errors of its rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ...bits import BitMatrix, count_ones
from ...engine.block import Block
from ...engine.objective import Objective
from ...kernels.cpu import gf2, packing
from ...parallel import Workers
from ..moves.drop import drop, savings
from ..moves.grow import grow
from ..moves.sweep import sweep
from ..plan import LinearBudget

_OBJECTIVE = Objective(True, "xor")
_NEW_ATOMS = 8  # of a round, at most
_MAX_HASH_BITS = 64
_MOST_COMPARED = 4  # times as many pairs as a hash table should have in its buckets
_N_CONTROLS = 1000  # random pairs of rows, whose distances show which are near


def atoms_of_near_rows(
    data: BitMatrix, random: np.random.Generator, workers: Workers, budget: LinearBudget
) -> BitMatrix:
    """Return atoms of which the sums of near rows consist; none if no rows are near."""
    pairs = near_pairs(data, random, budget)
    sums = BitMatrix.from_words(data.words[pairs[:, 0]] ^ data.words[pairs[:, 1]], data.n_cols, check=False)
    block = Block(sums, data[:0], None, False, workers)
    before = math.inf
    while before > (before := _OBJECTIVE.cost(block)):
        grow(block, _OBJECTIVE, random, _NEW_ATOMS)
        sweep(block, _OBJECTIVE, swaps=False)
        sweep(block, _OBJECTIVE)
        drop(block, _OBJECTIVE, np.argsort(savings(block, _OBJECTIVE), kind="stable"), block.n_atoms)
    return block.atoms()


def near_pairs(data: BitMatrix, random: np.random.Generator, budget: LinearBudget) -> NDArray[np.int64]:
    """Return pairs of rows that are nearer than any would be by chance, each row in at most one pair.

    Only rows with the same hash, some random columns, are compared with each other; so there are many hash tables.
    """
    (n, m), words = data.shape, data.words
    n_compared = max(1, budget.compared_words // words.shape[1])
    n_bits = int(np.clip(np.log2(max(1.0, n * (n - 1) / 2 / n_compared)), 1, min(m, _MAX_HASH_BITS)))
    limit, hashes, is_listed = _near_limit(data, random), np.empty((n, 1), np.uint64), np.zeros(n, np.bool_)
    pairs, count = np.empty((budget.max_rows, 2), np.int64), 0
    for _ in range(budget.near_tables if limit >= 0 else 0):
        packing.take_columns(words, random.choice(m, n_bits, replace=False), hashes)
        order = random.permutation(n)
        order = order[np.argsort(hashes[order, 0], kind="stable")]
        most = _MOST_COMPARED * n_compared
        count += gf2.list_near_pairs(words, hashes[:, 0], order, limit, most, is_listed, pairs[count:])
        if count == len(pairs):
            break
    return pairs[:count]


def _near_limit(data: BitMatrix, random: np.random.Generator) -> int:
    """Return the distance below which less than one of all pairs of rows is by chance; negative if there is none.

    By chance, distances are normally distributed.
    """
    n = data.n_rows
    if n < 2:
        return -1
    one, other = random.integers(n, size=(2, _N_CONTROLS))
    distances = count_ones(data.words[one] ^ data.words[other])
    return int(np.median(distances) + ndtri(1 / (n * (n - 1))) * distances.std())
