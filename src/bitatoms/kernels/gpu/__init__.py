"""Kernels for CUDA devices: sources in ``cuda/``, one function per kernel here."""
