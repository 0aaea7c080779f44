"""Data sets: from a folder by name, bundled with scikit-learn, or generated."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import bitatoms as ba

EINSTEIN, MNIST = "einstein_16x16_4088_zero", "mnist10k_17x17"
PLANTED = {"planted_bool": "or", "planted_gf2": "xor", "planted_gf2dense": "xor"}


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


def chosen(options: argparse.Namespace, name: str) -> bool:
    """Return whether the user selected this data set."""
    return options.sets is None or name in options.sets.split(",")
