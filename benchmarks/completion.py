"""Compare predictions of unknown cells with the best possible ones on planted tables, and on ratings of films.

Without arguments it runs on planted tables. ``--movielens FILE`` runs on the ratings
of MovieLens 100k instead: u.data of GroupLens, or a file with a header and the same columns (user, film, rating, time).
A bit is one if the rating is at least 4. Fold i tests on lines 20 000 (i - 1) + 1 to 20 000 i, as GroupLens' own folds.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from tables import Row, Table, log_row, show

import bitatoms as ba

FOLD = 20_000  # ratings
DAMPING = 5.0  # ratings of the mean, that each film and user has besides its own


def hide(X: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the table with NaN in this share of its cells, and where these are."""
    mask = np.random.default_rng(seed).random(X.shape) < share
    return np.where(mask, np.nan, X), mask


def wrong(probabilities: np.ndarray, X: np.ndarray, mask: np.ndarray) -> float:
    """Return the percentage of hidden cells that are predicted wrongly."""
    return 100 * float(((probabilities > 0.5) != X)[mask].mean())


def log_loss(probabilities: np.ndarray, X: np.ndarray, mask: np.ndarray) -> float:
    """Return the bits per hidden cell."""
    found = np.where(X == 1, probabilities, 1 - probabilities)[mask]
    return -float(np.log2(np.maximum(found, 1e-12)).mean())


def imputed(method: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda X: ba.BinaryImputer(algebra="xor", method=method, random_state=0).fit(X).predict_cell_proba(X)


def exact(seeds: int) -> Table:
    """Return wrong hidden cells of 400 x 15 tables of rank 4 without noise, beside the best possible predictions.

    These average over all codes that the known cells allow, with the planted atoms and the true density of codes.
    """
    rows: list[Row] = []
    for seed in range(seeds):
        factors = ba.datasets.planted(
            400, 15, 4, algebra="or", atom_density=0.35, code_density=0.4, noise=0, random_state=seed
        )
        incomplete, mask = hide(factors.X, 0.2, seed + 100)
        codes = np.array(list(itertools.product((0, 1), repeat=4)))
        products = codes @ factors.atoms > 0
        known = ~np.isnan(incomplete)
        allowed = np.array(
            [(products == (row == 1))[:, own].all(axis=1) for row, own in zip(factors.X, known, strict=True)]
        )
        weights = allowed * np.prod(np.where(codes, 0.4, 0.6), axis=1)
        best = weights @ products / weights.sum(axis=1, keepdims=True)
        model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(incomplete)
        predicted = model.predict_cell_proba(incomplete)
        row = {"seed": seed, "atoms": model.n_components_}
        row |= {"best possible %": wrong(best, factors.X, mask), "ours %": wrong(predicted, factors.X, mask)}
        row |= {"best bits": log_loss(best, factors.X, mask), "our bits": log_loss(predicted, factors.X, mask)}
        rows.append({name: round(value, 3) for name, value in row.items()})
        log_row(rows[-1])
    note = "wrong hidden cells, and bits per hidden cell"
    return Table("planted 400 x 15, rank 4, OR, no noise, 20 % hidden", rows, note)


def planted(seeds: int) -> Table:
    """Return how often atoms are recovered, and wrong hidden cells beside the noise in these cells."""
    rows: list[Row] = []
    for algebra, share in itertools.product(("xor", "or"), (0.1, 0.3, 0.5)):
        recovered, excess = 0, []
        for seed in range(seeds):
            factors = ba.datasets.planted(500, 200, 8, algebra=algebra, noise=0.05, random_state=seed)
            incomplete, mask = hide(factors.X, share, seed + 100)
            model = ba.BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(incomplete)
            recovered += {row.tobytes() for row in model.components_} == {row.tobytes() for row in factors.atoms}
            filled = model.complete(incomplete)
            excess.append(wrong(filled, factors.X, mask) - wrong(factors.clean, factors.X, mask))
        row = {"algebra": algebra, "hidden": share, "atoms exact": f"{recovered}/{seeds}"}
        rows.append(row | {"most % above the noise": round(max(excess), 3)})
        log_row(rows[-1])
    return Table("planted 500 x 200, rank 8, 5 % noise", rows, "the seed with the most wrong cells counts")


def biases(X: np.ndarray) -> np.ndarray:
    """Return the damped share of ones of each film, plus that of each user."""
    mean = np.nanmean(X)
    film = np.nansum(X - mean, axis=0) / ((~np.isnan(X)).sum(axis=0) + DAMPING)
    user = np.nansum(X - mean - film, axis=1) / ((~np.isnan(X)).sum(axis=1) + DAMPING)
    return mean + film + user[:, np.newaxis]


def overall(X: np.ndarray) -> np.ndarray:
    return np.full(X.shape, np.nanmean(X))


def film_majority(X: np.ndarray) -> np.ndarray:
    """Return the share of ones of each film, that of all films where nobody has rated it."""
    counts = (~np.isnan(X)).sum(axis=0)
    shares = np.where(counts, np.nansum(X, axis=0) / np.maximum(counts, 1), np.nanmean(X))
    return np.broadcast_to(shares, X.shape)


def profiles_of_both(X: np.ndarray) -> np.ndarray:
    """Return the mean of the log odds by profiles of users and by profiles of films, as probabilities."""
    predict = imputed("profiles")
    return expit((logit(predict(X)) + logit(predict(X.T).T)) / 2)


FILM_METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "majority": overall,
    "film majority": film_majority,
    "user + film bias": biases,
    "atoms of users": imputed("atoms"),
    "atoms of films": lambda X: imputed("atoms")(X.T).T,
    "profiles of users": imputed("profiles"),
    "profiles of films": lambda X: imputed("profiles")(X.T).T,
    "profiles of both": profiles_of_both,
}


def movielens(path: Path) -> Table:
    """Return the share of held-out ratings predicted right by each method, and the bits per rating."""
    first = path.open(encoding="utf-8").readline()
    ratings = np.loadtxt(path, skiprows=int(not first[0].isdigit()))
    users, films = ratings[:, 0].astype(int) - 1, ratings[:, 1].astype(int) - 1
    X = np.full((users.max() + 1, films.max() + 1), np.nan)
    X[users, films] = ratings[:, 2] >= 4
    rows: list[Row] = []
    for name, method in FILM_METHODS.items():
        scores, begin = [], time.process_time()
        for start in range(0, len(ratings), FOLD):
            tested = slice(start, start + FOLD)
            visible = X.copy()
            visible[users[tested], films[tested]] = np.nan
            mask = np.isnan(visible) & ~np.isnan(X)
            predicted = method(visible)
            scores.append((100 - wrong(predicted, X, mask), log_loss(np.clip(predicted, 0.01, 0.99), X, mask)))
        right, bits = np.mean(scores, axis=0)
        row = {"method": name, "right %": round(right, 2), "bits": round(bits, 4)}
        rows.append(row | {"CPU s": round(time.process_time() - begin, 1)})
        log_row(rows[-1])
    return Table("MovieLens 100k: held-out ratings, means of five folds", rows, "CPU seconds of all folds")


def main() -> None:
    """Run the comparisons and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--movielens", type=Path, metavar="FILE", help="ratings of MovieLens 100k")
    parser.add_argument("--seeds", type=int, default=5, help="number of planted tables")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="columns without any known value")
    if options.movielens is not None:
        show(movielens(options.movielens))
        return
    show(exact(options.seeds))
    show(planted(options.seeds))


if __name__ == "__main__":
    main()
