"""Bytes that are read or made when they are needed, and not kept.

A program may have more constants than there is memory to spare. What passes them on
needs their size and whether two are equal; their bytes are needed by what digests,
computes with or writes them, one piece after the other.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

# 64 KiB, chosen by hand: scales, biases and tables stay plain bytes, and what makes a
# program large - its weights - does not. tests/unit/build/test_large_programs.py holds
# that memory does not grow with constants.
LARGE: Final = 1 << 16
"""Bytes from which on they are lazy."""
# 1 MiB, chosen by hand: what a reader holds of a file at a time, however large the file
# is.
CHUNK_BYTES: Final = 1 << 20
"""Most bytes that are read at once."""


class LazyBytes(ABC):
    """Bytes in order. Equal ones have the same length and SHA-256.

    None are equal to `bytes`: `settled` decides by size which of them something is.
    """

    __slots__ = ("_sha256",)

    def __init__(self) -> None:
        self._sha256 = ""

    @abstractmethod
    def __len__(self) -> int:
        """Their number."""

    @abstractmethod
    def chunks(self) -> Iterator[bytes | memoryview]:
        """All of them, in order, in pieces."""

    @abstractmethod
    def part(self, begin: int, end: int) -> Bytes:
        """Those of a range inside."""

    def __getitem__(self, at: slice) -> Bytes:
        begin, end, step = at.indices(len(self))
        if step != 1:
            raise ValueError("only ranges without gaps")
        if end - begin == len(self):
            return self
        return self.part(begin, max(begin, end))

    def __bytes__(self) -> bytes:
        return b"".join(self.chunks())

    @property
    def sha256(self) -> str:
        """Their digest, in hex; computed once."""
        if not self._sha256:
            found = hashlib.sha256()
            for chunk in self.chunks():
                found.update(chunk)
            self._sha256 = found.hexdigest()
        return self._sha256

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        # Equal values have one type (`settled`), so a comparison with bytes is False
        # without reading anything.
        if not isinstance(other, LazyBytes):
            return NotImplemented
        return len(self) == len(other) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} bytes>"


Bytes: TypeAlias = bytes | LazyBytes
"""Bytes at hand, or to be read."""


class HeldBytes(LazyBytes):
    """Bytes in memory, with their digest."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes | memoryview) -> None:
        super().__init__()
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `LazyBytes`."""
        yield self._data

    def part(self, begin: int, end: int) -> Bytes:
        """See `LazyBytes`."""
        found = memoryview(self._data)[begin:end]
        return HeldBytes(found) if len(found) >= LARGE else bytes(found)

    def __bytes__(self) -> bytes:
        return bytes(self._data)

    # Results of stages are pickled, and a memoryview cannot be: it would keep the whole
    # buffer that it is a part of.
    def __reduce__(self) -> tuple[type[HeldBytes], tuple[bytes]]:
        return HeldBytes, (bytes(self._data),)


class JoinedBytes(LazyBytes):
    """Several, one after the other."""

    __slots__ = ("_begins", "_parts")

    def __init__(self, parts: Sequence[Bytes]) -> None:
        super().__init__()
        self._parts = tuple(map(settled, parts))
        self._begins = (0, *accumulate(map(len, self._parts)))

    def __len__(self) -> int:
        return self._begins[-1]

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `LazyBytes`."""
        for part in self._parts:
            yield from chunks_of(part)

    def part(self, begin: int, end: int) -> Bytes:
        """See `LazyBytes`; a whole part is the same object."""
        found = []
        for number in range(max(bisect_right(self._begins, begin) - 1, 0), len(self._parts)):
            part, at = self._parts[number], self._begins[number]
            if at >= end:
                break
            low, high = max(begin - at, 0), min(end - at, len(part))
            if low < high:
                found.append(part if high - low == len(part) else part[low:high])
        return found[0] if len(found) == 1 else joined(found)

    def __reduce__(self) -> tuple[type[JoinedBytes], tuple[tuple[Bytes, ...]]]:
        return JoinedBytes, (self._parts,)


def joined(parts: Iterable[Bytes]) -> Bytes:
    """All of them, one after the other; lazy if they are large."""
    found = [part for part in parts if len(part)]
    if len(found) == 1:
        return settled(found[0])
    # Not joined at once: an arena's first values or a program's segments may be most of
    # the file.
    whole = JoinedBytes(found)
    return whole if len(whole) >= LARGE else bytes(whole)


def settled(data: Bytes | memoryview) -> Bytes:
    """Equal bytes: lazy if they are large, else at hand.

    So what is equal is of one type, whatever it was made of.
    """
    if isinstance(data, LazyBytes):
        return data if len(data) >= LARGE else bytes(data)
    return HeldBytes(data) if len(data) >= LARGE else bytes(data)


def part_of(data: Bytes, begin: int, size_bytes: int) -> Bytes:
    """Some of them, not copied if they are large."""
    if isinstance(data, LazyBytes):
        return data[begin : begin + size_bytes]
    return settled(memoryview(data)[begin : begin + size_bytes])


def chunks_of(data: Bytes) -> Iterable[bytes | memoryview]:
    """All of them, in order, in pieces."""
    return data.chunks() if isinstance(data, LazyBytes) else (data,)


def sha256_of(data: Bytes) -> str:
    """Their SHA-256, in hex."""
    if isinstance(data, LazyBytes):
        return data.sha256
    return hashlib.sha256(data).hexdigest()
