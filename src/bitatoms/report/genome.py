"""The section of the genome: where on the chromosomes the patterns are, if columns have positions."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..columns.variants import are_variants, chromosomes_of, plain_chromosomes, regions
from ..html.document import Section, more, section
from ..html.text import escape, format_count, pluralize
from .data import ReportData

_MAX_ATOMS = 100  # drawn
_MAX_MARKS = 300  # of a line; more could not be told apart


class Positions(NamedTuple):
    """Where on the genome features are, and chromosomes begin and end, between 0 and 1, all on one line."""

    places: NDArray[np.float64]
    where: list[str]  # the same in words
    edges: list[float]
    chromosomes: list[str]


def positions_of(data: ReportData) -> Positions | None:
    """Return where on the genome features are; None if columns have no positions."""
    about = data.column_data
    order = regions(about)
    if order is None or not are_variants(about):
        return None
    labels, position = chromosomes_of(about), np.asarray(about["position"])
    chromosome = np.array([*plain_chromosomes(labels.categories)], object)[labels.codes]
    where = [f"{name}:{format_count(int(base))}" for name, base in zip(chromosome, position, strict=True)]
    places, edges = _places(position, order)
    return Positions(places, where, edges, [str(chromosome[columns[0]]) for columns in order])


def genome_section(data: ReportData) -> Section:
    """Return the patterns as lines along the genome; empty if columns have no positions."""
    positions = positions_of(data)
    if positions is None or not data.n_atoms:
        return Section("")
    place, where, edges, chromosomes = positions
    bits = [np.flatnonzero(data.model.atoms[atom]) for atom in range(min(data.n_atoms, _MAX_ATOMS))]
    shown = sorted((atom for atom, own in enumerate(bits) if len(own)), key=lambda atom: place[bits[atom]].min())
    lines = "".join(_line(atom, bits[atom], place, where) for atom in shown)
    marks = "".join(f'<i style="left:{100 * edge:.3f}%"></i>' for edge in edges[1:-1])
    axis = "".join(
        f'<span style="left:{100 * left:.3f}%;width:{100 * (right - left):.3f}%">{escape(name)}</span>'
        for name, (left, right) in zip(chromosomes, pairwise(edges), strict=True)
    )
    body = f"""<p>Each line is a pattern, from its first to its last variant; the marks are its variants. Chromosomes
are as long as the stretches of their variants.</p>
<div class="genome">
<ol>{lines}</ol>
<div class="edges" aria-hidden="true">{marks}</div>
<div class="chromosomes">{axis}</div>
</div>{more(data.n_atoms - _MAX_ATOMS, "further pattern")}"""
    return section("genome", "Along the genome", body, title="Genome")


def _places(
    position: NDArray[np.int64], order: tuple[NDArray[np.intp], ...]
) -> tuple[NDArray[np.float64], list[float]]:
    """Return where between 0 and 1 each column is, and where the chromosomes begin and end, all on one line."""
    place, edges = np.zeros(len(position)), [0.0]
    lengths = [int(position[columns[-1]] - position[columns[0]]) + 1 for columns in order]
    for columns, length in zip(order, lengths, strict=True):
        share = length / sum(lengths)
        place[columns] = edges[-1] + share * (position[columns] - position[columns[0]]) / length
        edges.append(edges[-1] + share)
    return place, edges


def _line(atom: int, features: NDArray[np.intp], place: NDArray[np.float64], where: list[str]) -> str:
    """Return the line of one pattern; ``where`` are the places of columns in words."""
    features = features[np.argsort(place[features], kind="stable")]
    span = f"{pluralize(len(features), 'column')}, {where[features[0]]} to {where[features[-1]]}"
    at = np.unique(place[features].round(4))
    length = float(at[-1] - at[0])
    shown = at[np.linspace(0, len(at) - 1, min(len(at), _MAX_MARKS)).astype(int)]
    marks = "".join(f'<i style="left:{100 * (each - at[0]) / max(length, 1e-9):.2f}%"></i>' for each in shown)
    return (
        f'<li><a href="#atom-{atom + 1}" title="{escape(span)}">{atom + 1}</a>'
        f'<div><span style="left:{100 * at[0]:.3f}%;width:{100 * length:.3f}%">{marks}</span></div></li>'
    )
