"""Third-party programs, if installed: each is a function from a table and a rank to factors."""

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

_ASSO_THRESHOLDS = (0.5, 0.7, 0.9)
_MEBF_THRESHOLDS = (0.4, 0.5, 0.6, 0.7)
_N_NMF_STARTS = 3  # for BinaryMFThreshold
_SIGMOID_SLOPES = (10.0, 20.0, 100.0)  # of the smooth step in BinaryMFThreshold
_NIMFA_THRESHOLDS = (0.2, 0.3, 0.4, 0.5)


class ThirdPartyError(ValueError):
    """A third-party program failed; the message names the program and the reason."""


@dataclass(frozen=True)
class ThirdParty:
    """A third-party program.

    Attributes
    ----------
    name : str
        The package and the method.
    package : str
        The name to import.
    algebra : {"or", "xor"}
        The algebra of its product.
    run : callable
        ``run(X, rank, seed)`` takes a dense uint8 table of 0 and 1 and returns `Factors` of at most ``rank`` atoms. It
        prints nothing and shows no warnings. Any error inside is raised as `ThirdPartyError`.
    """

    name: str
    package: str
    algebra: str
    run: Callable[[np.ndarray, int, int], Factors]


def installed() -> list[ThirdParty]:
    """Return the third-party programs that are installed, without importing them.

    Examples
    --------
    >>> from bitatoms.compare.third_party import installed
    >>> all(program.package in ("PyBMF", "nimfa") for program in installed())
    True
    """
    return [program for program in _PROGRAMS if find_spec(program.package) is not None]


