"""The bits of about fifty fits of small tables are those recorded in ``tests/data/golden_hashes.json``.

A hash covers atoms, bias, codes, counts and the codelength. After a change that alters results on purpose, run
``python tests/test_golden_hashes.py``, which records them anew and prints the cases that differ, and name these in the
commit message. Each case names its algebra and its limits, so that no hash changes with a default.
"""

import hashlib
import json
import platform
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from support.parameters import nested

RECORDED = Path(__file__).parent / "data" / "golden_hashes.json"

# Logarithms and sums differ in the last bit between kinds of processors, and a tie may then be decided otherwise.
pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="hashes are recorded on x86 processors"
)


def planted(seed, n_rows, n_cols, n_atoms, algebra, noise=0.04, density=0.2):
    """Return a table of products of random atoms and codes, and noise."""
    rng = np.random.default_rng(seed)
    atoms = rng.random((n_atoms, n_cols)) < density
    codes = rng.random((n_rows, n_atoms)) < 0.3
    sums = codes.astype(np.int64) @ atoms
    X = sums % 2 == 1 if algebra == "xor" else sums > 0
    return (X ^ (rng.random(X.shape) < noise)).astype(np.uint8)


DIGITS = ba.datasets.digits()[0][:150]
XOR = planted(0, 150, 40, 7, "xor", noise=0.08)
OR = planted(1, 140, 66, 9, "or", noise=0.08)
DENSE = 1 - planted(2, 120, 64, 6, "or", noise=0.06)
HIGH_RANK = planted(3, 100, 65, 16, "xor")
ROWS = planted(4, 1200, 33, 7, "or", noise=0.08)
NESTED = (np.add.outer(np.arange(60), np.arange(30)) % 7 < np.arange(30) % 5).astype(np.uint8)
PERMISSIONS = planted(5, 60, 24, 6, "or", noise=0)
WIDE = csr_array(planted(6, 90, 2100, 4, "or", noise=0.001, density=0.01))
UNKNOWN = np.random.default_rng(7).random(XOR.shape) < 0.1
WEIGHTS = np.arange(len(OR)) % 4
FEW = {"max_components": 24, "max_iter": 200}  # limits of searches that choose the number of atoms


def fit(X, n_components="mdl", **settings):
    """Return a task that factorizes a table."""
    limits = FEW if n_components == "mdl" else {"max_iter": 200}
    return lambda: ba.factorize(X, n_components, random_state=0, **nested(**{**limits, **settings}))


def streamed(n_components, **settings):
    """Return a task that learns from batches."""

    def task():
        model = ba.BinaryDictionaryLearning(n_components, random_state=0, **nested(**settings))
        for start in range(0, 600, 200):
            model.partial_fit(ROWS[start : start + 200])
        return model.as_model()

    return task


def coded(n_components, coder, **settings):
    """Return a task that codes other rows by the atoms of a fit."""

    def task():
        how = {"algebra": "or", "max_iter": 200, "coder": coder, "random_state": 0, **settings}
        model = ba.BinaryDictionaryLearning(n_components, **nested(**how)).fit(OR)
        return np.asarray(model.transform(1 - OR[::2])), np.asarray(model.score_samples(OR[::2]))

    return task


def baseline(name, X, **settings):
    """Return a task that fits another method."""
    return lambda: (lambda method: (method.fit_transform(X), method.components_))(
        getattr(ba.baselines, name)(4, **settings)
    )


