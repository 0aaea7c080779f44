"""The sections of a report that describe its patterns: the result in short, the patterns, groups and unknown cells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..formatting import be, few, have, listed_names, noun, percent, times, verb
from ..html.document import Section, more, section, summary_section
from ..html.tables import table_html
from ..html.text import format_count, name_html, pluralize
from ..model.model import Model
from ..model.patterns import LIFTS_READING, number_or_none
from ..model.result import is_small_saving
from .data import ReportData
from .pictures import INK, INVENTED, MISSED, bits_image, figure_html, heat_map

_OTHER_ALGEBRA = "the shorter of both ways to combine patterns, OR and XOR (<code>bitatoms fit --algebra auto</code>)"
_ADVICE = {
    "rows": "more rows",
    "xor": _OTHER_ALGEBRA,
    "or": _OTHER_ALGEBRA,
    "thorough": "a longer search (<code>bitatoms fit --search thorough</code>)",
}
_MAX_NAMES = 12  # features of a pattern, or of the bias, that are listed
_ATOM_SIDE, _HEAT_MAP_SIDE = 96, 176  # CSS pixels
_MAX_ATOMS_BY_GROUP = 60  # columns of the table
_MAX_UNKNOWN = 15  # columns, and rows, with most unknown cells


def summary(data: ReportData) -> Section:
    """Return the section at the top: what was found, and how well it fits."""
    of_patterns = (_patterns_per_row(data), _training_table(data)) if data.n_atoms else ()
    sentences = (_accuracy(data), unknown_cells(data), *of_patterns, _other_algebra(data))
    return summary_section(_headline(data), _key_figures(data) if data.n_atoms else (), sentences)


def _headline(data: ReportData) -> str:
    """State how much shorter the patterns make the description."""
    total, without = data.codelength.total, data.bits_without
    shape = f"{pluralize(data.n_rows, 'row')} and {pluralize(data.n_features, 'column')}"
    if data.is_model_empty:
        return f"No pattern makes the description of {shape} shorter. {verdict(data.model)}"
    saved = without - total
    subject = pluralize(data.n_atoms, "pattern") if data.n_atoms else "Knowing which columns are usually ones"
    text = f"{subject} {'make' if data.n_atoms > 1 else 'makes'} the description of {shape}"
    if saved <= 0:
        return f"{text} no shorter: {pluralize(total, 'bit')}, and {format_count(without)} without."
    text += f" <b>{percent(saved, without)} shorter</b>: {pluralize(total, 'bit')} instead of {format_count(without)}."
    if is_small_saving(saved, without):
        text += f" This is a small saving. {verdict(data.model)}"
    return text


def _key_figures(data: ReportData) -> list[tuple[str, str]]:
    """Return the most important numbers, each with its label."""
    n_ones, n_zeros, n_missed, n_invented = _cell_counts(data)
    figures = [(format_count(data.n_atoms), noun(data.n_atoms, "pattern"))]
    if n_ones:
        figures.append((percent(n_ones - n_missed, n_ones), "of the ones are accounted for"))
    if n_zeros:
        figures.append((percent(n_invented, n_zeros), "of the zeros are turned into ones"))
    per_row = int(data.uses.sum()) / data.n_rows
    figures.append((f"{per_row:.{1 if per_row >= 0.1 else 2}f}", "patterns per row, on average"))
    return figures


def _cell_counts(data: ReportData) -> tuple[int, int, int, int]:
    """Return how many known cells are ones, zeros, missed and invented."""
    n_ones = int(data.ones.sum())
    return n_ones, data.n_known_cells - n_ones, int(data.missed.sum()), int(data.invented.sum())


def _accuracy(data: ReportData) -> str:
    """State how many cells the patterns reproduce."""
    n_ones, n_zeros, n_missed, n_invented = _cell_counts(data)
    if not n_ones:
        return "The table has no ones at all."
    if not n_zeros:
        return "The table has no zeros at all."
    if not data.n_atoms:
        return f"{percent(n_ones, n_ones + n_zeros)} of its cells are ones."
    text = (
        f"Of the {pluralize(n_ones, 'one')} in the table the patterns account for {format_count(n_ones - n_missed)} "
        f"and miss {format_count(n_missed)}. They turn {format_count(n_invented)} of the {pluralize(n_zeros, 'zero')} "
        "into ones."
    )
    n_wrong, n_features = n_missed + n_invented, int(((data.missed + data.invented) > 0).sum())
    if not n_wrong:
        return f"{text} They reproduce every cell of the table."
    share = percent(n_wrong, n_ones + n_zeros)
    wrong = f"{pluralize(n_wrong, 'cell')} of {format_count(n_ones + n_zeros)} ({share}) {be(n_wrong)} wrong"
    return f"{text} {wrong}, in {pluralize(n_features, 'feature')}."


def _patterns_per_row(data: ReportData) -> str:
    """State how many patterns a row uses."""
    used = data.codes.row_weights()
    n_without = int((used == 0).sum())
    most = int(used.max())
    if not most:
        return "No row uses a pattern."
    if data.n_rows == 1:
        return f"The row uses {pluralize(most, 'pattern')}."
    median = int(np.sort(used)[(len(used) - 1) // 2])
    without = f"{pluralize(n_without, 'row')} ({percent(n_without, data.n_rows)}) {verb(n_without, 'use')} no pattern"
    if not median:
        return f"{without}; none uses more than {format_count(most)}."
    text = f"Half of the rows use {pluralize(median, 'pattern')} or fewer; none uses more than {format_count(most)}."
    return f"{text} {without}." if n_without else text


def _training_table(data: ReportData) -> str:
    """State whether this is the table that the patterns were learned from."""
    if data.is_training_table:
        return "This is the table that the patterns were learned from."
    return (
        "This is not the table that the patterns were learned from, which had "
        f"{pluralize(data.model.n_samples, 'row')}: the report shows how well they fit rows that may be new to them."
    )


def _other_algebra(data: ReportData) -> str:
    """State what the other way to combine patterns costs, if it was tried."""
    other, kept = data.model.other_algebra, data.model.algebra.upper()
    if other is None:
        return ""
    amount = f"{'about ' if other.is_estimated else ''}{pluralize(other.cost, other.unit)}"
    text = f"Combined by {other.algebra.upper()} instead of {kept}, patterns leave {amount} for the training table"
    difference = other.cost - other.kept_cost
    if not difference:
        text += ", as many."
    elif difference > 0:
        text += f", {percent(difference, other.kept_cost)} more."
    else:
        text += f", {percent(-difference, other.kept_cost)} fewer: too few to give up {kept}, which is easier to read."
    return text if data.model.converged else f"{text} This comparison is not final: the search was cut short."


def verdict(model: Model) -> str:
    """Return sentences in HTML on what it means that patterns save few bits, or none."""
    n_beyond, n_atoms = model.beyond_chance, model.atoms.n_rows
    if not model.converged:
        return "The search was cut short, so it is not known how many patterns the table has."
    if n_beyond is None:
        return f"The table has few patterns, or the search did not find them. You can try {to_try(model)}."
    how = "more or less often than chance explains, given the number of ones in each row and column"
    if n_atoms and n_beyond:
        these = f"{pluralize(n_beyond, 'pattern')} of {format_count(n_atoms)}" if n_atoms > 1 else "the pattern"
        return f"But {these} {have(n_beyond)} columns that occur together {how}. You can try {to_try(model)}."
    if n_atoms:
        return f"No columns of a pattern occur together {how}."
    if n_beyond:
        pairs = f"{pluralize(n_beyond, 'pair')} of columns {verb(n_beyond, 'occur')}"
        return f"But {pairs} together {how}. You can try {to_try(model)}."
    return f"No two columns occur together {how}."


def to_try(model: Model) -> str:
    """Return what to try, as the object of a sentence in HTML."""
    *others, last = (advice for word, advice in _ADVICE.items() if word in model.untried)
    return f"{', '.join(others)} or {last}" if others else last


def patterns_section(data: ReportData) -> Section:
    """Return the section that explains the patterns and lists them; its table is hidden where the page has a script."""
    if not data.n_atoms:
        text = f"""<p>No pattern was found that saves more bits than its own description takes. Either the columns are
