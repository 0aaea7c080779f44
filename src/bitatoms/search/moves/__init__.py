"""The moves of a search: each lowers the cost of a block, or leaves the block unchanged."""
