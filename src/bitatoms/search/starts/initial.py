"""Where a search starts: atoms of several kinds, one function each, or as the user passed them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, stack_rows
from ...engine.block import Block
from ...engine.coding import MOST_EXACT_ATOMS, code, coding_rule
from ...engine.prices import unit_prices
from ...engine.update import update_together
from ...errors import InputError, Parameter, warn
from ...kernels.cpu import words
from ...parallel import Workers
from ..paper import append_rank_one
from ..params import SearchParams

_SPREAD_CANDIDATES = 3
_LLOYD_ROUNDS = 3
GREEDY_SEEDS = 64
_MAX_DRAWN = 1 << 16  # atoms; tables of pairs of atoms take 8 GiB then


def start_factors(
    data: BitMatrix, params: SearchParams, covers: bool, workers: Workers, random: np.random.Generator
) -> tuple[BitMatrix, BitMatrix | None]:
    """Return the atoms, and codes if there are any, from which a search in this algebra starts."""
    by_mdl = params.n_components == "mdl"
    wanted = params.paper.start_components if params.n_components == "mdl" else params.n_components
    assert wanted != "auto"  # decided
    if not isinstance(params.init, str):
        atoms, codes = _given_factors(data, params, None if by_mdl else wanted)
        if not by_mdl and atoms.n_rows < wanted:
            atoms, codes = _with_more_atoms(data, atoms, codes, wanted, covers, workers, random)
        _check_exact(params.coder, atoms.n_rows)
        return atoms, codes
    _check_exact(params.coder, wanted)
    if params.init == "bernoulli":
        if wanted > _MAX_DRAWN:
            raise InputError(
                Parameter("init", "bernoulli"), f" draws at most {_MAX_DRAWN} atoms, not {wanted}; pass a smaller ",
                Parameter("start_components" if by_mdl else "n_components"),
            )  # fmt: skip
        atoms = bernoulli(wanted, data.n_cols, params.paper.init_density, random)
    elif params.init == "samples":
        atoms = samples(data, wanted, random)
    elif params.init == "spread":
        atoms = spread(data, wanted, covers, random, workers)
    else:
        atoms = greedy(data, wanted, covers, random, workers)
    if atoms.n_rows < wanted and not by_mdl and params.search == "paper":
        warn(
            Parameter("init", params.init),
            f" finds only {atoms.n_rows} distinct atoms in X, but {wanted} were requested; {atoms.n_rows} are "
            "learned; pass ",
            Parameter("init", "bernoulli"),
            " to start from any number",
        )
    return atoms, None


def _check_exact(coder: str, n_atoms: int) -> None:
    """Raise an error if there are too many atoms to try all codes."""
    if coder == "exact" and n_atoms > MOST_EXACT_ATOMS:
        raise InputError(
            Parameter("coder", "exact"),
            f" tries all 2**p codes and supports at most {MOST_EXACT_ATOMS} atoms, not {n_atoms}; use ",
            Parameter("coder", "greedy"), " or fewer atoms",
        )  # fmt: skip


def _given_factors(data: BitMatrix, params: SearchParams, wanted: int | None) -> tuple[BitMatrix, BitMatrix | None]:
    """Check and return the atoms, or atoms and codes, that the user passed."""
    given = params.init
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InputError(f"init must be a pair (atoms, codes), not a tuple of length {len(given)}")
        atoms = BitMatrix.from_any(given[0], name="init (atoms)")
        codes = None if given[1] is None else BitMatrix.from_any(given[1], name="init (codes)")
    else:
        atoms, codes = BitMatrix.from_any(given, name="init (atoms)"), None
    if atoms.n_cols != data.n_cols:
        raise InputError(f"the atoms in init have {atoms.n_cols} features, but X has {data.n_cols}")
    if wanted is not None and atoms.n_rows > wanted:
        raise InputError(f"init has {atoms.n_rows} atoms, more than ", Parameter("n_components", wanted))
    if params.max_components is not None and atoms.n_rows > params.max_components:
        limit = Parameter("max_components", params.max_components)
        raise InputError(f"init has {atoms.n_rows} atoms, more than ", limit)
    if codes is None:
        return atoms, None
    if codes.shape != (data.n_rows, atoms.n_rows):
        raise InputError(
            f"the codes in init have shape {codes.shape}; {data.n_rows} samples and {atoms.n_rows} atoms need "
            f"{(data.n_rows, atoms.n_rows)}"
        )
    max_atoms = params.max_atoms_per_sample
    uses = codes.row_weights()
    if max_atoms is not None and (uses > max_atoms).any():
        row = int(np.argmax(uses > max_atoms))
        limit = Parameter("max_atoms_per_sample", max_atoms)
        raise InputError(f"the codes in init use {uses[row]} atoms in row {row}, more than ", limit)
    return atoms, codes


def _with_more_atoms(
    data: BitMatrix,
    atoms: BitMatrix,
    codes: BitMatrix | None,
    wanted: int,
    covers: bool,
    workers: Workers,
    random: np.random.Generator,
) -> tuple[BitMatrix, BitMatrix | None]:
    """Return atoms with others, what they leave over of random rows; no row uses these, and there may be fewer."""
    block = Block(data, atoms, codes, covers, workers)
    if codes is None:
        code(block, coding_rule("greedy", "or" if covers else "xor"))
    left = BitMatrix.from_words(block.rows.fixable_errors(np.arange(data.n_rows)), data.n_cols, check=False)
    more = samples(left, wanted - atoms.n_rows, random)
    atoms = stack_rows([atoms, more], data.n_cols)
    if codes is not None:
        codes = stack_rows([codes.T, BitMatrix.zeros(more.n_rows, data.n_rows)], data.n_rows).T
    return atoms, codes


def bernoulli(n_atoms: int, n_features: int, density: float, random: np.random.Generator) -> BitMatrix:
    """Return atoms whose bits are 1 with probability ``density`` (Section III-D)."""
    return BitMatrix.from_dense(random.random((n_atoms, n_features)) < density)


def samples(data: BitMatrix, n_atoms: int, random: np.random.Generator) -> BitMatrix:
    """Return random rows of the data, distinct and not all zeros; fewer if there are not enough (Section III-D)."""
    return data[distinct_rows(data, n_atoms, random)].filled()


def distinct_rows(data: BitMatrix, n_atoms: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Return the indices of random rows, distinct and not all zeros; fewer if there are not enough."""
    chosen = np.empty(0, np.intp)
    n_tries = min(data.n_rows, 2 * n_atoms)
    while len(chosen) < n_atoms and n_tries:  # few rows are enough, unless many are equal or zero
        drawn = random.choice(data.n_rows, n_tries, replace=False)
        chosen = first_distinct(data, np.append(chosen, drawn), n_atoms)
        n_tries = 0 if n_tries == data.n_rows else min(data.n_rows, 8 * n_tries)
    return chosen


