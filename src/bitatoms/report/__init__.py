"""Self-contained HTML reports: the atoms, the rows that use them, and the cells that they get wrong."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..bits import BitMatrix
from ..core.model import Model
from ..io.atomic import atomic_write
from ..parallel import Workers, count_threads
from ..table import Table, matched_table
from .data import ReportData, collect
from .page import render

__all__ = ["ReportData", "report_data", "report_html", "write_report"]


def report_data(model: Any, table: Any, *, rows: Iterable[int | str] = (), n_jobs: int | None = None) -> ReportData:
    """Code a table by the atoms of a model and collect the statistics that a report shows.

    Parameters
    ----------
    model : BinaryDictionaryLearning or Model
        A fitted model.
    table : Table, or any input of Table.from_any
        The training table, or another table with the same columns. Columns that have names may be in any order.
    rows : iterable of int or str, optional
        Rows to show before and after coding, by index (counted from 0) or by name. By default six rows, from good to
        bad fit.
    n_jobs : int, optional
        Number of threads; -1 uses all processors.

    Returns
    -------
    ReportData
        The functions of `bitatoms.plots` draw its counts and its ``curve``.

    Examples
    --------
    >>> import bitatoms as ba
    >>> from bitatoms.report import report_data
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
    >>> data = report_data(ba.BinaryDictionaryLearning(random_state=0).fit(X), X)
    >>> [point.atoms for point in data.curve]
    [0, 1, 2, 3, 4]
    """
    learned, parameters = _model_and_parameters(model)
    binarize = None if isinstance(table, (BitMatrix, Table)) else parameters.get("binarize")
    matched = matched_table(table, learned.header, parameters.get("absent"), "the table", binarize=binarize)
    return collect(learned, matched, tuple(rows), Workers(count_threads(n_jobs)))


def report_html(
    model: Any, table: Any, *, title: str | None = None, rows: Iterable[int | str] = (), n_jobs: int | None = None
) -> str:
    """Return the report as a string of HTML.

    Parameters
    ----------
    model, table, rows, n_jobs
        As in `report_data`.
    title : str, optional
        The title of the page, for example the name of the table's file.

    Returns
    -------
    str
        The page. Equal models and tables give equal pages.

    Examples
    --------
    >>> import bitatoms as ba
    >>> from bitatoms.report import report_html
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
    >>> html = report_html(ba.BinaryDictionaryLearning(random_state=0).fit(X), X, title="planted")
    >>> "<h1>planted</h1>" in html
    True
    """
    data = report_data(model, table, rows=rows, n_jobs=n_jobs)
    return render(data, title, _model_and_parameters(model)[1])


def write_report(
    model: Any,
    table: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    rows: Iterable[int | str] = (),
    n_jobs: int | None = None,
) -> None:
    """Write the report to a file that any browser opens without a network. The write is atomic.

    Parameters
    ----------
    model, table, title, rows, n_jobs
        As in `report_html`.
    path : str or path-like
        The file to write, usually ending in .html.
    """
    html = report_html(model, table, title=title, rows=rows, n_jobs=n_jobs)
    with atomic_write(Path(path)) as temporary:
        temporary.write_text(html, encoding="utf-8", newline="\n")


def _model_and_parameters(model: Any) -> tuple[Model, dict[str, Any]]:
    """Return the model, and the parameters it was learned with if it is an estimator."""
    if isinstance(model, Model):
        return model, {}
    if hasattr(model, "as_model"):  # an estimator; isinstance would import scikit-learn
        return model.as_model(), model.get_params(deep=False)
    raise TypeError(f"model must be a fitted BinaryDictionaryLearning or its Model, not {type(model).__name__}")


def page(*args: Any, **kwargs: Any) -> str:
    """Call `report_html`; deprecated, to be removed in 0.3."""
    warnings.warn(
        "bitatoms.report.page was renamed to report_html; the old name will be removed in 0.3", FutureWarning, 2
    )
    return report_html(*args, **kwargs)


def __getattr__(name: str) -> Any:
    renamed = {"findings": "report_data", "Findings": "ReportData"}
    if name not in renamed:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = renamed[name]
    warnings.warn(f"bitatoms.report.{name} was renamed to {new}; the old name will be removed in 0.3", FutureWarning, 2)
    return globals()[new]
