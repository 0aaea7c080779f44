"""The section to explore a result: views that the script of the page fills, and the data that it explores.

The data are the packed model, some of the rows, and counts of all rows. Arrays are bits and integers in base64.
"""

from __future__ import annotations

import base64
import json
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
        "paired": min(data.n_atoms, MAX_PAIRED),
        "order": {"features": base64_numbers(orders.features), "rows": base64_numbers(orders.rows)},
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
    """Return the atoms with their counts in all rows; ``coded`` are the rows that use them by the codes shown.

    The lifts of features, atom after atom, are integers: thousandths, 0 where a lift is unknown.
    """
    recurrence = data.model.recurrence
    member_lifts = np.rint(1000 * np.nan_to_num(data.lifts.members).clip(0, _MAX_LIFT))
    return {
        "bits": base64_bits(atoms),
        "uses": base64_numbers(data.uses),
        "coded": base64_numbers(data.codes.column_weights()),
        "complete": base64_numbers(data.complete),
        "expected": [float(f"{expected:.4g}") for expected in data.lifts.expected],
        "lift": [number_or_none(round(float(lift), 4)) for lift in data.lifts.whole],
        "memberLifts": base64_numbers(member_lifts),
        "recurs": None if recurrence is None else recurrence.shares.tolist(),
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
    shared = shared_ones(data.codes.T[:MAX_PAIRED])
    return shared[np.triu_indices(len(shared), 1)]


def _genome(data: ReportData, features: NDArray[np.intp]) -> dict[str, Any] | None:
    """Return where on the genome features are, in words and as integers."""
    found = positions_of(data)
    if found is None:
        return None
    return {
        "where": [found.where[feature] for feature in features],
        "places": base64_numbers(np.rint(_PLACES * found.places[features])),
    }


def base64_bits(bits: Bits) -> str:
    """Return the rows of a matrix without unknown cells, each from a new byte, the first column in the lowest bit."""
    chunks = (packed(bits[start : start + _CHUNK_ROWS]).to_bytes() for start in range(0, bits.n_rows, _CHUNK_ROWS))
    return base64.b64encode(b"".join(chunks)).decode("ascii")


def base64_numbers(numbers: ArrayLike) -> str:
    """Return integers from 0 as variable-length bytes: seven bits each, the lowest first."""
    return base64.b64encode(_variable_length(np.asarray(numbers, np.int64).ravel()).tobytes()).decode("ascii")


def script_json(value: object) -> str:
    """Return JSON without any character that could end a script element."""
    return (
        json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )


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
