"""Compare predictions with those of other methods: hidden answers and items, odd rows, and classes.

``python benchmarks/prediction.py imputation recommendation anomalies classification [--folder FOLDER] [--sets fair]``

The surveys come with statsmodels, digits with scikit-learn; other tables are read from the folder, and baskets are
generated without one. In imputation, all columns of a question are hidden together. Log losses are bits per answer: per
question of a survey, per cell of another table. In recommendation, one item is hidden of each basket of a fold that has
at least two, and recommended by what is learned from the other folds. In classification, the class of each row is
predicted by what is learned from the other folds; log losses are nats per row (``--classes digits,zoo``, ``--mnist``).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prediction_anomalies import anomalies
from prediction_classes import BUNDLED, LABELED, classification
from scipy.sparse import csr_array, load_npz
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LogisticRegression
from tables import Row, Table, log_row, show

import bitatoms as ba
from bitatoms.imputation.hidden_cells import hidden_folds, shares_of, without_cells
from bitatoms.imputation.tied_columns import TiedColumns, known_ties
from bitatoms.model.recommendation import largest
from datasets import digits_set, load

SURVEYS = ("anes96", "fair")
TABLES = {"zoo": "bmf_zoo", "digits": "digits_8x8", "mushroom": "mushroom_fimi", "soybean": "und_soybean"}
SHARES = (0.1, 0.3)
RETAIL = 20_000, 300  # baskets, and items
LEAST = 1e-6  # probability
LEAST_CELLS = 200  # in a fifth of the unit interval, when calibration is judged

Floats = NDArray[np.float64]


def survey(name: str) -> ba.Table:
    """Return a survey of statsmodels with one column per answer."""
    import statsmodels.api

    return ba.encode(getattr(statsmodels.api.datasets, name).load_pandas().data)


def table_of(name: str, folder: Path | None) -> ba.Table | None:
    """Return a table by name; None if it is not at hand."""
    if name in SURVEYS:
        try:
            return survey(name)
        except ImportError:
            return None
    if name == "digits":
        return ba.Table.from_any(digits_set(folder))
    return None if folder is None else ba.Table.from_any(load(folder, TABLES[name]))


class Incomplete:
    """A table with hidden cells, as rivals take it: cells with NaN, and the columns of each question."""

    def __init__(self, table: ba.Table) -> None:
        self.table, self.tied = table, known_ties(table.header)
        self.cells: Floats = table.bits.to_dense(float)
        self.unknown = np.isnan(self.cells)
        self.shares = shares_of(table.bits)
        self.filled = np.where(self.unknown, self.shares, self.cells)
        self.questions = [columns for kind in self.tied.kinds for columns in kind.columns]


def majority(given: Incomplete) -> Floats:
    """Return the shares of ones in the columns."""
    return np.broadcast_to(given.shares, given.cells.shape)


def nearest(given: Incomplete, n_neighbours: int = 20) -> Floats:
    """Return the shares of ones among the nearest rows that know a cell, with one vote for the share of all rows."""
    known, ones, filled = ~given.unknown, np.nan_to_num(given.cells), given.filled
    found = np.empty(ones.shape)
    squares = (filled**2).sum(axis=1)
    for start in range(0, len(ones), 500):
        own = filled[start : start + 500]
        distances = squares - 2 * own @ filled.T
        distances[np.arange(len(own)), start + np.arange(len(own))] = np.inf
        rows = np.argpartition(distances, min(n_neighbours, len(ones) - 1), axis=1)[:, :n_neighbours]
        found[start : start + 500] = (ones[rows].sum(axis=1) + given.shares) / (known[rows].sum(axis=1) + 1)
    return found


def iterative(given: Incomplete) -> Floats:
    """Return what scikit-learn's IterativeImputer fills in, as probabilities."""
    return IterativeImputer(random_state=0, keep_empty_features=True).fit_transform(given.cells)


