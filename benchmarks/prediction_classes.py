"""Classification: errors, log losses and CPU seconds of `BinaryDictionaryClassifier` and of other classifiers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from tables import Row, Table, log_row

import bitatoms as ba
from datasets import load

BUNDLED = {"breast cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}
N_BINS = 4  # columns per feature of a numeric table: is it above each of its quantiles?
# Tables of a folder whose columns with these indices say which class a row belongs to.
LABELED = {
    "car": ("und_car", range(-4, 0)),
    "chess": ("und_chess_krvskp", range(-1, 0)),
    "cmc": ("und_cmc", range(-3, 0)),
    "mushroom": ("mushroom_fimi", range(2)),
    "phishing": ("und_phishing", range(-3, 0)),
    "soybean": ("und_soybean", range(19)),
    "tictactoe": ("und_tictactoe", range(-1, 0)),
    "zoo": ("bmf_zoo", range(-7, 0)),
}
METHODS: dict[str, Callable[[], Any]] = {
    "naive Bayes": BernoulliNB,
    "1-NN, Hamming": lambda: KNeighborsClassifier(1, metric="hamming"),
    "logistic regression": lambda: LogisticRegression(max_iter=2000),
    "random forest": lambda: RandomForestClassifier(random_state=0),
    "bitatoms": lambda: ba.BinaryDictionaryClassifier(random_state=0),
}


class Labeled(NamedTuple):
    """Rows and their classes."""

    X: np.ndarray
    y: np.ndarray


def labeled_table(name: str, folder: Path | None) -> Labeled | None:
    """Return a table by name; None if it is not at hand."""
    if name == "digits":
        return Labeled(*ba.datasets.digits())
    if name in BUNDLED:
        data = BUNDLED[name]()
        edges = np.quantile(data.data, np.arange(1, N_BINS) / N_BINS, axis=0)
        return Labeled(np.hstack([data.data > edge for edge in edges]).astype(np.uint8), data.target)
    if folder is None or not (folder / f"{LABELED[name][0]}.npz").exists():
        return None
    file, columns = LABELED[name]
    X = load(folder, file)
    own = X[:, list(columns)]
    known = own.any(axis=1) | (len(columns) == 1)
    y = own.argmax(axis=1) if len(columns) > 1 else own[:, 0]
    return Labeled(np.delete(X, list(columns), axis=1)[known], y[known])


def published(folder: Path, part: str) -> Labeled:
    """Return the digits of the published files of MNIST, part "train" or "t10k", compressed or not."""
    names = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
    images, labels = (next(path for path in (folder / name, folder / f"{name}.gz") if path.exists()) for name in names)
    return Labeled(*ba.datasets.mnist(images, labels=labels, side=28))


def compared(name: str, splits: Sequence[tuple[Labeled, Labeled]], note: str) -> Table:
    """Return the errors, log losses and CPU seconds of all methods, means over splits."""
    rows: list[Row] = []
    for method, make in METHODS.items():
        found = []
        for learned, tested in splits:
            begin = time.process_time()
            model = make().fit(learned.X, learned.y)
            stated = model.predict_proba(tested.X)
            seconds = time.process_time() - begin
            all_stated = np.zeros((len(stated), int(max(learned.y.max(), tested.y.max())) + 1))
            all_stated[:, model.classes_] = stated
            wrong = 100 * float((all_stated.argmax(axis=1) != tested.y).mean())
            all_stated = all_stated.clip(1e-15)
            all_stated /= all_stated.sum(axis=1, keepdims=True)
            found.append((wrong, log_loss(tested.y, all_stated, labels=range(all_stated.shape[1])), seconds))
        names = "wrong %", "log loss", "CPU s"
        rows.append(log_row({"method": method, **dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))}))
    return Table(f"{name}, {len(splits[0][0].y)} rows to learn from", rows, note)


def classification(names: Sequence[str], folder: Path | None, mnist: Path | None, n_tested: int) -> list[Table]:
    """Return the figures of all methods on each table, by five-fold cross-validation, and on MNIST."""
    tables = []
    for name in names:
        data = labeled_table(name, folder)
        if data is None:
            continue
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(*data))[:n_tested]
        splits = [(Labeled(data.X[a], data.y[a]), Labeled(data.X[b], data.y[b])) for a, b in folds]
        tables.append(compared(name, splits, f"means of {len(splits)} of 5 folds; fit and predictions"))
    if mnist is not None:
        tables.append(compared("MNIST", [(published(mnist, "train"), published(mnist, "t10k"))], "fit and predictions"))
    return tables
