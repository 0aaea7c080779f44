"""Formats of files: `registry` lists them, and each has a module that reads and writes it."""
