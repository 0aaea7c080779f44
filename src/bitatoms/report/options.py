"""Options of reports: the rows that are shown, their groups and codes, and the title of the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, Parameter
from ..parameters import Options, declared_in, option
from ..run_options import DeviceChoice, RunOptions


@dataclass(frozen=True, kw_only=True)
class ReportDataOptions(Options):
    """Parameters of `bitatoms.report.report_data`."""

    rows: Iterable[int | str] = option(
        (),
        "Rows to show before and after coding, by index (counted from 0) or by name.",
        "By default six rows, from good to bad fit.",
        check=lambda name, value: tuple(value or ()),
        type="iterable of int or str, optional",
        option="row",
        is_common=True,
    )
    groups: Any = option(
        None,
        "Groups of rows, such as populations: a CSV file with the name and the group of each row, or a field of the "
        "table, such as a column of obs.",
        "Or the group of each row in an array; a file may also have one group per line. The report then shows which "
        "groups use each atom.",
        type="str, path-like or array-like of shape (n_rows,), optional",
        option="groups",
        is_common=True,
    )
    codes: Any = option(
        None,
        "The atoms that each row uses, such as the ``codes`` of `bitatoms.factorize`.",
        "By default, those of the fit if the model is an estimator that was fitted to this table in memory, else those "
        "that ``transform`` gives, which may differ from those of the fit in a few rows.",
        type="array-like of shape (n_rows, n_atoms), optional",
    )
    max_rows: int | None = option(
        None,
        "Maximum number of rows that the page contains to be explored, by default 10000; 0 shows no single rows.",
        "The default is smaller where rows are wide; others are left out at random. With 0, the page shows no names of "
        "rows, only counts.",
        option="max-rows",
        is_common=True,
    )
    n_jobs: int | None = declared_in(RunOptions, "n_jobs")
    device: DeviceChoice = declared_in(RunOptions, "device")

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = tuple(self.rows)
        if self.max_rows == 0 and rows:
            raise InputError("no rows can be shown with ", Parameter("max_rows", 0), f"; omit it, or row {rows[0]!r}")


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ReportDataOptions):
    """Parameters of `bitatoms.write_report`: those of the data, and the title."""

    title: str | None = option(
        None,
        "Title of the page, for example the name of the table's file.",
        check=lambda name, value: value,
        type="str, optional",
        option="title",
        is_common=True,
    )
