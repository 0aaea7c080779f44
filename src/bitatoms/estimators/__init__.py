"""scikit-learn estimators: thin classes over the functions of `bitatoms.api`."""

from .anndata import annotate
from .atom_stability import Stability, stability
from .cell_validation import CellValidation, cross_validate_cells
from .classifier import BinaryDictionaryClassifier
from .cover_miner import CoverMiner
from .dictionary_learning import BinaryDictionaryLearning
from .imputer import BinaryImputer
from .persistence import load

__all__ = [
    "BinaryDictionaryClassifier",
    "BinaryDictionaryLearning",
    "BinaryImputer",
    "CellValidation",
    "CoverMiner",
    "Stability",
    "annotate",
    "cross_validate_cells",
    "load",
    "stability",
]
