"""Other methods as estimators, implemented from their papers, for comparison."""

from __future__ import annotations

from .asso import Asso
from .grecond import GreConD
from .message_passing import MessagePassing
from .panda import PandaPlus
from .penalized import PenalizedNMF
from .proximus import Proximus
from .thresholded import ThresholdedNMF

__all__ = ["Asso", "GreConD", "MessagePassing", "PandaPlus", "PenalizedNMF", "Proximus", "ThresholdedNMF"]
