"""Declarations of parameters: signatures, documentation and checks follow from them; defaults are in the surface."""

import inspect

import pytest

import bitatoms as ba
from bitatoms.engine.coding import CODERS
from bitatoms.io.options import ReadOptions
from bitatoms.parameters import choices, declaration, declarations, with_options


def test_the_coders_are_those_of_the_algorithms():
    assert choices(declaration("coder")[0]) == ("auto", *CODERS)


ESTIMATORS = ba.BinaryDictionaryLearning, ba.BinaryDictionaryClassifier, ba.BinaryImputer, ba.CoverMiner


@pytest.mark.parametrize("function", [ba.factorize, ba.cover, ba.read, ba.encode, *ESTIMATORS])
def test_every_parameter_is_documented(function):
    described = function.__doc__.split("Attributes\n")[0]
    for name, parameter in inspect.signature(function).parameters.items():
        assert f"\n{name} : " in described
        is_declared = name not in ("X", "mask", "sample_weight", "path", "format", "frame")
        assert not is_declared or parameter.kind is parameter.KEYWORD_ONLY or name == "n_components"


def test_types_and_defaults_are_documented():
    for function in (ba.factorize, ba.BinaryDictionaryLearning):
        assert '\nalgebra : {"xor", "or", "auto", "prefer-or"}, default="xor"\n' in function.__doc__
        assert '\nn_components : int or "mdl", default="mdl"\n' in function.__doc__
        assert '\npatience : int, "auto" or None, default="auto"\n' in function.__doc__
        assert "\ncheckpoint : str or path-like, optional\n" in function.__doc__
        assert "    How the atoms of a row are combined; auto keeps the shorter" in function.__doc__


def test_a_function_without_docstring_gets_a_signature():
    def function(options):
        return options

    taking = with_options(ReadOptions)(function)
    assert set(inspect.signature(taking).parameters) == set(declarations(ReadOptions))
    assert taking.__doc__ is None
