"""The experiments of the paper, one module each; the claims about models and selection are in modules of their own."""
