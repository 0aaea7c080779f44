"""The features section: wrong cells per feature in a sortable table, and heat maps if the features are pixels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..formatting import percent
from ..html.text import format_count, name_html, pluralize
from .data import ReportData
from .pictures import INK, INVENTED, LEGEND, MISSED, heat_map

MAX_FEATURES = 200  # rows of the table
_SIDE = 176  # CSS pixels of a heat map


class Column(NamedTuple):
    """A column of counts in the table."""

    key: str
    counts: NDArray[np.int64]


def features_section(data: ReportData) -> str:
    """Return the section with the wrong cells per feature; without a model, with the ones per feature."""
    if data.is_model_empty:
        if not data.ones.any():
            return ""
        return _section("Ones by feature", _ones_text(data), _body(data, data.ones, [Column("ones", data.ones)]))
    wrong = data.missed + data.invented
    if not wrong.any():
        return _section("Wrong cells by feature", "The patterns reproduce every cell of the table.", "")
    columns = [
        Column("ones", data.ones),
        Column("missed", data.missed),
        Column("invented", data.invented),
        Column("wrong", wrong),
    ]
    columns[1:1] = [Column("known", data.n_known)] if data.table.data.n_unknown else []
    n_features, n_wrong, n_cells = int((wrong > 0).sum()), int(wrong.sum()), data.n_known_cells
    text = (
        f"{pluralize(n_wrong, 'cell')} of {format_count(n_cells)} ({percent(n_wrong, n_cells)}) "
        f"{'is' if n_wrong == 1 else 'are'} wrong, in {pluralize(n_features, 'feature')}."
    )
    text += f" The table lists the {MAX_FEATURES} features with most of them." if n_features > MAX_FEATURES else ""
    return _section("Wrong cells by feature", text, _body(data, wrong, columns))


def _section(heading: str, text: str, body: str) -> str:
    return f'<section id="features">\n<h2>{heading}</h2>\n<p>{text}</p>\n{body}\n</section>'


def _ones_text(data: ReportData) -> str:
    """Describe the table of ones."""
    text = "Without patterns, a column is described by the number of its ones alone."
    if (data.ones > 0).sum() <= MAX_FEATURES:
        return text
    return f"{text} The table lists the {MAX_FEATURES} features with most ones."


def _body(data: ReportData, ranking: NDArray[np.int64], columns: list[Column]) -> str:
    """Return the table of the features ranked highest, and heat maps above it if features are pixels."""
    order = np.argsort(-ranking, kind="stable")[:MAX_FEATURES]
    table = _table(data, [int(feature) for feature in order if ranking[feature]], columns)
    if data.picture is None:
        return table
    return f"{_heat_maps(data)}<details><summary>The numbers, pixel by pixel</summary>{table}</details>"


def _heat_maps(data: ReportData) -> str:
    """Return pictures of how often each pixel is one, missed and invented."""
    assert data.picture is not None
    maps = [
        (data.ones, INK, "ones", "how often each pixel is a one"),
        (data.missed, MISSED, "missed", "how often it is a one that the patterns miss"),
        (data.invented, INVENTED, "invented", "how often it is a zero that the patterns make a one"),
    ]
    figures = "".join(
        f"<figure>{heat_map(counts, data.picture.tile, colour, text, _SIDE)}<figcaption><b>{name}</b>: {text}<br>"
        f"darkest: {pluralize(int(counts.max()), 'row')}</figcaption></figure>"
        for counts, colour, name, text in (maps[:1] if data.is_model_empty else maps)
    )
    return f'<div class="maps">{figures}</div>'


def _table(data: ReportData, features: list[int], columns: list[Column]) -> str:
    """Return a table sorted by its last column; the buttons in its head sort it by another."""
    heads = '<th scope="col"><button type="button">feature</button></th>'
    for column in columns:
        sorted_by = ' aria-sort="descending"' if column is columns[-1] else ""
        heads += f'<th scope="col" class="number"{sorted_by}><button type="button">{column.key}</button></th>'
    maximum = max((int(columns[-1].counts[feature]) for feature in features), default=1)
    rows = "".join(_table_row(data, feature, columns, maximum) for feature in features)
    share = "of the rows where it is known" if data.table.data.n_unknown else "of all rows"
    return f"""{"" if data.is_model_empty else f'<p class="legend">{LEGEND}</p>'}
<form class="controls" id="find-feature" role="search" aria-label="Features" hidden>
<label>Search <input id="search-feature" type="search" placeholder="a feature" autocomplete="off" spellcheck="false"
aria-describedby="shown-features"></label><p id="shown-features" role="status"></p></form>
<div class="scroll" role="region" aria-label="Counts by feature" tabindex="0">
<table class="features" id="feature-table">
<thead><tr>{heads}<th scope="col">{share}</th></tr></thead>
<tbody>{rows}</tbody></table></div>"""


def _table_row(data: ReportData, feature: int, columns: list[Column], maximum: int) -> str:
    """Return the counts of one feature, the last of them also as a bar."""
    numbers = "".join(f'<td class="number">{format_count(int(column.counts[feature]))}</td>' for column in columns)
    bar_keys = ("ones",) if data.is_model_empty else ("missed", "invented")
    bar = "".join(
        f'<i class="{column.key}" style="width:{100 * column.counts[feature] / maximum:.1f}%"></i>'
        for column in columns
        if column.key in bar_keys
    )
    share = percent(int(columns[-1].counts[feature]), int(data.n_known[feature]))
    return (
        f'<tr data-feature="{feature}"><th scope="row">{name_html(data.names_of([feature])[0])}</th>{numbers}'
        f'<td><div class="share"><span class="bar">{bar}</span><span>{share}</span></div></td></tr>'
    )
