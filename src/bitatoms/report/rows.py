"""Rows before and after: those chosen, and those that fit worst."""

from __future__ import annotations

import numpy as np

from .findings import Findings, Row
from .html.text import chips, count, many, name, share
from .pictures import KEY, before_and_after

_RIGHT, _WRONG = 40, 20  # names of a chosen row that are shown: right ones, and missed or invented ones
_FEW = 12  # names that a row among the worst shows of what is missed, and of what is invented
_SIDE = 88  # pixels of the screen that a row takes as a picture
_NEARLY_ALL = 0.99
_TYPICAL = 0.55  # a row that fits neither better nor worse than this share of the rows is a typical one
_FEW_ATOMS = 12  # atoms that are named of those that a row uses


def chosen_rows(found: Findings) -> str:
    """The section that shows some rows before and after."""
    return f"""<section id="rows">
<h2>Rows before and after</h2>
<p>{_introduction(found)}</p>
<p class="legend">{_key(found)}</p>
<ul role="list" class="rows {_kind(found)}">{"".join(_row(found, found.row(number)) for number in found.chosen)}</ul>
</section>"""


def worst_rows(found: Findings) -> str:
    """The section with the rows that take most bits."""
    rows = [found.row(number) for number in found.worst]
    typical = float(np.median(found.row_bits))
    begin = f"""<section id="worst">
<h2>Rows that fit worst</h2>
<p>They take most bits: what they hold is rare, or in no pattern. A typical row takes {_bits(typical)}.</p>"""
    if found.picture is not None:
        shown = "".join(_row(found, row) for row in rows)
        return f'{begin}<ul role="list" class="rows pictures">{shown}</ul></section>'
    most = max((row.bits for row in rows), default=1.0) or 1.0
    lines = "".join(_line(found, row, most) for row in rows)
    return f"""{begin}
<table class="worst"><thead><tr><th scope="col">row</th><th scope="col" class="number">bits</th>
<th scope="col">patterns</th><th scope="col">missed</th><th scope="col">invented</th></tr></thead>
<tbody>{lines}</tbody></table></section>"""


def _kind(found: Findings) -> str:
    return "names" if found.picture is None else "pictures"


def _introduction(found: Findings) -> str:
    """Which rows these are."""
    if found.picture is not None:
        return "Each row as it is, what its patterns make of it, and what is wrong in that."
    return "What each row holds, and what its patterns make of it. What both have is not marked."


def _key(found: Findings) -> str:
    """What the marks mean."""
    if found.picture is not None:
        return KEY
    return (
        '<span class="key"><span class="chips"><span class="missed">missed</span></span> it has this, its patterns do '
        'not</span> <span class="key"><span class="chips"><span class="invented">invented</span></span> its patterns '
        "have this, it does not</span>"
    )


def _row(found: Findings, row: Row) -> str:
    """A row with its names or pictures."""
    wrong = len(row.missed) + len(row.invented)
    right = "no cell wrong" if not wrong else f"{many(wrong, 'cell')} wrong"
    facts = f"{_bits(row.bits)}, {_place(row)}; {right}; {_atoms(row)}"
    if found.picture is not None:
        body = f'<div class="triple">{before_and_after(row, found.picture.tile, _SIDE)}</div>'
    else:
        body = f'<ul class="chips">{_marked(found, row)}</ul>'
    return f"<li><h3>{name(row.name)}</h3>{body}<p class='facts'>{facts}</p></li>"


def _marked(found: Findings, row: Row) -> str:
    """The features of a row, or of what its atoms make of it, each marked as right, missed or invented."""
    kinds = (
        ("", np.flatnonzero(row.data & row.made), _RIGHT),
        ("missed", row.missed, _WRONG),
        ("invented", row.invented, _WRONG),
    )
    told = ""
    for kind, features, most in kinds:
        told += chips(found.names_of(features[:most]), kind)
        if len(features) > most:
            told += f'<li class="more {kind}">and {count(len(features) - most)} more</li>'
    return told or '<li class="more">nothing at all</li>'


def _line(found: Findings, row: Row, most: float) -> str:
    """A row among the worst."""
    cells = "".join(
        f'<td data-label="{kind}"><ul class="chips">{_some(found.names_of(features), kind)}</ul></td>'
        for kind, features in (("missed", row.missed), ("invented", row.invented))
    )
    return (
        f'<tr><th scope="row">{name(row.name)}</th>'
        f'<td class="number" data-label="bits">{row.bits:,.0f}'
        f'<span class="bar"><i class="errors" style="width:{100 * row.bits / most:.1f}%"></i></span></td>'
        f'<td data-label="patterns">{_links(row) or "–"}</td>{cells}</tr>'
    )


def _some(names: tuple[str, ...], kind: str) -> str:
    """The first names, and how many more there are."""
    if not names:
        return '<li class="more">–</li>'
    more = f'<li class="more">and {count(len(names) - _FEW)} more</li>' if len(names) > _FEW else ""
    return chips(names[:_FEW], kind) + more


def _bits(bits: float) -> str:
    """Bits of one row."""
    return f"{bits:,.0f} bits" if round(bits) != 1 else "1 bit"


def _place(row: Row) -> str:
    """How a row fits, compared with the others."""
    if max(row.better, row.worse) < _TYPICAL:
        return "a typical fit"
    way, part = ("better", row.better) if row.better >= row.worse else ("worse", row.worse)
    return f"fits {way} than {share(part, 1)} of the rows" if part < _NEARLY_ALL else f"fits {way} than nearly all rows"


def _atoms(row: Row) -> str:
    """The atoms that a row uses."""
    if not len(row.atoms):
        return "uses no pattern"
    return f"uses {'pattern' if len(row.atoms) == 1 else 'patterns'} {_links(row)}"


def _links(row: Row) -> str:
    """Links to the cards of a row's atoms."""
    some = ", ".join(f'<a href="#atom-{atom + 1}">{atom + 1}</a>' for atom in row.atoms[:_FEW_ATOMS].tolist())
    more = len(row.atoms) - _FEW_ATOMS
    return some + (f" and {more} more" if more > 0 else "")
