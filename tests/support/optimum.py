"""The proven optimum of small tables: the fewest wrong cells of a Boolean product with k atoms, by branch and bound."""

from __future__ import annotations

import numpy as np

_CHUNK = 4000  # nodes expanded together


def fewest_wrong(X: np.ndarray, n_atoms: int) -> int:
    """Return the fewest wrong cells of an OR product with this many atoms. Nothing of the package is used.

    The columns of the atoms are chosen one after the other. A node knows, for every row and every code, how many
    columns so far are wrong; a row takes its best code in the end. The columns left add at least the optimum of the
    table of these columns, which is found first (Russian doll search).
    """
    n_codes = 1 << n_atoms
    covered = (np.arange(n_codes)[:, np.newaxis] & np.arange(n_codes)) > 0  # by code and column of the atoms
    wrong = (X.T[:, np.newaxis, :, np.newaxis].astype(bool) != covered.T[:, np.newaxis, :]).astype(np.uint8)
    least = [0]  # of the last columns: none, one, two ...
    for first in reversed(range(X.shape[1])):
        bound = _good_product(X[:, first:], n_atoms)
        root = np.zeros((1, len(X), n_codes), np.uint8)
        least.append(_search(root, wrong[first:], least[::-1], bound))
    return least[-1]


def _search(nodes: np.ndarray, wrong: np.ndarray, least: list[int], bound: int) -> int:
    """Return the fewest errors below these nodes, or the bound if there are not fewer.

    ``least[i]`` are the fewest errors in the columns after the next i + 1.
    """
    if len(wrong) == 0:
        return min(bound, int(nodes.min(axis=2).sum(axis=1).min(initial=bound)))
    for start in range(0, len(nodes), _CHUNK):
        children = nodes[start : start + _CHUNK, np.newaxis] + wrong[0]
        children = children.reshape(-1, *nodes.shape[1:])
        lowest = children.min(axis=2).sum(axis=1) + least[0]
        order = np.argsort(lowest, kind="stable")
        promising = order[lowest[order] < bound]
        for part in np.array_split(promising, -(-len(promising) // _CHUNK)) if len(promising) else ():
            bound = _search(children[part], wrong[1:], least[1:], bound)
    return bound


def _good_product(X: np.ndarray, n_atoms: int, n_starts: int = 20) -> int:
    """Return the wrong cells of a good product: rows and columns take their best codes in turn, from random ones."""
    random = np.random.default_rng(0)
    n_codes = 1 << n_atoms
    covered = (np.arange(n_codes)[:, np.newaxis] & np.arange(n_codes)) > 0
    best = X.size
    for _ in range(n_starts):
        codes, before = random.integers(n_codes, size=len(X)), X.size + 1
        while True:
            columns = (X[:, :, np.newaxis] != covered[codes][:, np.newaxis]).sum(axis=0).argmin(axis=1)
            distances = (X[:, np.newaxis] != covered[:, columns]).sum(axis=2)
            codes, wrong = distances.argmin(axis=1), int(distances.min(axis=1).sum())
            if wrong >= before:
                break
            before = wrong
        best = min(best, before)
    return best
