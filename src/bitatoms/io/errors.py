"""Errors about files."""

from __future__ import annotations

from ..errors import InputError
from ..system.libraries import MissingLibrary as MissingLibrary


class FileError(InputError):
    """A file cannot be read or written; the message names the file, the position, the problem and how to fix it."""
