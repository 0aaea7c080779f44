"""Fit random tables with random parameters, check all that was asked for, and recompute all that is reported.

Tables are small: random, planted, constant, with equal rows and columns, with unknown cells. Every parameter of
`factorize` is drawn, also those that exclude each other: these must be refused by a ValueError. Rows are in memory, as
arrays, masked arrays, sparse matrices, data frames or packed; in a store, in a Dask array or in batches. What is
reported is recomputed from the table with NumPy and integers. Wherever rows are and however many threads there are, the
bits must be those of `factorize`, and weights must be repetitions.

``--fits 5000 --jobs 16`` fits in 16 processes. Each failure is printed with the command that repeats it, and the exit
status is then 1.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import bitatoms as ba
from bitatoms.engine.prices import ERROR_BITS
from bitatoms.errors import InputError
from bitatoms.online import stream
from bitatoms.parameters import declarations
from bitatoms.search.plan import PLANS

UNKNOWN = 2  # a cell above 1 is unknown
SOURCES = ("factorize", "fit", "store", "batches", "dask")
_SHARES = (0.62, 0.1, 0.1, 0.15, 0.03)
_EXACT_ATOMS = 16  # up to this many atoms, all codes are tried for the fewest errors
_BRUTE_ATOMS = 6  # up to this many, all codes are tried here, too
_MAX_FEATURES, _MAX_SAMPLES = 40, 40


@dataclass
class Case:
    """A table, the parameters of its fit, and where its rows are; all drawn from a seed."""

    seed: tuple[int, int]
    X: np.ndarray  # 0, 1, or 2 where a cell is unknown
    kind: str  # of the table
    form: str  # in which the table is passed
    source: str
    parameters: dict[str, Any]
    weights: np.ndarray | None = None
    forget: float = 0.0
    n_batches: int = 1
    stops: tuple[str, int] | None = None  # "stop" or "interrupt", and the round in which a callback does so
    resumes: int | None = None  # a first fit, with a checkpoint, is interrupted in this round
    window_features: int | None = None  # tables with this many columns are searched by windows
    sample_rows: int | None = None  # that a stream keeps

    @property
    def is_timed(self) -> bool:
        """Whether the result depends on the clock."""
        return "max_time" in self.parameters


@dataclass
class Outcome:
    """What a case has led to: "verified", "refused", "interrupted" or "failed", and why."""

    case: Case
    what: str
    details: list[str] = field(default_factory=list)
    seconds: float = 0.0


def draw(seed: int, number: int) -> Case:
    """Draw a case."""
    rng = np.random.default_rng([seed, number])
    kind, X = draw_table(rng)
    source = str(rng.choice(SOURCES, p=_SHARES))
    has_names = rng.random() < 0.2 and source != "dask"
    form = str(rng.choice(["array", "float", "masked", "mask", "packed", "sparse"]))
    form = "frame" if has_names else form
    if form in ("array", "sparse") and (X == UNKNOWN).any():
        form = "float"
    if source in ("fit", "store", "dask", "batches") and form == "mask":
        form = "float"
    case = Case((seed, number), X, kind, form, source, {})
    case.parameters = draw_parameters(rng, case, form == "frame")
    if rng.random() < 0.15 and source in ("factorize", "fit", "batches"):
        case.weights = rng.integers(0, 4, len(X)) * (rng.random(len(X)) < 0.9)
    if source == "batches":
        case.n_batches, case.forget = int(rng.integers(1, 5)), float(rng.choice([0.0, 0.0, 0.01, 0.2]))
        case.sample_rows = int(rng.integers(4, 30)) if rng.random() < 0.3 else None
    elif rng.random() < 0.08:
        case.stops = str(rng.choice(["stop", "interrupt"])), int(rng.integers(1, 12))
    elif rng.random() < 0.04 and source != "dask":
        case.resumes = int(rng.integers(1, 30))
    if rng.random() < 0.06:
        case.window_features = int(rng.integers(4, 24))
    return case


def draw_table(rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """Draw a table of 0 and 1, with 2 in unknown cells."""
    n, m = int(rng.integers(1, _MAX_SAMPLES)), int(rng.integers(1, _MAX_FEATURES))
    if rng.random() < 0.5:
        n, m = min(n, int(rng.integers(1, 14))), min(m, int(rng.integers(1, 12)))
    extreme = rng.random()
    if extreme < 0.04:
        m = int(rng.choice([63, 64, 65, 130]))
    elif extreme < 0.08:
        n = int(rng.integers(100, 300))
    elif extreme < 0.085:
        n = 0
    kind = str(rng.choice(["random", "planted", "constant", "equal rows", "equal columns", "dense", "nested"]))
    if kind == "constant":
        X = np.full((n, m), rng.integers(2), np.uint8)
    elif kind == "planted":
        k = int(rng.integers(1, 6))
        X = _product(rng.random((n, k)) < 0.4, rng.random((k, m)) < 0.3, str(rng.choice(["xor", "or"])))
        X = X ^ (rng.random((n, m)) < rng.choice([0.0, 0.05]))
    elif kind == "nested":
        X = (np.arange(m) < rng.integers(0, m + 1, n)[:, np.newaxis]).astype(np.uint8)
    else:
        X = (rng.random((n, m)) < (0.9 if kind == "dense" else rng.random())).astype(np.uint8)
        if kind == "equal rows" and n:
            X = X[rng.integers(0, max(1, n // 4), n)]
        if kind == "equal columns":
            X = X[:, rng.integers(0, max(1, m // 3), m)]
    X = np.ascontiguousarray(X, np.uint8)
    if rng.random() < 0.25:
        X[rng.random((n, m)) < rng.choice([0.05, 0.3, 0.8])] = UNKNOWN
        if n and rng.random() < 0.3:
            X[:, rng.integers(m)] = UNKNOWN
            X[rng.integers(n)] = UNKNOWN
    return kind, X


def draw_parameters(rng: np.random.Generator, case: Case, has_names: bool) -> dict[str, Any]:
    """Draw parameters, each of them rarely, so that most calls are valid."""
    n, m = case.X.shape
    given: dict[str, Any] = {"random_state": int(rng.integers(100))}

    def maybe(probability: float, name: str, value: Callable[[], Any]) -> None:
        if rng.random() < probability:
            given[name] = value()

    def features() -> list[Any]:
        size = min(m, int(rng.integers(2, 5)))
        chosen = rng.choice(m, size, replace=False).tolist()
        return [f"c{i}" for i in chosen] if has_names and rng.random() < 0.5 else chosen

    def bits(n_rows: int, density: float = 0.4) -> np.ndarray:
        drawn = (rng.random((n_rows, m)) < density).astype(np.uint8)
        if n and rng.random() < 0.5:
            rows = case.X[rng.integers(0, n, n_rows)]
            drawn = rows * (rows < UNKNOWN)
        return drawn

    def cost(values: list[float]) -> Any:
        if rng.random() < 0.6:
            return float(rng.choice(values))
        if has_names and rng.random() < 0.5:
            return {f"c{int(rng.integers(m))}": float(rng.choice(values))}
        return rng.choice(values, m)

    maybe(0.45, "n_components", lambda: int(rng.integers(1, 7)))
    maybe(0.7, "algebra", lambda: str(rng.choice(["xor", "or", "or", "auto"])))
    maybe(0.35, "search", lambda: str(rng.choice(["fast", "thorough", "anytime", "paper"])))
    maybe(0.25, "objective", lambda: str(rng.choice(["auto", "codelength", "errors"])))
    maybe(0.04, "update", lambda: str(rng.choice(["mob", "k-prox"])))
    maybe(0.08, "coder", lambda: str(rng.choice(["auto", "bmp", "greedy", "exact", "mdl", "beam"])))
    maybe(0.4, "bias", lambda: bool(rng.integers(2)))
    maybe(0.2, "max_features_per_atom", lambda: int(rng.integers(1, 6)))
    maybe(0.15, "min_samples_per_atom", lambda: int(rng.integers(1, 8)))
    maybe(0.12, "apart", lambda: [features() for _ in range(rng.integers(1, 3))])
    maybe(0.12, "together", lambda: [features() for _ in range(rng.integers(1, 3))])
    maybe(0.2, "fixed_atoms", lambda: bits(int(rng.integers(0, 4))))
    if rng.random() < 0.12:
        atoms = bits(int(rng.integers(1, 5)))
        codes = (rng.random((n, len(atoms))) < 0.3).astype(np.uint8)
        named = str(rng.choice(["samples", "bernoulli", "spread", "greedy"]))
        given["init"] = [named, atoms, (atoms, codes)][int(rng.integers(3))]
    maybe(0.03, "init_density", lambda: float(rng.random()))
    maybe(0.06, "n_init", lambda: int(rng.integers(1, 3)))
    maybe(0.06, "start_components", lambda: int(rng.integers(0, 20)))
    maybe(0.1, "max_components", lambda: int(rng.integers(0, 6)))
    maybe(0.05, "patience", lambda: int(rng.integers(1, 3)) if rng.random() < 0.8 else None)
    maybe(0.12, "max_atoms_per_sample", lambda: int(rng.integers(1, 4)))
    maybe(0.08, "residual_limit", lambda: int(rng.integers(0, 4)))
    maybe(0.08, "false_negative_cost", lambda: cost([1.0, 1.5, 4.0, 100.0, 1e300]))
    maybe(0.1, "false_positive_cost", lambda: cost([1.0, 1.5, 4.0, 100.0, math.inf]))
    maybe(0.2, "max_iter", lambda: int(rng.integers(1, 10)))
    maybe(0.02, "max_time", lambda: float(rng.choice([1e-6, 1e-3, 0.02])))
    maybe(0.2, "search_rows", lambda: int(rng.integers(2, 40)) if rng.random() < 0.8 else None)
    maybe(0.15, "n_jobs", lambda: 2)
    maybe(0.02, "max_memory", lambda: "64MB")
    if given.get("search") != "paper":
        for name in _OF_PAPER:
            given.pop(name, None)
    if given.get("search") == "anytime" or ("n_components" in given and rng.random() < 0.7):
        given.setdefault("max_iter", int(rng.integers(1, 10)))  # other searches take longer
    return given


_OF_PAPER = ("update", "init_density", "residual_limit", "start_components", "patience")


def _nested(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as `factorize` takes them: those that belong together are one object."""
    groups: dict[str, Any] = {"constraints": ba.Constraints, "resources": ba.Resources}
    if parameters.get("search") == "paper":
        groups["search"] = ba.PaperSearch
    nested = dict(parameters)
    for group, kind in groups.items():
        own = {name: nested.pop(name) for name in declarations(kind) if name in nested}
        if own:
            nested[group] = kind(**own)
    return nested


