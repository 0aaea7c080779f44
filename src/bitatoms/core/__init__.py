"""What a factorization is, and the operations on it."""
