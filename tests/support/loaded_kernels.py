"""Load the kernels that passes over rows need: a module for the process from which workers of a cluster are forked."""

import numpy as np

from bitatoms.bits import BitMatrix
from bitatoms.parallel import Workers
from bitatoms.rows import dask  # noqa: F401
from bitatoms.rows.source import MemoryRows
from support.sources import learned

_DATA = BitMatrix.from_dense(np.random.default_rng(0).random((200, 70)) < 0.3)
for _how in ({}, {"algebra": "or"}, {"n_components": 6}, {"n_components": 20}):
    learned(MemoryRows(_DATA, Workers(1)), search_rows=100, max_iter=1, **_how)
