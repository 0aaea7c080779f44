"""The proven optimum of small tables: the fewest wrong cells of a Boolean product with k atoms, by branch and bound."""

from __future__ import annotations

import numpy as np

_CHUNK = 500  # nodes expanded together


def fewest_wrong(X: np.ndarray, n_atoms: int) -> int:
    """Return the fewest wrong cells of an OR product with this many atoms. Nothing of the package is used.

    The columns of the atoms are chosen one after the other. A node knows, for every row and every code, how many
    columns so far are wrong; a row takes its best code in the end. The columns left add at least the optimum of the
    table of these columns, which is found first (Russian doll search). Of products that differ in the order of the
    atoms alone, one is tried (`AtomOrder`).
    """
    n_codes, order = 1 << n_atoms, AtomOrder(n_atoms)
    covered = (np.arange(n_codes)[:, np.newaxis] & np.arange(n_codes)) > 0  # by code and column of the atoms
    wrong = (X.T[:, np.newaxis, :, np.newaxis].astype(bool) != covered.T[:, np.newaxis, :]).astype(np.uint8)
    least = [0]  # of the last columns: none, one, two ...
    for first in reversed(range(X.shape[1])):
        bound = _good_product(X[:, first:], n_atoms)
        root = np.zeros((1, len(X), n_codes), np.uint8)
        least.append(_search(root, np.array([order.all_equal]), order, wrong[first:], least[::-1], bound))
    return least[-1]


class AtomOrder:
    """Which columns keep the atoms in descending order, compared column by column from the first.

    The state of a node is a bit for each pair of neighbouring atoms: whether they are equal so far. Where they are, the
    first of them must have a one if the second has.
    """

    def __init__(self, n_atoms: int) -> None:
        pairs = np.arange(n_atoms - 1)
        column = (np.arange(1 << n_atoms)[:, np.newaxis] >> np.arange(n_atoms)) & 1
        equal = (np.arange(1 << len(pairs))[:, np.newaxis, np.newaxis] >> pairs) & 1
        self.all_equal = len(equal) - 1
        self.allowed = ~(equal & (column[:, :-1] < column[:, 1:])).any(axis=2)  # by state and column
        self.next_state = ((equal & (column[:, :-1] == column[:, 1:])) << pairs).sum(axis=2)


def _search(
    nodes: np.ndarray, states: np.ndarray, order: AtomOrder, wrong: np.ndarray, least: list[int], bound: int
) -> int:
    """Return the fewest errors below these nodes, or the bound if there are not fewer.

    ``least[i]`` are the fewest errors in the columns after the next i + 1.
    """
    if len(wrong) == 0:
        return min(bound, int(nodes.min(axis=2).sum(axis=1).min(initial=bound)))
    for start in range(0, len(nodes), _CHUNK):
        parents, columns = np.nonzero(order.allowed[states[start : start + _CHUNK]])
        children = nodes[start + parents] + wrong[0, columns]
        next_states = order.next_state[states[start + parents], columns]
        lowest = children.min(axis=2).sum(axis=1) + least[0]
        ranking = np.argsort(lowest, kind="stable")
        promising = ranking[lowest[ranking] < bound]
        for part in np.array_split(promising, -(-len(promising) // _CHUNK)) if len(promising) else ():
            bound = _search(children[part], next_states[part], order, wrong[1:], least[1:], bound)
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
