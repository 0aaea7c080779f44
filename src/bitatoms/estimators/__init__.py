"""scikit-learn estimators: thin classes over the functions of `bitatoms.api`."""

from ..model.recommendation import Recommendations
from .atom_stability import Stability, stability
from .cell_validation import CellValidation, cross_validate_cells
from .classifier import BinaryDictionaryClassifier
from .cover_miner import CoverMiner
from .dictionary_learning import BinaryDictionaryLearning, annotate, load
from .encoder import CategoryEncoder
from .imputer import BinaryImputer

__all__ = [
    "BinaryDictionaryClassifier",
    "BinaryDictionaryLearning",
    "BinaryImputer",
    "CategoryEncoder",
    "CellValidation",
    "CoverMiner",
    "Recommendations",
    "Stability",
    "annotate",
    "cross_validate_cells",
    "load",
    "stability",
]
