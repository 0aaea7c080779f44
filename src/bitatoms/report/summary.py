"""What was found, in words, for people who have a table and never read the paper."""

from __future__ import annotations

import numpy as np

from .findings import Findings
from .html.text import count, many, share

_HARDLY = 0.02  # saved less than this, a table has next to no patterns


def summary(found: Findings) -> str:
    """The section at the top: what was found, and how well it fits."""
    figures = "".join(f"<div><dt>{what}</dt><dd>{number}</dd></div>" for number, what in _figures(found))
    told = "".join(f"<p>{says}</p>" for says in (_how_well(found), _a_row(found), _which_table(found)) if says)
    return f"""<section id="summary">
<p class="lede">{_verdict(found)}</p>
{f'<dl class="figures">{figures}</dl>' if figures else ""}
<div class="told">{told}</div>
</section>"""


def _verdict(found: Findings) -> str:
    """The one sentence that matters."""
    total, without = found.codelength.total, found.bits_without
    shape = f"{many(found.n_rows, 'row')} and {many(found.n_features, 'column')}"
    if not found.explains:
        return (
            f"No pattern makes the description of {shape} shorter: the table has none, or the search did not find them."
        )
    saved = without - total
    by = many(found.n_atoms, "pattern") if found.n_atoms else "To know what is usually a one"
    says = f"{by} {'make' if found.n_atoms > 1 else 'makes'} the description of {shape}"
    if saved <= 0:
        return f"{says} no shorter: {many(total, 'bit')}, and {count(without)} without."
    says += f" <b>{share(saved, without)} shorter</b>: {many(total, 'bit')} instead of {count(without)}."
    if saved < _HARDLY * without:
        says += " That is hardly less: the table has few such patterns, or the search did not find them."
    return says


def _figures(found: Findings) -> list[tuple[str, str]]:
    """The few numbers to remember."""
    if not found.n_atoms:
        return []
    ones, missed = int(found.ones.sum()), int(found.missed.sum())
    cells = found.n_rows * found.n_features
    figures = [(count(found.n_atoms), "patterns" if found.n_atoms != 1 else "pattern")]
    if ones:
        figures.append((share(ones - missed, ones), "of the ones are accounted for"))
    if cells > ones:
        figures.append((share(int(found.invented.sum()), cells - ones), "of the zeros are taken for ones"))
    uses = int(found.uses.sum())
    a_row = uses / found.n_rows
    figures.append((f"{a_row:.{1 if a_row >= 0.1 else 2}f}", "patterns in a row, on average"))
    return figures


def _how_well(found: Findings) -> str:
    """How much of the table the patterns give back."""
    ones, zeros = int(found.ones.sum()), found.n_rows * found.n_features - int(found.ones.sum())
    if not ones:
        return "The table has no ones at all."
    if not zeros:
        return "The table has no zeros at all."
    if not found.n_atoms:
        return f"{share(ones, ones + zeros)} of its cells are ones."
    missed, invented = int(found.missed.sum()), int(found.invented.sum())
    return (
        f"Of the {many(ones, 'one')} in the table the patterns account for {count(ones - missed)}; they miss "
        f"{count(missed)}, and take {count(invented)} of the {many(zeros, 'zero')} for ones."
    )


def _a_row(found: Findings) -> str:
    """How many patterns a row uses."""
    if not found.n_atoms:
        return ""
    used = found.codes.row_weights()
    none = int((used == 0).sum())
    most = int(used.max())
    if not most:
        return "No row uses a pattern."
    if found.n_rows == 1:
        return f"The row uses {many(most, 'pattern')}."
    middle = int(np.sort(used)[(len(used) - 1) // 2])
    lacking = f"{many(none, 'row')} ({share(none, found.n_rows)}) {'uses' if none == 1 else 'use'} no pattern"
    if not middle:
        return f"{lacking}; none uses more than {count(most)}."
    says = f"Half of the rows use {many(middle, 'pattern')} or fewer; none uses more than {count(most)}."
    return f"{says} {lacking}." if none else says


def _which_table(found: Findings) -> str:
    """Whether these are the rows that the patterns were learned from."""
    if not found.n_atoms:
        return ""
    if found.is_what_was_learned:
        return "This is the table that the patterns were learned from."
    return (
        "This is not the table that the patterns were learned from, which had "
        f"{many(found.model.n_samples, 'row')}: the page says how well they fit rows that may be new to them."
    )
