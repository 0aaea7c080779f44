"""Errors about files."""

from __future__ import annotations

from ..errors import InputError


class FileError(InputError):
    """A file cannot be read or written; the message names the file, the position, the problem and how to fix it."""


class MissingLibrary(ImportError):
    """The library of a format is not installed; the message names the extra to install."""