def chained(given: Incomplete, n_rounds: int = 5, penalty: float = 10.0) -> Floats:
    """Return predictions of logistic regressions of each question on all others, which are repeated with these."""
    found = given.filled.copy()
    for _ in range(n_rounds):
        for own in given.questions:
            missing = given.unknown[:, own].any(axis=1)
            answers = given.cells[~missing][:, own]
            answers = answers.argmax(axis=1) if len(own) > 1 else answers[:, 0]
            if not missing.any() or len(np.unique(answers)) < 2:
                continue
            others = np.delete(found, own, axis=1)
            model = LogisticRegression(C=1 / penalty, max_iter=200, tol=1e-3).fit(others[~missing], answers)
            stated = np.full((missing.sum(), max(2, len(own))), LEAST)
            stated[:, model.classes_.astype(int)] = model.predict_proba(others[missing]).clip(LEAST)
            stated /= stated.sum(axis=1, keepdims=True)
            found[np.ix_(missing, own)] = stated if len(own) > 1 else stated[:, 1:]
    return found


def latent_classes(given: Incomplete, numbers: tuple[int, ...] = (5, 10, 15, 20, 30), n_steps: int = 60) -> Floats:
    """Return predictions of a mixture of independent questions; Akaike's criterion chooses its number of classes."""
    random, tied = np.random.default_rng(0), given.tied
    values = tied.indicators(given.table.bits)
    overall = tied.normalized(values.sum(axis=0) + 0.5)
    n, best = len(values), (np.inf, given.filled)
    for n_classes in numbers:
        for _ in range(2):
            members = random.dirichlet(np.full(n_classes, 0.3), n)
            for _ in range(n_steps):
                weights = (members.sum(axis=0) + 0.5) / (n + 0.5 * n_classes)
                shares = tied.normalized(members.T @ values + overall)
                logs = values @ np.log(shares).T + np.log(weights)
                most = logs.max(axis=1, keepdims=True)
                members = np.exp(logs - most)
                sums = members.sum(axis=1, keepdims=True)
                members /= sums
            n_numbers = n_classes * sum(len(kind.columns) * (len(kind.values) - 1) for kind in tied.kinds)
            criterion = 2 * n_numbers - 2 * float((most + np.log(sums)).sum())
            if criterion < best[0]:
                best = criterion, _cells(tied, members @ shares)
    return best[1]


def _cells(tied: TiedColumns, of_values: Floats) -> Floats:
    """Return the probabilities of ones in cells from those of the values of all questions."""
    cells = np.empty((len(of_values), tied.n_cols))
    for kind, own in zip(tied.kinds, tied.value_slices, strict=True):
        kind.add_cells(of_values[:, own].reshape(len(cells), *kind.shape), cells)
    return cells


def ours(model: Any) -> Callable[[Incomplete], Floats]:
    """Return the predictions of an estimator of bitatoms."""
    return lambda given: np.asarray(model.fit(given.table).predict_cell_proba(given.table))


RIVALS: dict[str, Callable[[Incomplete], Floats]] = {
    "majority": majority,
    "20-NN": nearest,
    "IterativeImputer": iterative,
    "chained logistic": chained,
    "latent classes": latent_classes,
}
OURS: dict[str, Callable[[Incomplete], Floats]] = {
    "atoms": ours(ba.BinaryDictionaryLearning(random_state=0)),
    "auto": ours(ba.BinaryImputer(random_state=0)),
}


def stated_of(
    tied: TiedColumns, truth: ba.Table, hidden: NDArray[np.bool_], found: Floats
) -> tuple[Floats, Floats, Any]:
    """Return the probabilities of the true answers; and of all answers, and whether they are the true ones."""
    of_truth, of_all, are_true = [], [], []
    for kind in tied.kinds:
        is_value = kind.indicators(truth.bits)
        where = np.nonzero(hidden[:, kind.columns].all(axis=2) & is_value.any(axis=2))
        stated, is_value = kind.probabilities(found)[where], is_value[where] == 1
        of_truth.append(stated[is_value])
        first = 1 if kind.is_binary else 0  # of a single column, zeros say the same as ones
        of_all.append(stated[:, first:].ravel())
        are_true.append(is_value[:, first:].ravel())
    return np.concatenate(of_truth), np.concatenate(of_all), np.concatenate(are_true)


