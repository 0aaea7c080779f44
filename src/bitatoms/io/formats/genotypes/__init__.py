"""Readers and writers of genotypes, one module per format."""
