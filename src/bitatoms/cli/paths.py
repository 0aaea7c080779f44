"""Files that commands read and write, where - is standard input or output; all are checked before long work."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..io.atomic import is_zarr_store, link_target, write_error
from ..io.errors import FileError
from ..io.formats.registry import FORMATS, check_one_file, infer_format
from ..io.options import ReadOptions
from .output import STANDARD, print_line, writing_to_stdout


@dataclass(frozen=True)
class Input:
    """A table to read: its path, how it is read, and the height and the width of a row that is an image."""

    path: Path
    options: ReadOptions = field(default_factory=ReadOptions)
    tile: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The path as it appears in messages."""
        return "standard input" if self.path == STANDARD else str(self.path)

    @property
    def title(self) -> str:
        """The name of the file."""
        return "standard input" if self.path == STANDARD else self.path.name

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        return self.options.given() | ({} if self.tile is None else {"tile": self.tile})

    def updated(self, **options: Any) -> Input:
        """Return the same table, with some options changed."""
        return replace(self, options=replace(self.options, **options))

    def with_all_known(self) -> Input:
        """Return the same table; missing values, unless they are read as 0, are an error."""
        return self.updated(missing="refuse") if self.options.missing == "unknown" else self


@dataclass(frozen=True)
class NewRows:
    """A table for a model: the model's path, the table, and what columns mean that the table lacks."""

    model: Path
    data: Input
    absent: str


class OutputTable(NamedTuple):
    """A table to write: its path and its format."""

    path: Path
    format: str

    @property
    def name(self) -> str:
        """The path as it appears in messages."""
        return output_name(self.path)


def output_table(output: Path | None, to: str | None = None) -> OutputTable | None:
    """Return a table to write, by default CSV on the standard output; raise if a path cannot hold it."""
    if output is None:
        return None
    if output != STANDARD:
        return OutputTable(output, infer_format(output, to, writing=True))
    check_one_file(to or "csv", output_name(output))
    return OutputTable(output, to or "csv")


def check_extension(what: str, extensions: tuple[str, ...], path: Path) -> Path:
    """Return the path of an output, checked for its extension."""
    if path != STANDARD and path.suffix.lower() not in extensions:
        raise FileError(f"{path}: {what}; use the extension {' or '.join(extensions)}")
    return path


def output_name(path: Path) -> str:
    """Return the name of an output in messages."""
    return "standard output" if path == STANDARD else str(path)


def listed(paths: Sequence[Path | OutputTable | None]) -> str:
    """Return the names of the outputs that are requested."""
    return ", ".join(output_name(path) for path in paths_of(paths))


def print_written(outputs: Sequence[Path | OutputTable | None], otherwise: str = "") -> None:
    """Print which outputs were written or, if none was requested, another line if there is one."""
    if line := f"Written: {listed(outputs)}" if listed(outputs) else otherwise:
        print_line(f"\n{line}")


def paths_of(outputs: Sequence[Path | OutputTable | None]) -> list[Path]:
    """Return the paths of the outputs that are requested."""
    return [each.path if isinstance(each, OutputTable) else each for each in outputs if each is not None]


def check_writable(outputs: Sequence[Path], read: Sequence[Path], json: bool = False) -> None:
    """Check before long work that files can be written, and that none of them is also read or written twice."""
    if json and STANDARD in outputs:
        raise FileError("standard output: --json already writes to it; choose a file for other output")
    used = {path.resolve() for path in read if path != STANDARD}
    for path in outputs:
        resolved = STANDARD if path == STANDARD else path.resolve()
        if resolved in used:
            raise _is_used(output_name(path))
        used.add(resolved)
        if path != STANDARD:
            _check_parent(path)
            if path.is_dir() and path.suffix != ".zarr":
                raise FileError(f"{path}: there is a folder of this name; choose another name")


def check_checkpoint(folder: Path, others: Sequence[Path | OutputTable | None]) -> None:
    """Check before long work that a folder can contain a checkpoint and is not used for anything else."""
    check_not_stream(folder, "a checkpoint")
    if any(path != STANDARD and path.resolve() == folder.resolve() for path in paths_of(others)):
        raise _is_used(str(folder))
    _check_parent(folder)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder}: this is a file, but a checkpoint is a folder; choose another name")
    if is_zarr_store(folder):
        raise FileError(f"{folder}: this is a Zarr store; a checkpoint needs a folder of its own")


def _is_used(name: str) -> FileError:
    return FileError(f"{name}: this command already reads or writes this file; choose another name")


def _check_parent(path: Path) -> None:
    """Check that the folder of a file exists, where symbolic links lead."""
    folder = link_target(path).parent
    if not folder.is_dir():
        raise FileError(f"{path}: there is no folder {str(folder)!r}; create it first")


def check_folder(folder: Path, content: str) -> None:
    """Check before long work that a folder can be created and written to."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir():
        raise FileError(f"{folder}: {existing} is a file, but {content} is written to a folder; choose another name")
    try:
        tempfile.TemporaryDirectory(prefix=".bitatoms-", dir=existing).cleanup()
    except OSError as error:
        raise write_error(folder, error) from error


def check_not_stream(path: Path, content: str) -> None:
    """Check that a path is not the standard output, which cannot hold a folder."""
    if path == STANDARD:
        raise FileError(f"{output_name(path)}: {content} cannot be written to a stream; pass a file name")


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
    """Yield the path of a table; standard input is copied to a file, because readers need to seek.

    Errors about the copy name the standard input.
    """
    path, format = data.path, data.options.format or "csv"
    if path != STANDARD:
        yield path
        return
    if not FORMATS[format].is_one_file:
        raise FileError(f"{data.name}: {FORMATS[format].description} cannot be read from a stream; pass a file")
    with _temporary_folder(data.name) as folder:
        copy = folder / f"input{FORMATS[format].extensions[0]}"
        with _named_temporary_errors(data.name, folder), open(copy, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield copy
        except FileError as error:
            parts = [part.replace(str(copy), data.name, 1) if isinstance(part, str) else part for part in error.args]
            raise FileError(*parts) from error


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
