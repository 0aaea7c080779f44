"""Readers and writers of single-cell data: AnnData, MuData, and files of 10x Genomics."""
