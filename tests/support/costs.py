"""Costs of errors for tests."""

import numpy as np

from bitatoms.engine.prices import ErrorCosts


def random_costs(seed, n_features):
    """Return costs of missed and of added ones, different in each column; some are infinite."""
    random = np.random.default_rng(seed)
    return ErrorCosts(*(random.choice([1.0, 1.3, 2.0, 5.0, 40.0, np.inf], n_features) for _ in range(2)))
