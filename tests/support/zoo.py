"""Fitted models that tests share: one of each kind, with its table, fitted once per process.

They are found with a small plan, whatever budget the test that asks first has set, so that they do not depend on the
order of tests. Nothing may change them: their arrays are read-only, and a test that fits again makes its own estimator.
"""

import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.columns.table import Picture, Table
from bitatoms.html.tables import DataTable
from bitatoms.search.plan import PLANS
from support.bundles import table_with_bundles
from support.plans import use_one_start, use_small_cover_plan

WEIGHTS = np.random.default_rng(0).permutation(60)
_PLANS = dict(PLANS)  # before any test changes them


class Specimen(NamedTuple):
    """A model (of roles: a cover), and the table that it was fitted on."""

    model: object
    table: Table


def _learn(table, n_components="mdl", sample_weight=None, **params):
    model = ba.BinaryDictionaryLearning(n_components, random_state=0, **{"algebra": "xor", **params})
    return Specimen(model.fit(table, sample_weight=sample_weight), table)


def _named(bits, kind):
    bits = ba.BitMatrix.from_dense(bits) if isinstance(bits, np.ndarray) else bits
    return Table(bits, [f"{kind} {n}" for n in range(bits.n_rows)], [f"item {n}" for n in range(bits.n_cols)])


def _or_bits():
    how = {"algebra": "or", "code_density": 0.3, "atom_density": 0.15, "noise": 0.02, "random_state": 0}
    return ba.datasets.planted(300, 40, 5, **how).X


def _or():
    """Baskets with names; five atoms, no bias. XOR was searched, too."""
    return _learn(_named(_or_bits(), "basket"), algebra="auto")


def _xor():
    """Pictures of 8 x 8 pixels, without names; ten atoms, and a bias."""
    return _learn(Table(ba.BitMatrix.from_dense(ba.datasets.digits()[0][:300]), picture=Picture((8, 8))))


def _unknown():
    """The baskets of "or" with a tenth of their cells unknown."""
    X = _or_bits()
    hidden = ba.BitMatrix.from_dense(np.random.default_rng(0).random(X.shape) < 0.1)
    return _learn(_named(ba.BitMatrix.from_dense(X).with_unknown(hidden), "person"), algebra="or")


def _customers():
    return ba.datasets.customers(150, random_state=0)


def _categories():
    """Customers with encoded variables, some of their values missing; four atoms."""
    return _learn(ba.encode(_customers()), 4, algebra="or")


def _genotypes():
    """Dosages with positions of variants and populations of samples; six atoms."""
    return _learn(ba.datasets.genotypes(60, 40, random_state=0), 6, algebra="or")


def _weights():
    """Sixty rows with the weights `WEIGHTS`."""
    X = ba.datasets.planted(60, 12, 3, code_density=0.4, noise=0.02, random_state=0).X
    return _learn(_named(X, "row"), sample_weight=WEIGHTS, algebra="auto")


def _sparse():
    """A wide table of few ones with eight bundles of columns, without names."""
    return _learn(Table.from_any(csr_array(table_with_bundles())), algebra="or")


def _roles():
    """A cover of the permissions of users by roles."""
    table = ba.datasets.permissions(100)
    return Specimen(ba.cover(table, max_iter=1, random_state=0), table)


_ALL = (_or, _xor, _unknown, _categories, _genotypes, _weights, _sparse, _roles)
_MAKERS = {maker.__name__[1:]: maker for maker in _ALL}
MODELS = tuple(name for name in _MAKERS if name != "roles")


@cache
def specimen(name):
    """Return a model and its table: "or", "xor", "unknown", "categories", "genotypes", "weights", "sparse", "roles"."""
    with pytest.MonkeyPatch.context() as patch:
        for search, plan in _PLANS.items():
            patch.setitem(PLANS, search, plan)
        use_one_start(patch)
        use_small_cover_plan(patch)
        found = _MAKERS[name]()
    for value in vars(found.model).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return found


@cache
def _files(name):
    """Return the contents of a specimen's files by their names."""
    model, table = specimen(name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if name == "categories":
            values = _customers()
            DataTable(tuple(values), zip(*values.values(), strict=True)).write(folder / "table.csv")
        else:
            ba.write(table, folder / ("table.npz" if name in ("genotypes", "sparse") else "table.csv"))
        if name == "roles":
            ba.write(Table(model.atoms, None, table.columns), folder / "roles.csv")
        else:
            model.save(folder / "model.npz")
        if name == "weights":
            header, *lines = (folder / "table.csv").read_text().splitlines()
            lines = [f"{line},{weight}" for line, weight in zip(lines, WEIGHTS, strict=True)]
            (folder / "table.csv").write_text("\n".join([f"{header},count", *lines]) + "\n")
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def put(name, folder):
    """Write the files of a specimen into a folder: ``model.npz`` and ``table.csv``; return the specimen.

    Genotypes and the sparse table are in ``table.npz``. Customers are written as they are before they are encoded, and
    weights in the column ``count``. In place of a model, ``roles.csv`` has the roles.
    """
    for file, content in _files(name).items():
        (folder / file).write_bytes(content)
    return specimen(name)
