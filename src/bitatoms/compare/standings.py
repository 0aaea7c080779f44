"""Tables in which contenders stand one below the other, with the best of each column marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..report.html.tables import format_cell
from ..report.html.text import escape
from .comparison import Comparison, Dataset, Result, Spread

_TEXTS = 2  # the contender and its algebra
_DIGITS = 2  # of a per cent of the cells
_MARKS = re.compile(r"([\\`*_\[\]<>|#&~])")
NOTHING = "–"


class Standings(NamedTuple):
    """A table of contenders, figures as they are read; ``best`` are the cells to mark, by row and column."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]]
    ours: frozenset[int]  # rows of bitatoms
    notes: tuple[str, ...] = ()
    texts: int = _TEXTS  # columns, from the left, that hold no figures

    def to_markdown(self) -> str:
        """The table as Markdown, the best in bold."""
        lines = [
            self.columns,
            tuple("---" if column < self.texts else "---:" for column in range(len(self.columns))),
            *(
                tuple(f"**{plain(cell)}**" if (i, j) in self.best else plain(cell) for j, cell in enumerate(row))
                for i, row in enumerate(self.rows)
            ),
        ]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def to_html(self, says: str) -> str:
        """The table as HTML that scrolls within itself where it is wide; ``says`` is what it is of."""
        kinds = ["" if column < self.texts else ' class="number"' for column in range(len(self.columns))]
        head = "".join(
            f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(self.columns, kinds, strict=True)
        )
        wraps = " texts" if self.texts == len(self.columns) else ""
        body = []
        for i, row in enumerate(self.rows):
            cells = [f"<b>{escape(cell)}</b>" if (i, j) in self.best else escape(cell) for j, cell in enumerate(row)]
            rest = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(cells[1:], kinds[1:], strict=True))
            ours = ' class="ours"' if i in self.ours else ""
            body.append(f'<tr{ours}><th scope="row">{cells[0]}</th>{rest}</tr>')
        return (
            f'<div class="scroll" role="region" aria-label="{escape(says)}" tabindex="0">'
            f'<table class="standings{wraps}">'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        )


def plain(name: str) -> str:
    """Anything as it is in Markdown, whatever marks it holds."""
    return _MARKS.sub(r"\\\1", " ".join(name.split()))


def fewest_wrong(comparison: Comparison, table: Dataset) -> Standings:
    """The share of wrong cells by the number of atoms, the fewest in each algebra marked."""
    results = [result for result in comparison.results(table) if not result.contender.chooses]
    by_place = {(result.contender.key, result.asked): result for result in results}
    there = {result.contender.key: result.contender for result in results}

    def order(place: tuple[str, str]) -> tuple[str, list[float]]:
        """By algebra, and the best with most atoms first."""
        algebra, key = place
        reached = [by_place.get((key, rank)) for rank in reversed(table.ranks)]
        return algebra, [each.wrong.middle if each and each.done else float("inf") for each in reached]

    places = sorted(((algebra, key) for key, each in there.items() for algebra in each.algebras), key=order)
    rows, best = [], set()
    for i, (algebra, key) in enumerate(places):
        some = [by_place.get((key, rank)) for rank in table.ranks]
        shares = [_cell(result, table) for result in some]
        rows.append((there[key].name, algebra.upper(), *shares, _seconds(some[-1])))
        rivals = [other for where, other in places if where == algebra]
        for j, result in enumerate(some):
            wrongs = _wrongs([by_place.get((other, table.ranks[j])) for other in rivals])
            if result and result.done and _same(result.wrong.middle, min(wrongs), table):
                best.add((i, _TEXTS + j))
    ranks = [f"{rank} atom{'' if rank == 1 else 's'}" for rank in table.ranks]
    return Standings(
        f"Wrong cells, in per cent{_medians(comparison)}",
        ("contender", "algebra", *ranks, f"CPU s, {ranks[-1]}"),
        tuple(rows),
        frozenset(best),
        frozenset(i for i, (_, key) in enumerate(places) if there[key].ours),
        _reasons(results),
    )


