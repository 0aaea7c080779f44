"""The rows sections: selected rows before and after coding, and the rows with the worst fit."""

from __future__ import annotations

import numpy as np

from ..formatting import listed_names, noun, percent
from ..html.document import Section, section
from ..html.tables import table_html
from ..html.text import chip_items, chips_html, name_html, pluralize
from .data import ReportData, ReportRow
from .pictures import LEGEND, before_and_after

_MAX_CORRECT, _MAX_WRONG = 40, 20  # names shown of a row: correct ones, and missed or invented ones
_MAX_WRONG_IN_TABLE = 12  # names in a cell of the table of worst rows
_SIDE = 88  # CSS pixels of a row drawn as a picture
_NEARLY_ALL = 0.99
_TYPICAL = 0.55  # a fit is typical if neither a larger fraction of rows is better nor a larger one is worse
_MAX_ATOMS = 12  # links to the atoms of a row
_LEGEND_OF_NAMES = (
    '<span class="key"><span class="chips"><span class="missed">missed</span></span> the row has it, its patterns '
    'do not</span> <span class="key"><span class="chips"><span class="invented">invented</span></span> its '
    "patterns have it, the row does not</span>"
)


def rows_section(data: ReportData) -> Section:
    """Return the section that shows selected rows before and after coding."""
    if data.picture is not None:
        kind, legend = "pictures", LEGEND
        text = "Each row before coding, its reconstruction from its patterns, and the wrong pixels."
    else:
        kind, legend = "names", _LEGEND_OF_NAMES
        text = "The features of each row and of its patterns. Features that both have are not marked."
    if data.table.row_names is None:
        text += " Rows are numbered from 0."
    body = f"""<p>{text}</p>
<p class="legend">{legend}</p>
<ul role="list" class="rows {kind}">{"".join(_row(data, data.row(index)) for index in data.chosen)}</ul>"""
    return section("rows", "Rows before and after", body, title="Rows")


def worst_rows_section(data: ReportData) -> Section:
    """Return the section with the rows that take most bits."""
    rows = [data.row(index) for index in data.worst]
    text = "These rows take most bits: their content is rare or in no pattern. "
    text += f"The median row takes {pluralize(round(np.median(data.row_bits)), 'bit')}."
    if data.picture is not None:
        body = f'<ul role="list" class="rows pictures">{"".join(_row(data, row) for row in rows)}</ul>'
    else:
        maximum = max(row.bits for row in rows) or 1.0
        columns, numeric = ("row", "bits", "patterns", "missed", "invented"), (False, True, False, False, False)
        cells = [_cells(data, row, row.bits / maximum) for row in rows]
        body = table_html(columns, cells, numeric, "Rows with the worst fit", "worst")
    return section("worst", "Rows with the worst fit", f"<p>{text}</p>", body, title="Worst fits")


def _row(data: ReportData, row: ReportRow) -> str:
    """Return a row as names or pictures, with its fit."""
    n_wrong = len(row.missed) + len(row.invented)
    wrong = f"{pluralize(n_wrong, 'cell')} wrong" if n_wrong else "no cell wrong"
    n_unknown = int(row.unknown.sum())
    unknown = f"; {pluralize(n_unknown, 'cell')} unknown" if n_unknown else ""
    facts = f"{pluralize(round(row.bits), 'bit')}, {_fit_text(row)}; {wrong}{unknown}; {_atoms_text(row)}"
    if data.picture is not None:
        body = f'<div class="triple">{before_and_after(row, data.picture.tile, _SIDE)}</div>'
    else:
        body = f'<ul class="chips">{_marked_features(data, row)}</ul>'
    return f"<li data-row='{row.index}'><h3>{name_html(row.name)}</h3>{body}<p class='facts'>{facts}</p></li>"


def _marked_features(data: ReportData, row: ReportRow) -> str:
    """Return the features of a row and of its reconstruction, wrong ones marked as missed or invented."""
    kinds = (
        ("", np.flatnonzero(row.data & row.reconstruction), _MAX_CORRECT),
        ("missed", row.missed, _MAX_WRONG),
        ("invented", row.invented, _MAX_WRONG),
    )
    items = (chip_items(data.names_of(features), limit, kind) for kind, features, limit in kinds)
    return "".join(items) or '<li class="more">no features</li>'


def _cells(data: ReportData, row: ReportRow, length: float) -> list[str]:
    """Return the cells of a row in the table of worst rows; ``length`` is that of its bar, from 0 to 1."""
    return [
        f'<span data-row="{row.index}">{name_html(row.name)}</span>',
        f'{row.bits:,.0f}<span class="bar"><i class="errors" style="width:{100 * length:.1f}%"></i></span>',
        _atom_links(row) if len(row.atoms) else "–",
        chips_html(data.names_of(row.missed), _MAX_WRONG_IN_TABLE, "missed"),
        chips_html(data.names_of(row.invented), _MAX_WRONG_IN_TABLE, "invented"),
    ]


def _fit_text(row: ReportRow) -> str:
    """Compare the fit of a row with that of the others."""
    if max(row.better, row.worse) < _TYPICAL:
        return "a typical fit"
    word, fraction = ("better", row.better) if row.better >= row.worse else ("worse", row.worse)
    others = "nearly all rows" if fraction >= _NEARLY_ALL else f"{percent(fraction, 1)} of the rows"
    return f"fits {word} than {others}"


def _atoms_text(row: ReportRow) -> str:
    """Name the atoms that a row uses."""
    if not len(row.atoms):
        return "uses no pattern"
    return f"uses {noun(len(row.atoms), 'pattern')} {_atom_links(row)}"


def _atom_links(row: ReportRow) -> str:
    """Return links to the cards of a row's atoms."""
    return listed_names(row.atoms.tolist(), _MAX_ATOMS, lambda atom: f'<a href="#atom-{atom + 1}">{atom + 1}</a>')
