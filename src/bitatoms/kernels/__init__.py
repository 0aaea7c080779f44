"""Loops over packed rows of bits, and nothing else: the rooms above decide what to compute, these compute it."""
