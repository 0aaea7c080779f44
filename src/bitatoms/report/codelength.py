"""The codelength section: bars of its three parts, and the codelength as a function of the number of atoms."""

from __future__ import annotations

from itertools import count, pairwise

import numpy as np

from ..formatting import percent
from ..html.document import Section, section
from ..html.tables import DataTable, table_html
from ..html.text import format_count, pluralize
from .data import ReportData

PARTS = {  # fields of a Codelength, and CSS classes: what a page calls them, and what they mean
    "errors": ("exceptions", "the cells that the patterns get wrong"),
    "codes": ("uses", "which row uses which patterns"),
    "atoms": ("patterns", "the patterns themselves"),
}
_MAX_TICKS = 5  # on an axis, besides 0


def codelength_section(data: ReportData) -> Section:
    """Return the section with the bars and the curve."""
    total, bits = data.codelength.total, {part: getattr(data.codelength, part) for part in PARTS}
    longest = max(data.bits_without, total, 1)
    segments = "".join(_segment(part, n, longest) for part, n in bits.items())
    rows = [
        (f'<i class="{part}"></i>{name}', meaning, format_count(bits[part]), percent(bits[part], total))
        for part, (name, meaning) in PARTS.items()
    ]
    table = table_html(
        ("part", "what it describes", "bits", "share"),
        rows,
        (False, False, True, True),
        "The three parts of the description",
        "parts",
    )
    body = f"""<p>A short description is a good one. Without patterns, the description of a column is the number of its
ones and the rows that they are in. With patterns, the description of a row is the patterns that it uses and its
exceptions.</p>
<div class="lengths">
{_bar("without patterns", _segment("nothing", data.bits_without, longest), data.bits_without)}
{_bar("with patterns", segments, total)}
</div>
{table}
{_recoding_note(data)}{_curve(data) if data.n_atoms else ""}"""
    return section("bits", "Where the bits go", body)


def _bar(name: str, segments: str, bits: int) -> str:
    """Return one bar with its name and its length in bits."""
    return f'<div><span>{name}</span><span class="track">{segments}</span><b>{pluralize(bits, "bit")}</b></div>'


def _segment(key: str, bits: int, longest: int) -> str:
    """Return a segment of a bar; the longest bar is 100% wide."""
    return f'<i class="{key}" style="width:{100 * bits / longest:.2f}%"></i>'


def _recoding_note(data: ReportData) -> str:
    """Return a note if coding the training table again gives another codelength than the search."""
    recoded, learned = data.curve[-1].bits, data.model.codelength.total
    if not data.is_training_table or learned == recoded:
        return ""
    return (
        f'<p class="note">The search ended with {pluralize(learned, "bit")}. In the curve and below, rows are '
        f"coded again, as new ones would be, which takes {pluralize(recoded, 'bit')}. "
        "<code>bitatoms fit --codes</code> writes the codes of the search.</p>"
    )


def _curve(data: ReportData) -> str:
    """Return the curve as stacked areas, and its numbers in a table."""
    points = data.curve
    most, top = points[-1].atoms, max(1, *(point.bits for point in points))
    n_bits = [[getattr(point, f"bits_{part}") for point in points] for part in reversed(PARTS)]
    lines = [
        [
            f"{100 * point.atoms / most:.2f},{100 - 100 * bits / top:.2f}"
            for point, bits in zip(points, line, strict=True)
        ]
        for line in np.cumsum([[0] * len(points), *n_bits], axis=0).tolist()
    ]
    areas = "".join(
        f'<polygon class="{part}" points="{" ".join([*upper, *reversed(lower)])}"/>'
        for part, (lower, upper) in zip(reversed(PARTS), pairwise(lines), strict=True)
    )
    best = min(points, key=lambda point: point.bits)
    names = [name for name, _ in PARTS.values()]
    table = DataTable.from_rows(("patterns used", *names, "total bits"), [(*point, point.bits) for point in points])
    legend = " ".join(
        f'<span class="key"><i class="{part}"></i>{name}</span>' for part, name in zip(PARTS, names, strict=True)
    )
    grid = "".join(
        f'<line x1="0" x2="100" y1="{100 - 100 * tick / top:.2f}" y2="{100 - 100 * tick / top:.2f}"/>'
        for tick in ticks(top)
    )
    label = (
        f"Bits by number of patterns: {format_count(points[0].bits)} with none, {format_count(points[-1].bits)} with "
        f"all {format_count(most)}, fewest ({format_count(best.bits)}) with {format_count(best.atoms)}"
    )
    return f"""<h3>How much each further pattern helps</h3>
<figure class="curve">
<p class="legend">{legend}</p>
<div class="plot">
<div class="y">{_tick_labels(top, "bottom")}</div>
<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="{label}">
{grid}{areas}<polyline points="{" ".join(lines[-1])}"/></svg>
<div class="x">{_tick_labels(most, "left")}</div>
</div>
<p class="axis">bits by number of patterns used, most useful patterns first</p>
<figcaption><p>{_caption(data)}</p>
<details><summary>The numbers</summary>
{table.to_html("Bits by number of patterns")}</details></figcaption>
</figure>"""


def _caption(data: ReportData) -> str:
    """Explain the curve, and which rows it was computed from."""
    text = "The bits that describe the table with only the most useful patterns. Rows are coded again each time."
    if data.model.bias.any():
        text += " With no pattern, the bias still applies."
    if data.curve_stride > 1:
        text += f" Between its ends the curve is estimated from one row in {data.curve_stride}."
    return text


def ticks(maximum: int) -> list[int]:
    """Return a few round numbers from 0 to at most ``maximum``, in steps of 1, 2, 5, 10, 20, ..."""
    steps = (digit * 10**zeros for zeros in count() for digit in (1, 2, 5))
    step = next(step for step in steps if maximum // step <= _MAX_TICKS)
    return list(range(0, maximum + 1, step))


def _tick_labels(maximum: int, side: str) -> str:
    """Return the numbers along an axis, positioned from this side."""
    return "".join(
        f'<span style="{side}:{100 * tick / maximum:.2f}%">{format_count(tick)}</span>' for tick in ticks(maximum)
    )