def fewest_bits(comparison: Comparison, table: Dataset) -> Standings:
    """The shortest description that each contender came to, with whichever number of atoms."""
    shortest: dict[str, Result] = {}
    for result in comparison.results(table):
        key = result.contender.key
        if result.done and (key not in shortest or result.bits.middle < shortest[key].bits.middle):
            shortest[key] = result
    results = sorted(shortest.values(), key=lambda result: result.bits.middle)
    rows = [
        (
            result.contender.name,
            result.contender.algebra_label,
            _spread(result.bits, 1, 0),
            f"{100 * result.bits.middle / max(1, table.bits_without):.1f}",
            str(result.atoms),
            f"{100 * result.wrong.middle / table.n_cells:.{_DIGITS}f}",
            _seconds(result),
        )
        for result in results
    ]
    least = results[0].bits.middle if results else None
    return Standings(
        f"Bits, with the number of atoms that needs fewest{_medians(comparison)}",
        ("contender", "algebra", "bits", "% of no model", "atoms", "wrong cells, %", "CPU s"),
        tuple(rows),
        frozenset((i, _TEXTS) for i, result in enumerate(results) if result.bits.middle == least),
        frozenset(i for i, result in enumerate(results) if result.contender.ours),
        (f"Without a model the table takes {table.bits_without:,} bits.",),
    )


def overview(comparison: Comparison) -> Standings:
    """Who is best on each table: in wrong cells with the most atoms, in either algebra, and in bits."""
    rows = []
    for table in comparison.tables:
        done = [result for result in comparison.results(table) if result.done]
        most = [result for result in done if result.asked == table.ranks[-1]]
        by_algebra = [[each for each in most if algebra in each.contender.algebras] for algebra in ("or", "xor")]
        cells = [_first(some, table) for some in by_algebra]
        least = min(done, key=lambda each: each.bits.middle, default=None)
        bits = NOTHING if least is None else f"{least.contender.label}, {least.bits.middle / table.shape[0]:.1f} a row"
        rows.append((table.name, str(table.ranks[-1]), *cells, bits))
    median = " (medians)" if comparison.n_seeds > 1 else ""
    columns = (
        "data",
        "atoms asked",
        f"fewest wrong cells, OR{median}",
        f"fewest wrong cells, XOR{median}",
        f"fewest bits, any number of atoms{median}",
    )
    return Standings("Who is best", columns, tuple(rows), frozenset(), frozenset(), (), len(columns))


def _medians(comparison: Comparison) -> str:
    """What figures are where there are several of each."""
    return ": median (range)" if comparison.n_seeds > 1 else ""


def _first(results: Sequence[Result], table: Dataset) -> str:
    """Who gets the fewest cells wrong, and how many."""
    if not results:
        return NOTHING
    least = min(_wrongs(results))
    first = next(result for result in results if result.wrong.middle == least)
    equal = [result.contender for result in results if _same(result.wrong.middle, least, table)]
    also = [
        each.name for each in equal if each.name != first.contender.name and not (each.ours and first.contender.ours)
    ]
    others = f" (also {', '.join(also)})" if also else ""
    return f"{first.contender.name}, {100 * least / table.n_cells:.{_DIGITS}f} %{others}"


def _cell(result: Result | None, table: Dataset) -> str:
    """A share of wrong cells, or why there is none."""
    if result is None:
        return NOTHING
    if result.done:
        return _spread(result.wrong, 100 / table.n_cells, _DIGITS)
    return result.why_not.partition(":")[0]


def _spread(figures: Spread, times: float, digits: int) -> str:
    """The middle, and the range where there is one."""
    middle, least, most = (f"{times * figure:,.{digits}f}" for figure in figures)
    return middle if least == most else f"{middle} ({least}–{most})"


def _seconds(result: Result | None) -> str:
    """CPU seconds."""
    return format_cell(float(result.cpu)) if result is not None and result.done else NOTHING


def _wrongs(results: Sequence[Result | None]) -> list[float]:
    """The wrong cells of those that have figures."""
    return [result.wrong.middle for result in results if result is not None and result.done]


def _same(one: float, other: float, table: Dataset) -> bool:
    """Whether two numbers of wrong cells are the same as far as the digits go that are shown."""
    return f"{100 * one / table.n_cells:.{_DIGITS}f}" == f"{100 * other / table.n_cells:.{_DIGITS}f}"


def _reasons(results: Sequence[Result]) -> tuple[str, ...]:
    """Why figures are missing, once for each contender."""
    said: dict[str, str] = {}
    for result in results:
        if result.why_not:
            said.setdefault(result.contender.key, f"{result.contender.label}, {_asked(result)}: {result.why_not}.")
    return tuple(said.values())


def _asked(result: Result) -> str:
    """What a contender was asked for."""
    return "its own choice" if result.asked is None else f"{result.asked} atom{'' if result.asked == 1 else 's'}"
