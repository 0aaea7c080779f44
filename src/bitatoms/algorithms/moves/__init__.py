"""The moves of the search: each takes a block and an aim and makes the one cost less by the other, or leaves it."""
