"""Programs of others, where they are installed: each a function from a table and a rank to factors."""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..baselines.baseline import Factors

_TAUS = (0.5, 0.7, 0.9)  # thresholds of ASSO's candidates that are tried
_SHARES = (0.4, 0.5, 0.6, 0.7)  # of a median row or column that MEBF asks others to have, tried
_STARTS = 3  # factors of NMF that are thresholded
_SLOPES = (10.0, 20.0, 100.0)  # how steep the step is that stands for a threshold while it is sought
_CUTS = (0.2, 0.3, 0.4, 0.5)  # where factors that are not quite 0 and 1 are cut


class ThirdPartyError(ValueError):
    """A program of others failed; the message says which and why."""


@dataclass(frozen=True)
class ThirdParty:
    """A program of others.

    Attributes
    ----------
    name : str
        Of the method, with that of the package.
    package : str
        What is imported.
    algebra : {"or", "xor"}
        In which its factors are multiplied.
    run : callable
        From a dense table of 0 and 1 (uint8), the most atoms, and a seed, to `Factors`. It prints nothing and shows no
        warnings, and raises `ThirdPartyError` whatever fails inside.
    """

    name: str
    package: str
    algebra: str
    run: Callable[[np.ndarray, int, int], Factors]


def installed() -> list[ThirdParty]:
    """The programs of others that can be imported here; none of them is imported yet.

    Examples
    --------
    >>> from bitatoms.compare.third_party import installed
    >>> all(program.package in ("PyBMF", "nimfa") for program in installed())
    True
    """
    return [program for program in _PROGRAMS if find_spec(program.package) is not None]


def versions() -> dict[str, str]:
    """The versions of the packages of `installed`, by name; "unknown" where no installer says it.

    Examples
    --------
    >>> from bitatoms.compare.third_party import installed, versions
    >>> set(versions()) == {program.package for program in installed()}
    True
    """
    found = {}
    for package in dict.fromkeys(program.package for program in installed()):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _program(name: str, package: str, method: Callable[[np.ndarray, int, int], Factors]) -> ThirdParty:
    """A method whose factors are multiplied by OR, quiet and checked."""

    def run(X: np.ndarray, rank: int, seed: int) -> Factors:
        with _answering(name), _quietly():
            return _checked(method(X, rank, seed), X.shape, rank)

    return ThirdParty(name, package, "or", run)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Nothing is printed, and no warning shown."""
    silence = io.StringIO()
    with (
        contextlib.redirect_stdout(silence),
        contextlib.redirect_stderr(silence),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _answering(name: str) -> Iterator[None]:
    """Whatever fails becomes one line."""
    try:
        yield
    except Exception as problem:  # strangers raise anything
        why = " ".join(str(problem).split()) or "no reason given"
        raise ThirdPartyError(f"{name} did not work here: {type(problem).__name__}: {why}") from problem


def _checked(found: Factors, shape: tuple[int, int], rank: int) -> Factors:
    """The first ``rank`` atoms and codes, if they are of 0 and 1 and of the right shape."""
    atoms, codes = (np.asarray(factor) for factor in found)
    if codes.shape[0] != shape[0] or atoms.shape[1] != shape[1] or len(atoms) != codes.shape[1]:
        raise ValueError(f"factors of shape {codes.shape} and {atoms.shape} for a table of shape {shape}")
    if not (np.isin(atoms, (0, 1)).all() and np.isin(codes, (0, 1)).all()):
        raise ValueError("factors that hold other values than 0 and 1")
    return Factors(atoms[:rank].astype(np.uint8), codes[:, :rank].astype(np.uint8))


def _wrong(X: np.ndarray, factors: Factors) -> int:
    """Cells that the Boolean product of factors has wrong."""
    product = factors.codes.astype(np.float32) @ factors.atoms.astype(np.float32) > 0
    return int(np.count_nonzero(product != X))


# --- PyBMF: models that are told their parameters, fitted to a sparse matrix, and keep factors U and V


def _fitted(name: str, X: np.ndarray, rank: int, **parameters: Any) -> Any:
    """A model of PyBMF, fitted; it would draw, log and save, which is switched off."""
    model = getattr(importlib.import_module("PyBMF.models"), name)(k=rank, **parameters)
    model.show_matrix = lambda *args, **kwargs: None  # some open windows whatever they are told
    quiet = dict.fromkeys(("show_logs", "save_model", "show_result"), False)
    model.fit(csr_matrix(X.astype(np.float64)), task="reconstruction", **quiet)
    return model


def _dense(table: Any) -> NDArray:
    """A factor, of whatever kind of matrix, as an array."""
    return np.asarray(table.todense() if hasattr(table, "todense") else table)


def _greedy(name: str, X: np.ndarray, rank: int, seed: int, **parameters: Any) -> Factors:
    """One of the models that find one pattern after another and draw nothing at random."""
    model = _fitted(name, X, rank, **parameters)
    # Panda goes on to one pattern more than it was asked for: those after ``rank`` are cut off later.
    return Factors(_dense(model.V).T, _dense(model.U))


def _asso(X: np.ndarray, rank: int, seed: int) -> Factors:
    """ASSO leaves the threshold of its candidates to the user: the best of a few."""
    return min((_greedy("Asso", X, rank, seed, tau=tau) for tau in _TAUS), key=partial(_wrong, X))


def _mebf(X: np.ndarray, rank: int, seed: int) -> Factors:
    """So does MEBF with how alike rows must be: the best of a few."""
    return min((_greedy("MEBF", X, rank, seed, t=share) for share in _SHARES), key=partial(_wrong, X))


def _threshold(X: np.ndarray, rank: int, seed: int) -> Factors:
    """Thresholds over the factors of NMF, which the model wants given: the best of a few."""
    found = []
    for start in range(_STARTS):
        codes, atoms = _nonnegative(X, rank, seed + start)
        for slope in _SLOPES:
            given = {"U": csr_matrix(codes), "V": csr_matrix(atoms.T), "W": "full", "lamda": slope, "seed": seed}
            model = _fitted("BinaryMFThreshold", X, rank, **given)
            found.append(Factors(_dense(model.V).T > model.v, _dense(model.U) > model.u))
    return min(found, key=partial(_wrong, X))


def _penalty(X: np.ndarray, rank: int, seed: int) -> Factors:
    """Factors of NMF that a penalty draws towards 0 and 1; it wants to be given these, too."""
    codes, atoms = _nonnegative(X, rank, seed)
    starts = {"U": csr_matrix(codes).tolil(), "V": csr_matrix(atoms.T).tolil()}
    model = _fitted("BinaryMFPenalty", X, rank, **starts, W="full", seed=seed)
    return Factors(_dense(model.V).T > 0.5, _dense(model.U) > 0.5)


def _nonnegative(X: np.ndarray, rank: int, seed: int) -> tuple[NDArray, NDArray]:
    """Codes and atoms of scikit-learn's NMF from a random start, the largest value of each of them 1."""
    from sklearn.decomposition import NMF

    model = NMF(rank, init="random", max_iter=1000, random_state=seed)
    codes = model.fit_transform(X.astype(np.float64))
    atoms = model.components_
    return codes / np.maximum(codes.max(axis=0), 1e-12), atoms / np.maximum(atoms.max(axis=1, keepdims=True), 1e-12)


