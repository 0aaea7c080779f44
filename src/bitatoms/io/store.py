"""Zarr stores: packed bits with names, written and read block by block; arrays of others; AnnData."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..bits import BitMatrix
from ..table import Picture, Table, fitting_picture
from .annotated import read_annotated
from .entries import check_shape
from .errors import MissingLibrary
from .shelf import Shelf, check_folder, opened_shelf
from .stream import ROWS_BITS, Options, Rows, Source, Stream
from .tiles import Numbers, bands

KEY = "bitatoms"  # of our JSON in the attributes of the group
KIND = "bitatoms table"
VERSION = 1
_CHUNK = 1 << 20  # bytes of a chunk


class StoreWriter:
    """A packed store that grows by blocks of rows, so that no more than a block need be in memory.

    The group has the attribute ``bitatoms``: format and version, the number and names of columns, the picture that each
    row is, and ``about``, whatever the caller wants to keep beside it. The array ``bits`` has the rows as
    `BitMatrix.to_bytes` writes them; where rows have names, these are in ``name_bytes`` one after the other, in UTF-8,
    and end where ``name_ends`` says. Each chunk has a checksum, and all chunks are there: one that is not was lost.

    Parameters
    ----------
    path : Path
        The folder to make.
    n_cols : int
        Number of columns.
    columns : sequence of str, optional
        Their names.
    picture : Picture, optional
        Height and width of the picture that each row is.
    about : dict, optional
        What JSON can hold: where the rows came from, how they were read.

    Examples
    --------
    >>> from pathlib import Path
    >>> import bitatoms as ba
    >>> from bitatoms.io.store import StoreWriter
    >>> from bitatoms.io.stream import Rows
    >>> with StoreWriter(Path("large.zarr"), 3, about={"from": "two lists"}) as store:
    ...     store.append(Rows(ba.BitMatrix.from_dense([[1, 0, 1]]), ["ann"]))
    ...     store.append(Rows(ba.BitMatrix.from_dense([[0, 1, 1], [0, 0, 0]]), ["bob", "cyd"]))
    >>> ba.read("large.zarr").rows
    ('ann', 'bob', 'cyd')
    """

    def __init__(
        self,
        path: Path,
        n_cols: int,
        columns: Sequence[str] | None = None,
        picture: Picture | None = None,
        about: dict[str, Any] | None = None,
    ) -> None:
        import zarr

        self.n_rows = 0
        self._n_cols = n_cols
        self._attributes: dict[str, Any] = {
            "format": KIND,
            "version": VERSION,
            "bitatoms": __version__,
            "complete": False,
            "n_cols": n_cols,
            "columns": None if columns is None else list(columns),
            "picture": picture,
            "about": about or {},
        }
        self._group: Any = zarr.create_group(path, zarr_format=3, attributes={KEY: self._attributes})
        width = -(-n_cols // 8)
        self._bits = _Growing(self._group, "bits", np.uint8, (width,))
        self._names: tuple[_Growing, _Growing] | None = None
        self._end = 0

    def append(self, rows: Rows) -> None:
        """Put some rows behind those that are there; all come with names, or none."""
        if rows.bits.n_cols != self._n_cols:
            raise ValueError(f"the rows have {rows.bits.n_cols} columns, and the store has {self._n_cols}")
        if not self.n_rows and rows.names is not None and self._names is None:
            self._names = (
                _Growing(self._group, "name_bytes", np.uint8),
                _Growing(self._group, "name_ends", np.int64),
            )
        if (rows.names is not None) != (self._names is not None):
            raise ValueError("either all rows of a store have names or none")
        packed = np.frombuffer(rows.bits.to_bytes(), np.uint8)
        self._bits.add(packed.reshape(len(rows.bits), -(-self._n_cols // 8)))
        if rows.names is not None and self._names is not None:
            names = [name.encode("utf-8", "surrogatepass") for name in rows.names]
            if len(names) != len(rows.bits):
                raise ValueError(f"there are {len(names)} names for {len(rows.bits)} rows")
            ends = self._end + np.cumsum(np.fromiter(map(len, names), np.int64, len(names)))
            self._names[0].add(np.frombuffer(b"".join(names), np.uint8))
            self._names[1].add(ends)
            self._end = int(ends[-1]) if len(ends) else self._end
        self.n_rows += len(rows.bits)

    def close(self) -> None:
        """Write what waits for its chunk to fill, and say that the store is whole."""
        for array in (self._bits, *(self._names or ())):
            array.finish()
        self._attributes["complete"] = True
        self._group.attrs[KEY] = self._attributes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()


class _Growing:
    """An array of a store that grows; what does not fill a chunk waits."""

    def __init__(self, group: Any, name: str, dtype: Any, row: tuple[int, ...] = ()) -> None:
        from zarr.codecs import ZstdCodec

        self._size = max(1, _CHUNK // max(1, int(np.prod(row)) * np.dtype(dtype).itemsize))
        self._array = group.create_array(
            name,
            shape=(0, *row),
            chunks=(self._size, *(max(1, length) for length in row)),
            dtype=np.dtype(dtype),
            fill_value=0,
            compressors=[ZstdCodec(level=1, checksum=True)],
            config={"write_empty_chunks": True},
        )
        self._waiting: list[NDArray[Any]] = []
        self._count = 0

    def add(self, values: NDArray[Any]) -> None:
        """Put values behind those that are there."""
        self._waiting.append(values)
        self._count += len(values)
        if self._count >= self._size:
            self._put(self._count // self._size * self._size)

    def finish(self) -> None:
        """Write what waits."""
        if self._count:
            self._put(self._count)

    def _put(self, count: int) -> None:
        """Write the first of the values that wait."""
        values = np.concatenate(self._waiting)
        self._array.append(values[:count])
        self._waiting, self._count = [values[count:].copy()], len(values) - count


def write(table: Table, path: Path, format: str) -> None:
    """Write a packed store."""
    at_a_time = max(1, ROWS_BITS // max(1, table.shape[1]))
    with StoreWriter(path, table.shape[1], table.columns, table.picture) as store:
        for start in range(0, len(table), at_a_time):
            names = None if table.rows is None else table.rows[start : start + at_a_time]
            store.append(Rows(table.bits[start : start + at_a_time], names))


def read(source: Source, options: Options) -> Stream:
    """The rows of a Zarr store: a packed one, an AnnData, or an array."""
    check_folder(source)
    with source.foreign():
        shelf = Shelf(source)
        attributes = dict(shelf.root.attrs)
        about = attributes.get(KEY)
        if isinstance(about, dict) and about.get("format") == KIND:
            return _read_packed(source, options, shelf, about)
        if attributes.get("encoding-type") == "anndata":
            if find_spec("anndata") is None:
                raise MissingLibrary(
                    f'{source.name}: AnnData needs anndata; get it with pip install "bitatoms[anndata]"'
                )
            return read_annotated(source, options, opened_shelf)
        return _read_array(source, options, shelf, _array(source, options, shelf))


def _array(source: Source, options: Options, shelf: Shelf) -> Any:
    """The array of a store that has one, or of the name that is asked for."""
    element = shelf.root
    if hasattr(element, "shape"):
        if options.layer is not None:
            raise source.error(f"it is one array, and has no {options.layer!r}; leave layer= out")
        return element
    if options.layer is not None:
        for name in options.layer.strip("/").split("/"):
            element = None if element is None or hasattr(element, "shape") else shelf.child(element, name)
        if element is None or not hasattr(element, "shape"):
            raise source.error(f"it has no array {options.layer!r}; its arrays are {_listed(shelf)}")
        return element
    children = [shelf.child(element, name) for name in shelf.children(element)]
    tables = [child for child in children if len(getattr(child, "shape", ())) == 2]
    if len(tables) != 1:
        raise source.error(f"it has {len(tables)} tables; pass layer= with the name of one of {_listed(shelf)}")
    return tables[0]


def _listed(shelf: Shelf) -> str:
    """What is in a store, by name."""
    return ", ".join(map(repr, shelf.children(shelf.root)[:20])) or "none"


def _read_array(source: Source, options: Options, shelf: Shelf, array: Any) -> Stream:
    """The rows of an array of numbers."""
    if len(array.shape) != 2 or array.dtype.kind not in "biuf":
        raise source.error(f"its array is of shape {array.shape} and type {array.dtype}, no table of numbers")
    check_shape(source, *array.shape)
    numbers = Numbers(source, options, None)

    def blocks() -> Iterator[Rows]:
        with source.foreign():
            chunk = array.shards or array.chunks
            for bits in bands(lambda *tile: shelf.take(array, *tile), array.shape, chunk, numbers):
                yield Rows(bits)
        numbers.settle()

    return Stream(array.shape[1], blocks())


def _read_packed(source: Source, options: Options, shelf: Shelf, about: dict[str, Any]) -> Stream:
    """The rows of a packed store."""
    if options.layer is not None:
        raise source.error(f"a table that bitatoms wrote has no {options.layer!r}; leave layer= out")
    if int(about["version"]) > VERSION:
        by = str(about.get("bitatoms", "a newer one"))[:20]
        raise source.error(f"written by bitatoms {by}, which is newer than this, {__version__}; update bitatoms")
    if about["complete"] is not True:
        raise source.error("it was not written to its end; write it anew")
    n_cols, columns = int(about["n_cols"]), about["columns"]
    bits = shelf.child(shelf.root, "bits")
    ends, letters = (shelf.child(shelf.root, name) for name in ("name_ends", "name_bytes"))
    if bits is None or len(bits.shape) != 2 or bits.dtype != np.uint8 or bits.shape[1] != -(-n_cols // 8):
        raise source.error(f"damaged: its bits are not those of {n_cols} columns")
    if columns is not None and (len(columns) != n_cols or not all(isinstance(name, str) for name in columns)):
        raise source.error(f"damaged: it has not as many names as its {n_cols} columns")
    check_shape(source, bits.shape[0], n_cols)
    if ends is not None and (ends.shape != (bits.shape[0],) or getattr(letters, "dtype", None) != np.uint8):
        raise source.error(f"damaged: it has not as many names as its {bits.shape[0]} rows")
    picture = None if about["picture"] is None else fitting_picture(about["picture"], (bits.shape[0], n_cols))
    return Stream(n_cols, _packed_blocks(source, options, shelf, n_cols, (bits, ends, letters)), columns, picture)


def _packed_blocks(
    source: Source, options: Options, shelf: Shelf, n_cols: int, arrays: tuple[Any, Any, Any]
) -> Iterator[Rows]:
    """The rows of a packed store, a chunk at a time."""
    bits, ends, letters = arrays
    with source.foreign():
        for array in arrays:
            if array is not None:
                shelf.check_whole(array)
        end = 0
        for start in range(0, bits.shape[0], bits.chunks[0]):
            rows = slice(start, min(bits.shape[0], start + bits.chunks[0]))
            packed = shelf.take(bits, rows, slice(None))
            try:
                some = BitMatrix.from_bytes(packed.tobytes(), len(packed), n_cols)
            except ValueError as error:
                raise source.error(f"its rows {rows.start} to {rows.stop - 1} are damaged: {error}") from error
            names = None
            if ends is not None:
                stops = np.concatenate(([end], shelf.take(ends, rows)))
                names = _names(source, shelf, letters, stops)
                end = int(stops[-1])
            yield Rows(BitMatrix.from_any(some, options.binarize), names)


def _names(source: Source, shelf: Shelf, letters: Any, stops: NDArray[np.int64]) -> list[str]:
    """The names that end at these places, all but the first."""
    if (stops[1:] < stops[:-1]).any() or stops[-1] > letters.shape[0]:
        raise source.error("damaged: the names of its rows do not follow each other")
    text = shelf.take(letters, slice(int(stops[0]), int(stops[-1]))).tobytes()
    places = (stops - stops[0]).tolist()
    return [text[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(places)]
