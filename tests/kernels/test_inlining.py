"""Functions that are inlined into kernels are compiled once, and only as part of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from bitatoms.kernels import inlining, jit
from bitatoms.kernels.inlining import InlineLibrary
from bitatoms.kernels.jit import inline, kernel


@pytest.fixture
def functions(monkeypatch):
    """A kernel that was called, and the functions that it calls; none of them is loaded from a cache."""

    def no_cache(function):
        raise OSError

    monkeypatch.setattr(jit, "KernelCache", no_cache)

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
    return SimpleNamespace(shifted=shifted, largest=largest, combined=combined)


def test_a_function_is_compiled_once_for_all_constants(functions):
    assert functions.largest(np.array([3, 5, 4]), 2) == 4
    assert [len(function.signatures) for function in vars(functions).values()] == [1, 1, 1]


def test_inlined_functions_have_no_machine_code(functions):
    (helper,), (whole,) = (list(function.overloads.values()) for function in (functions.shifted, functions.combined))
    assert isinstance(helper.library, InlineLibrary)
    assert helper.fndesc.inline
    names = helper.fndesc.llvm_func_name, whole.fndesc.llvm_func_name
    assert helper.library.get_pointer_to_function(names[0]) == 0 != whole.library.get_pointer_to_function(names[1])
    assert names[0] not in [function.name for function in whole.library.get_defined_functions()]


def test_a_kernel_is_not_inlined_because_an_inlined_function_calls_it(functions):
    (compiled,) = functions.largest.overloads.values()
    assert not compiled.fndesc.inline


@pytest.mark.parametrize("is_small", [False, True])
def test_only_small_functions_are_optimized_by_themselves(monkeypatch, is_small):
    @inline
    def total(values):
        largest = 0
        for i in range(values.shape[0]):
            largest = max(largest, values[i])
        return largest

    if not is_small:
        monkeypatch.setattr(inlining, "_SMALL", 0)
    total.compile("(int64[::1],)")
    (compiled,) = total.overloads.values()
    assert ("alloca" in compiled.library.get_llvm_str()) != is_small  # variables are on the stack until optimized
