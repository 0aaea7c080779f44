"""Where the bits go: two bars, and the curve of the codelength against the number of atoms, with its three parts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from .curve import Point
from .findings import Findings
from .html.text import count, many, share


class Part(NamedTuple):
    """One of the three parts of a codelength."""

    kind: str  # the class that colours it, and its field in a Codelength
    name: str
    meaning: str


PARTS = (
    Part("errors", "exceptions", "the cells that the patterns get wrong"),
    Part("codes", "uses", "which row uses which patterns"),
    Part("atoms", "patterns", "the patterns themselves"),
)
_TICKS = 5  # at most so many on an axis, beside 0


def where_bits_go(found: Findings) -> str:
    """The section with the bars and the curve."""
    parts = {part.kind: getattr(found.codelength, part.kind) for part in PARTS}
    total = found.codelength.total
    widest = max(found.bits_without, total, 1)
    segments = "".join(_segment(kind, bits, widest) for kind, bits in parts.items())
    lines = "".join(
        f'<tr><th scope="row"><i class="{part.kind}"></i>{part.name}</th><td>{part.meaning}</td>'
        f'<td class="number">{count(parts[part.kind])}</td>'
        f'<td class="number">{share(parts[part.kind], total)}</td></tr>'
        for part in PARTS
    )
    return f"""<section id="bits">
<h2>Where the bits go</h2>
<p>A description is good when it is short. Without patterns, all that can be said of a column is in how many rows it
is a one, and in which. With them, a row is the patterns that it uses, and its exceptions.</p>
<div class="lengths">
{_bar("without patterns", _segment("nothing", found.bits_without, widest), found.bits_without)}
{_bar("with patterns", segments, total)}
</div>
<div class="scroll" role="region" aria-label="The three parts of the description" tabindex="0"><table class="parts">
<thead><tr><th scope="col">part</th><th scope="col">what it says</th><th scope="col" class="number">bits</th>
<th scope="col" class="number">share</th></tr></thead>
<tbody>{lines}</tbody></table></div>
{_afresh(found)}{_curve(found) if found.n_atoms else ""}
</section>"""


def _bar(name: str, segments: str, bits: int) -> str:
    """One bar with its name and its length in bits."""
    return f'<div><span>{name}</span><span class="track">{segments}</span><b>{many(bits, "bit")}</b></div>'


def _segment(kind: str, bits: int, widest: int) -> str:
    """A part of a bar, as wide as its share of the longest."""
    return f'<i class="{kind}" style="width:{100 * bits / widest:.2f}%"></i>'


def _afresh(found: Findings) -> str:
    """A line where the search itself ended with other codes than the rows have here."""
    learned = found.model.codelength.total
    if not found.is_what_was_learned or learned == found.codelength.total:
        return ""
    return (
        f'<p class="note">Rows are coded afresh here, as new ones would be; the search itself ended with '
        f"{many(learned, 'bit')}.</p>"
    )


def _curve(found: Findings) -> str:
    """The codelength with only the most useful atoms: stacked areas, and the numbers in a table."""
    points = found.curve
    most, top = points[-1].atoms, max(1, *(point.bits for point in points))
    x = {point.atoms: 100 * point.atoms / most for point in points}
    floor = [0.0] * len(points)
    areas = []
    for part in reversed(PARTS):
        ceiling = [low + getattr(point, f"bits_{part.kind}") for low, point in zip(floor, points, strict=True)]
        areas.append(f'<polygon class="{part.kind}" points="{_outline(points, x, floor, ceiling, top)}"/>')
        floor = ceiling
    line = " ".join(f"{x[point.atoms]:.2f},{100 - 100 * point.bits / top:.2f}" for point in points)
    best = min(points, key=lambda point: point.bits)
    rows = "".join(
        f'<tr><th scope="row" class="number">{count(point.atoms)}</th>'
        + "".join(f'<td class="number">{count(getattr(point, f"bits_{part.kind}"))}</td>' for part in PARTS)
        + f'<td class="number">{count(point.bits)}</td></tr>'
        for point in points
    )
    heads = "".join(f'<th scope="col" class="number">{part.name}</th>' for part in PARTS)
    says = (
        f"Bits by number of patterns: {count(points[0].bits)} with none, {count(points[-1].bits)} with all "
        f"{count(most)}, fewest ({count(best.bits)}) with {count(best.atoms)}"
    )
    return f"""<h3>How much each further pattern helps</h3>
<figure class="curve">
<p class="legend">{_legend()}</p>
<div class="plot">
<div class="y">{_labels(top, "bottom")}</div>
<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="{says}">
{_grid(top)}{"".join(areas)}<polyline points="{line}"/></svg>
<div class="x">{_labels(most, "left")}</div>
</div>
<p class="axis">bits, by the number of patterns used, the most useful first</p>
<figcaption><p>{_caption(found)}</p>
<details><summary>The numbers</summary>
<div class="scroll" role="region" aria-label="Bits by number of patterns" tabindex="0"><table>
<thead><tr><th scope="col" class="number">patterns</th>{heads}
<th scope="col" class="number">bits in all</th></tr></thead>
<tbody>{rows}</tbody></table></div></details></figcaption>
</figure>"""


def _caption(found: Findings) -> str:
    """What the curve shows, and of which rows."""
    says = "Bits that the table takes when only the most useful patterns are used, each row coded afresh by them."
    if found.model.bias.any():
        says += " With none, the columns that are usually ones still are."
    if found.curve_stride > 1:
        says += f" Between its ends the curve is an estimate, from one row in {found.curve_stride}."
    return says


def _legend() -> str:
    return " ".join(f'<span class="key"><i class="{part.kind}"></i>{part.name}</span>' for part in PARTS)


def _outline(
    points: Sequence[Point], x: dict[int, float], floor: Sequence[float], ceiling: Sequence[float], top: int
) -> str:
    """The corners of the area between two curves: along the upper one, and back along the lower."""
    there = [f"{x[point.atoms]:.2f},{100 - 100 * high / top:.2f}" for point, high in zip(points, ceiling, strict=True)]
    back = [f"{x[point.atoms]:.2f},{100 - 100 * low / top:.2f}" for point, low in zip(points, floor, strict=True)]
    return " ".join([*there, *reversed(back)])


def ticks(most: int) -> list[int]:
    """Round numbers from 0 to at most this, a few of them: steps of 1, 2, 5, 10, 20, ..."""
    steps = (digit * 10**zeros for zeros in itertools.count() for digit in (1, 2, 5))
    step = next(step for step in steps if most // step <= _TICKS)
    return list(range(0, most + 1, step))


def _labels(most: int, side: str) -> str:
    """The numbers along an axis, placed by their share of it."""
    return "".join(f'<span style="{side}:{100 * tick / most:.2f}%">{count(tick)}</span>' for tick in ticks(most))


def _grid(top: int) -> str:
    """A fine line at each number of the upright axis."""
    return "".join(
        f'<line x1="0" x2="100" y1="{100 - 100 * tick / top:.2f}" y2="{100 - 100 * tick / top:.2f}"/>'
        for tick in ticks(top)
    )
