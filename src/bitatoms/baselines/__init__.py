"""Other methods, implemented from their papers, for comparison: estimators, and `dude` for pictures."""

from __future__ import annotations

from .asso import Asso
from .dude import dude
from .grecond import GreConD
from .message_passing import MessagePassing
from .panda import PandaPlus
from .penalized import PenalizedNMF
from .proximus import Proximus
from .thresholded import ThresholdedNMF

__all__ = ["Asso", "GreConD", "MessagePassing", "PandaPlus", "PenalizedNMF", "Proximus", "ThresholdedNMF", "dude"]