independent, or the search did not find what they have in common. You can try {to_try(data.model)}.</p>"""
        return section("patterns", "The patterns", text, title="Patterns")
    listing = f'<div id="listing">{_listing(data)}</div>'
    return section("patterns", "The patterns", f"<p>{_explanation(data)}</p>", _bias(data), listing, title="Patterns")


def _explanation(data: ReportData) -> str:
    """Explain what is shown of patterns."""
    text = data.model.reading
    text += "" if data.model.saved is None else " The pattern that saves most bits comes first."
    text += " A pattern is used by the rows that are described with it; it is complete in the rows that have all of it."
    if not data.is_training_table:
        text += " These counts are those of this table, not of the one that the patterns were learned from."
    text += f" {LIFTS_READING}"
    return text if data.model.recurrence is None else f"{text} {data.model.recurrence.reading}"


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
        f"{listed_names(data.names_of(features), _MAX_NAMES, name_html)}. "
        "“not” before a feature means that the pattern removes it.</p>"
    )


def _listing(data: ReportData) -> str:
    """Return the table of all patterns, for readers without a script and on paper."""
    model = data.model
    counts: dict[str, Callable[[int], str]] = {
        "used by": lambda atom: _rows_text(data, int(data.uses[atom])),
        "complete in": lambda atom: _rows_text(data, int(data.complete[atom])),
        "expected": lambda atom: few(data.lifts.expected[atom]),
        "lift": lambda atom: times(number_or_none(data.lifts.whole[atom])),
    }
    if (saved := model.saved) is not None:
        counts["bits saved"] = lambda atom: format_count(int(saved[atom]))
    if (recurrence := model.recurrence) is not None:
        counts["recurs"] = lambda atom: percent(float(recurrence.shares[atom]), 1)
    rows = [
        (f'<a id="atom-{atom + 1}">{atom + 1}</a>', _features(data, atom), *(text(atom) for text in counts.values()))
        for atom in range(data.n_atoms)
    ]
    columns = ("pattern", "features", *counts)
    return table_html(columns, rows, [True, False, *(True for _ in counts)], "Patterns", "patterns")


def _rows_text(data: ReportData, n_rows: int) -> str:
    """Return a number of rows and their share."""
    return f"{pluralize(n_rows, 'row')} ({percent(n_rows, data.n_rows)})"


def _features(data: ReportData, atom: int) -> str:
    """Return the first features of a pattern with their lifts, or the picture of a row that uses it alone."""
    if data.picture is not None:
        return bits_image(data.atom_on_bias(atom), data.picture.tile, f"pattern {atom + 1}", _ATOM_SIDE)
    features = np.flatnonzero(data.model.atoms[atom])
    removes = data.model.bias[features[:_MAX_NAMES]]
    named = data.names_of(features[:_MAX_NAMES])
    names = [name_html(f"not {name}" if is_not else name) for name, is_not in zip(named, removes, strict=True)]
    if len(features) > 1:
        lifts = [times(number_or_none(lift)) for lift in data.member_lifts(atom)[:_MAX_NAMES]]
        names = [f"{name} <small>{lift}</small>" for name, lift in zip(names, lifts, strict=True)]
    n_more = len(features) - _MAX_NAMES
    return ", ".join(names) + (f" and {format_count(n_more)} more" if n_more > 0 else "")


def pixels_section(data: ReportData) -> Section:
    """Return pictures of how often each pixel is one, missed and invented; empty if features are not pixels."""
    if data.picture is None or not data.ones.any():
        return Section("")
    maps = [(data.ones, INK, "ones", "how often each pixel is a one")]
    if not data.is_model_empty:
        maps += [
            (data.missed, MISSED, "missed", "how often it is a one that the patterns miss"),
            (data.invented, INVENTED, "invented", "how often it is a zero that the patterns make a one"),
        ]
    figures = "".join(
        figure_html(
            heat_map(counts, data.picture.tile, colour, text, _HEAT_MAP_SIDE),
            f"<b>{name}</b>: {text}<br>darkest: {pluralize(int(counts.max()), 'row')}",
        )
        for counts, colour, name, text in maps
    )
    return section("pixels", "Pixels", f'<div class="maps">{figures}</div>')


def groups_section(data: ReportData) -> Section:
    """Return the share of the rows of each group that use each pattern; empty if there are no groups."""
    if data.groups is None or not data.n_atoms:
        return Section("")
    rows_of = [np.flatnonzero(data.groups.numbers == number) for number in range(len(data.groups.names))]
    uses = np.array([data.codes[rows].column_weights() for rows in rows_of])
    shares = uses / np.array([[len(rows)] for rows in rows_of])
    # Patterns whose use differs most between groups come first.
    order = np.argsort(-np.ptp(shares, axis=0), kind="stable")[:_MAX_ATOMS_BY_GROUP]
    head = "".join(f'<th scope="col"><a href="#atom-{atom + 1}">{atom + 1}</a></th>' for atom in order.tolist())
    rows = "".join(
        f'<tr><th scope="row">{name_html(name)}</th><td>{format_count(len(rows))}</td>'
        f"{_shares(own[order], len(rows))}</tr>"
        for name, rows, own in zip(data.groups.names, rows_of, uses, strict=True)
    )
    body = f"""<p>The share of the rows of each group that use each pattern. Patterns whose share differs most come
