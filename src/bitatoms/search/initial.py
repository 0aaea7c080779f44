"""Where a search starts: atoms of several kinds, one function each, or as the user gave them."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.atoms import update_together
from ..core.block import Block
from ..core.coding import code, coding_rule
from ..core.objective import unit_prices
from ..kernels.cpu import words
from ..parallel import Workers
from .params import SearchParams, check_exact
from .proximus import append_rank_one

_CANDIDATES = 3
_LLOYD_ROUNDS = 3
_SEEDS = 64


def start_factors(
    data: BitMatrix, params: SearchParams, covers: bool | None, workers: Workers, random: np.random.Generator
) -> tuple[BitMatrix, BitMatrix | None]:
    """The atoms, and maybe codes, that a search in this algebra starts from."""
    by_mdl = params.n_components == "mdl"
    wanted = params.start_components if params.n_components == "mdl" else params.n_components
    if not isinstance(params.init, str):
        atoms, codes = _given(data, params, None if by_mdl else wanted)
        check_exact(params.coder, atoms.n_rows)
        return atoms, codes
    check_exact(params.coder, wanted)
    if params.init == "bernoulli":
        atoms = bernoulli(wanted, data.n_cols, params.init_density, random)
    elif params.init == "samples":
        atoms = samples(data, wanted, random)
    elif params.init == "spread":
        atoms = spread(data, wanted, random, workers)
    else:
        atoms = greedy(data, wanted, covers, random, workers)
    if atoms.n_rows < wanted and not by_mdl and params.search == "paper":
        warn(
            f'init="{params.init}" finds only {atoms.n_rows} different atoms in X, and {wanted} were asked for: '
            f'{atoms.n_rows} are learned. init="bernoulli" starts from any number'
        )
    return atoms, None


def warn(message: str) -> None:
    """Warn at the line of the user's that called the package."""
    package = str(Path(__file__).parents[1])
    depth = 1
    while sys._getframe(depth).f_code.co_filename.startswith(package):
        depth += 1
    warnings.warn(message, UserWarning, stacklevel=depth + 1)


def _given(data: BitMatrix, params: SearchParams, wanted: int | None) -> tuple[BitMatrix, BitMatrix | None]:
    """Atoms, or atoms and codes, that the user gave."""
    given = params.init
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(f"init must be a pair (atoms, codes), not {len(given)} things")
        atoms = BitMatrix.from_any(given[0], name="init (atoms)")
        codes = None if given[1] is None else BitMatrix.from_any(given[1], name="init (codes)")
    else:
        atoms, codes = BitMatrix.from_any(given, name="init (atoms)"), None
    if atoms.n_cols != data.n_cols:
        raise ValueError(f"the atoms in init have {atoms.n_cols} features, but X has {data.n_cols}")
    if wanted is not None and atoms.n_rows != wanted:
        raise ValueError(f"init holds {atoms.n_rows} atoms, but n_components={wanted}; make them agree")
    if params.max_components is not None and atoms.n_rows > params.max_components:
        raise ValueError(f"init holds {atoms.n_rows} atoms, more than max_components={params.max_components}")
    if codes is None:
        return atoms, None
    if codes.shape != (data.n_rows, atoms.n_rows):
        raise ValueError(
            f"the codes in init have shape {codes.shape}; {data.n_rows} samples and {atoms.n_rows} atoms need "
            f"{(data.n_rows, atoms.n_rows)}"
        )
    limit = params.max_atoms_per_sample
    uses = codes.row_weights()
    if limit is not None and (uses > limit).any():
        row = int(np.argmax(uses > limit))
        raise ValueError(f"the codes in init use {uses[row]} atoms in row {row}, above max_atoms_per_sample={limit}")
    return atoms, codes


def bernoulli(n_atoms: int, n_features: int, density: float, random: np.random.Generator) -> BitMatrix:
    """Each bit is 1 with probability ``density`` (Section III-D)."""
    return BitMatrix.from_dense(random.random((n_atoms, n_features)) < density)


def samples(data: BitMatrix, n_atoms: int, random: np.random.Generator) -> BitMatrix:
    """Rows of the data drawn at random, distinct and not all zeros; fewer where the data has fewer (Section III-D)."""
    chosen: dict[bytes, int] = {bytes(data.words.shape[1] * 8): -1}
    n_tries = min(data.n_rows, 2 * n_atoms)
    while len(chosen) <= n_atoms and n_tries:  # few rows are enough, unless many are equal or zero
        for j in random.choice(data.n_rows, n_tries, replace=False):
            if len(chosen) <= n_atoms:
                chosen.setdefault(data.words[j].tobytes(), int(j))
        n_tries = 0 if n_tries == data.n_rows else min(data.n_rows, 8 * n_tries)
    return data[np.array([j for j in chosen.values() if j >= 0], np.intp)]


def spread(data: BitMatrix, n_atoms: int, random: np.random.Generator, workers: Workers) -> BitMatrix:
    """Rows far from each other by Hamming distance, moved to the middle of the rows nearest to them.

    In the manner of k-means++: a row is drawn with its distance to the nearest atom so far as weight, at first its
    distance to the zero vector; the best of three such rows is taken. Then three rounds of Lloyd's algorithm with at
    most one atom a row. Fewer atoms come back where the data has fewer distinct rows.
    """
    distances = data.row_weights()
    chosen: list[int] = []
    for _ in range(n_atoms):
        total = int(distances.sum())
        if total == 0:
            break
        ends = np.cumsum(distances)
        candidates = np.searchsorted(ends, random.integers(total, size=_CANDIDATES), side="right")
        trials = [np.minimum(distances, _hamming(data, int(j))) for j in candidates]
        best = int(np.argmin([trial.sum() for trial in trials]))
        chosen.append(int(candidates[best]))
        distances = trials[best]
    atoms = data[np.array(chosen, np.intp)]
    for _ in range(_LLOYD_ROUNDS):
        block = Block(data, atoms, None, None, workers)
        # At a price of one a bit, as the kernels of the search code: no others need be compiled for a start.
        prices = unit_prices(data.n_cols, atoms.n_rows)
        code(block, coding_rule("mdl", "xor", max_atoms=1, prices=prices)._replace(swaps=False))
        update_together(block)
        atoms = block.factors()[0]
    return atoms


def greedy(
    data: BitMatrix, n_atoms: int, covers: bool | None, random: np.random.Generator, workers: Workers
) -> BitMatrix:
    """One atom after the other, each a rank-one fit to what those before it leave, from the best of many rows.

    Fewer atoms come back where fewer leave nothing wrong.
    """
    block = Block(data, BitMatrix.zeros(0, data.n_cols), None, covers, workers)
    rule = coding_rule("greedy", "or" if covers else "xor")
    while block.n_atoms < n_atoms and append_rank_one(block, rule, random, n_seeds=_SEEDS):
        pass
    return block.factors()[0]


def _hamming(data: BitMatrix, j: int) -> NDArray[np.int64]:
    """The number of bits in which each row differs from row j."""
    distances = np.empty(data.n_rows, np.int64)
    words.hamming(data.words, j, distances)
    return distances