# --- nimfa


def _nimfa(X: np.ndarray, rank: int, seed: int) -> Factors:
    """The penalty method over factors of NMF, as its pages advise; it leaves to the user where to cut them."""
    nimfa = importlib.import_module("nimfa")
    starts = dict(zip("WH", _nonnegative(X, rank, seed), strict=True))
    with _mat():
        found = nimfa.Bmf(X.astype(np.float64), seed=None, rank=rank, max_iter=200, **starts)()
        codes, atoms = _dense(found.basis()), _dense(found.coef())
    return min((Factors(atoms > cut, codes > cut) for cut in _CUTS), key=partial(_wrong, X))


@contextlib.contextmanager
def _mat() -> Iterator[None]:
    """For a while NumPy has ``np.mat`` again: nimfa 1.4.0 calls it, and NumPy 2 has it as ``np.asmatrix`` alone."""
    name = "mat"
    missing = not hasattr(np, name)
    if missing:
        setattr(np, name, np.asmatrix)
    try:
        yield
    finally:
        if missing:
            delattr(np, name)


_PROGRAMS = (
    _program("PyBMF Asso", "PyBMF", _asso),
    _program("PyBMF GreConD", "PyBMF", partial(_greedy, "GreConD")),
    _program("PyBMF Panda", "PyBMF", partial(_greedy, "Panda")),
    _program("PyBMF MEBF", "PyBMF", _mebf),
    _program("PyBMF BinaryMFThreshold", "PyBMF", _threshold),
    _program("PyBMF BinaryMFPenalty", "PyBMF", _penalty),
    _program("nimfa Bmf", "nimfa", _nimfa),
)