first.</p>
<div class="scroll"><table class="groups">
<thead><tr><th scope="col">group</th><th scope="col">rows</th>{head}</tr></thead>
<tbody>{rows}</tbody></table></div>{more(data.n_atoms - len(order), "further pattern")}"""
    return section("groups", "By group", body, title="Groups")


def _shares(uses: NDArray[np.int64], size: int) -> str:
    """Return the cells of one group, darker where more of its rows use the pattern."""
    return "".join(
        f'<td style="--share:{count / size:.3f}" title="{pluralize(count, "row")}">{percent(count, size)}</td>'
        for count in uses.tolist()
    )


def unknown_cells(data: ReportData) -> str:
    """State how many cells are unknown; empty if none is."""
    n_unknown = data.table.data.n_unknown
    if not n_unknown:
        return ""
    share = percent(n_unknown, data.n_rows * data.n_features)
    return (
        f"{pluralize(n_unknown, 'cell')} ({share}) {be(n_unknown)} unknown: "
        "the value was missing. What is said about ones and zeros is about the known cells."
    )


def unknown_section(data: ReportData) -> Section:
    """Return the columns and the rows with most unknown cells; empty if there are none."""
    unknown = data.table.data.unknown
    if unknown is None or not data.table.data.n_unknown:
        return Section("")
    tables = [_ranking("column", unknown.column_weights(), data.n_rows, lambda column: data.names_of([column])[0])]
    if data.shows_rows:
        tables.append(_ranking("row", unknown.row_weights(), data.n_features, data.table.row_name))
    return section("unknown", "Unknown cells", f"<p>{unknown_cells(data)}</p>", *tables)


def _ranking(axis: str, counts: NDArray[np.int64], total: int, name: Callable[[int], str]) -> str:
    """Return a table of the columns or the rows with most unknown cells; ``total`` is the number of their cells."""
    order = [int(index) for index in np.argsort(-counts, kind="stable")[:_MAX_UNKNOWN] if counts[index]]
    rows = [
        (name_html(name(index)), format_count(int(counts[index])), percent(int(counts[index]), total))
        for index in order
    ]
    others = int((counts > 0).sum()) - len(order)
    note = f"<p class='note'>and {pluralize(others, f'further {axis}')} with unknown cells</p>" if others else ""
    numeric = (False, True, True)
    return table_html((axis, "unknown cells", "share"), rows, numeric, f"{axis}s with most unknown cells") + note
