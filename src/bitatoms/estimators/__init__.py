"""scikit-learn estimators: thin classes over the functions of `bitatoms.api`."""

from .dictionary_learning import BinaryDictionaryLearning, annotate, load

__all__ = ["BinaryDictionaryLearning", "annotate", "load"]
