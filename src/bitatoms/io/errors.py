"""What is wrong with a file, in one line: which file, where in it, and what to do."""

from __future__ import annotations


class FileError(ValueError):
    """A file that cannot be read or written; the message names it, says what is wrong and where, and what to do."""


class MissingLibrary(ImportError):
    """A format whose library is not installed; the message says which extra brings it."""
