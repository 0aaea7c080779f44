"""Declarations of parameters: signatures, documentation and checks follow from them; defaults are in the surface."""

import inspect

import pytest

import bitatoms as ba
from bitatoms.engine.coding import CODERS
from bitatoms.io.options import ReadOptions
from bitatoms.parameters import choices, declarations, with_options
from bitatoms.search.options import FactorizeOptions, PaperSearch


def test_the_coders_are_those_of_the_algorithms():
    words = {word for kind in (FactorizeOptions, PaperSearch) for word in choices(declarations(kind)["coder"][0])}
    assert words == {"auto", *CODERS}


ESTIMATORS = ba.BinaryDictionaryLearning, ba.BinaryDictionaryClassifier, ba.BinaryImputer, ba.CoverMiner
GROUPS = ba.PaperSearch, ba.Constraints, ba.Resources


@pytest.mark.parametrize("function", [ba.factorize, ba.cover, ba.read, ba.encode, *ESTIMATORS, *GROUPS])
def test_every_parameter_is_documented(function):
    described = function.__doc__.split("Attributes\n")[0]
    for name, parameter in inspect.signature(function).parameters.items():
        assert f"\n{name} : " in described
        is_declared = name not in ("X", "mask", "sample_weight", "path", "format", "frame")
        assert not is_declared or parameter.kind is parameter.KEYWORD_ONLY or name == "n_components"


def test_types_and_defaults_are_documented():
    for function in (ba.factorize, ba.BinaryDictionaryLearning):
        assert '\nalgebra : {"auto", "or", "xor"}, default="auto"\n' in function.__doc__
        assert '\nn_components : int or "mdl", default="mdl"\n' in function.__doc__
        assert "\nconstraints : Constraints, optional\n" in function.__doc__
        assert "    How the atoms of a row are combined; auto keeps OR" in function.__doc__
    assert "\npatience : int or None, default=1\n" in ba.PaperSearch.__doc__
    assert "\ncheckpoint : str or path-like, optional\n" in ba.Resources.__doc__


def test_a_function_without_docstring_gets_a_signature():
    def function(options):
        return options

    taking = with_options(ReadOptions)(function)
    assert set(inspect.signature(taking).parameters) == set(declarations(ReadOptions))
    assert taking.__doc__ is None
