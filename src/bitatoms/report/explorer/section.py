"""The section to explore a result: views of patterns, rows and features, which the script of the page fills."""

from __future__ import annotations

from ...html.text import format_count, pluralize
from ..data import ReportData
from .embedding import MAX_MAPPED, Contents, contents_of, embedded_data
from .packing import script_json

_VIEWS = (
    ("patterns", "Patterns"),
    ("rows", "Rows"),
    ("features", "Features"),
    ("code", "Code a row"),
    ("map", "Map"),
    ("matrix", "Matrix"),
)
_VIEWS_OF_ROWS = ("rows", "matrix")


def explorer_section(data: ReportData) -> str:
    """Return the section with the views, and the data that the script explores."""
    contents = contents_of(data)
    if contents is None:
        return f"""<section id="explore"><h2>Explore</h2>
<p>The model, {pluralize(data.n_atoms, "pattern")} of {format_count(data.n_features)} features, is too large to be
explored in a page.</p></section>"""
    views = [view for view in _VIEWS if data.shows_rows or view[0] not in _VIEWS_OF_ROWS]
    tabs = "".join(
        f'<button type="button" role="tab" id="tab-{name}" data-view="{name}" aria-controls="view-{name}" '
        f'aria-selected="false" tabindex="-1">{title}</button>'
        for name, title in views
    )
    panels = "".join(
        f'<div role="tabpanel" id="view-{name}" aria-labelledby="tab-{name}" hidden></div>' for name, _ in views
    )
    notes = "".join(f'<p class="note">{note}</p>' for note in _notes(data, contents))
    return f"""<section id="explore">
<h2>Explore</h2>
<p>{_introduction(data)}</p>
{notes}
<noscript><p>The views need JavaScript, which this browser does not run. The sections below do not.</p></noscript>
<div id="explorer" hidden>
<div role="tablist" aria-label="Views" class="tabs">{tabs}</div>
<div class="panes"><div class="views">{panels}</div>
<div class="detail" id="detail" role="region" aria-label="Selected"></div></div>
<p id="said" role="status" class="unseen"></p>
</div>
<script type="application/json" id="data">{script_json(embedded_data(data, contents))}</script>
</section>"""


def _introduction(data: ReportData) -> str:
    """Explain what can be selected."""
    rows = (
        "Select a pattern to see the rows behind it and the cells that it gets right and wrong, a row to see the "
        "patterns that make it up and what is left over, a feature to see its patterns."
        if data.shows_rows
        else "Select a pattern to see the cells that it gets right and wrong, a feature to see its patterns."
    )
    return f"{rows} Any row can be typed and coded. Nothing leaves this page."


def _notes(data: ReportData, contents: Contents) -> list[str]:
    """Return what the page leaves out, and which codes it shows."""
    notes = []
    n_rows, n_features = len(contents.rows), len(contents.features)
    if not data.shows_rows:
        notes.append("The page contains no single rows, only counts.")
    elif n_rows < data.n_rows:
        notes.append(
            f"The page contains {format_count(n_rows)} of the {format_count(data.n_rows)} rows, drawn at random "
            "besides those that other sections name. Counts are of all rows, unless a view names the rows of this page."
        )
    if n_features < data.n_features:
        notes.append(
            f"The views have {format_count(n_features)} of the {format_count(data.n_features)} features: all that "
            "patterns have, and the most frequent of the others."
        )
    if data.n_atoms > MAX_MAPPED:
        notes.append(f"The map has the first {MAX_MAPPED} patterns.")
    if data.n_atoms and data.shows_rows:
        notes.append(_codes_note(data))
    return notes


def _codes_note(data: ReportData) -> str:
    """State where the codes of the rows come from."""
    if data.has_codes_of_fit:
        return "Rows are shown with the patterns that the fit gave them."
    if data.is_training_table:
        return (
            "Rows are shown with the patterns that <code>transform</code> gives them, since the model does not hold "
            "the codes of its fit; a few rows may differ from it."
        )
    return "Rows are shown with the patterns that <code>transform</code> gives them."
