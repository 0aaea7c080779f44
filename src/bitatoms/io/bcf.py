"""Genotypes in the records of BCF files.

They are decoded here, because htslib ends the process, or crashes, on some malformed ones.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .genotypes import ABSENT, UNKNOWN
from .stream import Source
from .text_lines import open_decompressed

_MAGIC = (b"BCF\x02\x01", b"BCF\x02\x02")
_LONGEST = 1 << 28  # bytes of the header, and of a record
_FIXED = 24  # bytes of a record before its id
_KEYS = re.compile(r"##(?:FILTER|INFO|FORMAT)=<ID=([^,>]+)[^\n]*?(?:,IDX=([0-9]+))?>")
_INTEGERS: dict[int, np.dtype[Any]] = {1: np.dtype("<i1"), 2: np.dtype("<i2"), 3: np.dtype("<i4")}
_SIZES = {0: 0, 1: 1, 2: 2, 3: 4, 5: 4, 7: 1}  # of the values of each type, in bytes


class BcfRecord(NamedTuple):
    """The FORMAT fields of a record, not decoded."""

    source: Source
    number: int  # counted from 1
    n_samples: int
    n_fields: int
    data: bytes
    genotype_key: int

    def alleles(self) -> NDArray[np.int16]:
        """Return the two alleles of each genotype, and whether it is phased; raise FileError if they are malformed."""
        start = 0
        for _ in range(self.n_fields):
            key, start = self._integer(start)
            kind, length, start = self._descriptor(start)
            end = start + self.n_samples * length * _SIZES[kind]
            if end > len(self.data):
                raise self._corrupt()
            if key == self.genotype_key:
                if kind not in _INTEGERS or not length:
                    raise self._corrupt()
                return self._decoded(np.frombuffer(self.data[start:end], _INTEGERS[kind]).reshape(-1, length))
            start = end
        return np.tile(np.array([UNKNOWN, UNKNOWN, 1], np.int16), (self.n_samples, 1))

    def _decoded(self, values: NDArray[np.signedinteger]) -> NDArray[np.int16]:
        """Return genotypes as `alleles` does."""
        lowest = np.iinfo(values.dtype).min
        is_absent = values == lowest + 1
        given = np.where(is_absent, ABSENT, np.where(values == lowest, UNKNOWN, (values >> 1) - 1))
        if (given < ABSENT).any() or (given > np.iinfo(np.int16).max).any():
            raise self._corrupt()
        if values.shape[1] > 2 and not is_absent[:, 2:].all():
            raise self.source.error(
                f"record {self.number}: a genotype has more than two alleles; only haploid and diploid ones are "
                "supported"
            )
        alleles = np.full((self.n_samples, 3), ABSENT, np.int16)
        alleles[:, : min(2, values.shape[1])] = given[:, :2]
        alleles[:, 2] = values[:, -1] & 1 if values.shape[1] == 1 else values[:, 1] & 1
        return alleles

    def _descriptor(self, start: int) -> tuple[int, int, int]:
        """Return the type and the number of the values that begin at ``start``, and where they do."""
        if start >= len(self.data):
            raise self._corrupt()
        kind, length = self.data[start] & 15, self.data[start] >> 4
        if kind not in _SIZES:
            raise self._corrupt()
        if length < 15:
            return kind, length, start + 1
        length, start = self._integer(start + 1)
        if length < 0:
            raise self._corrupt()
        return kind, length, start

    def _integer(self, start: int) -> tuple[int, int]:
        """Return the integer that begins at ``start``, and where it ends."""
        if start >= len(self.data) or (kind := self.data[start] & 15) not in _INTEGERS or self.data[start] >> 4 != 1:
            raise self._corrupt()
        end = start + 1 + _SIZES[kind]
        if end > len(self.data):
            raise self._corrupt()
        return int.from_bytes(self.data[start + 1 : end], "little", signed=True), end

    def _corrupt(self) -> Exception:
        return self.source.error(f"record {self.number} is corrupt; check the file with 'bcftools view'")


def read_bcf(source: Source, n_samples: int) -> Iterator[BcfRecord]:
    """Yield the records of a file."""
    with open_decompressed(source) as file:
        if _read(source, file, 5, "its header") not in _MAGIC:
            raise source.error("not a BCF file, or of a version other than 2")
        header = _read(source, file, _length(source, file, "its header"), "its header").decode("utf-8", "replace")
        key, number = _genotype_key(header), 0
        while sizes := file.read(8):
            number += 1
            name = f"record {number}"
            n_shared, n_own = struct.unpack("<II", sizes + _read(source, file, 8 - len(sizes), name))
            if not _FIXED <= n_shared <= _LONGEST or n_own > _LONGEST:
                raise source.error(f"{name} is corrupt; check the file with 'bcftools view'")
            packed = int.from_bytes(_read(source, file, n_shared, name)[20:24], "little")
            data = _read(source, file, n_own, name)
            if packed & 0xFFFFFF != n_samples:
                raise source.error(f"{name} has {packed & 0xFFFFFF} samples, but the header {n_samples}: corrupt")
            yield BcfRecord(source, number, n_samples, packed >> 24, data, key)


def _genotype_key(header: str) -> int:
    """Return the number of GT in the list of names that a header implies; -1 if it is not there."""
    numbers = {"PASS": 0}
    for name, number in _KEYS.findall(header):
        numbers.setdefault(name, int(number) if number else len(numbers))
    return numbers.get("GT", -1)


def _length(source: Source, file: IO[bytes], name: str) -> int:
    """Return a length that is stored in four bytes."""
    length = int.from_bytes(_read(source, file, 4, name), "little")
    if length > _LONGEST:
        raise source.error(f"{name} is corrupt: it claims to have {length} bytes")
    return length


def _read(source: Source, file: IO[bytes], length: int, name: str) -> bytes:
    """Return this many bytes; raise FileError if there are fewer."""
    data = file.read(length)
    if len(data) != length:
        raise source.error(f"{name} is truncated")
    return data
