"""The data that the script of a report explores: the packed model, some of the rows, and counts of all rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...html.text import printable, truncated
from ...model.model import number_or_none
from ...sparse_bits import packed
from ..data import ReportData
from ..genome import positions_of
from .ordering import block_orders, shared_ones
from .packing import base64_bits, base64_numbers

MAX_ROWS = 10_000  # in a page, unless a number is asked for
MAX_FEATURES = 5_000  # in a page, unless the atoms have more
MAX_MAPPED = 500  # atoms on the map, and with counts of rows that use two of them
_MAX_ROWS_SIZE = 2_500_000  # characters of all rows, unless a number of rows is asked for
_MAX_MODEL_SIZE = 2_000_000  # bytes of all atoms; larger models are not explored
_CHARACTERS_PER_BYTE = 4 / 3  # of base64
_PLACES = 1_000_000  # a position along the genome is an integer up to this


class Contents(NamedTuple):
    """The features and the rows that a page contains, as ascending indices."""

    features: NDArray[np.intp]
    rows: NDArray[np.intp]


def contents_of(data: ReportData) -> Contents | None:
    """Choose what a page contains; None if the model is too large to be explored in a page.

    Where the table has many rows, they are drawn at random, besides those that other sections show.
    """
    in_use = np.flatnonzero((data.model.atoms.column_weights() > 0) | (data.model.bias > 0))
    if data.n_atoms * len(in_use) > 8 * _MAX_MODEL_SIZE:
        return None
    features = np.arange(data.n_features)
    if data.n_features > MAX_FEATURES:
        others = np.argsort(-data.ones, kind="stable")
        others = others[~np.isin(others, in_use)][: max(0, MAX_FEATURES - len(in_use))]
        features = np.sort(np.concatenate([in_use, others]))
    return Contents(features, _rows(data, len(features)))


def embedded_data(data: ReportData, contents: Contents) -> dict[str, Any]:
    """Return the data of the script as JSON values."""
    features, rows = contents
    atoms = packed(data.model.atoms.take_columns(features))
    codes = data.codes[rows]
    orders = block_orders(atoms, codes)
    return {
        "shape": [data.n_rows, data.n_features, data.n_atoms],
        "features": _features(data, features),
        "atoms": _atoms(data, atoms),
        "rows": _rows_data(data, contents),
        "coder": _coder(data, features),
        "cells": _cell_counts(data),
        "together": base64_numbers(_together(data)),
        "mapped": min(data.n_atoms, MAX_MAPPED),
        "order": {
            "atoms": base64_numbers(orders.atoms),
            "features": base64_numbers(orders.features),
            "rows": base64_numbers(orders.rows),
        },
        "picture": None if data.picture is None else list(data.picture.tile),
        "genome": _genome(data, features),
    }


def _rows(data: ReportData, n_features: int) -> NDArray[np.intp]:
    """Return the rows to embed: those that are shown elsewhere first, then others at random."""
    limit = data.max_rows
    if limit is None:
        n_bytes = -(-n_features // 8) * (2 if data.table.data.n_unknown else 1) + -(-data.n_atoms // 8)
        names = data.table.row_names
        n_name = 0 if names is None else 3 + sum(len(truncated(name)) for name in names[:1000]) / len(names[:1000])
        limit = min(MAX_ROWS, int(_MAX_ROWS_SIZE / (n_bytes * _CHARACTERS_PER_BYTE + n_name)))
    if data.n_rows <= limit:
        return np.arange(data.n_rows)
    shown = dict.fromkeys([*data.chosen, *data.worst, *data.examples.T.ravel().tolist()])
    shown.pop(-1, None)
    drawn = np.random.default_rng(0).permutation(data.n_rows)
    first = np.array([*shown][:limit], np.intp)
    others = drawn[~np.isin(drawn, first)][: limit - len(first)]
    return np.sort(np.concatenate([first, others]))


def _names(names: Any) -> list[str]:
    """Return names as the page shows them."""
    return [printable(truncated(name)) for name in names]


def _features(data: ReportData, features: NDArray[np.intp]) -> dict[str, Any]:
    """Return the names of features and their counts in all rows."""
    return {
        "indices": base64_numbers(features),
        "names": None if data.columns is None else _names(data.names_of(features)),
        "bias": base64_numbers(data.model.bias[features]),
        "ones": base64_numbers(data.ones[features]),
        "known": base64_numbers(data.n_known[features]),
        "missed": base64_numbers(data.missed[features]),
        "invented": base64_numbers(data.invented[features]),
    }


def _atoms(data: ReportData, atoms: BitMatrix) -> dict[str, Any]:
    """Return the atoms with their counts in all rows; ``coded`` are the rows that use them by the codes shown."""
    return {
        "bits": base64_bits(atoms),
        "uses": base64_numbers(data.uses),
        "coded": base64_numbers(data.codes.column_weights()),
        "complete": base64_numbers(data.complete),
        "lift": [number_or_none(round(float(lift), 4)) for lift in data.lifts.whole],
        "saved": None if data.model.saved is None else data.model.saved.tolist(),  # may be negative
    }


def _rows_data(data: ReportData, contents: Contents) -> dict[str, Any]:
    """Return some rows: cells, codes, names and groups."""
    features, rows = contents
    own = data.table.data[rows].take_columns(features)
    unknown = own.unknown
    groups = data.groups
    return {
        "indices": base64_numbers(rows),
        "names": None if data.table.row_names is None else _names(data.table.row_names[row] for row in rows),
        "bits": base64_bits(own.filled()),
        "unknown": None if unknown is None or not own.n_unknown else base64_bits(unknown),
        "codes": base64_bits(data.codes[rows]),
        "wrong": base64_numbers(data.errors.row_weights()[rows]),
        "tenths": base64_numbers(np.rint(10 * data.row_bits[rows])),  # tenths of bits
        "groups": None if groups is None else base64_numbers(groups.numbers[rows]),
        "groupNames": None if groups is None else _names(groups.names),
    }


def _coder(data: ReportData, features: NDArray[np.intp]) -> dict[str, Any]:
    """Return all that coding a row needs besides the atoms, and the counts by which the bits of a row are computed."""
    model, rule = data.model, data.model.greedy_rule
    assert rule.prices is not None
    prices, n_atoms = rule.prices, data.n_atoms
    forbidden = np.zeros(data.n_features, np.uint8)
    if len(prices.forbidden):
        forbidden = BitMatrix.from_words(prices.forbidden[np.newaxis].copy(), data.n_features, check=False)[0]
    return {
        "covers": model.algebra == "or",
        "missed": base64_numbers(prices.bits[features]),
        "added": base64_numbers((prices.added if prices.own_costs() else prices.bits)[features]),
        "forbidden": base64_numbers(forbidden[features]),
        "uses": base64_numbers(prices.uses[:n_atoms]),
        "maxAtoms": model.max_atoms_per_sample,
        "residualLimit": rule.residual_limit,
        "samples": model.n_samples,
        "wrong": base64_numbers(model.wrong[features]),
        "known": base64_numbers(model.n_known[features]),
        "used": base64_numbers(model.uses),
        "restBits": _bits_of_other_columns(data, features),
    }


def _bits_of_other_columns(data: ReportData, features: NDArray[np.intp]) -> float:
    """Return the bits of the columns that the page does not contain, in a row in which they are zeros."""
    others = np.ones(data.n_features, bool)
    others[features] = False
    return float(data.model.bits_if_right[others].sum())


def _cell_counts(data: ReportData) -> dict[str, Any]:
    """Return, for each feature of each atom, the number of its users in which it is missed, invented and unknown."""
    missed, wrong, unknown = data.cells_of_atoms
    return {
        "missed": base64_numbers(missed),
        "invented": base64_numbers(wrong - missed),
        "unknown": None if unknown is None else base64_numbers(unknown),
    }


def _together(data: ReportData) -> NDArray[np.int32]:
    """Return the number of rows that use two atoms, for each pair of the first atoms."""
    shared = shared_ones(data.codes.T[:MAX_MAPPED])
    return shared[np.triu_indices(len(shared), 1)]


def _genome(data: ReportData, features: NDArray[np.intp]) -> dict[str, Any] | None:
    """Return where on the genome features are, in words and as integers, and where chromosomes begin."""
    found = positions_of(data)
    if found is None:
        return None
    return {
        "where": [found.where[feature] for feature in features],
        "places": base64_numbers(np.rint(_PLACES * found.places[features])),
        "edges": base64_numbers(np.rint(_PLACES * np.array(found.edges))),
    }
