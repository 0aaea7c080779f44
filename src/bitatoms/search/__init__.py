"""How a factorization is found: parameters, starts, moves and the searches built from them."""
