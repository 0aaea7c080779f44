"""Self-contained HTML reports: the atoms, the rows that use them, and the cells that they get wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..bits import BitMatrix
from ..columns.annotations import Groups
from ..columns.encoding import matched_rows
from ..columns.table import Table
from ..device_choice import workers_for
from ..errors import InputError, Parameter
from ..html.document import write_page
from ..io.group_labels import read_group_labels
from ..model.model import Model
from ..run_options import DeviceChoice
from ..validation import check_int
from ..verbosity import quote_name
from .data import KnownCodes, ReportData, collect
from .page import render

__all__ = ["ReportData", "report_data", "report_html", "write_report"]


def report_data(
    model: Any,
    table: Any,
    *,
    rows: Iterable[int | str] = (),
    groups: Any = None,
    codes: Any = None,
    max_rows: int | None = None,
    n_jobs: int | None = None,
    device: DeviceChoice = "cpu",
) -> ReportData:
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
    groups : str, path-like or array-like of shape (n_rows,), optional
        The group of each row, such as its population or cell type; or the name of a field of ``table.row_data`` (of
        ``obs``, if it is an AnnData); or a CSV file with the name and the group of each row, or with one group per
        line. The report then shows which groups use each atom.
    codes : array-like of shape (n_rows, n_atoms), optional
        The atoms that each row uses, such as the ``codes`` of `bitatoms.factorize`. By default, those of the fit if
        the model is an estimator that was fitted to this table in memory, else those that ``transform`` gives, which
        may differ from those of the fit in a few rows.
    max_rows : int, optional
        The most rows that the page contains to be explored. By default 10 000, fewer where rows are wide; others are
        left out at random. With 0, the page shows no single rows and no names of rows, only counts.
    n_jobs : int, optional
        Number of threads; -1 uses all processors.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where rows are processed, as in `bitatoms.factorize`.

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
    matched = matched_rows(table, learned.header, parameters.get("absent"), "the table", binarize=binarize)
    workers = workers_for(n_jobs, device, math.prod(matched.shape))
    wanted = tuple(rows)
    if max_rows is not None and check_int("max_rows", max_rows, 0) == 0 and wanted:
        raise InputError("no rows can be shown with ", Parameter("max_rows", 0), f"; omit it, or row {wanted[0]!r}")
    given = None if codes is None else _codes_of(learned, matched, codes)
    known = KnownCodes(given, getattr(model, "_fit_codes", None))
    return collect(learned, matched, wanted, workers, known, _groups_of(matched, groups), max_rows)


def report_html(
    model: Any,
    table: Any,
    *,
    title: str | None = None,
    rows: Iterable[int | str] = (),
    groups: Any = None,
    codes: Any = None,
    max_rows: int | None = None,
    n_jobs: int | None = None,
    device: DeviceChoice = "cpu",
) -> str:
    """Return the report as a string of HTML.

    Parameters
    ----------
    model, table, rows, groups, codes, max_rows, n_jobs, device
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
    shown: dict[str, Any] = {"rows": rows, "groups": groups, "codes": codes, "max_rows": max_rows}
    data = report_data(model, table, **shown, n_jobs=n_jobs, device=device)
    return render(data, title, _model_and_parameters(model)[1])


def write_report(
    model: Any,
    table: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    rows: Iterable[int | str] = (),
    groups: Any = None,
    codes: Any = None,
    max_rows: int | None = None,
    n_jobs: int | None = None,
    device: DeviceChoice = "cpu",
) -> None:
    """Write the report to a file that any browser opens without a network. The write is atomic.

    Parameters
    ----------
    model, table, title, rows, groups, codes, max_rows, n_jobs, device
        As in `report_html`.
    path : str or path-like
        The file to write, usually ending in .html.
    """
    shown: dict[str, Any] = {"rows": rows, "groups": groups, "codes": codes, "max_rows": max_rows}
    write_page(report_html(model, table, title=title, **shown, n_jobs=n_jobs, device=device), path)


def _groups_of(table: Table, groups: Any) -> Groups | None:
    """Return the groups of the rows, from one value per row, a field of the table or a file of labels."""
    if groups is None:
        return None
    if isinstance(groups, str) and table.row_data is not None and groups in table.row_data:
        return Groups.of(table.row_data.values_of(groups))
    if isinstance(groups, (str, os.PathLike)):
        if isinstance(groups, str) and not Path(groups).is_file():
            fields = ", ".join(map(quote_name, table.row_data or ())) or "none"
            raise InputError(
                Parameter("groups", groups),
                f": there is no such file, and no such field of the rows (fields: {fields})",
            )
        return Groups.of(read_group_labels(Path(groups), table.row_names, len(table)))
    found = Groups.of(groups)
    if len(found.numbers) != len(table):
        raise ValueError(f"there are {len(found.numbers)} groups for {len(table)} rows; pass one per row")
    return found


def _codes_of(model: Model, table: Table, codes: Any) -> BitMatrix:
    """Return the codes of the rows, after checking their shape."""
    bits, expected = BitMatrix.from_any(codes, name="codes"), (len(table), model.atoms.n_rows)
    if bits.shape != expected:
        shape, wanted = (" x ".join(map(str, sizes)) for sizes in (bits.shape, expected))
        raise ValueError(f"codes has the shape {shape}; pass one row per row and one column per atom: {wanted}")
    return bits


def _model_and_parameters(model: Any) -> tuple[Model, dict[str, Any]]:
    """Return the model, and the parameters it was learned with if it is an estimator."""
    if isinstance(model, Model):
        return model, {}
    if hasattr(model, "as_model"):  # an estimator; isinstance would import scikit-learn
        return model.as_model(), model.get_params(deep=False)
    raise TypeError(f"model must be a fitted BinaryDictionaryLearning or its Model, not {type(model).__name__}")
