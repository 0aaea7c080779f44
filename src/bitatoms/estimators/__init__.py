"""scikit-learn estimators: thin classes over the functions of `bitatoms.api`."""

from .anndata import annotate
from .classifier import BinaryDictionaryClassifier
from .dictionary_learning import BinaryDictionaryLearning
from .persistence import load

__all__ = ["BinaryDictionaryClassifier", "BinaryDictionaryLearning", "annotate", "load"]
