"""The section of groups: how many rows of each group use each pattern, such as of populations or cell types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..formatting import percent
from ..html.text import format_count, name_html, pluralize
from .data import ReportData

_MAX_ATOMS = 60  # columns of the table


def groups_section(data: ReportData) -> str:
    """Return the share of the rows of each group that use each pattern; empty if there are no groups."""
    if data.groups is None or not data.n_atoms:
        return ""
    sizes, uses = _counts(data)
    n_shown = min(data.n_atoms, _MAX_ATOMS)
    # Patterns whose use differs most between groups come first.
    shares = uses / np.maximum(1, sizes)[:, np.newaxis]
    known = sizes > 0
    order = np.argsort(-np.ptp(shares[known], axis=0), kind="stable")[:n_shown]
    head = "".join(f'<th scope="col"><a href="#atom-{atom + 1}">{atom + 1}</a></th>' for atom in order.tolist())
    rows = "".join(
        f'<tr><th scope="row">{name_html(name)}</th><td>{format_count(int(sizes[number]))}</td>'
        f"{_cells(uses[number, order], int(sizes[number]))}</tr>"
        for number, name in enumerate(data.groups.names)
        if known[number]
    )
    others = data.n_atoms - n_shown
    note = f'<p class="note">and {pluralize(others, "further pattern")}</p>' if others else ""
    return f"""<section id="groups">
<h2>By group</h2>
<p>The share of the rows of each group that use each pattern. Patterns whose share differs most come first.</p>
<div class="scroll"><table class="groups">
<thead><tr><th scope="col">group</th><th scope="col">rows</th>{head}</tr></thead>
<tbody>{rows}</tbody></table></div>{note}
</section>"""


def _counts(data: ReportData) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of rows of each group, and how many of them use each pattern."""
    assert data.groups is not None
    n_groups = len(data.groups.names)
    uses = [data.codes[np.flatnonzero(data.groups.numbers == number)].column_weights() for number in range(n_groups)]
    return np.bincount(data.groups.numbers, minlength=n_groups), np.array(uses)


def _cells(uses: NDArray[np.int64], size: int) -> str:
    """Return the cells of one group, darker where more of its rows use the pattern."""
    return "".join(
        f'<td style="--share:{count / max(1, size):.3f}" title="{pluralize(count, "row")}">{percent(count, size)}</td>'
        for count in uses.tolist()
    )
