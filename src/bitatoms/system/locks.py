"""Locks on files: one process at a time holds a file, until it closes the file or ends."""

from __future__ import annotations

import errno
import sys
from typing import IO

_HELD = (errno.EAGAIN, errno.EACCES)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # errors of file systems without locks


class FileLocked(Exception):
    """Another process holds the file."""


def lock(file: IO[bytes]) -> bool:
    """Lock a file until it is closed or the process ends; return False where the file system has no locks.

    Raises
    ------
    FileLocked
        The file is locked already.
    OSError
        The file cannot be locked for another reason.
    """
    try:
        _lock(file)
    except OSError as error:
        if error.errno in _HELD:
            raise FileLocked from error
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def _lock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