def versions() -> dict[str, str]:
    """Return the versions of the installed packages by name; "unknown" where there is no package metadata.

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


def _or_program(name: str, package: str, method: Callable[[np.ndarray, int, int], Factors]) -> ThirdParty:
    """Return a program whose product is by OR, silenced and with its factors checked."""

    def run(X: np.ndarray, rank: int, seed: int) -> Factors:
        with _wrapped_errors(name), _silenced():
            return _check_factors(method(X, rank, seed), X.shape, rank)

    return ThirdParty(name, package, "or", run)


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Suppress output and warnings."""
    output = io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _wrapped_errors(name: str) -> Iterator[None]:
    """Raise any error as a one-line `ThirdPartyError`."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split()) or "no reason given"
        raise ThirdPartyError(f"{name} raised {type(error).__name__}: {reason}") from error


def _check_factors(factors: Factors, shape: tuple[int, int], rank: int) -> Factors:
    """Return the first ``rank`` atoms and codes after checking their values and shapes."""
    atoms, codes = np.asarray(factors.atoms), np.asarray(factors.codes)
    if codes.shape[0] != shape[0] or atoms.shape[1] != shape[1] or len(atoms) != codes.shape[1]:
        raise ValueError(f"returned factors of shape {codes.shape} and {atoms.shape} for a table of shape {shape}")
    if not (np.isin(atoms, (0, 1)).all() and np.isin(codes, (0, 1)).all()):
        raise ValueError("returned factors with values other than 0 and 1")
    return Factors(atoms[:rank].astype(np.uint8), codes[:, :rank].astype(np.uint8))


def _count_wrong(X: np.ndarray, factors: Factors) -> int:
    """Return the number of wrong cells of the Boolean product."""
    product = factors.codes.astype(np.float32) @ factors.atoms.astype(np.float32) > 0
    return int(np.count_nonzero(product != X))


# --- PyBMF: models are fitted to a sparse matrix and store the factors U and V


def _fit_pybmf(name: str, X: np.ndarray, rank: int, **parameters: Any) -> Any:
    """Return a fitted model of PyBMF, with drawing, logging and saving switched off."""
    model = getattr(importlib.import_module("PyBMF.models"), name)(k=rank, **parameters)
    model.show_matrix = lambda *args, **kwargs: None  # some models open windows despite show_result=False
    quiet = dict.fromkeys(("show_logs", "save_model", "show_result"), False)
    model.fit(csr_matrix(X.astype(np.float64)), task="reconstruction", **quiet)
    return model


def _to_dense(matrix: Any) -> NDArray:
    """Return a factor, sparse or dense, as an array."""
    return np.asarray(matrix.todense() if hasattr(matrix, "todense") else matrix)


def _run_greedy(name: str, X: np.ndarray, rank: int, seed: int, **parameters: Any) -> Factors:
    """Run a deterministic model that finds one pattern after another."""
    model = _fit_pybmf(name, X, rank, **parameters)
    # Panda returns one pattern too many; `_check_factors` removes it.
    return Factors(_to_dense(model.V).T, _to_dense(model.U))


def _run_asso(X: np.ndarray, rank: int, seed: int) -> Factors:
    """Run Asso with several thresholds, which it leaves to the user, and return the best factors."""
    candidates = (_run_greedy("Asso", X, rank, seed, tau=tau) for tau in _ASSO_THRESHOLDS)
    return min(candidates, key=partial(_count_wrong, X))


def _run_mebf(X: np.ndarray, rank: int, seed: int) -> Factors:
    """Run MEBF with several thresholds, which it leaves to the user, and return the best factors."""
    candidates = (_run_greedy("MEBF", X, rank, seed, t=threshold) for threshold in _MEBF_THRESHOLDS)
    return min(candidates, key=partial(_count_wrong, X))


def _run_threshold(X: np.ndarray, rank: int, seed: int) -> Factors:
    """Run BinaryMFThreshold from factors of NMF, which it requires, and return the best of several starts."""
    candidates = []
    for start in range(_N_NMF_STARTS):
        codes, atoms = _fit_nmf(X, rank, seed + start)
        for slope in _SIGMOID_SLOPES:
            parameters = {"U": csr_matrix(codes), "V": csr_matrix(atoms.T), "W": "full", "lamda": slope, "seed": seed}
            model = _fit_pybmf("BinaryMFThreshold", X, rank, **parameters)
            candidates.append(Factors(_to_dense(model.V).T > model.v, _to_dense(model.U) > model.u))
    return min(candidates, key=partial(_count_wrong, X))


def _run_penalty(X: np.ndarray, rank: int, seed: int) -> Factors:
    """Run BinaryMFPenalty from factors of NMF, which it requires."""
    codes, atoms = _fit_nmf(X, rank, seed)
    starts = {"U": csr_matrix(codes).tolil(), "V": csr_matrix(atoms.T).tolil()}
    model = _fit_pybmf("BinaryMFPenalty", X, rank, **starts, W="full", seed=seed)
    return Factors(_to_dense(model.V).T > 0.5, _to_dense(model.U) > 0.5)


def _fit_nmf(X: np.ndarray, rank: int, seed: int) -> tuple[NDArray, NDArray]:
    """Return codes and atoms of scikit-learn's NMF from a random start, scaled to a maximum of 1 each."""
    from sklearn.decomposition import NMF

    model = NMF(rank, init="random", max_iter=1000, random_state=seed)
    codes = model.fit_transform(X.astype(np.float64))
    atoms = model.components_
    return codes / np.maximum(codes.max(axis=0), 1e-12), atoms / np.maximum(atoms.max(axis=1, keepdims=True), 1e-12)


# --- nimfa


def _run_nimfa(X: np.ndarray, rank: int, seed: int) -> Factors:
    """Run nimfa's penalty method from factors of NMF, as its documentation advises, with several thresholds."""
    nimfa = importlib.import_module("nimfa")
    starts = dict(zip("WH", _fit_nmf(X, rank, seed), strict=True))
    with _restored_np_mat():
        found = nimfa.Bmf(X.astype(np.float64), seed=None, rank=rank, max_iter=200, **starts)()
        codes, atoms = _to_dense(found.basis()), _to_dense(found.coef())
    candidates = (Factors(atoms > threshold, codes > threshold) for threshold in _NIMFA_THRESHOLDS)
    return min(candidates, key=partial(_count_wrong, X))


@contextlib.contextmanager
def _restored_np_mat() -> Iterator[None]:
    """Provide ``np.mat``, which nimfa 1.4.0 calls and NumPy 2 removed."""
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
    _or_program("PyBMF Asso", "PyBMF", _run_asso),
    _or_program("PyBMF GreConD", "PyBMF", partial(_run_greedy, "GreConD")),
    _or_program("PyBMF Panda", "PyBMF", partial(_run_greedy, "Panda")),
    _or_program("PyBMF MEBF", "PyBMF", _run_mebf),
    _or_program("PyBMF BinaryMFThreshold", "PyBMF", _run_threshold),
    _or_program("PyBMF BinaryMFPenalty", "PyBMF", _run_penalty),
    _or_program("nimfa Bmf", "nimfa", _run_nimfa),
)
