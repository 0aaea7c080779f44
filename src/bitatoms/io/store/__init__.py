"""Packed stores: a folder of bits and names on disk, written and read one chunk of rows at a time."""
