"""The patterns section: one card per atom with its features and example rows, and the index for searching them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..formatting import few, percent, times
from ..html.text import chips_html, format_count, join_names, name_html, pluralize, truncated
from ..model.lifts import LIFTS_READING
from ..model.model import number_or_none
from .advice import to_try
from .data import ReportData
from .pictures import bits_image

N_NAMES_UNFOLDED = 12  # features of an atom that are visible without unfolding the others
_MAX_NAMES_SIZE = 800_000  # characters of names on all cards together
_NAME_LIMITS = (10**9, 1000, 500, 200, 100, 50, N_NAMES_UNFOLDED)  # names per card: the first limit that fits is used
_MAX_DIFFERENCES = 4  # names listed for the difference between an example and its atom
_ATOM_SIDE, _EXAMPLE_SIDE = 96, 40  # CSS pixels
_MAX_EXAMPLE_PIXELS = 4_000_000  # on all cards together; above that, examples are not drawn


def patterns_section(data: ReportData) -> str:
    """Return the section with one card per atom."""
    if not data.n_atoms:
        return f"""<section id="patterns"><h2>The patterns</h2>
<p>No pattern was found that saves more bits than its own description takes. Either the columns are independent, or the
search did not find what they have in common. You can try {to_try(data.model)}.</p>
</section>"""
    limit = _name_limit(data)
    cards = "\n".join(_card(data, atom, limit) for atom in range(data.n_atoms))
    kind = "names" if data.picture is None else "pictures"
    return f"""<section id="patterns">
<h2>The patterns</h2>
<p>{_introduction(data)}</p>
{_bias(data)}
<form class="controls" id="find" role="search" aria-label="Patterns" hidden>
<label>Search <kbd aria-hidden="true">/</kbd>
<input id="search" type="search" placeholder="a feature, or a number" autocomplete="off"
spellcheck="false" aria-describedby="shown" aria-keyshortcuts="/"></label>
<label>Sort by <select id="order">{_sort_options(data)}</select></label>
<p id="shown" role="status"></p>
</form>
<ol class="cards {kind}" id="cards" role="list">
{cards}
</ol>
<p id="nothing" hidden>No pattern matches, neither by its features nor by its example rows.</p>
</section>"""


def _sort_options(data: ReportData) -> str:
    """Return the sort keys as options; the cards are initially sorted by the first."""
    rows, complete = ("rows", "rows that use it"), ("complete", "complete rows")
    features, number = ("features", f"number of {_feature_noun(data)}s"), ("atom", "number")
    recurs = [] if data.model.recurrence is None else [("recurs", "how often it recurs")]
    keys = [rows, complete, ("lift", "lift"), *recurs, features]
    keys = [number, *keys] if data.model.saved is None else [("saved", "bits saved"), *keys, number]
    return "".join(f'<option value="{key}">{label}</option>' for key, label in keys)


def _introduction(data: ReportData) -> str:
    """Explain what the cards show."""
    if data.picture is not None:
        text = "Each picture shows a row that uses this pattern alone."
        text += " Below it are examples of rows that use it." if data.shows_rows else ""
        text += f" {data.model.reading}"
    else:
        text = data.model.reading
        text += " Below each pattern are rows that use it and little else." if data.shows_rows else ""
    text += "" if data.model.saved is None else " The pattern that saves most bits comes first."
    text += " A pattern is used by the rows that are described with it; it is complete in the rows that have all of it."
    if not data.is_training_table:
        text += " These counts are those of this table, not of the one that the patterns were learned from."
    text += f" {LIFTS_READING if data.picture is None else LIFTS_READING.partition(';')[0] + '.'}"
    text += "" if data.model.recurrence is None else f" {data.model.recurrence.reading}"
    return text + (data.numbering_note if data.shows_rows else "")


def _feature_noun(data: ReportData) -> str:
    """Return the word for a column."""
    return "feature" if data.picture is None else "pixel"


def _bias(data: ReportData) -> str:
    """Describe the bias, if there is one."""
    features = np.flatnonzero(data.model.bias)
    if not len(features):
        return ""
    if data.picture is not None:
        image = bits_image(data.model.bias, data.picture.tile, "the bias", _ATOM_SIDE)
        return (
            f'<figure class="bias">{image}<figcaption>Every row starts from these {format_count(len(features))} '
            "pixels, which are ones in most rows (the bias). A pattern flips pixels: it is drawn on top of the bias."
            "</figcaption></figure>"
        )
    columns = "1 column is a one" if len(features) == 1 else f"{format_count(len(features))} columns are ones"
    return (
        f"<p>{columns} in every row unless a pattern changes that (the bias): "
        f"{join_names(data.names_of(features), N_NAMES_UNFOLDED)}. "
        "“not” before a feature means that the pattern removes it.</p>"
    )


def _card(data: ReportData, atom: int, name_limit: int) -> str:
    """Return the card of one atom."""
    features = np.flatnonzero(data.model.atoms[atom])
    uses, complete = int(data.uses[atom]), int(data.complete[atom])
    saved = None if data.model.saved is None else int(data.model.saved[atom])
    noun, lift = _feature_noun(data), float(data.lifts.whole[atom])
    facts = [(f"{pluralize(uses, 'row')} ({percent(uses, data.n_rows)})", "used by")]
    facts += [(f"{pluralize(complete, 'row')} ({percent(complete, data.n_rows)})", "complete in")]
    facts += [(few(data.lifts.expected[atom]), "expected"), (times(number_or_none(lift)), "lift")]
    facts += [(format_count(len(features)), noun if len(features) == 1 else f"{noun}s")]
    facts += [] if saved is None else [(format_count(saved), "bit saved" if saved == 1 else "bits saved")]
    recurs = None if data.model.recurrence is None else float(data.model.recurrence.shares[atom])
    facts += [] if recurs is None else [(percent(recurs, 1), "recurs")]
    recurs_key = "" if recurs is None else f'data-recurs="{recurs}" '
    facts_html = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for value, label in facts)
    if data.picture is None:
        body = f"<dl>{facts_html}</dl>{_feature_names(data, atom, name_limit)}"
    else:
        image = bits_image(data.atom_on_bias(atom), data.picture.tile, f"pattern {atom + 1}", _ATOM_SIDE)
        body = f'<div class="tile">{image}<dl>{facts_html}</dl></div>'
    return (
        f'<li class="card" id="atom-{atom + 1}" data-atom="{atom + 1}" data-saved="{saved or 0}" data-rows="{uses}" '
        f'data-complete="{complete}" data-lift="{np.nan_to_num(lift):.6g}" {recurs_key}'
        f'data-features="{len(features)}"><h3>Pattern {atom + 1}</h3>{body}'
        f'<p class="hits" hidden></p>{_examples(data, atom)}</li>'
    )


def _feature_names(data: ReportData, atom: int, limit: int) -> str:
    """Return the names of an atom's features, each with its lift, all but the first folded."""
    features = np.flatnonzero(data.model.atoms[atom])
    names = [
        f"not {name}" if data.model.bias[feature] else name
        for feature, name in zip(features[:limit], data.names_of(features[:limit]), strict=True)
    ]
    notes = [times(number_or_none(lift)) for lift in data.member_lifts(atom)[:limit]] if len(features) > 1 else []
    first = f'<ul class="chips">{chips_html(names[:N_NAMES_UNFOLDED], notes=notes[:N_NAMES_UNFOLDED])}</ul>'
    if len(features) <= N_NAMES_UNFOLDED:
        return first
    rest = names[N_NAMES_UNFOLDED:]
    folded = f'<ul class="chips">{chips_html(rest, notes=notes[N_NAMES_UNFOLDED:])}</ul>' if rest else ""
    n_omitted = len(features) - limit
    omitted = f'<p class="note">and {format_count(n_omitted)} not listed</p>' if n_omitted > 0 else ""
    n_more = format_count(len(features) - N_NAMES_UNFOLDED)
    return f"{first}<details><summary>{n_more} more</summary>{folded}{omitted}</details>"


