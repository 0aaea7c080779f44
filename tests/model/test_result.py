"""The summary of a result, in words."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba

X = ba.datasets.planted(200, 20, 2, algebra="or", noise=0.02, random_state=0).X
NO_ATOM = "No atom makes the description shorter"


@pytest.fixture(scope="module")
def result():
    return ba.factorize(X, random_state=0)


@pytest.mark.parametrize("row", [[0, 0, 0], [1, 0, 1]], ids=["without a bias", "with a bias"])
def test_without_atoms_it_says_so_also_where_there_is_a_bias(result, row):
    empty = ba.factorize(np.array([row] * 20), algebra="xor", random_state=0)
    assert empty.atoms.n_rows == 0
    assert empty.bias.tolist() == row
    assert NO_ATOM in empty.summary()
    assert ("of the cells are wrong" in empty.summary()) == any(row)
    assert "a sample uses" not in empty.summary()
    assert NO_ATOM not in result.summary()


LITTLE, NOTHING = {"bits_without": 1.01, "ended": "converged"}, {"bits_without": 1, "ended": "converged"}
SAMPLED = {"codelengths": {"or": 1}, "compared": {"or": 1, "xor": 2}}  # as after passes over all rows
NO_SAVING = "no fewer than without atoms.\nThese atoms save no bits: the fewest wrong cells were sought.\n"


@pytest.mark.parametrize(
    ("changes", "text", "other"),
    [
        ({}, "XOR needs {xor} bits", "not final"),
        ({"ended": "max_time"}, "The search ended at its time limit: with more time it may find more.", "a saving"),
        ({"ended": "max_time"}, "This comparison is not final: the search was cut short.", "a saving"),
        (LITTLE, "a thorough search or more rows may save more", "XOR or more"),
        (LITTLE | {"codelengths": {"or": 1}}, "a thorough search, XOR or more rows may", "not final"),
        (LITTLE | SAMPLED, "a thorough search or more rows may", "XOR or more"),
        (NOTHING | {"objective": "errors"}, NO_SAVING, "saving"),
        (NOTHING | {"objective": "codelength"}, "These atoms save no bits.\n", "saving"),
    ],
)
def test_what_it_says_and_does_not_say(result, changes, text, other):
    """What was tried is not advised, a comparison that was cut short is not final, and no bits are not a saving."""
    factor = changes.get("bits_without")
    bits = {"bits_without": int(factor * result.codelength.total)} if factor else {}
    summary = replace(result, **changes | bits).summary()
    assert text.format(xor=result.codelengths["xor"]) in summary
    assert other not in summary


def test_a_thorough_search_has_tried_itself():
    assert ba.factorize(X, algebra="or", search="thorough", random_state=0).untried == ("xor", "rows")


@pytest.mark.parametrize(
    ("n_atoms", "beyond", "ended", "verdict"),
    [
        (2, None, "converged", "That is a small saving; a thorough search, XOR or more rows may save more."),
        (2, 1, "converged", "That is a small saving, but more than chance: 1 of the 2 atoms has features that occur"),
        (1, 1, "converged", "more than chance: the atom has features that occur together more or less often than"),
        (2, 2, "converged", "no such structure, or a thorough search, XOR or more rows may find it."),
        (2, 0, "converged", "That is a small saving, and chance may be the reason: no features of an atom occur"),
        (2, None, "max_time", "That is a small saving. The search was cut short: how much structure the table has is"),
        (0, None, "converged", f"{NO_ATOM}: there is none in the table, or none was found or allowed."),
        (0, 0, "converged", f"{NO_ATOM}, and no two features occur together more or less often than the numbers"),
        (0, 1, "converged", f"{NO_ATOM}, although 1 pair of features occurs together more or less often than the"),
        (0, 7, "converged", "explain; a thorough search, XOR or more rows may find one."),
        (0, None, "callback", "No atom was found that makes the description shorter. The search was cut short: how"),
    ],
)
def test_what_a_small_saving_means(result, n_atoms, beyond, ended, verdict):
    codes = result.codes.T[np.arange(n_atoms)].T
    some = replace(result, atoms=result.atoms[:n_atoms], codes=codes, ended=ended, beyond_chance=beyond)
    some = replace(some, bits_without=int(1.01 * result.codelength.total), codelengths={"or": 1})
    assert some.saves_little
    assert verdict in some.summary()
