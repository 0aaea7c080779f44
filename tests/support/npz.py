"""Make .npy and .npz files, well-formed and malformed."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np


def npy(array):
    """Return the bytes of an .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy_with_header(header, values=b""):
    """Return the bytes of an .npy file with any text as its header."""
    text = header.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + values


def npz(**arrays):
    """Return the bytes of an .npz file; members given as bytes are stored as they are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", array if isinstance(array, bytes) else npy(array))
    return file.getvalue()
