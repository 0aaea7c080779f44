"""Other methods, implemented from their papers, for comparison: estimators, and `dude` for pictures."""

from __future__ import annotations

from .asso import Asso
from .dude import dude
from .grecond import GreConD
from .message_passing import MessagePassing
from .nmf import PenalizedNMF, ThresholdedNMF
from .panda import PandaPlus
from .proximus import Proximus

__all__ = ["Asso", "GreConD", "MessagePassing", "PandaPlus", "PenalizedNMF", "Proximus", "ThresholdedNMF", "dude"]
