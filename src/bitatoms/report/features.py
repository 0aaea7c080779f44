"""The wrong bits by feature: a table to sort and search, and heat maps where the features are pixels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .findings import Findings
from .html.text import count, many, name, share
from .pictures import INK, INVENTED, KEY, MISSED, heat

MOST = 200  # features in the table
_SIDE = 176  # pixels of the screen that a heat map takes


class Column(NamedTuple):
    """A column of numbers in the table."""

    key: str
    counts: NDArray[np.int64]


def by_feature(found: Findings) -> str:
    """The section on features: what is wrong in them; without atoms, how often they are ones."""
    if not found.explains and not found.ones.any():
        return ""
    if not found.explains:
        return _section("Ones by feature", _ones(found), _body(found, found.ones, [Column("ones", found.ones)]))
    wrong = found.missed + found.invented
    if not wrong.any():
        return _section("What is wrong, by feature", "Nothing: the patterns give back every cell of the table.", "")
    columns = [
        Column("ones", found.ones),
        Column("missed", found.missed),
        Column("invented", found.invented),
        Column("wrong", wrong),
    ]
    n_wrong, cells, lines = int((wrong > 0).sum()), found.n_rows * found.n_features, int(wrong.sum())
    says = (
        f"{many(lines, 'cell')} of {count(cells)} ({share(lines, cells)}) {'is' if lines == 1 else 'are'} wrong, in "
        f"{many(n_wrong, 'feature')}."
    )
    says += f" The table has the {MOST} with most of them." if n_wrong > MOST else ""
    return _section("What is wrong, by feature", says, _body(found, wrong, columns))


def _section(heading: str, says: str, body: str) -> str:
    return f'<section id="features">\n<h2>{heading}</h2>\n<p>{says}</p>\n{body}\n</section>'


def _ones(found: Findings) -> str:
    """What the table without atoms shows."""
    says = "Without patterns, this is all there is to say of the columns: how often each is a one."
    return f"{says} The table has the {MOST} that are so most often." if (found.ones > 0).sum() > MOST else says


def _body(found: Findings, by: NDArray[np.int64], columns: list[Column]) -> str:
    """The features where these counts are largest in a table; where features are pixels, heat maps above it."""
    order = np.argsort(-by, kind="stable")[:MOST]
    table = _table(found, [int(feature) for feature in order if by[feature]], columns)
    if found.picture is None:
        return table
    return f"{_maps(found)}<details><summary>The numbers, pixel by pixel</summary>{table}</details>"


def _maps(found: Findings) -> str:
    """Pictures of how often each pixel is one, missed, invented."""
    assert found.picture is not None
    drawn = [
        (found.ones, INK, "ones", "how often each pixel is a one"),
        (found.missed, MISSED, "missed", "how often the patterns miss it"),
        (found.invented, INVENTED, "invented", "how often they invent it"),
    ]
    shown = "".join(
        f"<figure>{heat(counts, found.picture.tile, colour, says, _SIDE)}<figcaption><b>{what}</b>: {says}<br>"
        f"darkest: {many(int(counts.max()), 'row')}</figcaption></figure>"
        for counts, colour, what, says in (drawn if found.explains else drawn[:1])
    )
    return f'<div class="maps">{shown}</div>'


def _table(found: Findings, features: list[int], columns: list[Column]) -> str:
    """A table whose heads are buttons that sort it; it comes sorted by its last column."""
    heads = '<th scope="col"><button type="button">feature</button></th>'
    for column in columns:
        sorted_by = ' aria-sort="descending"' if column is columns[-1] else ""
        heads += f'<th scope="col" class="number"{sorted_by}><button type="button">{column.key}</button></th>'
    most = max((int(columns[-1].counts[feature]) for feature in features), default=1)
    lines = "".join(_line(found, feature, columns, most) for feature in features)
    return f"""{f'<p class="legend">{KEY}</p>' if found.explains else ""}
<form class="controls" id="find-feature" role="search" aria-label="Features" hidden>
<label>Search <input id="search-feature" type="search" placeholder="a feature" autocomplete="off" spellcheck="false"
aria-describedby="shown-features"></label><p id="shown-features" role="status"></p></form>
<div class="scroll" role="region" aria-label="Counts by feature" tabindex="0">
<table class="features" id="feature-table">
<thead><tr>{heads}<th scope="col">of all rows</th></tr></thead>
<tbody>{lines}</tbody></table></div>"""


def _line(found: Findings, feature: int, columns: list[Column], most: int) -> str:
    """One feature: its counts, and the last of them as a bar."""
    numbers = "".join(f'<td class="number">{count(int(column.counts[feature]))}</td>' for column in columns)
    kinds = ("missed", "invented") if found.explains else ("ones",)
    parts = "".join(
        f'<i class="{column.key}" style="width:{100 * column.counts[feature] / most:.1f}%"></i>'
        for column in columns
        if column.key in kinds
    )
    of_all = share(int(columns[-1].counts[feature]), found.n_rows)
    return (
        f'<tr><th scope="row">{name(found.names_of([feature])[0])}</th>{numbers}'
        f'<td><div class="share"><span class="bar">{parts}</span><span>{of_all}</span></div></td></tr>'
    )
