"""The functions of the package: `factorize`, `cover`, `codelength` and `proximus`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from numbers import Integral
from typing import Any

import numpy as np

from .bits import BitMatrix, bits_at, either
from .cell_values import as_csr, is_sparse
from .columns.matching import matched_table
from .columns.table import Header, Table, as_bits, axis_names, header_of
from .columns.variants import ranks_in, regions
from .covers.driver import search_cover
from .covers.limits import fixed_bits, role_limits
from .covers.options import CoverOptions
from .covers.result import Cover
from .device_choice import workers_for
from .engine.block import Block
from .engine.codelength import AtomCode, Codelength
from .errors import InputError, Parameter
from .frames import in_memory, values_of
from .model.model import Model
from .model.result import Factorization, Interrupted
from .parallel import Workers, count_threads
from .parameters import with_options
from .rows.budget import given_memory_limit
from .rows.checkpoint import Checkpoint
from .rows.passes import PassResult, with_codes
from .rows.source import MemoryRows, RowSource, fingerprint_of
from .rows.subsample import learn
from .rows.weights import WeightedRows
from .search.options import FactorizeOptions, Resources
from .search.paper import partition
from .search.params import SearchParams, costs_of_columns, resolve
from .search.verification import verified
from .sparse_bits import Bits, SparseBits, packed
from .system.verbosity import log_to_stderr
from .validation import as_generator, check_choice


@with_options(FactorizeOptions)
def factorize(X: Any, options: FactorizeOptions) -> Factorization:
    """Find the binary patterns (atoms) that explain a table, and the atoms each row uses (its code).

    Parameters
    ----------
    X : BitMatrix, array-like, data frame or SciPy sparse matrix of shape (n_samples, n_features)
        A table of 0 and 1, one row per sample. Missing values (NaN, None, NA, masked) are unknown cells, which have no
        influence on the result. Arrays of CuPy and tensors with DLPack's interface are copied from their device.
    {parameters}

    Returns
    -------
    Factorization
        Atoms, codes, codelength and history. The atom that saves most bits comes first.

    Raises
    ------
    Interrupted
        On Ctrl-C. It is a KeyboardInterrupt, and its ``result`` is the best factorization so far.

    Examples
    --------
    >>> import bitatoms as ba
    >>> data = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0)
    >>> result = ba.factorize(data.X, random_state=0)
    >>> result.atoms.shape, result.codes.shape
    ((4, 40), (300, 4))
    >>> bool((result.reconstruct().to_dense() == data.clean).all())
    True
    """
    params, resources = resolve(options), options.resources or Resources()
    X = in_memory(X)
    data = _as_bits(X, options.mask, options.binarize)
    params = with_columns_of(params, header_of(X, data.n_cols))
    workers = workers_for(options.n_jobs, options.device, math.prod(data.shape), options.verbose)
    limit, weighted = given_memory_limit(resources.max_memory), WeightedRows.of(data, options.sample_weight)
    if weighted is not None:
        data, params = weighted.repeated(limit), replace(params, init=weighted.repeated_init(params.init))
    try:
        rows = MemoryRows(data, workers, limit)
        with fitting(rows, params, options.random_state, options.verbose, resources) as (random, checkpoint):
            learned = learn(rows, params, workers, random, checkpoint)
    except Interrupted as interrupted:
        found = interrupted.result
        if weighted is None or not isinstance(found, Factorization) or found.n_samples != len(data):
            raise
        found = _of_given_rows(found, weighted, params, workers)
        raise Interrupted(verified(found, params, *data.shape)) from None
    found = with_codes(learned, workers) if isinstance(learned, PassResult) else learned
    if weighted is not None:
        found = _of_given_rows(found, weighted, params, workers)
    return found if found is learned else verified(found, params, *data.shape)


def _of_given_rows(
    found: Factorization, weighted: WeightedRows, params: SearchParams, workers: Workers
) -> Factorization:
    """Return the factorization of repeated rows with the codes of the rows that were passed."""
    model = Model.from_factorization(found, params.max_atoms_per_sample, params.paper.residual_limit)
    codes = weighted.own_codes(found.codes, model, workers)
    return replace(found, codes=codes, sample_weight=weighted.weights, weighted_uses=found.uses)


def _as_bits(X: Any, mask: Any, binarize: float | None) -> Bits:
    """Return a table as bits; the cells of the mask are unknown, whatever they contain."""
    if mask is None or mask is np.ma.nomask:
        return as_bits(X, binarize, missing="unknown")
    if not isinstance(mask, BitMatrix):
        mask = values_of(mask, "mask")
        if mask.dtype != np.bool_:
            raise TypeError(
                f"mask must consist of booleans, True where a cell of X is unknown, but its dtype is {mask.dtype}; "
                "pass mask.astype(bool)"
            )
    hidden = BitMatrix.from_any(mask, name="mask")
    values = X if isinstance(X, (Table, BitMatrix, SparseBits)) else values_of(X)
    if values.shape != hidden.shape:
        shapes = f"mask has shape {hidden.shape}, but X has shape {values.shape}"
        raise ValueError(f"{shapes}; pass one boolean per cell of X")
    if is_sparse(values):
        values = as_csr(values, "X").copy()
        rows, columns = np.repeat(np.arange(len(hidden)), np.diff(values.indptr)), values.indices
        words = hidden.words[rows, columns >> 6] >> (columns & 63).astype(np.uint64)
        values.data[(words & np.uint64(1)).astype(bool)] = 0
    elif isinstance(values, np.ndarray):
        values = np.ma.masked_array(values, hidden.to_dense(bool))
    data = BitMatrix.from_any(values, binarize, missing="unknown")
    return data.with_unknown(either(data.unknown, hidden))


def with_columns_of(params: SearchParams, header: Header) -> SearchParams:
    """Return the parameters of a search of a table with these columns.

    Windows of columns follow their positions, if they have any; errors cost what they cost in each column. The columns
    of the atoms in ``init`` and ``fixed_atoms`` are put in the order of the table, if both have names.
    """
    costs, limits = costs_of_columns(params.options, header), params.limits.in_columns(header.n_cols, header.names)
    params = replace(params, regions=regions(header.data), costs=costs, limits=limits)
    if params.fixed_atoms is not None:
        params = replace(params, fixed_atoms=_fixed_atoms(params, header))
    atoms = params.init[0] if isinstance(params.init, tuple) and params.init else params.init
    if isinstance(atoms, str) or header.names is None or axis_names(atoms)[1] is None:
        return params
    # Atoms are matched by name: one that counts the other allele is not the inverse of a sample.
    matched = matched_table(atoms, header._replace(data=None), table="init", missing="refuse").bits
    return replace(params, init=(matched, *params.init[1:]) if isinstance(params.init, tuple) else matched)


def _fixed_atoms(params: SearchParams, header: Header) -> BitMatrix:
    """Return the fixed atoms with the columns of a table, after checking them."""
    atoms, name = fixed_bits(params.fixed_atoms, header), "fixed_atoms"
    given = params.init[0] if isinstance(params.init, tuple) and params.init else params.init
    n_init = 0 if isinstance(given, str) else BitMatrix.from_any(given, name="init (atoms)").n_rows
    for limit in ("n_components", "max_components"):
        most = getattr(params, limit)
        if most not in (None, "mdl") and len(atoms) + n_init > most:
            n_others = f" and init {n_init}" if n_init else ""
            raise InputError(Parameter(name), f" are {len(atoms)} atoms{n_others}, more than ", Parameter(limit, most))
    return atoms


def _atom_code(X: Any, n_cols: int) -> AtomCode:
    """Return how the atoms of a table are described: by stretches, where its columns have positions."""
    return AtomCode(ranks_in(regions(header_of(X, n_cols).data)))


@contextmanager
def fitting(
    rows: RowSource,
    params: SearchParams,
    random_state: Any = None,
    verbose: int = 0,
    resources: Resources = Resources(),  # noqa: B008 - immutable
) -> Iterator[tuple[np.random.Generator, Checkpoint | None]]:
    """Return the random numbers and the open checkpoint of a fit, to be passed to `learn`.

    Rounds are logged, and what an interrupted fit has found is verified.
    """
    folder = resources.checkpoint
    if resources.resume and folder is None:
        raise no_checkpoint()
    random = as_generator(random_state)
    try:
        with log_to_stderr(verbose):
            if folder is None:
                yield random, None
            else:
                with Checkpoint(folder, _call(rows, params, random_state), resources.resume) as journal:
                    yield journal.random(random), journal
    except Interrupted as interrupted:
        if interrupted.result is not None:
            verified(interrupted.result, params, rows.n_rows, rows.n_features)
        raise


def no_checkpoint() -> InputError:
    """Return the error of a fit to resume without a checkpoint."""
    return InputError(Parameter("resume", True), " requires ", Parameter("checkpoint"), ", the folder to resume from")


def _call(rows: RowSource, params: SearchParams, random_state: Any) -> dict[str, Any]:
    """Return what determines the result of a call, to recognize the call when it is resumed."""
    options, no_influence = params.options, ("callbacks", "max_time", "regions")  # regions belong to the rows
    others = ("options", "paper", "fixed_atoms", "limits", "costs")  # below, as far as there are any
    names = [field.name for field in fields(params) if field.name not in (*no_influence, *others)]
    call = {name: getattr(params, name) for name in names} | params.paper.get_params()
    call |= {"n_init": options.n_init, "max_iter": options.max_iter, "search_rows": options.search_rows}
    call["init"] = params.init if isinstance(params.init, str) else _init_fingerprint(params.init)
    call["plan"] = repr(params.plan)
    call["random_state"] = _seed(random_state)
    call["n_samples"], call["n_features"] = rows.n_rows, rows.n_features
    call["rows"] = rows.fingerprint()
    if params.regions is not None:
        call["regions"] = fingerprint_of(*params.regions)
    if params.costs:
        call["costs"] = fingerprint_of(params.costs.missed, params.costs.added)
    if params.n_fixed:
        call["fixed_atoms"] = fingerprint_of(params.fixed_atoms.words)
    if params.limits:
        call["limits"] = asdict(params.limits)
    return call


def _seed(random_state: Any) -> Any:
    """Return a seed as a JSON value; for a generator, whose state is in the checkpoint, its type."""
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, (list, tuple, np.ndarray)):
        return np.asarray(random_state).tolist()
    return type(random_state).__name__


def _init_fingerprint(init: Any) -> str:
    """Return the fingerprint of atoms, or of atoms and codes."""
    tables = init if isinstance(init, tuple) else (init,)
    return fingerprint_of(*(BitMatrix.from_any(table).words for table in tables if table is not None))


@with_options(CoverOptions)
def cover(X: Any, options: CoverOptions) -> Cover:
    """Find an exact cover of a table: atoms (roles) whose union is each row, with no one missed and none added.

    Rows are users and columns permissions in role mining. A row uses only atoms all of whose ones it has.

    Parameters
    ----------
    X : BitMatrix, Table, array-like, data frame or SciPy sparse matrix of shape (n_samples, n_features)
        A table of 0 and 1, one row per sample, without missing values.
    {parameters}

    Returns
    -------
    Cover
        Atoms, codes, and a lower bound of what every exact cover costs.

    Raises
    ------
    Interrupted
        On Ctrl-C. It is a KeyboardInterrupt, and its ``result`` is the best cover so far.

    Notes
    -----
    Without ``max_time``, the same seed gives the same cover. See docs/tutorials/roles.md.

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]]
    >>> result = ba.cover(X, random_state=0)
    >>> result.atoms.to_dense()
    array([[1, 1, 0, 0],
           [0, 0, 1, 1]], dtype=uint8)
    >>> result.codes.to_dense()
    array([[1, 0],
           [1, 1],
           [0, 1]], dtype=uint8)
    >>> result.n_roles, result.lower_bound, result.is_optimal
    (2, 2, True)
    """
    X = in_memory(X)
    table = Table(packed(as_bits(X, options.binarize)), *(axis_names(X) if options.has_limits else ()))
    return run_cover(table, options)


def run_cover(table: Table, options: CoverOptions) -> Cover:
    """Return the cover of a table; raise `Interrupted` with the best one so far on Ctrl-C."""
    limits = role_limits(options, table)
    with log_to_stderr(options.verbose):
        found = search_cover(table.bits, options, as_generator(options.random_state), limits)
    if found.ended == "interrupted":
        raise Interrupted(found)
    return found


def codelength(X: Any, atoms: Any = None, codes: Any = None, bias: Any = None, algebra: str = "xor") -> Codelength:
    """Return the number of bits that describe a table by atoms and codes (Equations 8 and 9 of the paper).

    Without atoms and codes, this is the codelength of the table without a model, to compare with.

    Parameters
    ----------
    X : BitMatrix, array-like or sparse matrix of shape (n_samples, n_features)
        A table of 0 and 1.
    atoms : BitMatrix, array-like or sparse matrix of shape (n_atoms, n_features), optional
        The atoms.
    codes : BitMatrix, array-like or sparse matrix of shape (n_samples, n_atoms), optional
        The atoms that each sample uses.
    bias : array-like of shape (n_features,), optional
        Added to every sample.
    algebra : {"xor", "or"}, default="xor"
        How the atoms of a sample are combined.

    Returns
    -------
    Codelength
        With ``errors``, ``codes``, ``atoms`` and their sum ``total``.

    Notes
    -----
    Each feature's errors, each atom's uses and each atom are a string of n bits with r ones, which takes
    ceil(log2 n) + ceil(log2 (n choose r)) bits. The exact cost of r would be ceil(log2 (n + 1)); the cost of the paper
    is kept, so that figures compare. A nonzero bias adds its own string to the atoms and ceil(log2 n) to the codes.

    Atoms of a `Table` of genotypes that all have positions, with 2048 columns or more, are described by stretches: the
    first and the last column of an atom, in the order of chromosomes and positions, take ceil(log2 m) bits each of m
    columns, and the columns between them are a string.

    Examples
    --------
    >>> import bitatoms as ba
    >>> ba.codelength([[1, 1, 0], [1, 1, 0], [0, 0, 0]], atoms=[[1, 1, 0]], codes=[[1], [1], [0]])
    Codelength(errors=6, codes=4, atoms=4)
    >>> ba.codelength([[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    Codelength(errors=10, codes=0, atoms=0)
    """
    check_choice("algebra", algebra, ("xor", "or"))
    if (atoms is None) != (codes is None):
        raise ValueError("pass both atoms and codes, or neither")
    X = in_memory(X)
    data = BitMatrix.from_any(X, missing="unknown")
    patterns = BitMatrix.zeros(0, data.n_cols) if atoms is None else BitMatrix.from_any(atoms, name="atoms")
    uses = BitMatrix.zeros(data.n_rows, 0) if codes is None else BitMatrix.from_any(codes, name="codes")
    if patterns.n_cols != data.n_cols:
        raise ValueError(f"atoms have {patterns.n_cols} features, but X has {data.n_cols}")
    needed = (data.n_rows, patterns.n_rows)
    if uses.shape != needed:
        raise ValueError(f"codes have shape {uses.shape}, but {needed[0]} samples and {needed[1]} atoms need {needed}")
    shift = BitMatrix.from_any(
        np.zeros((1, data.n_cols), np.uint8) if bias is None else np.atleast_2d(bias), name="bias"
    )
    if shift.shape != (1, data.n_cols):
        raise ValueError(f"bias must have {data.n_cols} values, one per feature")
    block = Block(data, patterns, uses, algebra == "or", Workers(), shift)
    return block.codelength(block.wrong(), code=_atom_code(X, data.n_cols))


def proximus(
    X: Any, radius: int = 0, *, n_jobs: int | None = None, binarize: float | None = None, random_state: Any = None
) -> Factorization:
    """Factorize a table by the recursive Proximus method: one atom per sample.

    A rank-one fit (Algorithm 4) separates the samples that have its pattern from the others. This is repeated until
    each sample differs from its pattern in at most ``radius`` cells.

    Parameters
    ----------
    X : BitMatrix, array-like, data frame or SciPy sparse matrix of shape (n_samples, n_features)
        A table of 0 and 1, one row per sample.
    radius : int, default=0
        Maximum number of cells in which a sample may differ from its pattern.
    n_jobs, binarize, random_state
        As in :func:`factorize`.

    Returns
    -------
    Factorization
        Each sample uses one atom, or none if it is all zeros. The history is empty.

    Examples
    --------
    >>> import bitatoms as ba
    >>> result = ba.proximus([[1, 1, 0], [1, 1, 0], [0, 1, 1]], random_state=0)
    >>> result.codes.to_dense().sum(axis=1)
    array([1, 1, 1], dtype=uint64)
    """
    if isinstance(radius, bool) or not hasattr(radius, "__index__") or radius < 0:
        raise ValueError(f"radius must be a non-negative integer, not {radius!r}")
    X = in_memory(X)
    data = BitMatrix.from_any(X, binarize, missing="unknown")
    workers = Workers(count_threads(n_jobs))
    atoms, owner = partition(data, int(radius), workers, as_generator(random_state))
    owned = np.flatnonzero(owner >= 0)
    codes = bits_at(owned, owner[owned], (data.n_rows, atoms.n_rows))
    block = Block(data, atoms, codes, False, workers)
    wrong = block.wrong()
    return Factorization(
        atoms=atoms,
        codes=codes,
        bias=np.zeros(data.n_cols, np.uint8),
        algebra="xor",
        codelength=block.codelength(wrong, code=_atom_code(X, data.n_cols)),
        history=(),
        wrong=wrong,
        known=None if data.unknown is None else data.n_known,
    )
