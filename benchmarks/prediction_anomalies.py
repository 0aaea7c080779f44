"""The part "anomalies" of `prediction.py`: odd rows among others, found by their scores, beside other methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from tables import Row, Table, log_row, show

import bitatoms as ba
from datasets import digits_set, load

ODD_SHARE = 0.05  # odd rows per ordinary one
NEW_SHARE = 0.2  # of the ordinary rows, which are scored and not learned from

Floats = NDArray[np.float64]
Cells = NDArray[np.uint8]


class Job(NamedTuple):
    """Ordinary and odd rows."""

    name: str
    ordinary: Cells
    odd: Cells


def shuffled(X: Cells, random: np.random.Generator) -> Cells:
    """Return rows with the same columns, each shuffled on its own."""
    return np.column_stack([random.permutation(column) for column in X.T])


def jobs(folder: Path | None, random: np.random.Generator) -> Iterator[Job]:
    """Yield the jobs whose data are at hand."""
    X, classes = ba.datasets.digits()
    digits = digits_set(folder)
    yield Job("digits, shuffled", digits, shuffled(digits, random))
    yield Job("digits, nines", X[classes != 9], X[classes == 9])
    baskets = ba.datasets.baskets().to_dense()
    yield Job("demo baskets, shuffled", baskets, shuffled(baskets, random))
    if folder is None:
        return
    mushroom = load(folder, "mushroom_fimi")
    is_edible, mushroom = mushroom[:, 1] == 1, mushroom[:, 2:]
    yield Job("mushroom, shuffled", mushroom, shuffled(mushroom, random))
    yield Job("mushroom, other class", mushroom[is_edible], mushroom[~is_edible])
    groceries, chess = (load(folder, name) for name in ("groceries", "und_chess_krvskp"))
    groceries = groceries[groceries.sum(axis=1) > 1]
    odd = shuffled(groceries, random)
    yield Job("groceries, shuffled", groceries, odd[odd.sum(axis=1) > 1])
    yield Job("chess, shuffled", chess, shuffled(chess, random))


def column_shares(learned: Cells, rows: Cells) -> Floats:
    """Return minus the log-likelihood of rows with independent columns."""
    shares = (learned.sum(axis=0) + 0.5) / (len(learned) + 1)
    return -np.log(np.where(rows == 1, shares, 1 - shares)).sum(axis=1)


def mixture(learned: Cells, rows: Cells, n_classes: int = 20, n_steps: int = 60) -> Floats:
    """Return minus the log-likelihood of rows of a mixture of independent columns."""
    random, overall = np.random.default_rng(0), (learned.sum(axis=0) + 0.5) / (len(learned) + 1)
    members = random.dirichlet(np.full(n_classes, 0.3), len(learned))
    logs = np.empty(0)
    for step in range(n_steps + 1):
        weights = (members.sum(axis=0) + 0.5) / (len(learned) + 0.5 * n_classes)
        shares = (members.T @ learned + overall) / (members.sum(axis=0)[:, np.newaxis] + 1)
        given = learned if step < n_steps else rows
        logs = given @ np.log(shares).T + (1 - given) @ np.log(1 - shares).T + np.log(weights)
        members = np.exp(logs - logs.max(axis=1, keepdims=True))
        members /= members.sum(axis=1, keepdims=True)
    return -np.logaddexp.reduce(logs, axis=1)


def isolation_forest(learned: Cells, rows: Cells) -> Floats:
    return -IsolationForest(random_state=0).fit(learned).score_samples(rows)


def local_outlier_factor(learned: Cells, rows: Cells) -> Floats:
    if rows is learned:
        return -LocalOutlierFactor(20).fit(learned).negative_outlier_factor_
    return -LocalOutlierFactor(20, novelty=True).fit(learned).score_samples(rows)


def components(learned: Cells, rows: Cells) -> Floats:
    """Return the squared distances to the principal components that explain 90 % of the variance."""
    model = PCA(0.9, svd_solver="full").fit(learned)
    return ((rows - model.inverse_transform(model.transform(rows))) ** 2).sum(axis=1)


def ours(learned: Cells, rows: Cells) -> Floats:
    return -np.asarray(ba.BinaryDictionaryLearning(random_state=0).fit(learned).score_samples(rows))


METHODS: dict[str, Callable[[Cells, Cells], Floats]] = {
    "column shares": column_shares,
    "isolation forest": isolation_forest,
    "LOF": local_outlier_factor,
    "PCA": components,
    "mixture of 20": mixture,
    "bitatoms": ours,
}


def rows_of(job: Job, are_new: bool, random: np.random.Generator) -> tuple[Cells, Cells, NDArray[np.bool_]]:
    """Return the rows to learn from, those to score, and which of these are odd."""
    ordinary, odd = (random.permutation(rows) for rows in (job.ordinary, job.odd))
    odd = odd[: max(1, round(ODD_SHARE * len(ordinary)))]
    n_new = round(NEW_SHARE * len(ordinary)) if are_new else 0
    rows = np.vstack([ordinary[:n_new] if are_new else ordinary, odd])
    is_odd = np.arange(len(rows)) >= len(rows) - len(odd)
    return ordinary[n_new:] if are_new else rows, rows, is_odd


def anomalies(folder: Path | None, splits: range) -> list[Table]:
    """Return the areas under the ROC curve of all methods, with odd rows among those learned from, and in new rows."""
    tables = []
    for are_new in (False, True):
        areas: dict[str, dict[str, list[float]]] = {}
        seconds = dict.fromkeys(METHODS, 0.0)
        for split in splits:
            random = np.random.default_rng(split)
            for job in jobs(folder, random):
                learned, rows, is_odd = rows_of(job, are_new, random)
                for method, score in METHODS.items():
                    begin = time.process_time()
                    area = float(roc_auc_score(is_odd, score(learned, rows)))
                    seconds[method] += time.process_time() - begin
                    areas.setdefault(method, {}).setdefault(job.name, []).append(area)
        lines: list[Row] = []
        for method, of_jobs in areas.items():
            means: dict[str, Any] = {name: float(np.mean(each)) for name, each in of_jobs.items()}
            lines.append(log_row({"method": method, **means, "CPU s": seconds[method] / len(splits)}))
        title = "odd rows that are new" if are_new else "odd rows among those learned from"
        tables.append(Table(f"{title}: area under the ROC curve", lines, f"means of {len(splits)} splits"))
        show(tables[-1])
    return tables
