"""A report: one page of HTML, complete in itself, with the atoms, where they occur and what they leave unexplained."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..bits import BitMatrix
from ..core.model import Model
from ..io.atomic import atomic_write
from ..parallel import Workers, count_threads
from ..table import Table
from .findings import Findings, find
from .page import render

__all__ = ["Findings", "findings", "page", "write_report"]


def findings(model: Any, table: Any, *, rows: Iterable[int | str] = (), n_jobs: int | None = None) -> Findings:
    """Code a table by the atoms of a model, and gather all that a report says of it.

    Parameters
    ----------
    model : BinaryDictionaryLearning or Model
        Fitted.
    table : Table, or whatever Table.from_any takes
        The table that was learned from, or another one with the same columns.
    rows : iterable of int or str, optional
        Rows to show before and after, by number from 0 on or by name; by default six, from good to bad fit.
    n_jobs : int, optional
        Threads; -1 for all processors.

    Returns
    -------
    Findings
        Its counts and its ``curve`` are what `bitatoms.plots` draws.

    Examples
    --------
    >>> import bitatoms as ba
    >>> from bitatoms.report import findings
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
    >>> found = findings(ba.BinaryDictionaryLearning(random_state=0).fit(X), X)
    >>> [point.atoms for point in found.curve]
    [0, 1, 2, 3, 4]
    """
    learned, parameters = _learned(model)
    if not isinstance(table, Table):
        packed = isinstance(table, BitMatrix)
        table = Table.from_any(table, binarize=None if packed else parameters.get("binarize"))
    return find(learned, table, tuple(rows), Workers(count_threads(n_jobs)))


def page(
    model: Any, table: Any, *, title: str | None = None, rows: Iterable[int | str] = (), n_jobs: int | None = None
) -> str:
    """The report as a string of HTML.

    Parameters
    ----------
    model, table, rows, n_jobs
        As in `findings`.
    title : str, optional
        The title of the page, such as the name of the table's file.

    Returns
    -------
    str
        The same for the same model and table.

    Examples
    --------
    >>> import bitatoms as ba
    >>> from bitatoms.report import page
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
    >>> html = page(ba.BinaryDictionaryLearning(random_state=0).fit(X), X, title="planted")
    >>> "<h1>planted</h1>" in html
    True
    """
    found = findings(model, table, rows=rows, n_jobs=n_jobs)
    return render(found, title, _learned(model)[1])


def write_report(
    model: Any,
    table: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    rows: Iterable[int | str] = (),
    n_jobs: int | None = None,
) -> None:
    """Write the report to a file, which is there whole or not at all; any browser opens it, without a network.

    Parameters
    ----------
    model, table, title, rows, n_jobs
        As in `page`.
    path : str or path-like
        The file, mostly with the ending .html.
    """
    text = page(model, table, title=title, rows=rows, n_jobs=n_jobs)
    with atomic_write(Path(path)) as made:
        made.write_text(text, encoding="utf-8", newline="\n")


def _learned(model: Any) -> tuple[Model, dict[str, Any]]:
    """A model, and the parameters it was learned with as far as they are known."""
    if isinstance(model, Model):
        return model, {}
    if hasattr(model, "as_model"):  # an estimator; scikit-learn is not loaded for one that is not there
        return model.as_model(), model.get_params(deep=False)
    raise TypeError(f"model must be a fitted BinaryDictionaryLearning or its Model, not {type(model).__name__}")