def worst_fifth(stated: Floats, is_true: NDArray[np.bool_]) -> float:
    """Return by how much stated probabilities differ from what came true, in the worst fifth of the unit interval."""
    fifths = np.minimum((stated * 5).astype(int), 4)
    counted = [own for own in (fifths == fifth for fifth in range(5)) if own.sum() >= LEAST_CELLS]
    return max((abs(float((stated - is_true)[own].mean())) for own in counted), default=0.0)


def imputation(names: list[str], folder: Path | None, splits: range) -> list[Table]:
    """Return log losses, calibration and CPU seconds of all methods on hidden cells."""
    summary: list[Row] = []
    tables = []
    for name in names:
        table = table_of(name, folder)
        if table is None:
            continue
        tied = known_ties(table.header)
        for share in SHARES:
            rows: list[Row] = []
            for method, predict in (RIVALS | OURS).items():
                losses, errors, seconds = [], [], 0.0
                for split in splits:
                    (mask,) = hidden_folds(table.bits, 1, share, np.random.default_rng(split), tied.first)
                    given = Incomplete(table.with_bits(without_cells(table.bits, mask)))
                    begin = time.process_time()
                    found = predict(given).clip(LEAST, 1 - LEAST)
                    seconds += time.process_time() - begin
                    of_truth, stated, is_true = stated_of(tied, table, mask.to_dense(bool), found)
                    losses.append(-float(np.log2(of_truth).mean()))
                    errors.append(worst_fifth(stated, is_true))
                row = {"method": method, "log loss": float(np.mean(losses)), "worst fifth": float(np.mean(errors))}
                rows.append(log_row({**row, "CPU s": seconds / len(splits)}))
            title = f"{name}, {table.shape[0]} x {table.shape[1]}, {share:.0%} hidden"
            tables.append(Table(title, rows, f"means of {len(splits)} splits; bits per answer"))
            show(tables[-1])
            best = min(rows[: len(RIVALS)], key=lambda row: row["log loss"])
            ratio = rows[-1]["log loss"] / best["log loss"]
            summary.append({"table": name, "hidden": share, "best rival": best["method"], "auto / rival": ratio})
    return [Table("auto beside the best rival", summary, "ratio of log losses")] if summary else []


# --- recommendation: each method returns the scores of all items, from baskets to learn from and incomplete ones


def popularity(learned: Floats, rows: Floats) -> Floats:
    return np.broadcast_to(learned.mean(axis=0), rows.shape)


def item_neighbours(learned: Floats, rows: Floats, n_neighbours: int = 50) -> Floats:
    """Return the sum of the cosines of an item and those of a basket, of the nearest items of each."""
    counts = learned.T @ learned
    cosines = counts / np.sqrt(np.outer(np.diag(counts), np.diag(counts)) + 1e-9)
    np.fill_diagonal(cosines, 0)
    cosines[cosines < -np.sort(-cosines, axis=0)[min(n_neighbours, len(cosines) - 1)]] = 0
    return rows @ cosines


def ease(learned: Floats, rows: Floats, penalty: float = 200.0) -> Floats:
    """Return the scores of EASE (Steck, 2019): a linear model whose items do not predict themselves."""
    inverse = np.linalg.inv(learned.T @ learned + penalty * np.eye(learned.shape[1]))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return rows @ weights


def logistic_per_item(learned: Floats, rows: Floats, penalty: float = 10.0) -> Floats:
    """Return the probability of each item by a logistic regression on all others."""
    found = np.zeros(rows.shape)
    for item in np.flatnonzero(learned.any(axis=0) & ~learned.all(axis=0)):
        others, own = (np.delete(table, item, axis=1) for table in (learned, rows))
        model = LogisticRegression(C=1 / penalty, max_iter=200, tol=1e-3).fit(others, learned[:, item])
        found[:, item] = model.predict_proba(own)[:, 1]
    return found


