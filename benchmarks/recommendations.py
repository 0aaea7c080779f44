"""Hide one item of each basket and recommend five: how often it is among them, compared with the most popular items.

Baskets are divided into folds; each is tested with a model of the others. Only baskets with at least two items count.
``python benchmarks/recommendations.py`` uses generated baskets; pass the paths of other tables as arguments.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.model.recommendation import largest


def read_baskets(path: str | None, n_rows: int | None, n_columns: int | None) -> NDArray[np.uint8]:
    """Return baskets as an array: the first rows of a table, and the columns with most ones."""
    table = ba.datasets.baskets() if path is None else ba.read(path)
    ones = csr_array(table.data.to_sparse())[: n_rows or len(table)]
    counts = np.asarray(table.data.column_weights())
    columns = np.sort(np.argsort(-counts, kind="stable")[: n_columns or len(counts)])
    return ones[:, columns].toarray().astype(np.uint8)


def hits(X: NDArray[np.uint8], n_folds: int, n_items: int, n_jobs: int) -> dict[str, NDArray[np.bool_]]:
    """Return, for each method, in which baskets the hidden item is recommended."""
    random = np.random.default_rng(0)
    folds = np.array_split(random.permutation(len(X)), n_folds)
    found: dict[str, list[NDArray[np.bool_]]] = {"popularity": [], "bitatoms": []}
    for k, tested in enumerate(folds):
        learned = X[np.concatenate([fold for other, fold in enumerate(folds) if other != k])]
        model = ba.BinaryDictionaryLearning(random_state=0, n_jobs=n_jobs).fit(learned)
        baskets = X[tested][X[tested].sum(axis=1) > 1]
        hidden = np.array([random.choice(np.flatnonzero(basket)) for basket in baskets])
        visible = baskets.copy()
        visible[np.arange(len(baskets)), hidden] = 0
        recommended = model.recommend(visible, n_items).items
        popular = largest(np.where(visible == 1, -1.0, learned.mean(axis=0)), n_items)
        found["bitatoms"].append((recommended == hidden[:, np.newaxis]).any(axis=1))
        found["popularity"].append((popular == hidden[:, np.newaxis]).any(axis=1))
        print(f"fold {k + 1}: {model.n_components_} atoms ({model.algebra_})", flush=True)
    return {method: np.concatenate(each) for method, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="tables of baskets; by default generated ones")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--items", type=int, default=5, help="items that are recommended")
    parser.add_argument("--rows", type=int, help="use the first rows only")
    parser.add_argument("--columns", type=int, help="use the columns with most ones only")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    for path in options.tables or [None]:
        X = read_baskets(path, options.rows, options.columns)
        start = time.process_time()
        found = hits(X, options.folds, options.items, options.jobs)
        ours, popular = found["bitatoms"], found["popularity"]
        rates = ", ".join(f"{method} {each.mean():.1%}" for method, each in found.items())
        name = "generated baskets" if path is None else Path(path).name
        print(f"{name}, {len(X)} x {X.shape[1]}, {len(ours)} hidden items: hit rate at {options.items}: {rates}")
        print(f"hidden items that only bitatoms hits: {(ours & ~popular).sum()}, that only popularity hits: "
              f"{(popular & ~ours).sum()}; {time.process_time() - start:.0f} CPU s")  # fmt: skip


if __name__ == "__main__":
    main()
