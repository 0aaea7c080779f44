"""Kernels for CUDA devices: sources in ``cuda/``, and functions that run them."""