def run(case: Case) -> Outcome:
    """Fit, and return what came of it."""
    started, refusals = time.process_time(), []
    with tempfile.TemporaryDirectory() as folder, _tuned(case):
        try:
            details = [*_verified(case, Path(folder), refusals)]
            what = "failed" if details else "refused" if refusals else "verified"
        except Exception as error:
            what, details = "failed", [f"{type(error).__name__}: {error}"]
    return Outcome(case, what, details or refusals, time.process_time() - started)


@contextmanager
def _tuned(case: Case) -> Iterator[None]:
    """Search by narrow windows, and keep few rows of a stream, if the case has it so."""
    plans, tuning = dict(PLANS), stream.StreamTuning
    if case.window_features is not None:
        for name, plan in plans.items():
            windows = replace(plan.windows, min_features=case.window_features, width=8, max_related=6)
            PLANS[name] = replace(plan, windows=windows)
    if case.sample_rows is not None:
        stream.StreamTuning = lambda: replace(tuning(), max_sample_rows=case.sample_rows)  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        PLANS.update(plans)
        stream.StreamTuning = tuning  # type: ignore[misc]


def _verified(case: Case, folder: Path, refusals: list[str]) -> Iterator[str]:
    """Yield all that is wrong with the fit of a case; why it is refused, if it is, goes to ``refusals``."""
    try:
        results, warned, model = _fit(case, folder)
    except ValueError as error:
        if not isinstance(error, InputError) and not str(error):
            yield f"a {type(error).__name__} without a message"
        refusals.append(f"{error}")
        return
    for result in results:
        yield from check(case, result, warned)
    if results and isinstance(results[0], ba.Factorization) and case.stops is None and not case.is_timed:
        yield from _check_same(case, results[0])
    if model is not None and results:
        yield from _check_model(case, model, results[0])


