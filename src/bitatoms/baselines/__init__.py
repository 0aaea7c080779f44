"""Estimators of other methods, written from their papers, to compare with."""

from __future__ import annotations

from .asso import Asso
from .grecond import GreConD
from .message_passing import MessagePassing
from .panda import PandaPlus
from .penalized import PenalizedNMF
from .proximus import Proximus
from .thresholded import ThresholdedNMF

__all__ = ["Asso", "GreConD", "MessagePassing", "PandaPlus", "PenalizedNMF", "Proximus", "ThresholdedNMF"]
