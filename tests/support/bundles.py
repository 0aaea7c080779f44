"""A sparse table with planted bundles: columns that occur together."""

import numpy as np

N_ROWS, N_COLS = 1000, 2100


def bundles():
    """Return the columns of eight bundles of five."""
    return [np.sort(columns) for columns in np.split(np.random.default_rng(0).permutation(N_COLS)[:40], 8)]


def table_with_bundles():
    """Return few ones in each row, a column that most rows have, and the bundles, each in 60 rows."""
    random = np.random.default_rng(1)
    X = random.random((N_ROWS, N_COLS)) < 0.002
    X[:, 77] = random.random(N_ROWS) < 0.7
    for columns in bundles():
        users = random.choice(N_ROWS, 60, replace=False)
        X[np.ix_(users, columns)] |= random.random((60, 5)) < 0.9
    return X.astype(np.uint8)
