"""The moves of a search: each lowers the cost of a block by the objective, or leaves the block as it is."""
