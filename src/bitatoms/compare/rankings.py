"""Rankings of the methods on a table, with the best values marked, and the best methods in a line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from ..formatting import counted
from ..html.tables import format_cell
from .methods import Method
from .results import Dataset, Result, Spread, count_seeds

TEXT_COLUMNS = 2  # of a ranking: the method and its algebra; the others are numbers
NO_VALUE = "–"


class Ranking(NamedTuple):
    """A table of methods with formatted values."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]]  # cells to mark, as (row, column)
    notes: tuple[str, ...]


class Verdict(NamedTuple):
    """The best method by a criterion, and the best of the other side: bitatoms, or the other methods."""

    criterion: str
    best: str
    rival: str


def rank_by_wrong_cells(table: Dataset, results: Sequence[Result]) -> Ranking:
    """Rank by the share of wrong cells per number of atoms, and mark the lowest of each algebra."""
    results = [result for result in results if not result.method.chooses_rank]
    by_rank = {(result.method.key, result.asked): result for result in results}
    methods = {result.method.key: result.method for result in results}
    rows: list[tuple[str, ...]] = []
    best = set()
    for algebra in ("or", "xor"):
        rivals = [
            (method, [by_rank.get((key, rank)) for rank in table.ranks])
            for key, method in methods.items()
            if algebra in method.algebras
        ]
        rivals.sort(key=lambda rival: [_wrong(result) for result in reversed(rival[1])])
        least = [min(map(_wrong, column)) for column in zip(*(of_method for _, of_method in rivals), strict=True)]
        for method, of_method in rivals:
            for column, (result, lowest) in enumerate(zip(of_method, least, strict=True), TEXT_COLUMNS):
                if _wrong(result) < inf and _percent(_wrong(result), table) == _percent(lowest, table):
                    best.add((len(rows), column))
            shares = [_wrong_text(result, table) for result in of_method]
            rows.append((method.name, algebra.upper(), *shares, _seconds_text(of_method[-1])))
    ranks = [counted(rank, "atom") for rank in table.ranks]
    return Ranking(
        f"Wrong cells in percent{_heading_end(results)}",
        ("method", "algebra", *ranks, f"CPU s, {ranks[-1]}"),
        tuple(rows),
        frozenset(best),
        _failure_notes(results),
    )


def rank_by_bits(table: Dataset, results: Sequence[Result]) -> Ranking:
    """Rank by the shortest codelength of each method over all numbers of atoms."""
    shortest: dict[str, Result] = {}
    for result in sorted((each for each in results if each.done), key=_bits):
        shortest.setdefault(result.method.key, result)
    ranked = list(shortest.values())
    rows = [
        (
            result.method.name,
            result.method.algebra_label,
            _spread_text(result.bits, 1, 0),
            f"{100 * _bits(result) / max(1, table.bits_without):.1f}",
            str(result.atoms),
            _percent(_wrong(result), table),
            _seconds_text(result),
        )
        for result in ranked
    ]
    return Ranking(
        f"Bits at the best number of atoms{_heading_end(results)}",
        ("method", "algebra", "bits", "% of no model", "atoms", "wrong cells, %", "CPU s"),
        tuple(rows),
        frozenset((i, TEXT_COLUMNS) for i, result in enumerate(ranked) if _bits(result) == _bits(ranked[0])),
        (f"Without a model the table takes {table.bits_without:,} bits.",),
    )


def find_best(table: Dataset, results: Sequence[Result]) -> list[Verdict]:
    """Return the best methods: by wrong cells with the most atoms in each algebra, and by bits."""
    done = [result for result in results if result.done]
    most = [result for result in done if result.asked == table.ranks[-1]]
    verdicts = [
        _verdict(
            f"fewest wrong cells with {counted(table.ranks[-1], 'atom')}, {algebra.upper()}",
            [result for result in most if algebra in result.method.algebras],
            _wrong,
            lambda method: method.name,
            lambda wrong: f"{_percent(wrong, table)} %",
        )
        for algebra in ("or", "xor")
    ]
    bits = _verdict(
        "fewest bits, any number of atoms",
        done,
        _bits,
        lambda method: method.label,
        lambda bits: f"{bits / table.shape[0]:.1f} per row",
    )
    return [*verdicts, bits]


