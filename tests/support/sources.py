"""What the tests of every scale share: the same call, wherever the rows are."""

import numpy as np

from bitatoms.parallel import Workers
from bitatoms.rows.passes import NO_JOURNAL, PassResult
from bitatoms.rows.source import RowSource
from bitatoms.rows.subsample import learn
from bitatoms.search.params import SearchParams, resolve
from bitatoms.validation import as_generator


def settings_for(**given) -> SearchParams:
    """Return the resolved parameters of a call of `factorize`."""
    return resolve(**given)


def learned(rows: RowSource, seed: int = 0, journal=NO_JOURNAL, workers: Workers = Workers(1), **given):  # noqa: B008
    """What is learned from rows, wherever they are."""
    found = learn(rows, settings_for(**given), workers, as_generator(seed), journal)
    return found.result if isinstance(found, PassResult) else found


def assert_same(one, other) -> None:
    """The same bits were learned: atoms, bias, counts, codelength."""
    assert one.atoms == other.atoms
    assert one.codelength == other.codelength
    assert one.algebra == other.algebra
    for name in ("bias", "wrong", "uses", "saved", "ones", "missed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
