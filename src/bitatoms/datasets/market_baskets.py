"""Synthetic market baskets: a dozen shopping habits, and items bought at random."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..columns.table import Table
from ..validation import as_generator, check_int


class Habit(NamedTuple):
    """Items that are bought together, and the share of baskets that follow this habit."""

    share: float
    items: tuple[str, ...]


HABITS = {
    "breakfast": Habit(0.09, ("milk", "cereal", "bananas", "orange juice", "yogurt")),
    "toast and coffee": Habit(0.08, ("bread", "butter", "jam", "coffee")),
    "pasta evening": Habit(0.07, ("spaghetti", "tomato sauce", "parmesan", "garlic", "red wine")),
    "salad": Habit(0.07, ("lettuce", "tomatoes", "cucumber", "feta", "olive oil")),
    "cat": Habit(0.06, ("cat food", "cat litter", "cat treats")),
    "taco night": Habit(0.05, ("tortillas", "minced beef", "salsa", "avocados", "sour cream", "cheddar")),
    "curry": Habit(0.05, ("rice", "coconut milk", "curry paste", "chicken", "ginger")),
    "film evening": Habit(0.05, ("popcorn", "crisps", "cola", "ice cream")),
    "barbecue": Habit(0.04, ("sausages", "burger buns", "charcoal", "ketchup", "beer")),
    "baking a cake": Habit(0.04, ("flour", "sugar", "eggs", "butter", "baking powder", "vanilla")),
    "baby": Habit(0.03, ("nappies", "baby wipes", "baby food", "baby milk")),
    "a cold": Habit(0.025, ("tissues", "honey", "lemons", "tea", "cough drops")),
}
_INCLUSION_RATE = 0.94  # share of the items of a habit that are bought
# Items bought at random, most popular first; all other items are bought rarely.
_POPULAR = (
    *("bananas", "milk", "bread", "apples", "eggs", "coffee", "onions", "chocolate", "tomatoes", "potatoes", "beer"),
    *("carrots", "toilet paper", "biscuits", "yogurt", "chicken", "newspaper", "ham", "mineral water", "toothpaste"),
)
_ITEMS = tuple(sorted({item for habit in HABITS.values() for item in habit.items}.union(_POPULAR)))


def baskets(n_samples: int = 5000, random_state: Any = 0) -> Table:
    """Generate synthetic market baskets from a dozen shopping habits.

    A basket follows any number of habits, such as a breakfast, a taco night or a barbecue. Occasionally an item of a
    habit is missing. Other items are bought at random, bananas far more often than toothpaste. A search with
    ``algebra="or"`` finds the habits.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of baskets.
    random_state : int, Generator, RandomState or None, default=0
        The same seed gives the same baskets.

    Returns
    -------
    Table of n_samples rows and 67 columns
        One row per basket and one column per item, named by the item. No basket is empty.

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.datasets.baskets()
    >>> table
    Table(5000 x 67, density 0.0616, rows 'basket 1' ... 'basket 5000', columns 'apples' ... 'yogurt')
    >>> result = ba.factorize(table, algebra="or", random_state=0)
    >>> print(*table.names_of(result.atoms[0].nonzero()[0]), sep=", ")
    garlic, parmesan, red wine, spaghetti, tomato sauce
    """
    n_samples = check_int("n_samples", n_samples, 0)
    rng = as_generator(random_state)
    bought = np.zeros((n_samples, len(_ITEMS)), bool)
    for habit in HABITS.values():
        columns = [_ITEMS.index(item) for item in habit.items]
        follows = rng.random((n_samples, 1)) < habit.share
        bought[:, columns] |= follows & (rng.random((n_samples, len(columns))) < _INCLUSION_RATE)
    popularity = np.array([_popularity(item) for item in _ITEMS])
    bought |= rng.random(bought.shape) < popularity
    empty = np.flatnonzero(~bought.any(axis=1))
    # An empty basket gets one item, drawn by popularity.
    bought[empty, np.searchsorted(np.cumsum(popularity / popularity.sum())[:-1], rng.random(empty.size))] = True
    return Table(BitMatrix.from_dense(bought), tuple(f"basket {number + 1}" for number in range(n_samples)), _ITEMS)


def _popularity(item: str) -> float:
    """Return the probability that an item is bought at random."""
    return 0.12 / (1 + _POPULAR.index(item)) ** 0.6 if item in _POPULAR else 0.006
