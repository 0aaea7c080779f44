"""Compiled loops over packed rows of bits. Callers allocate and decide what to compute; kernels only compute."""
