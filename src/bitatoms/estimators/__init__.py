"""scikit-learn estimators: thin classes over the functions of `bitatoms.api`."""

from .atom_stability import Stability, stability
from .cell_validation import CellValidation, cross_validate_cells
from .classifier import BinaryDictionaryClassifier
from .cover_miner import CoverMiner
from .dictionary_learning import BinaryDictionaryLearning, annotate, load
from .encoder import CategoryEncoder
from .imputer import BinaryImputer
from .statements import Recommendations

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