CASES = {
    "fast, mdl, xor": fit(XOR, algebra="xor"),
    "fast, mdl, xor, digits": fit(DIGITS, algebra="xor"),
    "fast, mdl, or, digits": fit(DIGITS, algebra="or"),
    "fast, 10 atoms, xor, digits": fit(DIGITS, 10, algebra="xor"),
    "fast, 10 atoms, or, digits": fit(DIGITS, 10, algebra="or"),
    "thorough, mdl, or, digits": fit(DIGITS[:60], algebra="or", search="thorough"),
    "fast, mdl, xor, high rank": fit(HIGH_RANK, algebra="xor", max_components=40),
    "fast, mdl, xor, mostly ones": fit(DENSE, algebra="xor"),
    "fast, mdl, xor, without bias": fit(DENSE, algebra="xor", bias=False),
    "fast, mdl, xor, unknown cells": fit(XOR, algebra="xor", mask=~UNKNOWN),
    "fast, mdl, xor, 2 starts, at most 3 atoms per row": fit(XOR, algebra="xor", n_init=2, max_atoms_per_sample=3),
    "fast, mdl, xor, beam": fit(XOR, algebra="xor", coder="beam"),
    "fast, mdl, xor, 3 rounds": fit(XOR, algebra="xor", max_iter=3),
    "fast, mdl, xor, from given atoms": fit(XOR, algebra="xor", init=XOR[:6]),
    "fast, mdl, xor, fixed atoms": fit(XOR, algebra="xor", fixed_atoms=XOR[:2]),
    "fast, mdl, or": fit(OR, algebra="or"),
    "fast, mdl, or, stretches": fit(NESTED, algebra="or"),
    "fast, mdl, or, weights": fit(OR, algebra="or", sample_weight=WEIGHTS),
    "fast, mdl, or, unknown cells, weights": fit(
        OR, algebra="or", mask=OR[::-1, ::-1] == 0, sample_weight=WEIGHTS, max_components=4
    ),
    "fast, mdl, or, at most 9 columns per atom": fit(OR, algebra="or", max_features_per_atom=9),
    "fast, mdl, or, at least 50 rows per atom": fit(OR, algebra="or", min_samples_per_atom=50),
    "fast, mdl, or, apart and together": fit(OR, algebra="or", apart=[[0, 1], [2, 3]], together=[[4, 5]]),
    "fast, mdl, or, sparse": fit(csr_array(OR), algebra="or"),
    "fast, mdl, or, windows": fit(WIDE, algebra="or", max_components=8),
    "fast, mdl, or preferred": fit(XOR, algebra="auto"),
    "fast, mdl, xor, sample of rows": fit(ROWS, algebra="xor", search_rows=300),
    "fast, 5 atoms, xor": fit(XOR, 5, algebra="xor"),
    "fast, 12 atoms, xor": fit(HIGH_RANK, 12, algebra="xor"),
    "fast, 66 atoms, or, digits": fit(DIGITS[:80], 66, algebra="or", max_iter=20),
    "fast, 5 atoms, or": fit(OR, 5, algebra="or"),
    "fast, 5 atoms, or, unknown cells": fit(XOR, 5, algebra="or", mask=~UNKNOWN),
    "fast, 6 atoms, or, codelength": fit(OR, 6, algebra="or", objective="codelength"),
    "fast, 5 atoms, or, missed ones cost 3": fit(OR, 5, algebra="or", false_negative_cost=3),
    "fast, 5 atoms, or, no invented ones": fit(OR, 5, algebra="or", false_positive_cost=np.inf),
    "fast, 4 atoms, xor, at most 2 per row": fit(XOR, 4, algebra="xor", max_atoms_per_sample=2),
    "fast, 4 atoms, or, weights": fit(OR, 4, algebra="or", sample_weight=WEIGHTS),
    "fast, 4 atoms, or, sample of rows": fit(ROWS, 4, algebra="or", search_rows=300),
    "thorough, mdl, xor": fit(XOR[:80], algebra="xor", search="thorough"),
    "thorough, mdl, or": fit(OR[:80, :40], algebra="or", search="thorough"),
    "thorough, 6 atoms, or": fit(OR[:80], 6, algebra="or", search="thorough"),
    "anytime, mdl, xor, 3 rounds": fit(XOR[:80], algebra="xor", search="anytime", max_iter=3),
    "paper, mdl, xor": fit(XOR, algebra="xor", search="paper"),
    "paper, mdl, xor, k-prox": fit(XOR, algebra="xor", search="paper", update="k-prox"),
    "paper, 6 atoms, or": fit(OR, 6, algebra="or", search="paper"),
    "paper, 4 atoms, xor, greedy, bernoulli": fit(
        XOR, 4, algebra="xor", search="paper", coder="greedy", init="bernoulli", init_density=0.3
    ),
    "paper, 4 atoms, xor, exact": fit(XOR, 4, algebra="xor", search="paper", coder="exact"),
    "proximus, xor": lambda: ba.proximus(XOR, radius=6, random_state=0),
    "stream, mdl, xor": streamed("mdl", algebra="xor", max_components=24),
    "stream, 4 atoms, or, forget": streamed(4, algebra="or", forget=1e-3),
    **{f"codes, 8 atoms, or, {coder}": coded(8, coder, search="paper") for coder in ("bmp", "greedy", "exact")},
    **{f"codes, mdl, or, {coder}": coded("mdl", coder, max_components=24) for coder in ("mdl", "beam")},
    "codes, mdl, or, at most 2 per row": coded("mdl", "mdl", max_components=24, max_atoms_per_sample=2),
    **{
        f"cover, {objective}, 20 rounds": lambda objective=objective: ba.cover(
            PERMISSIONS, objective=objective, max_iter=20, random_state=0
        )
        for objective in ("roles", "assignments", "codelength")
    },
    "cover, assignments, at most 6 columns, direct grants, 20 rounds": lambda: ba.cover(
        PERMISSIONS, objective="assignments", max_features_per_atom=6, direct_weight=2, max_iter=20, random_state=0
    ),
    "cover, roles, 3 pairs apart, 20 rounds": lambda: ba.cover(
        PERMISSIONS, apart=[[0, 1], [2, 3], [4, 5]], max_iter=20, random_state=0
    ),
    "baseline GreConD": baseline("GreConD", OR),
    "baseline Asso": baseline("Asso", OR),
    "baseline PandaPlus": baseline("PandaPlus", OR, random_state=0),
    "baseline Proximus": baseline("Proximus", XOR, random_state=0),
}


