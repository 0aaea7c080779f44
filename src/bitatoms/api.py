"""The functions under the estimator: factorize a table, price a factorisation, Proximus."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np

from .bits import BitMatrix
from .core.block import Block
from .core.result import Factorization, ResultBase
from .kernels.structs import covering
from .mdl import Codelength, codelength_from_counts
from .parallel import Workers, count_threads
from .rows.checkpoint import Checkpoint
from .rows.memory import MemoryRows, fingerprint_of, joined
from .rows.passes import PassResult
from .rows.source import RowSource
from .rows.subsample import learn
from .search.params import SearchParams, resolve
from .search.proximus import partition
from .validation import as_generator, check_choice

logger = logging.getLogger("bitatoms")


def factorize(
    X: Any,
    n_components: int | str = "mdl",
    *,
    algebra: str = "xor",
    search: str = "fast",
    objective: str = "auto",
    update: str = "mob",
    coder: str = "auto",
    init: Any = "auto",
    init_density: float = 0.5,
    n_init: int | str = "auto",
    start_components: int | str = "auto",
    max_components: int | None = None,
    patience: int | str | None = "auto",
    max_atoms_per_sample: int | None = None,
    residual_limit: int = 0,
    max_iter: int = 1000,
    max_time: float | None = None,
    sample_rows: int | str | None = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    n_jobs: int | None = None,
    verbose: int = 0,
    callbacks: Any = None,
    binarize: float | None = None,
    device: str = "cpu",
    random_state: Any = None,
) -> Factorization:
    """Find the binary patterns (atoms) that explain a table, and the atoms each row uses (its code).

    Parameters
    ----------
    X : BitMatrix, array-like, data frame or SciPy sparse matrix of shape (n_samples, n_features)
        A table of 0 and 1, a sample a row.
    n_components : int or "mdl", default="mdl"
        How many atoms; "mdl" finds the number with the shortest codelength. With a number, "fast" and "thorough" give
        exactly so many atoms that are used, fewer only where the data has no use for more, with a warning.
    algebra : {"xor", "or", "auto"}, default="xor"
        How the atoms of a sample are put together; "auto" tries both and keeps the shorter codelength.
    search : {"fast", "thorough", "paper"}, default="fast"
        "fast": atoms are grown, fitted together and dropped by what they do to the codelength (see docs/search.md);
        "thorough": the same for about six times as long, with more starts, beam coding and shakes; "paper": the
        methods as published, mistakes mended.
    objective : {"auto", "codelength", "errors"}, default="auto"
        What is made small: "auto" is the codelength with ``n_components="mdl"``, the wrong bits with a number.
    update : {"mob", "k-prox"}, default="mob"
        How atoms are learned: the Method of Binary Directions, each atom the majority of its samples (Section
        III-B), one after the other with ``search="paper"`` and all together otherwise; or, with ``search="paper"``,
        K-PROX, each atom and its samples together by Proximus (Section III-C). With ``coder="exact"``, "mob" becomes
        the exact step: each feature takes the best of all columns of the atoms.
    coder : {"auto", "bmp", "greedy", "exact", "mdl", "beam"}, default="auto"
        How codes are found, in the search and in ``transform``; "auto" is what the search implies. With
        ``search="paper"``: "bmp" (the default), Binary Matching Pursuit with the paper's association accuracy;
        "greedy", by plain gain, which is better almost everywhere; "exact", the best of all codes, for up to 16 atoms.
        For the codelength with the other searches: "mdl" (the default of "fast"), by bits of codelength gained, one
        atom swapped for another where that helps; "beam" (of "thorough"), several ways to a code at a time.
        For the fewest errors they code exactly up to 16 atoms and greedily above. With "auto" they leave the beam to
        ``transform``, which has no codes to go on from.
    init : {"auto", "samples", "bernoulli", "spread", "greedy"}, array of atoms, or pair (atoms, codes), default="auto"
        Where the atoms start: "samples", rows drawn at random, distinct and not zero; "bernoulli", random bits;
        "spread", rows far from each other; "greedy", one atom after the other, each fitted to what those before it
        leave, which takes longer and ends with the fewest wrong bits; or as given. "auto" lets "fast" and "thorough"
        try several starts; with "paper" it is "samples", and "greedy" with ``coder="exact"``.
    init_density : float, default=0.5
        Share of ones with ``init="bernoulli"``.
    n_init : int or "auto", default="auto"
        Number of starts, of which the best is kept; "auto" is 1.
    start_components : int or "auto", default="auto"
        How many atoms "mdl" starts with. "auto" tries several numbers; with ``search="paper"`` it is 16, as in the
        paper, or 1 with ``coder="exact"``, and the fewest atoms it ends with.
    max_components : int, optional
        The most atoms that "mdl" may end with.
    patience : int, None or "auto", default="auto"
        "mdl" stops after so many rounds in a row without a shorter codelength (with "fast" and "thorough": one that
        gains next to nothing counts as without). "auto" is 3, and 1 with ``search="paper"``, as in the paper; None goes
        on to ``max_components`` with "paper", to ``max_iter`` otherwise.
    max_atoms_per_sample : int, optional
        A sample that uses so many atoms may only drop atoms (the limit h_max of Algorithm 3).
    residual_limit : int, default=0
        A sample with so few wrong bits is not coded further (w_max of Algorithm 3), unless so many atoms as were asked
        for would have no sample to use them.
    max_iter : int, default=1000
        Most rounds of the search; with ``search="paper"``, most steps of learning with one number of atoms, which
        converges exactly, mostly in 5 to 40.
    max_time : float, optional
        Seconds after which the search ends with the best it has, looked at after each round or step. The result then
        depends on the machine.
    sample_rows : int, None or "auto", default="auto"
        Where X has more rows than these, "fast" and "thorough" search a sample of so many, drawn by ``random_state``,
        and take what is found to all rows: pass by pass they are coded, the atoms are fitted to all of them, and those
        that do not pay are dropped (see docs/scale.md). "auto" is 65536, or as many rows as have 2^31 bits where that
        is less, but at least 4096; None searches all rows, however many.
    checkpoint : str or path-like, optional
        A folder in which a search by sample keeps how far it has come: after the sample, after each pass over all rows,
        and during one every half minute.
    resume : bool, default=False
        Go on from what the same call left in ``checkpoint``, to the same bits as if it had not been stopped; where it
        has left nothing, begin.
    n_jobs : int, optional
        Threads: None is 1, -1 all processors. The result is the same for any number.
    verbose : int, default=0
        Tell on the standard error, by the logger "bitatoms", how the search gets on and what was found: 1, what makes
        a difference; 2, every move.
    callbacks : callable or list of callables, optional
        Called with each new row of the history, a Round; one that returns True ends the search.
    binarize : float, optional
        Take ``X > binarize`` instead of X.
    device : {"cpu"}, default="cpu"
        Where the work is done.
    random_state : int, Generator, RandomState or None, default=None
        The same seed gives the same bits, for any number of threads.

    Returns
    -------
    Factorization
        Atoms, codes, codelength and history; the atom that saves most bits comes first.

    Raises
    ------
    Interrupted
        On Ctrl-C; it is a KeyboardInterrupt, and its ``result`` is the best factorisation so far.

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
    params = resolve(
        n_components=n_components,
        algebra=algebra,
        search=search,
        objective=objective,
        update=update,
        coder=coder,
        init=init,
        init_density=init_density,
        n_init=n_init,
        start_components=start_components,
        max_components=max_components,
        patience=patience,
        max_atoms_per_sample=max_atoms_per_sample,
        residual_limit=residual_limit,
        max_iter=max_iter,
        max_time=max_time,
        sample_rows=sample_rows,
        callbacks=callbacks,
        device=device,
    )
    data = BitMatrix.from_any(X, binarize)
    workers = Workers(count_threads(n_jobs))
    learned = learn_from(MemoryRows(data, workers), params, workers, random_state, verbose, checkpoint, resume)
    return with_codes(learned) if isinstance(learned, PassResult) else learned