def summarize(table: Dataset, results: Sequence[Result]) -> list[str]:
    """Return the best methods in a line each, and what the values are if there are several seeds."""
    n_seeds = count_seeds(results)
    median = " in the median" if n_seeds > 1 else ""
    lines = [
        f"{criterion[0].upper()}{criterion[1:]}{median}: {best}{rival and f'; {rival}'}."
        for criterion, best, rival in find_best(table, results)
        if best != NO_VALUE
    ]
    if n_seeds > 1:
        lower = "" if n_seeds % 2 else " (the lower of the two middle values)"
        lines.append(
            f"Values are medians over {n_seeds} seeds{lower}, "
            "taken separately for the number of atoms, wrong cells, bits and seconds."
        )
    return lines or ["No run has finished."]


def _verdict(
    criterion: str,
    results: Sequence[Result],
    value: Callable[[Result], float],
    name: Callable[[Method], str],
    shown: Callable[[float], str],
) -> Verdict:
    """Return the best result by a value, others that are shown with the same value, and the best of the other side."""
    if not results:
        return Verdict(criterion, NO_VALUE, "")
    best = min(results, key=lambda result: (value(result), not result.method.is_bitatoms))
    is_ours, text = best.method.is_bitatoms, shown(value(best))
    equal = [each.method for each in results if shown(value(each)) == text]
    others = [name(each) for each in equal if not (is_ours and each.is_bitatoms) and name(each) != name(best.method)]
    also = f" (also {', '.join(dict.fromkeys(others))})" if others else ""
    rival = min((each for each in results if each.method.is_bitatoms != is_ours), key=value, default=best)
    side = "the best other method" if is_ours else "the best of bitatoms"
    rest = "" if rival.method in equal else f"{side}: {name(rival.method)}, {shown(value(rival))}"
    return Verdict(criterion, f"{name(best.method)}, {text}{also}", rest)


def _wrong(result: Result | None) -> float:
    """Return the median of the number of wrong cells; infinity if there is no result."""
    return result.wrong.median if result is not None and result.done else inf


def _bits(result: Result) -> float:
    """Return the median of the codelength."""
    return result.bits.median


def _heading_end(results: Sequence[Result]) -> str:
    """Return the end of a heading: what the values are if there are several seeds."""
    return ": median (range)" if count_seeds(results) > 1 else ""


def _percent(wrong: float, table: Dataset) -> str:
    """Return a number of wrong cells in percent, as it is shown."""
    return f"{100 * wrong / table.n_cells:.2f}"


def _wrong_text(result: Result | None, table: Dataset) -> str:
    """Return a share of wrong cells, or "failed" or "not run"."""
    if result is None:
        return NO_VALUE
    return _spread_text(result.wrong, 100 / table.n_cells, 2) if result.done else result.why_not.partition(":")[0]


def _spread_text(spread: Spread, scale: float, digits: int) -> str:
    """Return the median, followed by the range unless it is a single value."""
    median, least, most = (f"{scale * value:,.{digits}f}" for value in spread)
    return median if least == most else f"{median} ({least}–{most})"


def _seconds_text(result: Result | None) -> str:
    """Return the CPU seconds."""
    return format_cell(float(result.cpu)) if result is not None and result.done else NO_VALUE


def _failure_notes(results: Sequence[Result]) -> tuple[str, ...]:
    """Return why results are missing, once per method."""
    notes: dict[str, str] = {}
    for result in results:
        if result.why_not:
            atoms = counted(result.asked or 0, "atom")
            notes.setdefault(result.method.key, f"{result.method.label}, {atoms}: {result.why_not}.")
    return tuple(notes.values())