def _fit(case: Case, folder: Path) -> tuple[list[Any], list[str], Any]:
    """Return the result of a case, or those after each batch, the warnings, and the fitted model if there is one."""
    parameters = dict(case.parameters)
    if case.stops is not None:
        parameters["callbacks"] = _Stopping(*case.stops)
    model, results = None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if case.resumes is not None:
            parameters["checkpoint"] = folder / "checkpoint"
            with suppress(ba.Interrupted):
                _fit_once(case, parameters | {"callbacks": _Stopping("interrupt", case.resumes)}, folder)
            parameters["resume"] = True
        try:
            results, model = _fit_once(case, parameters, folder)
        except ba.Interrupted as interrupted:
            results = [] if interrupted.result is None else [interrupted.result]
            if case.stops is None or case.stops[0] != "interrupt" or any(row.ended != "interrupted" for row in results):
                raise AssertionError("an interrupted fit is not that") from interrupted
        else:
            ended = {result.ended for result in results}
            if case.stops is not None and parameters["callbacks"].has_stopped and not ended & {"callback", "max_iter"}:
                raise AssertionError(f"a callback ended the search, but it is {ended}")
    return results, [str(each.message) for each in caught], model


def _fit_once(case: Case, parameters: dict[str, Any], folder: Path) -> tuple[list[Any], Any]:
    """Return the results of a fit, and the fitted model if there is one."""
    X, parameters = _in_form(case, case.X), _nested(parameters)
    if case.source == "factorize":
        mask = {"mask": case.X == UNKNOWN} if case.form == "mask" else {}
        return [ba.factorize(X, sample_weight=case.weights, **mask, **parameters)], None
    model = ba.BinaryDictionaryLearning(**parameters, forget=case.forget)
    return _fit_model(case, model, X, folder), model


