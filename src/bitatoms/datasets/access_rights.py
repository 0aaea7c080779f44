"""Synthetic access rights: the permissions of employees who have one or several job functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..columns.table import Table
from ..validation import as_generator, check_int


class JobFunction(NamedTuple):
    """Permissions that a job needs, and the share of the employees who do it."""

    share: float
    permissions: tuple[str, ...]


JOB_FUNCTIONS = {
    "employee": JobFunction(0.95, ("mail", "calendar", "intranet", "time sheet")),
    "sales": JobFunction(0.2, ("crm read", "crm write", "price list", "order entry")),
    "sales management": JobFunction(0.05, ("crm read", "discounts", "sales reports", "order approval")),
    "accounting": JobFunction(0.12, ("ledger read", "ledger write", "invoices", "bank transfers")),
    "auditing": JobFunction(0.04, ("ledger read", "invoices", "audit log", "sales reports")),
    "human resources": JobFunction(0.08, ("staff files", "payroll", "recruiting", "time sheet approval")),
    "development": JobFunction(0.25, ("source code", "issue tracker", "build server", "wiki")),
    "operations": JobFunction(0.1, ("build server", "production servers", "monitoring", "audit log")),
    "support": JobFunction(0.15, ("issue tracker", "crm read", "remote desktop", "knowledge base")),
    "management": JobFunction(0.08, ("time sheet approval", "sales reports", "budget", "order approval")),
}
_PERMISSIONS = tuple(sorted({name for job in JOB_FUNCTIONS.values() for name in job.permissions}))


def permissions(n_samples: int = 300, random_state: Any = 0) -> Table:
    """Generate the access rights of employees from ten job functions.

    An employee has all permissions of each of his or her job functions, and no others, so that `bitatoms.cover` finds
    the job functions. Some permissions belong to several of them.

    Parameters
    ----------
    n_samples : int, default=300
        Number of employees.
    random_state : int, Generator, RandomState or None, default=0
        The same seed gives the same table.

    Returns
    -------
    Table of n_samples rows and 29 columns
        One row per employee and one column per permission, named by the permission.

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.datasets.permissions()
    >>> table
    Table(300 x 29, density 0.284, rows 'user 1' ... 'user 300', columns 'audit log' ... 'wiki')
    >>> ba.cover(table, random_state=0).n_roles
    10
    """
    n_samples = check_int("n_samples", n_samples, 0)
    rng = as_generator(random_state)
    granted = np.zeros((n_samples, len(_PERMISSIONS)), bool)
    for job in JOB_FUNCTIONS.values():
        columns = [_PERMISSIONS.index(name) for name in job.permissions]
        granted[:, columns] |= rng.random((n_samples, 1)) < job.share
    names = tuple(f"user {number + 1}" for number in range(n_samples))
    return Table(BitMatrix.from_dense(granted), names, _PERMISSIONS)
