"""The experiments of the paper, one module each."""