def _fit_model(case: Case, model: Any, X: Any, folder: Path) -> list[Any]:
    """Fit an estimator; return its model, or its models after each batch."""
    if case.source == "batches":
        if not hasattr(model, "partial_fit"):
            raise InputError("no partial_fit")
        results = []
        for rows in np.array_split(np.arange(len(case.X)), case.n_batches):
            if len(rows):
                weights = None if case.weights is None else case.weights[rows]
                batch = X.iloc[rows] if case.form == "frame" else X[rows]
                if weights is not None and not weights.any():
                    continue
                results.append(model.partial_fit(batch, sample_weight=weights).as_model())
        return results
    if case.source == "fit":
        return [model.fit(X, sample_weight=case.weights).as_model()]
    if case.source == "store":
        return [model.fit(ba.pack(ba.Table.from_any(X, missing="unknown"), folder / "rows.zarr")).as_model()]
    import dask.array as da

    dense = np.where(case.X == UNKNOWN, np.nan, case.X)
    return [model.fit(da.from_array(dense, chunks=(max(1, len(dense) // 2), dense.shape[1]))).as_model()]


def _in_form(case: Case, X: np.ndarray) -> Any:
    """Return a table in the form in which it is passed."""
    import pandas as pd
    from scipy.sparse import csr_array

    filled, unknown = np.where(X == UNKNOWN, 0, X).astype(np.uint8), X == UNKNOWN
    as_float = np.where(unknown, np.nan, X)
    if case.form == "frame":
        return pd.DataFrame(as_float, columns=[f"c{i}" for i in range(X.shape[1])])
    if case.form == "packed":
        packed = ba.BitMatrix.from_dense(filled)
        return packed.with_unknown(ba.BitMatrix.from_dense(unknown)) if unknown.any() else packed
    if case.form == "mask":
        return np.where(unknown, 1, X).astype(np.uint8)  # the mask hides them
    forms = {"array": filled, "float": as_float, "masked": np.ma.masked_array(filled, unknown)}
    return csr_array(filled) if case.form == "sparse" else forms[case.form]


class _Stopping:
    """A callback that ends the search, or interrupts it, in a round."""

    def __init__(self, how: str, number: int) -> None:
        self.how, self.number, self.has_stopped = how, number, False

    def __call__(self, row: Any) -> bool:
        if row.round != self.number or self.has_stopped:
            return False
        self.has_stopped = True
        if self.how == "interrupt":
            raise KeyboardInterrupt
        return True


# What was asked for, and what is reported.


def check(case: Case, result: Any, warned: Sequence[str]) -> Iterator[str]:
    """Yield all that is wrong with a result."""
    asked = Asked.of(case)
    yield from _check_asked(asked, result, warned)
    is_whole = result.n_samples == asked.n_samples
    if not is_whole and (result.ended == "converged" and case.source != "batches"):
        yield f"{result.n_samples} samples are described, not {asked.n_samples}"
    if case.source == "batches":
        yield from _check_counts(result)
        return
    if not is_whole:
        return
    X = case.X if case.weights is None else np.repeat(case.X, case.weights, axis=0)
    yield from _check_table(X, result)
    if isinstance(result, ba.Factorization) and case.weights is None:
        yield from _check_factors(asked, X, result)


@dataclass(frozen=True)
class Asked:
    """The parameters that a result must fulfil, without defaults that depend on others."""

    case: Case
    n_samples: int
    n_components: Any
    search: str
    by_codelength: bool
    costs: tuple[np.ndarray, np.ndarray]  # of missed and of added ones
    fixed: np.ndarray
    limits: dict[str, Any]

    @classmethod
    def of(cls, case: Case) -> Asked:
        """Return what a case asks for."""
        given, m = case.parameters, case.X.shape[1]
        costs = tuple(_costs(given.get(name, 1.0), m) for name in ("false_negative_cost", "false_positive_cost"))
        has_costs = any((each != 1).any() for each in costs)
        n_components, objective = given.get("n_components", "mdl"), given.get("objective", "auto")
        by_codelength = n_components == "mdl" or has_costs if objective == "auto" else objective == "codelength"
        n_samples = len(case.X) if case.weights is None else int(case.weights.sum())
        limits = {name: given[name] for name in _LIMITS if given.get(name) is not None}
        for name in {"apart", "together"} & set(limits):
            limits[name] = [{int(str(i).removeprefix("c")) % m for i in each} for each in limits[name]]
        search, fixed = given.get("search", "fast"), given.get("fixed_atoms", np.zeros((0, m), np.uint8))
        return cls(case, n_samples, n_components, search, by_codelength, costs, np.asarray(fixed), limits)

    def has_bias(self, algebra: str) -> bool:
        """Whether the bias takes columns that are wrong in most samples."""
        no_costs = not any((each != 1).any() for each in self.costs)
        free = self.case.parameters.get("bias", True) and no_costs and not (algebra == "or" and len(self.fixed))
        return free and self.is_mdl_search

    @property
    def is_mdl_search(self) -> bool:
        """Whether moves lower the codelength."""
        return self.by_codelength and self.search != "paper"


_LIMITS = ("max_features_per_atom", "min_samples_per_atom", "apart", "together", "max_components")


def _costs(cost: Any, m: int) -> np.ndarray:
    """Return a cost for each column."""
    if not isinstance(cost, dict):
        return np.broadcast_to(np.asarray(cost, float), m)
    return np.array([cost.get(f"c{i}", 1.0) for i in range(m)])


def _check_asked(asked: Asked, result: Any, warned: Sequence[str]) -> Iterator[str]:
    """Yield what was asked for and does not hold."""
    case, given, atoms = asked.case, asked.case.parameters, result.atoms.to_dense()
    p, n_fixed, limits, uses = len(atoms), len(asked.fixed), asked.limits, result.uses
    learned = atoms[n_fixed:]
    algebra = given.get("algebra", "auto")
    has_costs = any((each != 1).any() for each in asked.costs)
    either = ("or",) if has_costs else ("xor",) if asked.search == "paper" else ("or", "xor")
    if result.algebra not in (either if algebra == "auto" else (algebra,)):
        yield f"the algebra is {result.algebra}"
    if atoms.shape[1] != case.X.shape[1] or result.bias.shape != (case.X.shape[1],):
        yield "atoms or bias have other columns"
    if not asked.has_bias(result.algebra) and result.bias.any():
        yield "there is a bias"
    is_wrong = 2 * result.wrong > result.n_known
    if case.window_features is not None:  # windows without atoms keep their columns
        is_wrong = is_wrong & atoms.any(axis=0)
    if asked.has_bias(result.algebra) and is_wrong.any():
        yield "a column is wrong in most samples"
    if p < n_fixed or (atoms[:n_fixed] != asked.fixed).any():
        yield "fixed atoms are not first"
    if asked.n_components != "mdl" and p > asked.n_components:
        yield f"{p} atoms, not {asked.n_components}"
    if asked.n_components == "mdl" and p > limits.get("max_components", p):
        yield f"{p} atoms, more than max_components"
    for k, atom in enumerate(learned):
        ones = set(np.flatnonzero(atom).tolist())
        if len(ones) > limits.get("max_features_per_atom", len(ones)):
            yield f"atom {k + n_fixed} has {len(ones)} features"
        if any(len(ones & each) > 1 for each in limits.get("apart", ())):
            yield f"atom {k + n_fixed} has features that are apart"
        if any(0 < len(ones & each) < len(each) for each in _merged(limits.get("together", ()))):
            yield f"atom {k + n_fixed} has some features that belong together"
    share = result.n_samples / max(1, asked.n_samples) if case.source != "batches" else 1.0
    least = limits.get("min_samples_per_atom", 0)
    if (uses[n_fixed:] < (max(1, round(least * share)) if least else 0)).any():
        yield "an atom has too few users"
    is_complete = asked.search != "paper" and result.ended == "converged"
    if is_complete and ((uses[n_fixed:] == 0).any() or not learned.any(axis=1).all()):
        yield "an atom is empty, or not used"
    wanted = asked.n_components
    if is_complete and wanted != "mdl" and p < wanted and case.source != "batches":
        if not any(f"{wanted} atoms were requested" in text for text in warned) and case.stops is None:
            yield f"{p} atoms, not {wanted}, without a warning"
        is_free = not any(name in given for name in (*_LIMITS, "fixed_atoms", "max_atoms_per_sample", "residual_limit"))
        left = result.wrong_bits if result.algebra == "xor" else int(result.missed.sum())
        is_whole = given.get("search_rows") is None or given["search_rows"] >= asked.n_samples
        if is_free and left and not asked.by_codelength and is_whole:
            yield f"{p} atoms, not {wanted}, although {left} errors are left"
    if result.missed is not None and case.source != "batches":  # rows of earlier batches keep their codes
        added = result.wrong - result.missed
        if added[np.isinf(asked.costs[1])].any():
            yield "there are errors that costs forbid"
    lengths = result.codelengths
    if case.source != "batches" and asked.by_codelength and set(lengths) == {"xor", "or"} and not result.compared:
        kept = "xor" if lengths["xor"] < 0.95 * lengths["or"] else "or"
        beyond = has_costs or not given.get("bias", True) or len(asked.fixed)
        if result.algebra != kept and not beyond:  # else costs are compared, not codelengths
            yield f"{result.algebra} is kept, but codelengths are {dict(lengths)}"
    if isinstance(result, ba.Factorization):
        most = given.get("max_atoms_per_sample")
        if most is not None and result.codes.to_dense().sum(axis=1).max(initial=0) > most:
            yield "a sample uses too many atoms"


def _merged(sets: Sequence[set[int]]) -> list[set[int]]:
    """Return sets that share no feature: those that do are one."""
    merged: list[set[int]] = []
    for each in sets:
        own = set(each).union(*(other for other in merged if other & each))
        merged = [other for other in merged if not other & own] + [own]
    return merged


def _check_counts(result: Any) -> Iterator[str]:
    """Yield which figures of a result contradict each other, whatever the rows."""
    known = result.n_known
    length = _codelength(result.n_samples, known, result.wrong, result.uses, result.atoms.to_dense(), result.bias)
    if length != _parts(result.codelength):
        yield f"the codelength is {_parts(result.codelength)}, and not {length}"
    if result.codelengths.get(result.algebra) != sum(length):
        yield f"codelengths are {dict(result.codelengths)}, and not {sum(length)}"
    if result.ones is not None:
        without = sum(string_bits(int(n), int(r)) for n, r in zip(known, result.ones, strict=True))
        if result.bits_without != without:
            yield f"{result.bits_without} bits without atoms, not {without}"
    yield from _check_summary(result)


def _check_summary(result: Any) -> Iterator[str]:
    """Yield which figures of a summary are wrong."""
    text, p, total = result.summary().replace(",", ""), result.atoms.n_rows, result.codelength.total
    first = re.match(r"(\d+) atoms? .*?describes? (\d+) samples? of (\d+) features? in (\d+) bits?", text)
    if first is None or [int(each) for each in first.groups()] != [p, result.n_samples, result.atoms.n_cols, total]:
        yield f"the summary says {text.splitlines()[0]!r}"
    share = re.search(r"([\d.]+)% of the (?:known )?cells are wrong", text)
    actual = 100 * result.wrong_bits / max(1, result.n_known_cells)
    if share is not None and abs(float(share[1]) - actual) > 0.06 + 0.01 * actual:
        yield f"the summary says that {share[0]}, but these are {actual:.3f} %"
    used = re.search(r"a sample uses ([\d.]+) atoms", text)
    if used is not None and abs(float(used[1]) - result.uses.sum() / max(1, result.n_samples)) > 0.0501:
        yield f"the summary says that {used[0]}"
    bias = re.search(r"(\d+) features? (?:is a one|are ones) unless", text)
    if (int(bias[1]) if bias else 0) != result.bias.sum():
        yield "the summary has another bias"


def _check_table(X: np.ndarray, result: Any) -> Iterator[str]:
    """Yield which figures about the table alone are wrong."""
    yield from _check_counts(result)
    known, atoms = X < UNKNOWN, result.atoms.to_dense()
    wanted = np.where(result.bias == 1, 0, 1)
    if result.ones is not None and (result.ones != (X == 1).sum(axis=0)).any():
        yield "ones are not those of the table"
    if (result.n_known != known.sum(axis=0)).any():
        yield "known cells are not those of the table"
    has = X == wanted
    if result.complete is not None:
        complete = [int(has[:, atom == 1].all(axis=1).sum()) for atom in atoms]
        if result.complete.tolist() != complete:
            yield f"{result.complete.tolist()} rows are complete, not {complete}"
    if result.lacking is not None:
        lacking = []
        for atom in atoms:
            features = np.flatnonzero(atom)
            for feature in features:
                others = has[:, features[features != feature]].all(axis=1)
                lacking.append(int((others & (X[:, feature] == 1 - wanted[feature])).sum()))
        if result.lacking.tolist() != lacking:
            yield f"{result.lacking.tolist()} rows lack one feature, not {lacking}"
    if result.atom_known is not None:
        atom_known = [int(known[:, atom == 1].all(axis=1).sum()) for atom in atoms]
        if result.atom_known.tolist() != atom_known:
            yield "atom_known is wrong"


def _check_factors(asked: Asked, X: np.ndarray, result: ba.Factorization) -> Iterator[str]:
    """Yield what factors do not have in common with the figures about them."""
    case, atoms, codes = asked.case, result.atoms.to_dense(), result.codes.to_dense()
    n_fixed, product = len(asked.fixed), _product(codes, atoms, result.algebra) ^ result.bias
    if codes.shape != (len(X), len(atoms)):
        yield f"codes have shape {codes.shape}"
        return
    if (result.reconstruct().to_dense() != product).any():
        yield "reconstruct is not the product"
    errors = (X != product) & (X < UNKNOWN)
    if result.wrong.tolist() != errors.sum(axis=0).tolist():
        yield f"{result.wrong.tolist()} cells are wrong, not {errors.sum(axis=0).tolist()}"
    if result.missed is not None and result.missed.tolist() != (errors & (X == 1)).sum(axis=0).tolist():
        yield "missed ones are others"
    if result.uses.tolist() != codes.sum(axis=0).tolist():
        yield "uses are others"
    if result.saved is not None:
        saved = [_saved(asked, X, result, atoms, codes, k) for k in range(len(atoms))]
        if result.saved.tolist() != saved:
            yield f"atoms save {result.saved.tolist()} bits, not {saved}"
        if (np.diff(result.saved[n_fixed:]) > 0).any():
            yield f"atoms are not in the order of what they save: {result.saved.tolist()}"
        is_free = asked.n_components == "mdl" and asked.search != "paper" and result.ended == "converged"
        n_searched = case.parameters.get("search_rows")
        is_whole = n_searched is None or n_searched >= len(X)
        if is_free and is_whole and (result.saved[n_fixed:] <= 0).any():
            yield f"atoms save nothing: {result.saved.tolist()}"
    row = result.history[-1] if result.history else None
    if [each.round for each in result.history] != [*range(1, len(result.history) + 1)]:
        yield f"rounds are {[each.round for each in result.history]}"
    figures = len(atoms), result.codelength.total, result.wrong_bits
    own = [(each.atoms, each.bits, each.wrong_bits) for each in result.history if each.rows == len(X)]
    # In the end, samples within the residual limit lose their codes, and unused atoms of a given number are dropped.
    is_adjusted = case.parameters.get("residual_limit") or len(atoms) < case.parameters.get("n_components", 0)
    if row is not None and figures not in own and not is_adjusted:
        yield f"no round of the history has {figures}; the last are {own[-3:]}"
    is_exact = not asked.by_codelength and asked.search != "paper" and result.ended == "converged"
    is_limited = {"max_atoms_per_sample", "residual_limit"} & set(case.parameters)
    if is_exact and not is_limited and len(atoms) <= _BRUTE_ATOMS:
        least = _fewest_errors(X ^ np.where(X == UNKNOWN, 0, result.bias), atoms, result.algebra)
        if (errors.sum(axis=1) != least).any():
            yield f"{int(errors.sum())} cells are wrong, but other codes leave {int(least.sum())}"


def _saved(asked: Asked, X: np.ndarray, result: Any, atoms: np.ndarray, codes: np.ndarray, k: int) -> int:
    """Return by how much more a table would cost without an atom, the other codes left as they are."""
    before = _cost(asked, X, result.algebra, atoms, codes, result.bias)
    others = np.arange(len(atoms)) != k
    atoms, codes, bias = atoms[others], codes[:, others], result.bias
    if asked.has_bias(result.algebra):
        errors = (X != _product(codes, atoms, result.algebra) ^ bias) & (X < UNKNOWN)
        bias = bias ^ (2 * errors.sum(axis=0) > (X < UNKNOWN).sum(axis=0))
    return _cost(asked, X, result.algebra, atoms, codes, bias) - before


def _cost(asked: Asked, X: np.ndarray, algebra: str, atoms: np.ndarray, codes: np.ndarray, bias: np.ndarray) -> int:
    """Return the codelength and what errors cost beyond it: without a bias, and by their costs."""
    known, errors = (X < UNKNOWN).sum(axis=0), (X != _product(codes, atoms, algebra) ^ bias) & (X < UNKNOWN)
    wrong, missed = errors.sum(axis=0), (errors & (X == 1)).sum(axis=0)
    cost = sum(_codelength(len(X), known, wrong, codes.sum(axis=0), atoms, bias))
    if asked.is_mdl_search and not asked.has_bias(algebra):  # from a third on, an error costs a bit
        for n, e in zip(known.tolist(), wrong.tolist(), strict=True):
            cost += string_bits(n, min(e, n // 3)) + max(0, e - n // 3) - string_bits(n, e)
    for errors_of_kind, costs in ((missed, asked.costs[0]), (wrong - missed, asked.costs[1])):
        for e, c in zip(errors_of_kind.tolist(), costs.tolist(), strict=True):
            cost += e * ((1 << 32) if math.isinf(c) else round((c - 1) * ERROR_BITS))
    return cost


def _check_same(case: Case, result: ba.Factorization) -> Iterator[str]:
    """Yield in what a result differs from one with other threads, forms of rows or repetitions."""
    rng = np.random.default_rng([*case.seed, 1])
    if case.weights is not None:
        init = case.parameters.get("init")
        pair = (init[0], np.repeat(init[1], case.weights, axis=0)) if isinstance(init, tuple) else init
        given = case.parameters | ({} if pair is None else {"init": pair})
        form, rows = "frame" if case.form == "frame" else "float", np.repeat(case.X, case.weights, axis=0)
        plain = replace(case, X=rows, form=form, parameters=given, weights=None, resumes=None)
        own = np.repeat(np.arange(len(case.X)), case.weights)
        firsts = np.flatnonzero(np.diff(own, prepend=-1))
        (other,), _, _ = _fit(plain, Path())
        yield from _differences(result, other, "repeated rows")
        if (result.codes.to_dense()[case.weights > 0] != other.codes.to_dense()[firsts]).any():
            yield "codes are not those of the first repetitions"
        yield from check(plain, other, [f"{case.parameters.get('n_components')} atoms were requested"])
    elif case.resumes is not None or rng.random() < 0.15:
        other_form = str(rng.choice(["float", "packed", "masked"])) if case.form != "frame" else "frame"
        n_jobs = 3 - (case.parameters.get("n_jobs") or 1)
        parameters = case.parameters | {"n_jobs": n_jobs}
        (other,), _, _ = _fit(replace(case, form=other_form, parameters=parameters, resumes=None), Path())
        yield from _differences(result, other, f"{n_jobs} threads and {other_form}")
        if (result.codes.to_dense() != other.codes.to_dense()).any():
            yield "codes are other with other threads"


def _check_model(case: Case, model: Any, result: Any) -> Iterator[str]:
    """Yield what is wrong with an estimator: its model is that of `factorize`, and how it codes samples."""
    asked, given = Asked.of(case), case.parameters
    if case.source != "batches" and case.stops is None and not case.is_timed:
        parameters = {name: value for name, value in given.items() if name not in ("max_memory",)}
        form = "frame" if case.form == "frame" else "float"
        plain = replace(case, source="factorize", form=form, parameters=parameters, resumes=None)
        (other,), _, _ = _fit(plain, Path())
        yield from _differences(result, other, "rows in memory")
    elif case.source == "batches" and not case.forget and case.sample_rows is None:
        yield from _check_stream(case, model)
    atoms = model.components_
    if (atoms != model.as_model().atoms.to_dense()).any() or (model.bias_ != model.as_model().bias).any():
        yield "components_ or bias_ are not those of the model"
    if model.n_components_ != len(atoms) or model.summary_ != model.as_model().summary():
        yield "n_components_ or summary_ are not those of the model"
    table = _in_form(replace(case, form="float" if case.form != "frame" else "frame"), case.X)
    codes = np.asarray(model.transform(table))  # of a data frame, a data frame
    product = _product(codes, atoms, model.algebra_) ^ model.bias_
    if codes.shape != (len(case.X), len(atoms)):
        yield f"transform gives shape {codes.shape}"
    elif (model.inverse_transform(codes) != product).any():
        yield "inverse_transform is not the product"
    most = given.get("max_atoms_per_sample")
    if most is not None and codes.sum(axis=1).max(initial=0) > most:
        yield "transform uses too many atoms in a sample"
    added = (product == 1) & (case.X == 0)
    if added[:, np.isinf(asked.costs[1])].any():
        yield "transform adds ones that costs forbid"
    is_exact = not asked.by_codelength and asked.search != "paper" and len(atoms) <= _BRUTE_ATOMS
    if is_exact and not {"max_atoms_per_sample", "residual_limit"} & set(given):
        errors = (case.X != product) & (case.X < UNKNOWN)
        least = _fewest_errors(case.X, atoms, model.algebra_)
        if (errors.sum(axis=1) != least).any():
            yield f"transform leaves {int(errors.sum())} cells wrong, but other codes {int(least.sum())}"


def _check_stream(case: Case, model: Any) -> Iterator[str]:
    """Yield what is wrong with the counts of a stream that forgets nothing and keeps all rows, with their codes."""
    X, state = case.X if case.weights is None else np.repeat(case.X, case.weights, axis=0), model._stream.state
    counts, codes, bias = state.counts.rounded(), state.sample.codes.to_dense(), state.bias.to_dense()[0]
    if counts.n_rows != len(X) or counts.ones.tolist() != (X == 1).sum(axis=0).tolist():
        yield "rows or ones of a stream are others"
    rows = np.where(np.isnan(cells := state.sample.rows.to_dense(float)), UNKNOWN, cells).astype(np.uint8)
    errors = (rows != _product(codes, state.atoms.to_dense(), state.algebra) ^ bias) & (rows < UNKNOWN)
    if counts.wrong.tolist() != errors.sum(axis=0).tolist() or counts.uses.tolist() != codes.sum(axis=0).tolist():
        yield "errors or uses of a stream are others"


def _differences(one: Any, other: Any, what: str) -> Iterator[str]:
    """Yield in what two results differ that must be the same."""
    if one.atoms != other.atoms or (one.bias != other.bias).any() or one.algebra != other.algebra:
        yield f"atoms, bias or algebra are other with {what}"
        return
    for name in ("wrong", "uses", "ones", "missed", "known", "saved", "complete", "lacking", "atom_known"):
        values = getattr(one, name), getattr(other, name)
        if (values[0] is None) != (values[1] is None) or (values[0] is not None and (values[0] != values[1]).any()):
            yield f"{name} is other with {what}"
    for name in ("codelength", "bits_without", "ended", "coder", "rows_hash", "n_samples", "beyond_chance"):
        if getattr(one, name) != getattr(other, name):
            yield f"{name} is {getattr(other, name)} with {what}, and not {getattr(one, name)}"


# Definitions.


def _product(codes: np.ndarray, atoms: np.ndarray, algebra: str) -> np.ndarray:
    """Return codes times atoms."""
    n_covering = codes.astype(np.int64) @ atoms.astype(np.int64)
    return ((n_covering > 0) if algebra == "or" else n_covering & 1).astype(np.uint8)


@cache
def string_bits(n: int, r: int) -> int:
    """Return the bits of a string of length n with r ones."""
    return (n - 1).bit_length() + (math.comb(n, r) - 1).bit_length() if n else 0


def _codelength(
    n: int, known: np.ndarray, wrong: np.ndarray, uses: np.ndarray, atoms: np.ndarray, bias: np.ndarray
) -> tuple[int, int, int]:
    """Return the bits of errors, codes and atoms."""
    m, n_set = len(bias), int(bias.sum())
    errors = sum(string_bits(int(k), int(e)) for k, e in zip(known, wrong, strict=True))
    codes = sum(string_bits(n, int(r)) for r in uses) + ((n - 1).bit_length() if n_set and n else 0)
    of_atoms = sum(string_bits(m, int(atom.sum())) for atom in atoms) + (string_bits(m, n_set) if n_set else 0)
    return errors, codes, of_atoms


def _parts(length: Any) -> tuple[int, int, int]:
    """Return the parts of a codelength."""
    return length.errors, length.codes, length.atoms


def _fewest_errors(X: np.ndarray, atoms: np.ndarray, algebra: str) -> np.ndarray:
    """Return the fewest errors of each row over all codes."""
    p = len(atoms)
    codes = (np.arange(1 << p)[:, np.newaxis] >> np.arange(p)) & 1
    products = _product(codes, atoms, algebra)
    return np.array([int(((products != row) & (row < UNKNOWN)).sum(axis=1).min()) for row in X], int)


# The command.


def describe(outcome: Outcome) -> str:
    """Return a failure with the command and the call that repeat it."""
    case, (seed, number) = outcome.case, outcome.case.seed
    rows = f"{case.kind} {case.X.shape[0]} x {case.X.shape[1]}, {case.source}, {case.form}"
    parameters = ", ".join(f"{name}={_shown(value)}" for name, value in case.parameters.items())
    more = (
        "".join(
            f", {name}={_shown(value)}"
            for name in ("weights", "forget", "n_batches", "stops", "resumes", "window_features", "sample_rows")
            if (value := getattr(case, name)) not in (None, 0.0, 1) or isinstance(value, np.ndarray)
        )
        if case.weights is None
        else f", weights={case.weights.tolist()}"
    )
    table = f"\n  X = {case.X.tolist()}" if case.X.size <= 120 else ""
    why = "\n  ".join(outcome.details[:4])
    return f"--seed {seed} --only {number}: {rows}{more}\n  {parameters}{table}\n  {why}"


def _shown(value: Any) -> str:
    """Return a value as Python code."""
    return repr(value.tolist()) if isinstance(value, np.ndarray) else repr(value)


def _run_number(seed: int, number: int) -> Outcome:
    return run(draw(seed, number))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; return 1 if any fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=1000, help="cases to run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument("--only", type=int, help="run this case only")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--refused", action="store_true", help="list the messages of calls that were refused")
    options = parser.parse_args(arguments)
    numbers = range(options.fits) if options.only is None else [options.only]
    seeds = [options.seed] * len(numbers)
    counts, messages, seconds, slowest = Counter[str](), Counter[str](), 0.0, (0.0, -1)
    with ProcessPoolExecutor(options.jobs) if options.jobs > 1 else _here() as pool:
        for outcome in pool.map(_run_number, seeds, numbers, **({"chunksize": 8} if options.jobs > 1 else {})):
            counts[outcome.what] += 1
            seconds += outcome.seconds
            slowest = max(slowest, (outcome.seconds, outcome.case.seed[1]))
            if outcome.what == "refused":
                messages.update(re.sub(r"\d+|'[^']*'", "#", text)[:110] for text in outcome.details)
            if outcome.what == "failed":
                print(describe(outcome), flush=True)
    for text, n in messages.most_common() if options.refused else ():
        print(f"{n:6} {text}")
    listed = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
    print(f"{sum(counts.values())} fits: {listed}; {seconds / max(1, len(numbers)):.3f} CPU s each", end="")
    print(f", at most {slowest[0]:.1f} (case {slowest[1]})")
    return int(counts["failed"] > 0)


@contextmanager
def _here() -> Iterator[Any]:
    """Stand in for a pool of processes: run in this one."""

    class Here:
        map = staticmethod(map)

    yield Here


if __name__ == "__main__":
    sys.exit(main())
