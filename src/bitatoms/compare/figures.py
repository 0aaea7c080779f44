"""Figures of a comparison: wrong cells and bits, against the number of atoms and against seconds."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

from ..html.text import truncated
from ..plots import literal_text
from ..system.libraries import import_library
from .methods import Method
from .results import Dataset, Result, count_seeds

_SIZE = (9.6, 6.4)  # inches
_DPI = 200
_MIN_SECONDS = 1e-4  # shorter times are drawn here
_MAX_TICKS = 8  # numbers of atoms on the axis
_BITATOMS_COLORS = ("#0b5c93", "#1a9a76", "#0b5c93")
# The colour-blind safe palette of Okabe and Ito, without the blues and greens of bitatoms
_OTHER_COLORS = ("#d55e00", "#cc79a7", "#8a6d00", "#5f5b54", "#e69f00", "#7a63d8", "#8c1c1c")
_MARKERS = "ovs^DXP<>hd8"
_MEASURES: dict[str, Callable[[Result, Dataset], float]] = {
    "wrong cells, %": lambda result, table: 100 * result.wrong.median / table.n_cells,
    "bits per row": lambda result, table: result.bits.median / table.shape[0],
}


def draw_figures(table: Dataset, results: Sequence[Result]) -> dict[str, bytes]:
    """Return a PNG file per algebra."""
    done = [result for result in results if result.done]
    algebras = [algebra for algebra in ("or", "xor") if any(algebra in result.method.algebras for result in done)]
    return {algebra: _draw_figure(table, done, algebra) for algebra in algebras}


def file_slugs(names: Sequence[str]) -> list[str]:
    """Return distinct names that are safe in file names."""
    slugs: list[str] = []
    for name in names:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "table"
        number = 1
        while (numbered := slug if number == 1 else f"{slug}-{number}") in slugs:
            number += 1
        slugs.append(numbered)
    return slugs


def _draw_figure(table: Dataset, results: Sequence[Result], algebra: str) -> bytes:
    """Draw the methods of an algebra: wrong cells and bits, each against the number of atoms and against seconds."""
    figure = import_library("matplotlib.figure", "figures need").Figure(_SIZE, layout="constrained")
    medians = f", medians of {count_seeds(results)} seeds" if count_seeds(results) > 1 else ""
    figure.suptitle(literal_text(f"{truncated(table.name)}, {algebra.upper()}{medians}"))
    panels = figure.subplots(2, 2, sharex="col", sharey="row")
    for (by_atoms, by_seconds), (label, measure) in zip(panels, _MEASURES.items(), strict=True):
        for method, style in _line_styles(results, algebra):
            line = [result for result in results if result.method == method]
            heights = [measure(result, table) for result in line]
            by_atoms.plot([result.asked or max(1, result.atoms) for result in line], heights, **style)
            by_seconds.plot([max(result.cpu, _MIN_SECONDS) for result in line], heights, **style)
        # both algebras have the same scale, so that they can be compared
        values = [measure(result, table) for result in results]
        margin = 0.06 * (max(values) - min(values)) or 1.0
        by_atoms.set_ylim(max(0.0, min(values) - margin), max(values) + margin)
        by_atoms.set_ylabel(label)
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e2ded5", linewidth=0.7)
    atoms, seconds = panels[1]
    atoms.set_xscale("log", base=2)
    ticks = list(table.ranks[:: -(-len(table.ranks) // _MAX_TICKS)])
    while 2 * ticks[-1] <= max(result.atoms for result in results):  # a method chose more atoms
        ticks.append(2 * ticks[-1])
    atoms.set_xticks(ticks, map(str, ticks))
    atoms.minorticks_off()
    atoms.set_xlabel("atoms")
    seconds.set_xscale("log")
    seconds.set_xlabel("CPU seconds")
    figure.legend(handles=panels[0, 0].get_lines(), loc="outside right center", frameon=False)
    buffer = io.BytesIO()
    # without a date or version in the metadata, equal figures have equal bytes
    figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return buffer.getvalue()


def _line_styles(results: Sequence[Result], algebra: str) -> list[tuple[Method, dict[str, Any]]]:
    """Return the methods of an algebra, bitatoms first, and the styles of their lines."""
    methods = {each.method.key: each.method for each in results if algebra in each.method.algebras}
    # methods of both algebras come first among the others, so that they have the same style in both
    ordered = sorted(methods.values(), key=lambda method: (not method.is_bitatoms, not method.both_algebras))
    n_ours = sum(method.is_bitatoms for method in ordered)
    colors = [*islice(cycle(_BITATOMS_COLORS), n_ours), *islice(cycle(_OTHER_COLORS), len(ordered) - n_ours)]
    return [
        (
            method,
            {
                "label": literal_text(method.name),
                "color": color,
                "marker": marker,
                "markersize": 5.5 if method.is_bitatoms else 4.5,
                "markeredgecolor": "white",
                "markeredgewidth": 0.5,
                "linewidth": 2.2 if method.is_bitatoms else 1.1,
                "zorder": 3 if method.is_bitatoms else 2,
            },
        )
        for method, color, marker in zip(ordered, colors, cycle(_MARKERS), strict=False)
    ]