def digest(found):
    """Return a short hash of the bits and counts of a result."""
    state = hashlib.blake2b(digest_size=8)
    for part in parts(found):
        array = np.ascontiguousarray(part)
        if array.dtype.kind == "f":  # codelengths are sums of logarithms
            array = np.array([f"{value:.9g}" for value in array.ravel()])
        elif array.dtype.kind in "biu":
            array = array.astype(np.int64)
        state.update(f"{array.shape} ".encode() + array.tobytes())
    return state.hexdigest()


def parts(found):
    """Yield the arrays and numbers of a result: atoms, bias, codes, counts, codelength."""
    if isinstance(found, tuple):
        yield from found
    elif isinstance(found, ba.Cover):
        yield from (found.atoms.to_dense(), found.codes.to_dense(), [found.cost])
    else:
        codes = found.codes.to_dense() if isinstance(found, ba.Factorization) else found.uses
        yield from (found.atoms.to_dense(), found.bias, codes)
        yield from (counts for counts in (found.wrong, found.saved, found.ones, found.missed) if counts is not None)
        length = found.codelength
        yield [length.errors, length.codes, length.atoms]


def compute(name):
    """Return the hash of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return digest(CASES[name]())


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_those_recorded(name):
    assert compute(name) == json.loads(RECORDED.read_text()).get(name), "another result: see the top of this module"


def test_each_recorded_hash_is_compared():
    assert sorted(json.loads(RECORDED.read_text())) == sorted(CASES)


if __name__ == "__main__":
    before = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    hashes = {name: compute(name) for name in CASES}
    RECORDED.write_text(json.dumps(hashes, indent=1) + "\n")
    sys.stdout.writelines(f"{name}\n" for name in hashes if before.get(name) != hashes[name])
