"""Compare classification by codelength with Bernoulli naive Bayes and the nearest neighbour by Hamming distance.

Without arguments it runs on tables bundled with scikit-learn, by five-fold cross-validation. With a folder of data sets
(NAME.npz with ``X``, rows from ``np.packbits``, ``shape`` and labels ``y``) it runs on ``mnist10k_28x28`` as well: the
first 8000 rows to learn from, the other 2000 to test. ``--mnist FOLDER`` runs on the 60 000 and 10 000 digits of the
published files of MNIST (train-images-idx3-ubyte and so on, compressed or not).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB
from tables import Row, Table, log_row, show

import bitatoms as ba

N_TRAIN = 8000  # of mnist10k_28x28
N_BINS = 4  # columns per feature of a numeric table: is it above each of its quantiles?


class Split(NamedTuple):
    """Rows to learn from, and rows to test."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def nearest(split: Split, chunk_rows: int = 500) -> np.ndarray:
    """Return the label of the nearest training row by Hamming distance, the first of equals, for each test row."""
    signed, ones = (1 - 2 * split.X.astype(np.float32)).T, split.X.sum(axis=1, dtype=np.float32)
    chunks = range(0, len(split.X_test), chunk_rows)
    distances = (split.X_test[at : at + chunk_rows].astype(np.float32) @ signed + ones for at in chunks)
    return np.concatenate([split.y[each.argmin(axis=1)] for each in distances])


def compared(name: str, splits: Sequence[Split], seeds: int, how: Row) -> Row:
    """Return the percentage of errors of each method, over all test rows, the mean of seeds for ours."""
    n_test = sum(len(split.y_test) for split in splits)
    wrong, own, losses, seconds = np.zeros(2, int), np.zeros(seeds, int), [], 0.0
    for split in splits:
        bayes = BernoulliNB().fit(split.X, split.y)
        wrong += (bayes.predict(split.X_test) != split.y_test).sum(), (nearest(split) != split.y_test).sum()
        for seed in range(seeds):
            begin = time.process_time()
            model = ba.BinaryDictionaryClassifier(random_state=seed, **how).fit(split.X, split.y)
            probabilities = model.predict_proba(split.X_test)
            seconds += time.process_time() - begin
            own[seed] += (model.classes_[probabilities.argmax(axis=1)] != split.y_test).sum()
            both = probabilities, bayes.predict_proba(split.X_test)
            losses.append([log_loss(split.y_test, each, labels=model.classes_) for each in both])
    row: Row = {"data": name, "rows": len(splits[0].y), "tested": n_test}
    row |= {"naive Bayes %": 100 * wrong[0] / n_test, "1-NN %": 100 * wrong[1] / n_test}
    row |= {"codelength %": 100 * own.mean() / n_test, "seeds %": (100 * own / n_test).tolist()}
    row |= {"half of Bayes": "yes" if 2 * own.mean() <= wrong[0] else "no"}
    mean = np.mean(losses, axis=0)
    row |= {"log loss": float(mean[0]), "Bayes log loss": float(mean[1])}
    return log_row(row | {"CPU s per fit": seconds / seeds / len(splits)})


def folds(X: np.ndarray, y: np.ndarray, n_folds: int = 5) -> list[Split]:
    """Return the splits of a cross-validation."""
    parts = StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y)
    return [Split(X[train], y[train], X[test], y[test]) for train, test in parts]


def above_quantiles(X: np.ndarray) -> np.ndarray:
    """Return for each feature whether it is above each of its quantiles."""
    edges = np.quantile(X, np.arange(1, N_BINS) / N_BINS, axis=0)
    return np.hstack([X > edge for edge in edges]).astype(np.uint8)


def published(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the digits of the published files of MNIST, part "train" or "t10k"."""
    names = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
    images, labels = (next(path for path in (folder / name, folder / f"{name}.gz") if path.exists()) for name in names)
    return ba.datasets.mnist(images, labels=labels, side=28)


def tables(options: argparse.Namespace) -> Iterator[tuple[str, list[Split]]]:
    """Yield each data set and its splits."""
    yield "digits 8x8", folds(*ba.datasets.digits())
    for name, load in (("breast cancer", load_breast_cancer), ("wine", load_wine)):
        data = load()
        yield name, folds(above_quantiles(data.data), data.target)
    if options.folder is not None:
        with np.load(options.folder / "mnist10k_28x28.npz") as stored:
            X, y = np.unpackbits(stored["X"], axis=1, count=int(stored["shape"][1])), stored["y"]
        yield "MNIST 8000 / 2000", [Split(X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:])]
    if options.mnist is not None:
        yield "MNIST", [Split(*published(options.mnist, "train"), *published(options.mnist, "t10k"))]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="data sets as NAME.npz; bundled tables without it")
    parser.add_argument("--mnist", type=Path, metavar="FOLDER", help="folder of the four published files of MNIST")
    parser.add_argument("--sets", help="beginnings of names of data sets, separated by commas (default: all)")
    parser.add_argument("--algebra", default="xor", help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="threads (default: %(default)s)")
    options = parser.parse_args(argv)
    how: dict[str, Any] = {"n_jobs": options.jobs, "algebra": options.algebra}
    chosen = None if options.sets is None else tuple(options.sets.split(","))
    rows = [
        compared(name, splits, options.seeds, how)
        for name, splits in tables(options)
        if chosen is None or name.startswith(chosen)
    ]
    note = "Percentages of wrong test rows; codelength: mean over seeds. Folds are the same for all methods and seeds."
    if rows:
        show(Table("Classification by codelength", rows, note))


if __name__ == "__main__":
    main()
