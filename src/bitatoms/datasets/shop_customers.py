"""Synthetic customers of a shop: a few kinds of people, described by categories and numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..validation import as_generator, check_int


class Kind(NamedTuple):
    """A kind of customers: its share, its usual categories, and the ranges of its numbers."""

    share: float
    age: tuple[int, int]
    household: str
    channel: str
    payment: str
    income: tuple[float, float]  # in thousands
    orders: tuple[int, int]  # last year


KINDS = {
    "students": Kind(0.25, (18, 27), "shared flat", "app", "wallet", (8, 18), (1, 3)),
    "families": Kind(0.3, (30, 48), "family", "web", "card", (35, 80), (3, 6)),
    "retired people": Kind(0.25, (63, 85), "couple", "store", "cash", (18, 35), (1, 2)),
    "professionals": Kind(0.2, (28, 58), "single", "web", "invoice", (60, 140), (2, 6)),
}
_USUAL, _MISSING = 0.85, 0.03  # share of the values that are usual for the kind of a customer, and that are missing
_NEWSLETTER = {"families": 0.8, "retired people": 0.6}  # share of the customers who read it; a tenth of others


def customers(n_samples: int = 2000, random_state: Any = 0) -> dict[str, list[Any]]:
    """Generate synthetic customers of a shop, of four kinds: students, families, retired people and professionals.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of customers.
    random_state : int, Generator, RandomState or None, default=0
        The same seed gives the same customers.

    Returns
    -------
    dict of str to list
        For each variable one value per customer, None where it is missing: ``age``, ``household``, ``channel``,
        ``payment``, ``income`` (in thousands), ``orders`` (last year) and ``newsletter``. pandas and polars make a data
        frame of it.

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.encode(ba.datasets.customers(500))
    >>> ba.Encoding.of(table)
    Encoding(age (4 bins), household (4 values), channel (3 values), payment (4 values), income (4 bins), orders (6
    values), newsletter (yes or no))
    """
    n_samples = check_int("n_samples", n_samples, 0)
    rng = as_generator(random_state)
    names = list(KINDS)
    kinds = [names[index] for index in rng.choice(len(names), n_samples, p=[KINDS[name].share for name in names])]
    fields = ("household", "channel", "payment")
    choices = {field: sorted({getattr(kind, field) for kind in KINDS.values()}) for field in fields}
    columns: dict[str, list[Any]] = {
        "age": [int(rng.integers(*KINDS[kind].age, endpoint=True)) for kind in kinds],
        **{
            field: [getattr(KINDS[kind], field) if rng.random() < _USUAL else str(rng.choice(values)) for kind in kinds]
            for field, values in choices.items()
        },
        "income": [round(float(rng.uniform(*KINDS[kind].income)), 1) for kind in kinds],
        "orders": [int(rng.integers(*KINDS[kind].orders, endpoint=True)) for kind in kinds],
        "newsletter": [bool(rng.random() < _NEWSLETTER.get(kind, 0.1)) for kind in kinds],
    }
    for values in columns.values():
        for row in np.flatnonzero(rng.random(n_samples) < _MISSING).tolist():
            values[row] = None
    return columns
