"""Functions that only kernels call are compiled once, and only as part of them."""

from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest

from bitatoms.kernels import jit
from bitatoms.kernels.jit import inline, kernel, subroutine


@pytest.fixture
def no_cache(monkeypatch):
    """Compile kernels, instead of loading them from a cache."""
    monkeypatch.setattr(jit, "KernelCache", mock.Mock(side_effect=OSError))


@pytest.mark.usefixtures("no_cache")
def test_a_function_is_compiled_once_for_all_constants():
    @inline
    def shifted(values, i, by):
        return values[i] + by

    @kernel
    def largest(values, first):
        best = values[first]
        for i in range(first, values.shape[0]):
            best = max(best, values[i])
        return best

    @inline
    def largest_of_all(values):
        return largest(values, 0)

    @kernel
    def combined(values, by):
        return shifted(values, 0, 1) + 10 * shifted(values, 1, by) + 100 * largest_of_all(values)

    assert combined(np.array([3, 5, 4]), 2) == 4 + 70 + 500
    assert largest(np.array([3, 5, 4]), 2) == 4
    assert [len(function.signatures) for function in (shifted, largest, combined)] == [1, 1, 1]


class Options(NamedTuple):
    size: int
    extra: int | None


@pytest.mark.usefixtures("no_cache")
def test_branches_for_what_is_none_are_not_compiled():
    @subroutine
    def only_with_extra(extra):
        return 10 * extra

    @kernel
    def of_argument(covers, size):
        return only_with_extra(size) if covers else size

    @kernel
    def of_field(options):
        return options.size if options.extra is None else only_with_extra(options.extra)

    assert (of_argument(None, 3), of_field(Options(4, None))) == (3, 4)
    assert only_with_extra.signatures == []
    assert (of_argument(True, 3), of_field(Options(4, 1))) == (30, 10)
