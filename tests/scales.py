"""What the tests of every scale share: the same call, wherever the rows are."""

import inspect

import numpy as np

from bitatoms import factorize
from bitatoms.algorithms.evidence import AllRows
from bitatoms.algorithms.passes import NOTHING_KEPT, Taken
from bitatoms.algorithms.sampling import learn
from bitatoms.algorithms.settings import Settings, generator, settle
from bitatoms.parallel import Workers

_FACTORIZE = inspect.signature(factorize).parameters
_SETTLE = inspect.signature(settle).parameters


def settings_for(**given) -> Settings:
    """The settings of a call of `factorize` with these parameters."""
    defaults = {name: _FACTORIZE[name].default for name in _SETTLE}
    return settle(**{**defaults, **given})


def learned(rows: AllRows, seed: int = 0, journal=NOTHING_KEPT, workers: Workers = Workers(1), **given):  # noqa: B008
    """What is learned from rows, wherever they are."""
    found = learn(rows, settings_for(**given), workers, generator(seed), journal)
    return found.result if isinstance(found, Taken) else found


def assert_same(one, other) -> None:
    """The same bits were learned: atoms, bias, counts, codelength."""
    assert one.atoms == other.atoms
    assert one.codelength == other.codelength
    assert one.algebra == other.algebra
    for name in ("bias", "wrong", "uses", "saved", "ones", "missed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
