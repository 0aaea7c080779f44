"""The kernels for the processor at hand, in numba."""
