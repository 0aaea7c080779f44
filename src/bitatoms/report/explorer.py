"""The section to explore a result: views that the script of the page fills, and the data that it explores.

The data are the packed model, some of the rows, and counts of all rows. Arrays are bits and integers in base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bits import BitMatrix
from ..html.document import Section, section
from ..html.text import format_count, pluralize, printable, truncated
from ..model.patterns import number_or_none
from ..sparse_bits import Bits, packed
from .data import ReportData
from .genome import positions_of
from .ordering import block_orders, shared_ones

_VIEWS = (
    ("patterns", "Patterns"),
    ("rows", "Rows"),
    ("features", "Features"),
    ("code", "Code a row"),
    ("matrix", "Matrix"),
)
_VIEWS_OF_ROWS = ("rows", "matrix")
MAX_ROWS = 10_000  # in a page, unless a number is asked for
MAX_FEATURES = 5_000  # in a page, unless the atoms have more
MAX_PAIRED = 500  # atoms with counts of rows that use two of them
_MAX_ROWS_SIZE = 2_500_000  # characters of all rows, unless a number of rows is asked for
_MAX_MODEL_SIZE = 2_000_000  # bytes of all atoms; larger models are not explored
_CHARACTERS_PER_BYTE = 4 / 3  # of base64
_PLACES = 1_000_000  # a position along the genome is an integer up to this
_MAX_LIFT = 1e12  # of a feature; its thousandths are integers that the script reads exactly
_CHUNK_ROWS = 256  # of a sparse matrix that are packed together
_BITS_PER_BYTE = 7  # of a number; the eighth tells that another byte follows


def explorer_section(data: ReportData) -> Section:
    """Return the section with the views, and the data that the script explores."""
    contents = contents_of(data)
    if contents is None:
        size = f"{pluralize(data.n_atoms, 'pattern')} of {format_count(data.n_features)} features"
        return section("explore", "Explore", f"<p>The model, {size}, is too large to be explored in a page.</p>")
    views = [view for view in _VIEWS if data.shows_rows or view[0] not in _VIEWS_OF_ROWS]
    tabs = "".join(
        f'<button type="button" role="tab" id="tab-{name}" data-view="{name}" aria-controls="view-{name}" '
        f'aria-selected="false" tabindex="-1">{title}</button>'
        for name, title in views
    )
    panels = "".join(
        f'<div role="tabpanel" id="view-{name}" aria-labelledby="tab-{name}" hidden></div>' for name, _ in views
    )
    notes = "".join(f'<p class="note">{note}</p>' for note in _notes(data, contents))
    body = f"""<p>{_introduction(data)}</p>
{notes}
<noscript><p>The views need JavaScript, which this browser does not run. The other sections do not.</p></noscript>
<div id="explorer" hidden>
<div role="tablist" aria-label="Views" class="tabs">{tabs}</div>
<div class="panes"><div class="views">{panels}</div>
<div class="detail" id="detail" role="region" aria-label="Selected"></div></div>
<p id="said" role="status" class="unseen"></p>
</div>
<script type="application/json" id="data">{script_json(embedded_data(data, contents))}</script>"""
    return section("explore", "Explore", body)


def _introduction(data: ReportData) -> str:
    """Explain what can be selected."""
    rows = (
        "Select a pattern to see the rows behind it and the cells that it gets right and wrong, a row to see the "
        "patterns that make it up and what is left over, a feature to see its patterns."
        if data.shows_rows
        else "Select a pattern to see the cells that it gets right and wrong, a feature to see its patterns."
    )
    return f"{rows} Any row can be typed and coded. Nothing leaves this page."


def _notes(data: ReportData, contents: Contents) -> list[str]:
    """Return what the page leaves out, and which codes it shows."""
    notes = []
    n_rows, n_features = len(contents.rows), len(contents.features)
    if not data.shows_rows:
        notes.append("The page contains no single rows, only counts.")
    elif n_rows < data.n_rows:
        notes.append(
            f"The page contains {format_count(n_rows)} of the {format_count(data.n_rows)} rows, drawn at random "
            "besides those that other sections name. Counts are of all rows, unless a view names the rows of this page."
        )
    if n_features < data.n_features:
        notes.append(
            f"The views have {format_count(n_features)} of the {format_count(data.n_features)} features: all that "
            "patterns have, and the most frequent of the others."
        )
    if data.n_atoms > MAX_PAIRED:
        notes.append(f"Rows that use two patterns are counted for the first {MAX_PAIRED} patterns.")
    if data.n_atoms and data.shows_rows:
        notes.append(_codes_note(data))
    return notes


def _codes_note(data: ReportData) -> str:
    """State where the codes of the rows come from."""
    if data.has_codes_of_fit:
        return "Rows are shown with the patterns that the fit gave them."
    if data.is_training_table:
        return (
            "Rows are shown with the patterns that <code>transform</code> gives them, since the model does not hold "
            "the codes of its fit; a few rows may differ from it."
        )
    return "Rows are shown with the patterns that <code>transform</code> gives them."


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
    """Return the data of the script: JSON values, and arrays of bits and integers."""
    features, rows = contents
    atoms, codes = packed(data.model.atoms.take_columns(features)), data.codes[rows]
    orders = block_orders(atoms, codes)
    shared = shared_ones(data.codes.T[:MAX_PAIRED])
    return {
        "shape": [data.n_rows, data.n_features, data.n_atoms],
        "features": _features(data, features),
        "atoms": _atoms(data, atoms),
        "rows": _rows_data(data, contents, codes),
        "coder": _coder(data, features),
        "cells": data.cells_of_atoms,
        "together": shared[np.triu_indices(len(shared), 1)],  # rows that use both atoms of each pair
        "paired": len(shared),
        "order": {"features": orders.features, "rows": orders.rows},
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


def _names(names: Iterable[str] | None) -> list[str] | None:
    """Return names as the page shows them."""
    return None if names is None else [printable(truncated(name)) for name in names]


def _features(data: ReportData, features: NDArray[np.intp]) -> dict[str, Any]:
    """Return the names of features and their counts in all rows."""
    counts = {"ones": data.ones, "known": data.n_known, "missed": data.missed, "invented": data.invented}
    return {
        "indices": features,
        "names": None if data.columns is None else _names(data.names_of(features)),
        "bias": data.model.bias[features],
        **{name: numbers[features] for name, numbers in counts.items()},
    }


def _atoms(data: ReportData, atoms: BitMatrix) -> dict[str, Any]:
    """Return the atoms with their counts in all rows; ``coded`` are the rows that use them by the codes shown.

    The lifts of features, atom after atom, are integers: thousandths, 0 where a lift is unknown.
    """
    recurrence, saved = data.model.recurrence, data.model.saved
    return {
        "bits": atoms,
        "uses": data.uses,
        "coded": data.codes.column_weights(),
        "complete": data.complete,
        "expected": [float(f"{expected:.4g}") for expected in data.lifts.expected],
        "lift": [number_or_none(round(float(lift), 4)) for lift in data.lifts.whole],
        "memberLifts": np.rint(1000 * np.nan_to_num(data.lifts.members).clip(0, _MAX_LIFT)),
        "recurs": None if recurrence is None else recurrence.shares.tolist(),
        "saved": None if saved is None else saved.tolist(),  # may be negative
    }


def _rows_data(data: ReportData, contents: Contents, codes: BitMatrix) -> dict[str, Any]:
    """Return some rows: cells, codes, names and groups."""
    features, rows = contents
    own, groups, names = data.table.data[rows].take_columns(features), data.groups, data.table.row_names
    return {
        "indices": rows,
        "names": _names(names and [names[row] for row in rows]),
        "bits": own.filled(),
        "unknown": own.unknown if own.n_unknown else None,
        "codes": codes,
        "wrong": data.errors.row_weights()[rows],
        "tenths": np.rint(10 * data.row_bits[rows]),  # tenths of bits
        "groups": None if groups is None else groups.numbers[rows],
        "groupNames": _names(groups and groups.names),
    }


def _coder(data: ReportData, features: NDArray[np.intp]) -> dict[str, Any]:
    """Return all that coding a row needs besides the atoms, and the counts by which the bits of a row are computed."""
    model, rule = data.model, data.model.greedy_rule
    assert rule.prices is not None
    prices = rule.prices
    forbidden = np.zeros(data.n_features, np.uint8)
    if len(prices.forbidden):
        forbidden = BitMatrix.from_words(prices.forbidden[np.newaxis].copy(), data.n_features, check=False)[0]
    return {
        "covers": model.algebra == "or",
        "missed": prices.bits[features],
        "added": (prices.added if prices.own_costs() else prices.bits)[features],
        "forbidden": forbidden[features],
        "uses": prices.uses[: data.n_atoms],
        "maxAtoms": model.max_atoms_per_sample,
        "residualLimit": rule.residual_limit,
        "samples": model.n_samples,
        "wrong": model.wrong[features],
        "known": model.n_known[features],
        "used": model.uses,
        # Of the columns that the page does not contain, in a row in which they are zeros
        "restBits": float(np.delete(model.bits_if_right, features).sum()),
    }


def _genome(data: ReportData, features: NDArray[np.intp]) -> dict[str, Any] | None:
    """Return where on the genome features are, in words and as integers."""
    found = positions_of(data)
    if found is None:
        return None
    return {
        "where": [found.where[feature] for feature in features],
        "places": np.rint(_PLACES * found.places[features]),
    }


def base64_bits(bits: Bits) -> str:
    """Return the rows of a matrix without unknown cells, each from a new byte, the first column in the lowest bit."""
    chunks = (packed(bits[start : start + _CHUNK_ROWS]).to_bytes() for start in range(0, bits.n_rows, _CHUNK_ROWS))
    return base64.b64encode(b"".join(chunks)).decode("ascii")


def base64_numbers(numbers: ArrayLike) -> str:
    """Return integers from 0 as variable-length bytes: seven bits each, the lowest first."""
    return base64.b64encode(_variable_length(np.asarray(numbers, np.int64).ravel()).tobytes()).decode("ascii")


def script_json(value: object) -> str:
    """Return JSON without any character that could end a script element; arrays are text in base64."""
    text = json.dumps(value, separators=(",", ":"), default=_base64)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _base64(array: Bits | NDArray[Any]) -> str:
    """Return bits, or integers from 0, as text."""
    return base64_numbers(array) if isinstance(array, np.ndarray) else base64_bits(array)


def _variable_length(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the bytes of integers from 0, one number after the other."""
    lengths, rest = np.ones(len(numbers), np.int64), numbers >> _BITS_PER_BYTE
    while rest.any():
        lengths += rest > 0
        rest = rest >> _BITS_PER_BYTE
    starts = np.cumsum(lengths) - lengths
    encoded = np.empty(int(lengths.sum()), np.uint8)
    for place in range(int(lengths.max(initial=0))):
        own = lengths > place
        low = numbers[own] >> (_BITS_PER_BYTE * place) & 127
        encoded[starts[own] + place] = low | np.where(lengths[own] > place + 1, 128, 0)
    return encoded
