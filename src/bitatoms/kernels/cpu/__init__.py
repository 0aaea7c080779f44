"""CPU kernels, in numba."""