def learn_from(
    rows: RowSource,
    params: SearchParams,
    workers: Workers,
    random_state: Any = None,
    verbose: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> Factorization | PassResult:
    """What `factorize` does, with rows wherever they are."""
    random = as_generator(random_state)
    with telling(verbose):
        if checkpoint is None:
            if resume:
                raise ValueError("resume=True goes on from a checkpoint; say where it is, checkpoint=folder")
            return learn(rows, params, workers, random)
        with Checkpoint(checkpoint, _call(rows, params, random_state), resume) as journal:
            return learn(rows, params, workers, journal.random(random), journal)


def _call(rows: RowSource, params: SearchParams, random_state: Any) -> dict[str, Any]:
    """What decides the result of a call, to tell it from another."""
    free = ("callbacks", "max_time", "plan", "init")  # the last two in words of their own
    call = {field.name: getattr(params, field.name) for field in fields(params) if field.name not in free}
    call["init"] = params.init if isinstance(params.init, str) else _name_of(params.init)
    call["plan"] = repr(params.plan)
    call["random_state"] = _seed(random_state)
    call["n_samples"], call["n_features"] = rows.n_rows, rows.n_features
    call["rows"] = rows.fingerprint()
    return call


def _seed(random_state: Any) -> Any:
    """A seed as JSON has it; of a generator, whose state the checkpoint keeps, its kind."""
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, (list, tuple, np.ndarray)):
        return np.asarray(random_state).tolist()
    return type(random_state).__name__


def _name_of(init: Any) -> str:
    """A short name for atoms, or atoms and codes, by their bits."""
    listed = init if isinstance(init, tuple) else (init,)
    return fingerprint_of(*(BitMatrix.from_any(table).words for table in listed if table is not None))


