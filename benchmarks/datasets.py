"""Data sets: from a folder by name, bundled with scikit-learn, or generated; and a folder of small ones."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, save_npz

import bitatoms as ba

EINSTEIN, MNIST = "einstein_16x16_4088_zero", "mnist10k_17x17"
PLANTED = {"planted_bool": "or", "planted_gf2": "xor", "planted_gf2dense": "xor"}
QUICK_ROWS = 100  # of the tables of a quick run


def load(folder: Path, name: str) -> np.ndarray:
    """Return a data set of the folder as an array of 0 and 1."""
    with np.load(folder / f"{name}.npz") as stored:
        return np.unpackbits(stored["X"], axis=1, count=int(stored["shape"][1]))


def bundled_sets() -> dict[str, np.ndarray]:
    """Return the data sets that scikit-learn bundles."""
    sets = {"digits": ba.datasets.digits()[0]}
    try:
        return {"halftone": ba.datasets.cut_blocks(ba.datasets.halftone()), **sets}
    except ImportError as missing:  # Pillow is not a dependency
        print(f"No halftone: {missing}", file=sys.stderr)
        return sets


def main_sets(folder: Path | None) -> dict[str, np.ndarray]:
    """Return the data sets on which all methods run."""
    return bundled_sets() if folder is None else {name: load(folder, name) for name in (EINSTEIN, MNIST)}


def planted_set(folder: Path | None, name: str) -> np.ndarray:
    """Return a table of 500 x 200 with eight planted atoms and 5 % noise."""
    if folder is not None:
        return load(folder, f"{name}_500x200_k8")
    density = 0.5 if name.endswith("dense") else 0.15
    how = {"algebra": PLANTED[name], "atom_density": density, "code_density": density}
    return ba.datasets.planted(500, 200, 8, **how, random_state=0).X


def digits_set(folder: Path | None) -> np.ndarray:
    """Return the digits of 8 x 8 pixels: those of the folder, or those that scikit-learn bundles."""
    name = "digits_8x8"
    return load(folder, name) if folder and (folder / f"{name}.npz").exists() else ba.datasets.digits()[0]


def write_quick_sets(folder: Path) -> Path:
    """Write small tables under the names of the data sets to a folder for a quick run, and return it."""
    names = (
        EINSTEIN,
        MNIST,
        "mnist10k_28x28",
        "digits_8x8",
        "mushroom_fimi",
        "groceries",
        "kov_zoo",
        "und_chess_krvskp",
    )
    for seed, name in enumerate((*names, *(f"{name}_500x200_k8" for name in PLANTED))):
        X = ba.datasets.planted(QUICK_ROWS, 30, 4, algebra="or", noise=0.03, random_state=seed).X
        np.savez(folder / f"{name}.npz", X=np.packbits(X, axis=1), shape=X.shape)
    save_npz(folder / "retail.sparse.npz", csr_array(X))
    return folder


def chosen(options: argparse.Namespace, name: str) -> bool:
    """Return whether the user selected this data set."""
    return options.sets is None or name in options.sets.split(",")