def _name_limit(data: ReportData) -> int:
    """Return the number of names per card that keeps the page small enough."""
    if data.picture is not None:
        return 0
    weights = data.model.atoms.row_weights()
    names = data.names_of(range(min(data.n_features, 1000)))
    size = 20 + sum(len(truncated(name)) for name in names) / len(names)
    return next(
        limit
        for limit in _NAME_LIMITS
        if limit == N_NAMES_UNFOLDED or np.minimum(weights, limit).sum() * size <= _MAX_NAMES_SIZE
    )


def _examples(data: ReportData, atom: int) -> str:
    """Return rows that use the atom and little else."""
    if not data.shows_rows:
        return ""
    rows = [int(row) for row in data.examples[atom] if row >= 0]
    if not rows:
        return '<p class="note">No row uses it when the rows are coded again.</p>'
    if data.picture is None:
        items = _examples_as_text(data, atom, rows)
    else:
        drawn = data.examples.size * data.n_features <= _MAX_EXAMPLE_PIXELS
        items = "".join(_example_as_picture(data, row, drawn) for row in rows)
    return f'<ul class="examples">{items}</ul>'


def _examples_as_text(data: ReportData, atom: int, rows: list[int]) -> str:
    """Return the names of rows with their difference from the atom, rows of equal difference together."""
    expected = data.atom_on_bias(atom)
    names_by_difference: dict[str, list[str]] = {}
    for row in rows:
        bits = data.table.data[row]  # NaN, which is neither greater nor less, where it is unknown
        differences = (("also", np.flatnonzero(bits > expected)), ("lacks", np.flatnonzero(bits < expected)))
        text = "; ".join(f"{word} {_features_text(data, features)}" for word, features in differences if len(features))
        name = f'<b class="row">{name_html(data.table.row_name(row))}</b>'
        names_by_difference.setdefault(text or "nothing else", []).append(name)
    return "".join(f"<li>{', '.join(names)}: {text}</li>" for text, names in names_by_difference.items())


def _features_text(data: ReportData, features: NDArray[np.intp]) -> str:
    """Return a few features by name, or the number of many."""
    if len(features) > _MAX_DIFFERENCES:
        return pluralize(len(features), "feature")
    return join_names(data.names_of(features), _MAX_DIFFERENCES)


def _example_as_picture(data: ReportData, row: int, drawn: bool) -> str:
    """Return a row as a picture, with its name."""
    assert data.picture is not None
    image = bits_image(data.row(row).data, data.picture.tile, "", _EXAMPLE_SIDE) if drawn else ""
    return f'<li>{image}<span class="row">{name_html(data.table.row_name(row))}</span></li>'