def with_codes(taken: PassResult) -> Factorization:
    """What passes over rows in memory came to, with the codes they left."""
    kept = {name: getattr(taken.result, name) for name in ResultBase.__dataclass_fields__}
    codes = joined(taken.codes, taken.order.atoms.n_rows)
    return Factorization(**kept, codes=codes.T[taken.places].T)


def codelength(X: Any, atoms: Any = None, codes: Any = None, bias: Any = None, algebra: str = "xor") -> Codelength:
    """The bits that describe a table by atoms and codes, as the paper counts them (Equations 8 and 9).

    Without atoms and codes: the bits that it takes without a model, to compare with.

    Each feature's errors, each atom's uses and each atom are a string of n bits with r ones, which takes
    ceil(log2 n) + ceil(log2 (n choose r)) bits. (The exact cost of r would be ceil(log2 (n + 1)); the paper's is kept,
    so that figures compare.) A bias that is not zero adds its own string to the atoms and ceil(log2 n) to the codes.

    Parameters
    ----------
    X : BitMatrix, array-like or sparse matrix of shape (n_samples, n_features)
    atoms : the same of shape (n_atoms, n_features), optional
    codes : the same of shape (n_samples, n_atoms), optional
    bias : array-like of shape (n_features,), optional
        Added to every sample.
    algebra : {"xor", "or"}, default="xor"

    Returns
    -------
    Codelength
        With ``errors``, ``codes``, ``atoms`` and their sum ``total``.

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
        raise ValueError("give both atoms and codes, or neither")
    data = BitMatrix.from_any(X)
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
        raise ValueError(f"bias must hold {data.n_cols} values, one a feature")
    shifted = BitMatrix.from_words(data.words ^ shift.words, data.n_cols, check=False)
    block = Block(shifted, patterns, uses, covering(algebra), Workers())
    return codelength_from_counts(
        data.n_rows, data.n_cols, block.wrong(), block.uses(), patterns.row_weights(), shift.count()
    )


def proximus(
    X: Any, radius: int = 0, *, n_jobs: int | None = None, binarize: float | None = None, random_state: Any = None
) -> Factorization:
    """The recursive Proximus method: one pattern a sample, by splitting the samples again and again.

    A rank-one fit (Algorithm 4) parts the samples that have its pattern from the rest; samples are settled when they
    differ from their pattern in at most ``radius`` bits.

    Parameters
    ----------
    X : BitMatrix, array-like, data frame or SciPy sparse matrix of shape (n_samples, n_features)
    radius : int, default=0
        How many bits a sample may differ from its pattern.
    n_jobs, binarize, random_state
        As in :func:`factorize`.

    Returns
    -------
    Factorization
        Each sample uses one atom, or none where it is all zeros. The history is empty.

    Examples
    --------
    >>> import bitatoms as ba
    >>> result = ba.proximus([[1, 1, 0], [1, 1, 0], [0, 1, 1]], random_state=0)
    >>> result.codes.to_dense().sum(axis=1)
    array([1, 1, 1], dtype=uint64)
    """
    if isinstance(radius, bool) or not hasattr(radius, "__index__") or radius < 0:
        raise ValueError(f"radius must be a whole number that is not negative, not {radius!r}")
    data = BitMatrix.from_any(X, binarize)
    workers = Workers(count_threads(n_jobs))
    atoms, owner = partition(data, int(radius), workers, as_generator(random_state))
    words = np.zeros((data.n_rows, -(-atoms.n_rows // 64)), np.uint64)
    owned = np.flatnonzero(owner >= 0)
    words[owned, owner[owned] >> 6] = np.uint64(1) << (owner[owned] & 63).astype(np.uint64)
    codes = BitMatrix.from_words(words, atoms.n_rows, check=False)
    block = Block(data, atoms, codes, None, workers)
    wrong = block.wrong()
    return Factorization(
        atoms=atoms,
        codes=codes,
        bias=np.zeros(data.n_cols, np.uint8),
        algebra="xor",
        codelength=block.codelength(wrong),
        history=(),
        wrong=wrong,
    )


_talk_lock = threading.Lock()
_talkers = 0
_talk: logging.Handler | None = None


@contextmanager
def telling(verbose: int) -> Iterator[None]:
    """While searches run for which that is asked, show what they log, once."""
    if verbose:
        _count_talkers(1, logging.DEBUG if verbose > 1 else logging.INFO)
    try:
        yield
    finally:
        if verbose:
            _count_talkers(-1)


def _count_talkers(change: int, level: int = logging.INFO) -> None:
    """Show what is logged from the first talker on, and no longer after the last."""
    global _talkers, _talk
    with _talk_lock:
        _talkers += change
        if _talkers and _talk is None:
            _talk = logging.StreamHandler()
            _talk.setFormatter(logging.Formatter("[bitatoms] %(message)s"))
            logger.addHandler(_talk)
            logger.setLevel(level)
            logger.propagate = False
        elif not _talkers and _talk is not None:
            logger.removeHandler(_talk)
            logger.setLevel(logging.NOTSET)
            logger.propagate = True
            _talk = None