ITEM_RIVALS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "popularity": popularity,
    "item-kNN": item_neighbours,
    "EASE": ease,
    "logistic per item": logistic_per_item,
}


def baskets_of(folder: Path | None) -> dict[str, NDArray[np.uint8]]:
    """Return baskets: groceries, and the items of retail that are bought most; without a folder, generated ones."""
    if folder is None:
        return {"generated": ba.datasets.baskets().to_dense()}
    retail = csr_array(load_npz(folder / "retail.sparse.npz")).astype(np.int64)[: RETAIL[0]]
    columns = np.sort(np.argsort(-np.asarray(retail.sum(axis=0)).ravel(), kind="stable")[: RETAIL[1]])
    return {"groceries": load(folder, "groceries"), "retail": retail[:, columns].toarray().astype(np.uint8)}


def recommendation(folder: Path | None, n_folds: int, n_tested: int) -> list[Table]:
    """Return how often the hidden item is among the first ones of each method, and whether our probabilities hold."""
    tables = []
    for name, X in baskets_of(folder).items():
        random = np.random.default_rng(0)
        folds = np.array_split(random.permutation(len(X)), n_folds)
        hits: dict[str, list[Floats]] = {method: [] for method in (*ITEM_RIVALS, "bitatoms")}
        seconds = dict.fromkeys(hits, 0.0)
        stated, came_true = [], []
        for tested in folds[:n_tested]:
            learned = X[np.setdiff1d(np.arange(len(X)), tested)]
            rows = X[tested][X[tested].sum(axis=1, dtype=np.int64) > 1]
            hidden = np.where(rows == 1, random.random(rows.shape), -1).argmax(axis=1)
            rows[np.arange(len(rows)), hidden] = 0
            for method in hits:
                begin = time.process_time()
                if method == "bitatoms":
                    found = ba.BinaryDictionaryLearning(random_state=0).fit(learned).recommend(rows, 10)
                    items, probabilities = found
                    stated.append(probabilities.ravel())
                    came_true.append((items == hidden[:, np.newaxis]).ravel())
                else:
                    scores = ITEM_RIVALS[method](learned.astype(float), rows.astype(float))
                    items = largest(np.where(rows == 1, -np.inf, scores), 10)
                seconds[method] += time.process_time() - begin
                is_hit = items == hidden[:, np.newaxis]
                hits[method].append(np.column_stack([is_hit[:, :5].any(axis=1), is_hit.any(axis=1)]))
        rows_of_table: list[Row] = []
        for method, each in hits.items():
            in_5, in_10 = np.concatenate(each).mean(axis=0).tolist()
            row = {"method": method, "in 5": in_5, "in 10": in_10, "CPU s": seconds[method] / n_tested}
            rows_of_table.append(log_row(row))
        worst = worst_fifth(np.concatenate(stated), np.concatenate(came_true))
        note = f"{n_tested} of {n_folds} folds; our probabilities differ by {worst:.3f} in the worst fifth"
        tables.append(Table(f"{name}, {X.shape[0]} x {X.shape[1]}, one item hidden", rows_of_table, note))
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = "imputation", "recommendation", "anomalies", "classification"
    parser.add_argument("parts", nargs="+", choices=parts)
    parser.add_argument("--folder", type=Path, help="of tables that no library brings along")
    parser.add_argument("--sets", default=",".join((*SURVEYS, *TABLES)))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--classes", default=",".join(("digits", *BUNDLED, *LABELED)), help="tables of classification")
    parser.add_argument("--mnist", type=Path, metavar="FOLDER", help="of the four published files of MNIST")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if "imputation" in options.parts:
        for table in imputation(options.sets.split(","), options.folder, range(options.splits)):
            show(table)
    if "recommendation" in options.parts:
        for table in recommendation(options.folder, 5, options.splits):
            show(table)
    if "anomalies" in options.parts:
        anomalies(options.folder, range(options.splits))
    if "classification" in options.parts:
        for table in classification(options.classes.split(","), options.folder, options.mnist, options.splits):
            show(table)


if __name__ == "__main__":
    main()
