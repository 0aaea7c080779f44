"""The check of every result before it is returned: is it what was asked for, and do its figures agree?

It looks at atoms, codes and counts, not at the rows, so that it takes next to no time, wherever the rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from ..bits import BitMatrix
from ..engine.codelength import string_bits
from ..engine.objective import mostly_wrong
from ..errors import InternalError
from ..model.result import Factorization, ResultBase
from .monitor import CONVERGED
from .params import SearchParams

AnyResult = TypeVar("AnyResult", bound=ResultBase)


def verified(
    result: AnyResult, params: SearchParams, n_rows: int, n_features: int, of_stream: bool = False
) -> AnyResult:
    """Return a result of a table of this shape; raise InternalError if it is not what the parameters ask for.

    In a stream, rows of earlier batches keep their codes when atoms change. Infinite costs do not hold for them.
    """
    checks = (_shapes, _counts, _bias, _atoms, _codes)
    for check in checks if of_stream else (*checks, _errors):
        for violation in check(result, params, n_rows, n_features):
            raise InternalError(violation)
    return result


def _shapes(result: ResultBase, params: SearchParams, n_rows: int, n_features: int) -> Iterator[str]:
    """Yield which parts of a result do not have the shape of the table, or of each other."""
    p, m = result.atoms.n_rows, n_features
    expected = {"bias": m, "wrong": m, "ones": m, "missed": m, "known": m, "uses": p, "saved": p, "complete": p}
    if result.atoms.n_cols != m:
        yield f"the atoms have {result.atoms.n_cols} features, and the table {m}"
    for name, length in (expected | {"atom_known": p}).items():
        array = getattr(result, name)
        if array is not None and array.shape != (length,):
            yield f"{name} has shape {array.shape}, not ({length},)"
    if result.n_samples > n_rows or (result.n_samples < n_rows and result.ended == CONVERGED):
        yield f"the result is about {result.n_samples} of {n_rows} samples"
    if isinstance(result, Factorization):
        n_coded = result.n_samples if result.sample_weight is None else len(result.sample_weight)
        if result.codes.shape != (n_coded, p):
            yield f"the codes have shape {result.codes.shape}, not {(n_coded, p)}"
    if result.remembered is not None and result.remembered.n_cols != p:
        yield f"remembered codes have {result.remembered.n_cols} atoms, not {p}"


def _counts(result: ResultBase, params: SearchParams, n_rows: int, n_features: int) -> Iterator[str]:
    """Yield which figures of a result contradict each other."""
    n, n_known, wrong, uses = result.n_samples, result.n_known, result.wrong, result.uses
    if (wrong < 0).any() or (wrong > n_known).any():
        yield "a feature is wrong in more samples than know it"
    if (uses < 0).any() or (uses > n).any():
        yield "an atom has more users than there are samples"
    length = params.atom_code.codelength(n, wrong, uses, result.atoms, int(result.bias.sum()), n_known)
    if length != result.codelength:
        yield f"the codelength is {length}, and not {result.codelength}"
    if result.ones is None or result.missed is None:
        return
    if (result.missed > np.minimum(result.ones, wrong)).any() or (wrong - result.missed > n_known - result.ones).any():
        yield "more ones are missed, or added, than there are"
    without = int(string_bits(n_known, result.ones).sum())
    if result.bits_without not in (None, without):
        yield f"the table takes {without} bits without atoms, and not {result.bits_without}"


def _errors(result: ResultBase, params: SearchParams, n_rows: int, n_features: int) -> Iterator[str]:
    """Yield which errors of a result infinite costs forbid."""
    if not params.costs or result.missed is None:
        return
    if (result.wrong - result.missed)[np.isinf(params.costs.added)].any():
        yield "ones are added that false_positive_cost forbids to add"


def _bias(result: ResultBase, params: SearchParams, n_rows: int, n_features: int) -> Iterator[str]:
    """Yield what is wrong with the algebra and the bias of a result."""
    if result.algebra not in params.algebras:
        yield f"the algebra is {result.algebra}, and not {' or '.join(params.algebras)}"
    if (result.bias > 1).any():
        yield "the bias does not consist of 0 and 1"
    if not params.in_algebra(result.algebra).settles_bias:
        if result.bias.any():
            yield "a bias was learned, although there must be none"
        return
    is_wrong = mostly_wrong(result.n_known, result.wrong)
    if params.is_wide(n_features):  # nothing is searched in windows without atoms
        is_wrong &= result.atoms.column_weights() > 0
    if is_wrong.any():
        yield "a feature is wrong in most samples, and the bias does not take it"


def _atoms(result: ResultBase, params: SearchParams, n_rows: int, n_features: int) -> Iterator[str]:
    """Yield what is wrong with the atoms of a result: fixed ones, their number, and the limits of others."""
    atoms, uses, n_fixed, p = result.atoms, result.uses, params.n_fixed, result.atoms.n_rows
    if isinstance(atoms, BitMatrix) and not _is_valid(atoms):
        yield "atoms have features that the table does not have, or that are unknown"
    if n_fixed and (p < n_fixed or atoms[:n_fixed] != params.fixed_atoms):
        yield "the fixed atoms are not the first atoms"
    for name in ("n_components", "max_components"):
        most = getattr(params, name)
        if most not in (None, "mdl") and p > most and (name == "n_components" or params.n_components == "mdl"):
            yield f"there are {p} atoms, more than {name}={most}"
    learned, limits = atoms[n_fixed:], params.limits.of_share(result.n_samples / max(1, n_rows))
    if not limits.allows(learned).all():
        yield "a learned atom is not within max_features_per_atom, apart and together"
    if not limits.has_enough_users(uses[n_fixed:]).all():
        yield f"a learned atom has fewer users than min_samples_per_atom={limits.min_samples}"
    min_users = params.plan.of_share(result.n_samples / max(1, n_rows)).min_users
    if (uses[n_fixed:] < min_users).any():
        yield f"a learned atom has fewer than {min_users} users"
    is_empty = (uses[n_fixed:] == 0) | (learned.row_weights() == 0)
    if result.ended == CONVERGED and params.search != "paper" and is_empty.any():
        yield "a learned atom has no features, or no sample uses it"


def _codes(result: ResultBase, params: SearchParams, n_rows: int, n_features: int) -> Iterator[str]:
    """Yield what is wrong with the codes of a result, if it has any."""
    if not isinstance(result, Factorization):
        return
    if not _is_valid(result.codes):
        yield "codes use atoms that do not exist, or are unknown"
    most = params.max_atoms_per_sample
    if most is not None and result.codes.row_weights().max(initial=0) > most:
        yield f"a sample uses more atoms than max_atoms_per_sample={most}"


def _is_valid(bits: BitMatrix) -> bool:
    """Return whether all bits are known, and all past the last column zero."""
    n_last = bits.n_cols % 64
    return not bits.n_unknown and not (n_last and (bits.words[:, -1] >> np.uint64(n_last)).any())