def first_distinct(data: BitMatrix, rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the first of these rows that are distinct and not all zeros, at most this many."""
    distinct: dict[bytes, int] = {}
    zeros = bytes(8 * data.words.shape[1])
    for j in rows:
        if len(distinct) == most:
            break
        if (row := data.words[j].tobytes()) != zeros:
            distinct.setdefault(row, int(j))
    return np.array([*distinct.values()], np.intp)


def spread(data: BitMatrix, n_atoms: int, covers: bool, random: np.random.Generator, workers: Workers) -> BitMatrix:
    """Return rows far from each other by Hamming distance, moved to the centre of the rows nearest to them.

    As in k-means++, a row is drawn with its distance to the nearest atom so far as weight, at first its distance to the
    zero vector; the best of three such rows is taken. Three rounds of Lloyd's algorithm follow, with at most one atom
    per row, so that the algebra does not matter: ``covers`` is that of the search, whose kernels are compiled anyway.
    There are fewer atoms where the data has fewer distinct rows.
    """
    atoms = data[far_rows(data, n_atoms, random)].filled()
    for _ in range(_LLOYD_ROUNDS):
        block = Block(data, atoms, None, covers, workers)
        # Prices of 1 per error, because the search codes by prices, too.
        prices = unit_prices(data.n_cols, atoms.n_rows)
        code(block, coding_rule("mdl", "or" if covers else "xor", max_atoms=1, prices=prices)._replace(swaps=False))
        update_together(block)
        atoms = block.atoms()
    return atoms


def greedy(
    data: BitMatrix,
    n_atoms: int,
    covers: bool,
    random: np.random.Generator,
    workers: Workers,
    should_stop: Callable[[], bool] = lambda: False,
) -> BitMatrix:
    """Return atoms grown one at a time, each a rank-one fit to the remaining errors, from the best of many rows.

    Fewer atoms are returned if they leave no errors, or if growing more ``should_stop``.
    """
    block = Block(data, BitMatrix.zeros(0, data.n_cols), None, covers, workers)
    rule = coding_rule("greedy", "or" if covers else "xor")
    while block.n_atoms < n_atoms and append_rank_one(block, rule, random, n_seeds=GREEDY_SEEDS):
        if should_stop():
            break
    return block.atoms()


def far_rows(data: BitMatrix, most: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Return up to this many rows far from each other and from the zero vector, over the cells that both know."""
    distances = data.row_weights()
    total, trials = int(distances.sum()), np.empty((_SPREAD_CANDIDATES, data.n_rows), np.int64)
    chosen: list[int] = []
    while total and len(chosen) < most:
        draws = random.integers(total, size=_SPREAD_CANDIDATES)
        row, total = words.choose_far_row(data.words, data.unknown_words, draws, distances, trials)
        chosen.append(row)
    return np.array(chosen, np.intp)
