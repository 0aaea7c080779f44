"""The ways to fit a table: in memory, with weights, by passes, in a store, on a cluster, in batches, interrupted."""

import dask.array as da
import numpy as np

import bitatoms as ba
from support.parameters import nested


def fit_in_memory(parameters, X, folder):
    return ba.factorize(X, **nested(**parameters))


def fit_with_weights(parameters, X, folder):
    return ba.factorize(X, sample_weight=np.arange(len(X)) % 3, **nested(**parameters))


def fit_by_passes(parameters, X, folder):
    return ba.factorize(X, search_rows=len(X) // 2, **nested(**parameters))


def fit_a_store(parameters, X, folder):
    store = ba.pack(X, folder / "rows.zarr")
    return ba.BinaryDictionaryLearning(search_rows=len(X) // 2, **nested(**parameters)).fit(store).as_model()


def fit_a_cluster(parameters, X, folder):
    table = da.from_array(X, chunks=(len(X) // 2, X.shape[1]))
    return ba.BinaryDictionaryLearning(search_rows=len(X) // 2, **nested(**parameters)).fit(table).as_model()


def fit_in_batches(parameters, X, folder):
    model = ba.BinaryDictionaryLearning(**nested(**parameters))
    for batch in np.array_split(X, 3):
        model.partial_fit(batch)
    return model.as_model()


WAYS = [fit_in_memory, fit_with_weights, fit_by_passes, fit_a_store, fit_a_cluster, fit_in_batches]
