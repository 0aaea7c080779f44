"""The summary section: the result in a few sentences and numbers, for readers who do not know the method."""

from __future__ import annotations

import numpy as np

from ..formatting import percent
from ..html.text import format_count, pluralize
from ..model.result import is_small_saving
from .advice import verdict
from .data import ReportData
from .unknown import unknown_cells


def summary_section(data: ReportData) -> str:
    """Return the section at the top: what was found, and how well it fits."""
    figures = "".join(f"<div><dt>{label}</dt><dd>{number}</dd></div>" for number, label in _key_figures(data))
    sentences = (
        _accuracy(data),
        unknown_cells(data),
        _patterns_per_row(data),
        _training_table(data),
        _other_algebra(data),
    )
    paragraphs = "".join(f"<p>{sentence}</p>" for sentence in sentences if sentence)
    return f"""<section id="summary">
<p class="lede">{_headline(data)}</p>
{f'<dl class="figures">{figures}</dl>' if figures else ""}
<div class="sentences">{paragraphs}</div>
</section>"""


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
    if not data.n_atoms:
        return []
    n_ones, n_missed = int(data.ones.sum()), int(data.missed.sum())
    n_zeros = data.n_known_cells - n_ones
    figures = [(format_count(data.n_atoms), "patterns" if data.n_atoms != 1 else "pattern")]
    if n_ones:
        figures.append((percent(n_ones - n_missed, n_ones), "of the ones are accounted for"))
    if n_zeros:
        figures.append((percent(int(data.invented.sum()), n_zeros), "of the zeros are turned into ones"))
    per_row = int(data.uses.sum()) / data.n_rows
    figures.append((f"{per_row:.{1 if per_row >= 0.1 else 2}f}", "patterns per row, on average"))
    return figures


def _accuracy(data: ReportData) -> str:
    """State how many cells the patterns reproduce."""
    n_ones = int(data.ones.sum())
    n_zeros = data.n_known_cells - n_ones
    if not n_ones:
        return "The table has no ones at all."
    if not n_zeros:
        return "The table has no zeros at all."
    if not data.n_atoms:
        return f"{percent(n_ones, n_ones + n_zeros)} of its cells are ones."
    n_missed, n_invented = int(data.missed.sum()), int(data.invented.sum())
    return (
        f"Of the {pluralize(n_ones, 'one')} in the table the patterns account for {format_count(n_ones - n_missed)} "
        f"and miss {format_count(n_missed)}. They turn {format_count(n_invented)} of the {pluralize(n_zeros, 'zero')} "
        "into ones."
    )


def _patterns_per_row(data: ReportData) -> str:
    """State how many patterns a row uses."""
    if not data.n_atoms:
        return ""
    used = data.codes.row_weights()
    n_without = int((used == 0).sum())
    most = int(used.max())
    if not most:
        return "No row uses a pattern."
    if data.n_rows == 1:
        return f"The row uses {pluralize(most, 'pattern')}."
    median = int(np.sort(used)[(len(used) - 1) // 2])
    without = (
        f"{pluralize(n_without, 'row')} ({percent(n_without, data.n_rows)}) "
        f"{'uses' if n_without == 1 else 'use'} no pattern"
    )
    if not median:
        return f"{without}; none uses more than {format_count(most)}."
    text = f"Half of the rows use {pluralize(median, 'pattern')} or fewer; none uses more than {format_count(most)}."
    return f"{text} {without}." if n_without else text


def _training_table(data: ReportData) -> str:
    """State whether this is the table that the patterns were learned from."""
    if not data.n_atoms:
        return ""
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
