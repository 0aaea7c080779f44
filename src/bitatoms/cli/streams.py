"""Standard input and output in place of files."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from ..io.errors import FileError
from ..io.formats.registry import FORMATS
from .console import lines_to_stderr, writing_to_stdout
from .options import Input
from .spelling import STANDARD


def is_stream(path: Path) -> bool:
    """Return whether a path is standard input or output."""
    return path == STANDARD


def output_name(path: Path) -> str:
    """Return the name of an output in messages."""
    return "standard output" if path == STANDARD else str(path)


@contextmanager
def lines_beside(*outputs: Path | None) -> Iterator[None]:
    """Print lines to standard error if one of the outputs is a stream, which may lead to where the lines would go."""
    with lines_to_stderr() if any(path is not None and is_stream(path) for path in outputs) else nullcontext():
        yield


@contextmanager
def output_file(path: Path, extension: str) -> Iterator[Path]:
    """Yield the path to write to: of the standard output, a temporary file, which is copied there at the end.

    The temporary file has this extension, which may end in .gz.
    """
    if path != STANDARD:
        yield path
        return
    name = output_name(path)
    with _temporary_folder(name) as folder:
        written = folder / f"output{extension}"
        with _named_temporary_errors(name, folder):
            yield written
        with open(written, "rb") as file, writing_to_stdout():
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()


@contextmanager
def spooled(data: Input) -> Iterator[Path]:
    """Return the path of the data; standard input is copied to a file, because readers need to seek."""
    path, format = data.path, data.reading.format or "csv"
    if path != STANDARD:
        yield path
        return
    if not FORMATS[format].is_one_file:
        raise FileError(f"{data.name}: {FORMATS[format].description} cannot be read from a stream; pass a file")
    with _temporary_folder(data.name) as folder:
        copy = folder / f"input{FORMATS[format].extensions[0]}"
        with _named_temporary_errors(data.name, folder), open(copy, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield copy


@contextmanager
def _temporary_folder(stream: str) -> Iterator[Path]:
    """Create a temporary folder for the copy of a stream, and remove it at the end."""
    with ExitStack() as stack:
        with _named_temporary_errors(stream, Path(tempfile.gettempdir())):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bitatoms-"))
        yield Path(folder)


@contextmanager
def _named_temporary_errors(stream: str, folder: Path) -> Iterator[None]:
    """Name a stream and the temporary folder in errors about its copy."""
    try:
        yield
    except (FileError, OSError) as error:
        cause = error.__cause__ if isinstance(error, FileError) else error
        if not isinstance(cause, OSError):
            raise
        raise FileError(
            f"{stream}: cannot be copied to the temporary folder {folder}: {cause.strerror or cause}; free some space, "
            "or choose a folder on another disk with the environment variable TMPDIR"
        ) from error
