"""Errors of files, in one line: which file, where in it, what is wrong and how to fix it."""

from __future__ import annotations

from ..errors import InputError


class FileError(InputError):
    """A file cannot be read or written; the message names it, says what is wrong and where, and how to fix it."""


class MissingLibrary(ImportError):
    """The library of a format is not installed; the message names the extra to install."""
