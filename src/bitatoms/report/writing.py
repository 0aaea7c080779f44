"""The functions that collect the data of a report, and write it as a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..bits import BitMatrix
from ..columns.annotations import Groups
from ..columns.encoding import matched_rows
from ..columns.table import Table
from ..errors import InputError, Parameter
from ..formatting import quote_name
from ..html.document import write_page
from ..io.labels.rows import read_group_labels
from ..model.model import Model
from ..parameters import with_options
from .data import ReportData, collect
from .options import ReportDataOptions, ReportOptions
from .page import render


@with_options(ReportDataOptions)
def report_data(model: Any, table: Any, options: ReportDataOptions) -> ReportData:
    """Code a table by the atoms of a model and collect the statistics that a report shows.

    Parameters
    ----------
    model : BinaryDictionaryLearning or Model
        A fitted model.
    table : Table, or any input of Table.from_any
        The training table, or another table with the same columns. Columns that have names may be in any order.
    {parameters}

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
    return _data(model, table, options)


@with_options(ReportOptions)
def report_html(model: Any, table: Any, options: ReportOptions) -> str:
    """Return the report as a string of HTML.

    Parameters
    ----------
    model : BinaryDictionaryLearning or Model
        A fitted model.
    table : Table, or any input of Table.from_any
        As in `report_data`.
    {parameters}

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
    return render(_data(model, table, options), options.title, _model_and_parameters(model)[1])


@with_options(ReportOptions)
def write_report(model: Any, table: Any, path: str | os.PathLike[str], options: ReportOptions) -> None:
    """Write the report to a file that any browser opens without a network. The write is atomic.

    Parameters
    ----------
    model : BinaryDictionaryLearning or Model
        A fitted model.
    table : Table, or any input of Table.from_any
        As in `report_data`.
    path : str or path-like
        The file to write, usually ending in .html.
    {parameters}
    """
    write_page(report_html(model, table, **options.get_params()), path)


def _data(model: Any, table: Any, options: ReportDataOptions) -> ReportData:
    """Return the data of a report."""
    learned, parameters = _model_and_parameters(model)
    binarize = None if isinstance(table, (BitMatrix, Table)) else parameters.get("binarize")
    matched = matched_rows(table, learned.header, parameters.get("absent"), "the table", binarize=binarize)
    codes = None if options.codes is None else _codes_of(learned, matched, options.codes)
    groups = _groups_of(matched, options.groups)
    return collect(learned, matched, options, codes, getattr(model, "_fit_codes", None), groups)


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
