"""Learning from a stream of batches."""
